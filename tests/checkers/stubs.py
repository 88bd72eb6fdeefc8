"""The stubs of modules whose names come from tables: what type checkers read.

``python -m tests.checkers.stubs`` writes them anew. What a checker finds by itself is
imported from where it is defined; of what a table makes, the signature is written down,
as it is at run time.
"""

import ast
import importlib
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import lantern
from lantern.torch.tensor.named_results import CLASSES

ROOT = Path(lantern.__file__).parent
TENSOR = "lantern.torch.tensor.tensor"
MEMBERS = "lantern.torch.tensor.members"
MODULES = (
    "lantern",
    "lantern.scipy",
    "lantern.torch",
    "lantern.torch.distributions",
    "lantern.torch.linalg",
    "lantern.torch.nn",
    "lantern.torch.nn.functional",
    "lantern.torch.optim",
    "lantern.torch.optim.lr_scheduler",
    "lantern.torch.utils",
    "lantern.torch.utils.data",
)
# Decorators through which a checker sees the parameters and the result.
TYPED = set(
    "additive adjoint bilinear constant contextmanager elementwise linear op".split()
)
# What functions of lantern.torch give, where their annotations do not say: a tensor,
# and these.
_RESULTS = {
    "_bool": "is_complex is_floating_point is_nonzero is_pinned is_signed",
    "_int": "get_device __int__",
    "_float": "__float__",
    "_complex": "__complex__",
    "_tuple[Tensor, ...]": (
        "broadcast_tensors chunk dsplit gradient hsplit meshgrid split split_copy "
        "split_with_sizes split_with_sizes_copy tensor_split unbind unbind_copy "
        "unsafe_chunk unsafe_split unsafe_split_with_sizes vsplit"
    ),
    "_tuple[Tensor, Tensor]": "std_mean var_mean lstm_cell",
    "_tuple[Tensor, Tensor, Tensor]": "pca_lowrank svd_lowrank",
    "Any": (
        "__array__ __array_wrap__ __dlpack__ __dlpack_device__ __reduce__ "
        "__reduce_ex__ as_numpy_dtype atleast_1d atleast_2d atleast_3d compile "
        "get_device_module item load lu max median min nanmedian nonzero numpy "
        "result_type size stride tolist type unique unique_consecutive unravel_index "
        "vmap where"
    ),
}
RESULTS = {name: kind for kind, names in _RESULTS.items() for name in names.split()}
# Rows of results with names, of what is called like them.
_SOMETIMES = ("max", "min", "median", "nanmedian")
_ROWS = {name: f"return_types.{name}" for name in CLASSES if name not in _SOMETIMES}
_LINALG = {name.removeprefix("linalg_"): row for name, row in _ROWS.items()}
RESULTS |= _LINALG | _ROWS | {"lu": "Any"}
PROPERTIES = {
    **dict.fromkeys("grad grad_fn _base _grad layout name".split(), "Any"),
    **dict.fromkeys("itemsize nbytes output_nr".split(), "_int"),
    "retains_grad": "_bool",
}
_BUILTINS = "bool bytes complex dict float int list object set slice str tuple type"
_HEADER = "# Made by python -m tests.checkers.stubs, from what there is at run time.\n"


def stubs() -> Iterator[tuple[Path, str]]:
    """The files and what stands in them."""
    for name in MODULES:
        module = importlib.import_module(name)
        yield Path(str(module.__file__)).with_suffix(".pyi"), stub(module)
    yield ROOT / "torch" / "tensor" / "members.pyi", members()
    yield ROOT / "torch" / "return_types.pyi", rows()


def stub(module: ModuleType) -> str:
    """What a module has, for a checker."""
    lines: list[str] = []
    imports: dict[str, set[str]] = defaultdict(set)
    results = RESULTS if "torch" in module.__name__ else {}
    if module.__name__ == "lantern.torch.linalg":
        linalg = {n: row for n, row in _LINALG.items() if "linalg_" in row}
        results = {**RESULTS, "lu": "return_types.linalg_lu", **linalg}
    for name in sorted(public(module)):
        x = getattr(module, name)
        home = source(x)
        if results and inspect.isfunction(x) and home:  # the table may say more
            returned = inspect.signature(x).return_annotation
            home = "" if returned in (Any, inspect.Signature.empty) else home
        if inspect.ismodule(x):
            parent, _, last = x.__name__.rpartition(".")
            imports[parent].add(f"{last} as {name}")
        elif home and home != module.__name__:
            imports[home].add(f"{x.__qualname__} as {name}")
        elif inspect.isclass(x):
            lines.append(class_of(name, x, imports))
        elif inspect.isroutine(x):
            lines.append(function(name, x, results, imports))
        else:
            lines.append(f"{name}: {kind_of(type(x), imports)}")
    return text(lines, imports)


