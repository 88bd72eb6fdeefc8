"""The pages of the reference: every public name, by topic, from its docstring."""

import ast
import importlib
import inspect
import os
import re
import types
from pathlib import Path

FOLDER = Path(__file__).parent / "reference"
# The home of a name that `lantern` exports decides its page. A home that is not named
# here has its names on the last page, so that none is ever missing.
TOPICS = {
    "derivatives": (
        "Derivatives, by name",
        (
            "transforms.reverse transforms.forward transforms.linearize "
            "vectorizing.vmap vectorizing.jacobian transforms.taylor "
            "transforms.implicit batching.verbs"
        ),
    ),
    "rules": ("Rules of your own", "transforms.custom_rule transforms.custom_vjp"),
    "control": (
        "Control over the reverse pass, by name",
        (
            "control.hooks control.progress control.no_grad control.checkpoint "
            "debugging.debug debugging.backward_steps"
        ),
    ),
    "rest": (
        "The rest of the program",
        "control.bracket control.program parallel.executor",
    ),
    "values": (
        "Values and structures",
        (
            "rules.number tensor.tensor tensor.buffer tensor.backend.device core.tree "
            "rules.noncommutative core.namespace tensor.backend.numpy_namespace "
            "core.numpy_protocols"
        ),
    ),
    "creation": ("Making arrays", "tensor.ops.creation tensor.ops.constants"),
    "elements": (
        "Functions of each element",
        (
            "rules.arithmetic rules.exponential rules.trigonometry rules.selection "
            "rules.special tensor.ops.elementwise tensor.ops.softmax "
            "tensor.ops.floating tensor.ops.special tensor.ops.gamma"
        ),
    ),
    "axes": (
        "Along an axis",
        (
            "tensor.ops.reduction tensor.ops.mean_variance tensor.ops.nan_reductions "
            "tensor.ops.quantiles tensor.ops.histogram tensor.ops.cumulative "
            "tensor.ops.diff"
        ),
    ),
    "shapes": (
        "Shapes, joining, arranging",
        (
            "tensor.ops.shape tensor.ops.concat_stack tensor.ops.split_mesh "
            "tensor.ops.rearrange tensor.ops.pad"
        ),
    ),
    "indexing": (
        "Reading, writing, sorting",
        (
            "tensor.ops.indexing tensor.ops.at tensor.buffer_functions "
            "tensor.ops.sorting tensor.ops.sets"
        ),
    ),
    "products": ("Products", "tensor.ops.products tensor.ops.einsum"),
    "signals": (
        "Signals and polynomials",
        "tensor.ops.convolution tensor.ops.polynomial",
    ),
    "constants": ("Derivative zero", "tensor.ops.zero_derivative"),
    "errors": ("Errors", "errors"),
}
# Pages that explain a topic's names.
GUIDES = {
    "derivatives": "derivatives",
    "rules": "howto/operation",
    "control": "control",
    "rest": "continuations",
    "values": "mutation",
    "indexing": "mutation",
    "elements": "explanation/edges",
    "errors": "explanation/promises",
}
# Modules that are imported by name.
MODULES = (
    "op cps effects debugger testing linalg fft random array_api scipy.special "
    "scipy.stats scipy.linalg scipy.signal scipy.integrate torch torch.autograd "
    "torch.autograd.functional torch.nn torch.nn.functional torch.nn.init "
    "torch.nn.utils torch.optim torch.optim.lr_scheduler torch.utils.data "
    "torch.signal.windows torch.distributed torch.distributed.nn "
    "torch.distributed.algorithms torch.distributed.optim torch.utils models onnx "
    "engines"
).split()
# A class with so many methods that it has a page.
LARGE = "lantern.torch.Tensor"
# Layers by what they do, by their names; those of no family come last.
FAMILIES = {
    "modules": (
        "Modules and parameters",
        r"Module.*|Sequential|.*Parameter.*|.*Buffer",
    ),
    "convolution": ("Convolution", r"(Lazy)?Conv.*|Fold|Unfold|Pixel.*|Channel.*"),
    "pooling": ("Pooling and resizing", r".*Pool\d.*|MaxUnpool.*|Upsampl.*"),
    "padding": ("Padding", r".*Pad\d.*"),
    "normalisation": ("Normalisation", r".*Norm.*"),
    "recurrent": ("Recurrent layers", r"(RNN|LSTM|GRU).*"),
    "attention": ("Attention and transformers", r"Transformer.*|Multihead.*"),
    "losses": ("Losses", r".*Loss"),
    "dropout": ("Dropout", r".*Dropout.*"),
    "activations": (
        "Activations",
        (
            r".*LU6?|Hard.*|.*Sigmoid|.*[sS]oft(max.*|min|plus|shrink|sign)|GLU|Mish|"
            r"Tanh.*|Threshold"
        ),
    ),
    "linear": ("Linear layers, embeddings and the rest", r".*"),
}
# Pages on which a name in code without a prefix is Lantern's.
TALKS_OF_LANTERN = {
    f"docs/{page}"
    for page in ("derivatives", "control", "continuations", "mutation", "vmap")
}

