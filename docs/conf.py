"""How the site is built: `sphinx-build -W -c docs . build/site`.

Its sources are the Markdown pages where they lie in the repository, so that a link from
one to another leads to the same place here and there.
"""

import configparser
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
setup_cfg = configparser.ConfigParser()
setup_cfg.read(ROOT / "setup.cfg", "utf-8")
metadata = setup_cfg["metadata"]
project = "Lantern"
release = version = metadata["version"]
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
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["lantern.css"]
html_js_files = ["lantern.js"]
html_extra_path = ["_extra"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sphinx = False
# A page without pages beneath it needs no column for them.
html_sidebars: dict[str, list[str]] = {"docs/install": []}
html_theme_options = {
    "logo": {"text": f"Lantern {release}"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
# The repository's public address stands in setup.cfg alone, as packages need it:
#     project_urls =
#         Source = https://...
# Then each page shows it, and leads to its own source there; a notebook also to where
# it can be run.


def launchers(source):
    """What runs notebooks of a repository on GitHub, by the address before a page.

    >>> for name, address in launchers("https://github.com/a/b").items():
    ...     print(name, address)
    Colab https://colab.research.google.com/github/a/b/blob/main/
    Binder https://mybinder.org/v2/gh/a/b/main?labpath=
    >>> launchers("https://codeberg.org/a/b")
    {}
    """
    host, _, name = source.rpartition("github.com/")
    if not host:
        return {}
    return {
        "Colab": f"https://colab.research.google.com/github/{name}/blob/main/",
        "Binder": f"https://mybinder.org/v2/gh/{name}/main?labpath=",
    }


urls = (line.partition("=") for line in metadata.get("project_urls", "").splitlines())
source = {name.strip(): url.strip() for name, _, url in urls}.get("Source")
if source:
    html_theme_options["icon_links"] = [
        {"name": "Repository", "url": source, "icon": "fa-solid fa-code-branch"}
    ]
    html_theme_options["use_edit_page_button"] = True
    html_theme_options["secondary_sidebar_items"] = ["page-toc", "edit-this-page"]
    html_context |= {
        "doc_path": "",
        "edit_page_url_template": f"{source}/edit/main/{{{{ file_name }}}}",
        "launchers": launchers(source),
    }


def setup(app):
    """Called by Sphinx; the tests import this file and must not see its paths."""
    sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
    import reference

    return reference.setup(app)