def public(module: ModuleType) -> set[str]:
    """The names that a module gives away, without the files that only hold them.

    They are the same whatever has been imported before.
    """
    given, later = set(), set()
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        if isinstance(node, ast.alias) and node.asname == node.name:
            given.add(node.name)
        elif isinstance(getattr(node, "value", None), str):  # perhaps a table of names
            table = re.fullmatch(r"[a-z_0-9 ]+", node.value)
            later |= set(node.value.split()) if table else set()
    names = {n for n in dir(module) if not inspect.ismodule(getattr(module, n))}
    names |= given | {n for n in later if is_later(module, n)}
    return {n for n in names if n[0] != "_" or n == "__version__"} - {"annotations"}


def is_later(module: ModuleType, name: str) -> bool:
    """Whether a module imports what a name stands for when it is asked for it."""
    try:
        found = vars(module)["__getattr__"](name)
    except (AttributeError, KeyError, ImportError):
        return False
    return getattr(found, "__spec__", True) is not None  # as of a path without a file


def source(x: Any) -> str:
    """The module where a checker sees what x is; nothing for what a table made."""
    home, name = getattr(x, "__module__", None) or "", getattr(x, "__qualname__", "")
    if name == "Tensor":  # which is shown as lantern.torch's
        home = TENSOR if home == "lantern.torch" else home
    if not (inspect.isclass(x) or inspect.isfunction(x)):
        return ""
    if not home.startswith("lantern."):
        return home if "." not in name else ""
    node = definitions(home).get(name)
    if getattr(importlib.import_module(home), name, None) is not x or node is None:
        return ""
    kinds = {ast.unparse(d).partition("(")[0] for d in node.decorator_list}
    return home if inspect.isclass(x) or kinds <= TYPED else ""


@cache
def definitions(module: str) -> dict[str, ast.FunctionDef | ast.ClassDef]:
    """The functions and classes that are written down in a module."""
    file = Path(str(importlib.import_module(module).__file__))
    body = ast.parse(file.read_text(encoding="utf-8")).body
    kinds = ast.FunctionDef | ast.ClassDef
    return {node.name: node for node in body if isinstance(node, kinds)}


def members() -> str:
    """What tables give to tensors, as a base class for checkers."""
    from lantern.torch import Tensor

    tree = ast.parse((ROOT / "torch" / "tensor" / "tensor.py").read_text("utf-8"))
    (cls,) = [n for n in tree.body if getattr(n, "name", "") == "Tensor"]
    own = {getattr(n, "name", "") for n in cls.body} | {"__getattr__"}
    lines, imports = [], defaultdict(set, {"lantern.core.value": {"Wrapper as _Base"}})
    for name, x in sorted(vars(Tensor).items()):
        if name in own or vars(object).get(name) is x:
            continue
        if isinstance(x, property):
            kind = "_bool" if name[:3] == "is_" else PROPERTIES.get(name, "Tensor")
            lines.append(f"    @property\n    def {name}(self) -> {kind}: ...")
            if x.fset:
                lines.append(
                    f"    @{name}.setter\n    def {name}(self, x: Any) -> None: ..."
                )
        elif inspect.isfunction(x):
            kinds = {**RESULTS, "__eq__": "Any", "__ne__": "Any"}
            lines.append("    " + function(name, x, kinds, imports, "self"))
    head = "class Wrapper(_Base):\n"
    return text([head + "\n".join(lines)], imports)


def rows() -> str:
    """The classes of several results in a row."""
    lines = []
    for name, row in sorted(CLASSES.items()):
        lines.append(
            f"class {name}(_tuple[{', '.join(['Tensor'] * len(row._fields))}]):"
        )
        one = "    @property\n    def {}(self) -> Tensor: ..."
        lines.extend(map(one.format, row._fields))
    return text(lines, defaultdict(set))


