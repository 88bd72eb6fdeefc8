"""How the site is built: `sphinx-build -W -c docs . build/site`.

Its sources are the Markdown pages where they lie in the repository, so that a link from
one to another leads to the same place here and there.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
project = "Lantern"
author = copyright = "The Lantern developers"
root_doc = "docs/index"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx-mathjax-offline",
]
include_patterns = [
    "docs/**.md",
    "lantern/**README.md",
    "examples/**README.md",
    "examples/notebooks/*.ipynb",
    "benchmarks/README.md",
    "tests/conformance/README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["build", ".venv", "**/.ipynb_checkpoints"]
# Every link must lead somewhere.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!lantern)[\w.]+")]  # of other libraries
suppress_warnings = ["mystnb.unknown_mime_type"]

myst_enable_extensions = ["colon_fence", "dollarmath", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "off"
nb_merge_streams = True
nb_code_prompt_show, nb_code_prompt_hide = "Show the solution", "Hide the solution"
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
add_module_names = False
toc_object_entries_show_parents = "hide"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"

html_theme = "pydata_sphinx_theme"
html_title = "Lantern"
html_static_path = ["_static"]
html_css_files = ["lantern.css"]
html_js_files = ["lantern.js"]
html_extra_path = ["_extra"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "logo": {"text": "Lantern"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}


def setup(app):
    """Called by Sphinx; the tests import this file and must not see its paths."""
    sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
    import reference

    return reference.setup(app)