# What introduces a section of a docstring, and a field of it.
HEADINGS = {
    "Args": [],
    "Attributes": [],
    "Raises": [],
    "Returns": [":returns:"],
    "Shapes": [".. rubric:: Shapes", "", ".. code-block:: text"],
    "Rule": [".. rubric:: Rule", "", ".. code-block:: text"],
}
FIELDS = {"Args": "param", "Attributes": "ivar", "Raises": "raises"}


def home(value):
    """Where a thing was made; "lantern" for what does not say, as a number."""
    made = str(getattr(value, "__module__", None) or "lantern")
    return made if made.partition(".")[0] == "lantern" else ""


def public_names(module):
    """The names that a module offers, also those that it imports when asked."""
    lazy = ("_LATER", "_LAZY_FUNCTIONS", "_CONSTANTS")
    source = "" if hasattr(module, "__path__") else inspect.getsource(module)
    tools = {  # what a module imports is its own business; a package offers it
        alias.name
        for statement in ast.walk(ast.parse(source))
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    listed = getattr(module, "__all__", None) or [
        *(name for name in vars(module).keys() - tools if home(vars(module)[name])),
        *(name for names in lazy for name in getattr(module, names, ())),
    ]
    for name in sorted(set(listed)):
        value = getattr(module, name, None)
        if not (name.startswith("_") or isinstance(value, types.ModuleType)):
            yield name, value


def modules():
    """The modules with a page of their own, those that are there."""
    import lantern
    import lantern.torch

    lazy = [name for name in lantern._MODULES if name != "scipy"]
    lazy += [f"torch.{name}" for name in lantern.torch._LAZY if name != "utils"]
    for name in dict.fromkeys([*MODULES, *sorted(lazy)]):
        try:
            yield importlib.import_module(f"lantern.{name}")
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("lantern."):
                yield None  # needs a package that is not installed


def entry(module, name, value, seen):
    """A directive for one name; the second name of a thing points to the first."""
    full = f"{module.__name__}.{name}"
    data = f".. py:data:: {name}\n   :module: {module.__name__}\n\n   "
    if not home(value):
        return f"{data}``{value.__module__}.{value.__name__}``\n"
    if isinstance(value, type) or callable(value):
        first = seen.setdefault(id(value), full)
        if first != full:
            return f"{data}The same as :py:obj:`{first}`.\n"
    if isinstance(value, type):
        bases = "   :show-inheritance:\n" if issubclass(value, BaseException) else ""
        return f".. autoclass:: {full}\n   :members:\n{bases}{_of_an_ndarray(value)}"
    if callable(value):
        return f".. autofunction:: {full}\n"
    shown = f"``{value!r}``" if len(repr(value)) <= 60 else f"A {type(value).__name__}."
    return f"{data}{shown}\n"


def _of_an_ndarray(cls):
    """The option that shows an ndarray's methods with the class that inherits them."""
    from lantern.tensor.ndarray_methods import NdarrayMethods

    if NdarrayMethods not in cls.__bases__:
        return ""
    others = [base.__name__ for base in cls.__mro__[1:] if base is not NdarrayMethods]
    return f"   :inherited-members: {', '.join(others)}\n"


def first_names(module, names):
    """What is known by several names, by the one that its example calls it by."""
    for name, value in names:
        full = f"{module.__name__}.{name}"
        example = (getattr(value, "__doc__", None) or "").partition("Example:")[2]
        if f" {full.removeprefix('lantern.')}(" in example:
            yield id(value), full


def large_class(torch):
    """The page of tensors: their own methods, and which functions are methods too."""
    shared = []
    for name, method in vars(torch.Tensor).items():
        function = getattr(torch, name, None)
        same = inspect.isfunction(method) and method.__doc__ == getattr(
            function, "__doc__", ""
        )
        if method is function or same:
            shared.append(name)
    shared.sort()
    links = ",\n".join(f":py:obj:`{name} <lantern.torch.{name}>`" for name in shared)
    own = f".. autoclass:: {LARGE}\n   :members:\n"
    own += f"   :exclude-members: {', '.join(shared)}\n\n"
    addresses = "\n      ".join(f"{name}()" for name in shared)
    own += f"   .. py:method:: {addresses}\n      :no-typesetting:\n"
    words = (
        "These functions of ``torch`` are methods as well, of their first argument: "
        f"``torch.abs(x)`` is ``x.abs()``.\n\n{links}.\n"
    )
    return page(f"`{LARGE}`", "", [words, own])


def page(title, text, entries):
    """A page with entries, which are in reStructuredText."""
    body = "\n".join(entries)
    return f"# {title}\n\n{text}\n\n```{{eval-rst}}\n{body}\n```\n"


def topics(lantern):
    """The names of `lantern` itself, by topic."""
    homes = [
        (m, slug) for slug, (_, modules) in TOPICS.items() for m in modules.split()
    ]
    found = {slug: {} for slug in [*TOPICS, "more"]}
    names = dict(public_names(lantern))
    for (
        module,
        slug,
    ) in homes:  # a page keeps their order: what matters most comes first
        for name, value in names.items():
            if home(value) == f"lantern.{module}":
                found[slug][name] = value
    placed = {name for page in found.values() for name in page}
    found["more"] = {name: names[name] for name in names if name not in placed}
    return found


def pages():
    """Every page's name and text."""
    import lantern

    found = list(filter(None, modules()))
    seen = {}
    for module in found:
        if "torch" in module.__name__:
            seen |= dict(first_names(module, public_names(module)))
    for slug, names in topics(lantern).items():
        title = TOPICS.get(slug, ("Constants, types and the rest",))[0]
        entries = [entry(lantern, *item, seen) for item in names.items()]
        guide = GUIDES.get(slug)
        told = f" [The guide](../{guide}.md) tells how they are used." if guide else ""
        if entries:
            yield slug, page(title, f"Names of `lantern`.{told}", entries)
    for module in found:
        name = module.__name__
        large = LARGE.removeprefix(f"{name}.")
        names = [item for item in public_names(module) if item[0] != large]
        entries = [entry(module, *item, seen) for item in names]
        if name == "lantern.torch.nn":
            yield from families(module, names, seen)
        elif entries:
            words = f".. automodule:: {name}\n   :no-index:\n"
            told = f"`{LARGE}` has [a page of its own]({LARGE}.md)."
            told = told if large == "Tensor" else ""
            yield name, page(f"`{name}`", told, [words, *entries])
        if large == "Tensor":
            yield LARGE, large_class(module)


def families(nn, names, seen):
    """The layers, a page for each family; and the page that leads to these."""
    found = {slug: [] for slug in FAMILIES}
    for name, value in names:
        slug = next(s for s, (_, kind) in FAMILIES.items() if re.fullmatch(kind, name))
        found[slug].append(entry(nn, name, value, seen))
    for slug, entries in found.items():
        yield f"nn.{slug}", page(FAMILIES[slug][0], "Of `lantern.torch.nn`.", entries)
    pages = "\n".join(f"nn.{slug}" for slug in FAMILIES)
    words = "Layers, losses and what they are made of, under PyTorch's names."
    listed = f"```{{toctree}}\n:maxdepth: 2\n\n{pages}\n```"
    yield "lantern.torch.nn", f"# `lantern.torch.nn`\n\n{words}\n\n{listed}\n"


def write_pages(app=None):
    """Write the reference's Markdown beside this file, where it has changed."""
    FOLDER.mkdir(exist_ok=True)
    texts = dict(pages())
    others = [slug for slug in texts if not slug.startswith("nn.")]
    own = "\n".join(slug for slug in others if not slug.startswith("lantern."))
    more = "\n".join(
        f"{slug.removeprefix('lantern.')} <{slug}>"
        for slug in others
        if slug.startswith("lantern.")
    )
    texts["index"] = (
        "# Reference\n\nEvery public name, from its docstring.\n\n"
        f"```{{toctree}}\n:caption: Names of lantern\n:maxdepth: 1\n\n{own}\n```\n\n"
        f"```{{toctree}}\n:caption: Modules\n:maxdepth: 1\n\n{more}\n```\n"
    )
    for old in FOLDER.glob("*.md"):
        if old.stem not in texts:
            old.unlink()
    for slug, text in texts.items():
        path = FOLDER / f"{slug}.md"
        if not path.exists() or path.read_text() != text:
            new = path.with_suffix(f".{os.getpid()}")
            new.write_text(text)
            new.replace(path)  # at once: another build may be reading


def escaped(line):
    """Plain words of a docstring, as reStructuredText or Markdown reads them."""
    parts = re.split(r"(``.+?``|`[^`]+`)", line)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = f"``{part.strip('`')}``"
        else:
            parts[i] = re.sub(r"([*|])|(?<=\w)(_)(?!\w)", r"\\\1\2", part)
    return "".join(parts)


def readable(app, what, name, obj, options, lines):
    """Turn the sections of a docstring into reStructuredText.

    Args, Raises and Returns become lists of fields; Shapes and Rule are shown as they
    stand; words are words, and examples are code.
    """
    result, section, code, drawn = [], "", False, False
    for line in lines:
        text = line.strip()
        if not line.startswith(" ") and re.fullmatch(r"[A-Z][a-z]+:", text):
            section = text[:-1]
            result += ["", *HEADINGS.get(section, [f".. rubric:: {section}"]), ""]
            continue
        section = section if not text or line.startswith(" ") else ""
        body = line[4:] if section else line
        if section in FIELDS and body[:1].strip():
            head, _, rest = body.partition(":")
            name = head.replace(", ", "/")  # a field has one name
            result.append(f":{FIELDS[section]} {name}:{escaped(rest)}")
        elif section in ("Shapes", "Rule"):
            result.append(f"    {body}" if text else "")
        else:
            code = bool(text) and (code or text.startswith(">>>"))
            drawn = drawn and (not text or line.startswith(" "))
            words = body if code or drawn or text.endswith("::") else escaped(body)
            drawn = drawn or text.endswith("::")
            result.append("    " + words if section == "Returns" else words)
    lines[:] = result


def link_names(app, doctree):
    """Let a name of the library, in code, lead to its entry."""
    from docutils import nodes
    from sphinx.addnodes import pending_xref

    document = app.env.docname
    ours = document.startswith("docs/reference/") or document in TALKS_OF_LANTERN
    home_of_page = document.rpartition("/")[2].removesuffix(".Tensor")
    home_of_page = home_of_page if home_of_page.startswith("lantern.") else "lantern"
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")  # a doctest ends with an empty line
        if block.rawsource == block.astext():
            block.rawsource, block.children = text, []
            block += nodes.Text(text)
    for literal in list(doctree.findall(nodes.literal)):
        target = literal.astext().partition("(")[0]
        is_bare = ours and "." not in target
        if is_bare:
            target = f"{home_of_page}.{target}"
        if not target.startswith("lantern.") or isinstance(
            literal.parent, (nodes.title, nodes.reference, pending_xref)
        ):
            continue
        link = pending_xref("", refdomain="py", reftype="obj", reftarget=target)
        known = {"refdoc": document, "refexplicit": True, "is_bare": is_bare}
        link.update_all_atts(known)
        literal.replace_self(link)
        link += literal


def hidden(app, what, name, obj, skip, options):
    """Fields of a named tuple, which its docstring tells; what rules ask of tensors.

    And where a distribution's draws can lie, where that is an object without words.
    """
    return (
        skip
        or (inspect.getdoc(obj) or "").startswith("Alias for field number")
        or (name == "support" and not isinstance(obj, property))
        or (name in ("emerge", "gradient", "one") and "torch" in str(home(obj)))
    )


def setup(app):
    """Called by Sphinx."""
    from sphinx.domains.python import PyObject

    for field in PyObject.doc_field_types:
        field.label = {"variable": "Attributes"}.get(field.name, field.label)
    app.connect("autodoc-skip-member", hidden)
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", readable, priority=100)
    app.connect("doctree-read", link_names)
    app.connect("missing-reference", plain)
    return {"parallel_read_safe": True}


def plain(app, env, node, content):
    """A name without an entry stays what it was, or is that of a module around it."""
    if not node.get("refexplicit") or node.get("reftype") != "obj":
        return None
    module, _, name = node["reftarget"].rpartition(".")
    while node.get("is_bare") and (module := module.rpartition(".")[0]):
        found = env.domains["py"].resolve_xref(
            env, node["refdoc"], app.builder, "obj", f"{module}.{name}", node, content
        )
        if found is not None:
            return found
    return content