def class_of(name: str, cls: type, imports: Any) -> str:
    """A class that a table made: what it is made from, and how."""
    base = next(c for c in cls.__mro__[1:] if source(c))
    if base is not object:
        imports[base.__module__].add(base.__name__)
    made = function("__init__", cls, {}, imports, "self").rpartition(" -> ")[0]
    bases = f"({base.__name__})" if base is not object else ""
    return f"class {name}{bases}:\n    {made} -> None: ..."


def function(
    name: str, f: Any, results: dict[str, str], imports: Any, first: str = ""
) -> str:
    """The signature of a function, or of a method with another name for its first."""
    signature = annotated(f)
    parameters = list(signature.parameters.values())
    if first:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        rest = parameters if inspect.isclass(f) else parameters[1:]
        parameters = [inspect.Parameter(first, kind), *rest]
    parts, starred, slashed = [], False, False
    for p in parameters:
        if slashed and p.kind is not p.POSITIONAL_ONLY:
            parts.append("/")
        slashed = p.kind is p.POSITIONAL_ONLY
        if p.kind is p.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred |= p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        kind = "" if p.name == first else f": {annotation(p.annotation, imports)}"
        default = "" if p.default is p.empty else f" = {literal(p.default)}"
        parts.append(f"{mark}{p.name}{kind}{default}")
    if slashed:
        parts.append("/")
    result = annotation(signature.return_annotation, imports)
    if name in results or result == "Any":
        result = results.get(name, "Tensor" if results else "Any")
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


def annotated(f: Any) -> inspect.Signature:
    """A signature; of what is shown as text, with the types of the ``def`` behind."""
    signature, inner, found = inspect.signature(f), f, f
    while inspect.isfunction(found) and hasattr(found, "__text_signature__"):
        inner, held = found, inspect.getclosurevars(found).nonlocals
        found = held.get("function") or held.get("creator") or held.get("create")
        if inspect.isfunction(found) and not inspect.signature(found).parameters:
            found = found()  # which imports it
    inner = found if inspect.isfunction(found) else inner
    if not hasattr(f, "__text_signature__") or not inspect.isfunction(inner):
        return signature
    given = inspect.get_annotations(inner)
    rows = [
        p.replace(annotation=given.get(p.name, p.annotation))
        for p in signature.parameters.values()
    ]
    result = given.get("return", signature.return_annotation)
    return signature.replace(parameters=rows, return_annotation=result)


def annotation(kind: Any, imports: Any) -> str:
    """What stands behind a colon, with what it needs imported."""
    if kind is inspect.Parameter.empty:
        return "Any"
    words = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    words = re.sub(r"\bcollections\.abc\.Generator\[.*\]", "Any", words)
    for path in set(re.findall(r"[A-Za-z_]\w*(?:\.\w+)+", words)):
        module, _, name = path.rpartition(".")
        imports[module].add(name)
        words = words.replace(path, name)
    return re.sub(rf"\b({_BUILTINS.replace(' ', '|')})\b", r"_\1", words)


def literal(default: Any) -> str:
    """A default, where it can be written down."""
    plain = default is None or isinstance(default, bool | int | str)
    return repr(default) if plain or type(default) is float else "..."


def kind_of(cls: type, imports: Any) -> str:
    """The type of a value."""
    if cls.__module__ == "builtins":
        return "None" if cls is type(None) else f"_{cls.__name__}"
    cls = next(c for c in cls.__mro__ if source(c) or c is object)
    imports[cls.__module__].add(f"{cls.__name__} as _{cls.__name__}")
    return f"_{cls.__name__}"


def text(lines: list[str], imports: dict[str, set[str]]) -> str:
    """A file: what it imports, then what it says."""
    body = "\n".join(lines)
    for word in _BUILTINS.split():
        if re.search(rf"\b_{word}\b", body):
            imports["builtins"].add(f"{word} as _{word}")
    if re.search(r"\bAny\b", body):
        imports["typing"].add("Any")
    if re.search(r"\bTensor\b", body):
        imports[TENSOR].add("Tensor")
    if "return_types." in body:
        imports["lantern.torch"].add("return_types as return_types")
    head = [
        f"from {module} import {name}"
        for module in sorted(imports)
        for name in sorted(imports[module])
        if f"{name} as {name}" not in imports[module]
    ]
    return _HEADER + "\n".join([*head, "", body, ""])


def main() -> None:
    """Write the stubs that have changed; with --check, only name them."""
    for path, content in stubs():
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            print(path.relative_to(ROOT.parent))
            if "--check" not in sys.argv:
                path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
