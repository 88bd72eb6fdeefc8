"""The rules that the source itself keeps: one op, one place; one file, one thing."""

import ast
import builtins
import functools
import importlib
import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import lantern
from lantern.op import registry

HOME = Path(lantern.__file__).parent
FILES = {
    ".".join(path.relative_to(HOME).with_suffix("").parts)
    .removesuffix("__init__")
    .removesuffix("."): path
    for path in sorted(HOME.rglob("*.py"))
}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
nodes = functools.cache(lambda tree: [*ast.walk(tree)])  # each module is read ten times
OURS = {
    n: op for n, op in registry.items() if op.rule.__module__.startswith("lantern.")
}

# The floors of the house, as lantern/README.md draws them, from the ground up.
DRAWING = re.search(r"```\n(.*?)```", (HOME / "README.md").read_text(), re.DOTALL)
FLOORS = [set(line.split(", ")) for line in reversed(DRAWING[1].splitlines())]
ALLOWED_IMPORTS = {
    "greenlet": {"cps.worker"},
    "mpi4py": {"distributed.mpi"},
    "numpy": {
        "distributed.mpi",
        "eager.recorder",
        "engines.arrays",
        "tensor.backend.numpy_namespace",
        "tensor.ops.random",
        "tensor.tensor",
        "testing",
    },
    "cupy": {"tensor.backend.device"},
}
# Python's protocols ask for these builtins by name.
ALLOWED_BUILTIN_ERRORS = {"AttributeError", "StopIteration"}


def room(module):
    return module.partition(".")[0]


def floor(module):
    (found,) = [i for i, names in enumerate(FLOORS) if room(module) in names]
    return found


def imports(tree):
    """Every imported module, and `package.name` for what may be a submodule.

    What is imported for its types alone does not count.
    """
    tests = [n for n in tree.body if isinstance(n, ast.If)]
    types = {k for n in tests if "TYPE_CHECKING" in ast.unparse(n) for k in ast.walk(n)}
    for node in nodes(tree):
        if node in types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            yield from (a.value for a in node.args if isinstance(a, ast.Constant))


NAMES = {module: set(imports(tree)) for module, tree in TREES.items()}


def ours(module):
    """The modules of the library that one imports, in functions, too."""
    names = {n[8:] for n in NAMES[module] if n.startswith("lantern.")}
    return {name for name in names if name in FILES} - {module}


IMPORTS = {module: ours(module) for module in FILES if module}


def circles(edges):
    """Groups of names that reach one another."""
    reached = {name: set(found) for name, found in edges.items()}
    for middle in reached:
        for name in reached:
            if middle in reached[name]:
                reached[name] |= reached[middle]
    return {name for name in reached if name in reached[name]}


def test_rooms_of_one_floor_import_in_no_circle():
    edges = {room(module): set() for module in IMPORTS}
    for module, found in IMPORTS.items():
        edges[room(module)] |= {room(name) for name in found} - {room(module)}
    assert circles(edges) == set()


def test_modules_import_in_no_circle():
    """What a package hands out when it is asked for is no import of its own."""
    packages = {m for m in IMPORTS if FILES[m].name == "__init__.py"}
    found = circles({m: IMPORTS[m] for m in IMPORTS if m not in packages})
    assert found == set()


def reach_ins(module, tree):
    """The names with an underscore that a module takes from another room's modules."""
    known = {}
    for node in nodes(tree):
        if not isinstance(node, ast.ImportFrom) or node.module[:7] != "lantern":
            continue
        path = node.module.removeprefix("lantern").removeprefix(".")
        for alias in node.names:
            whole = f"{path}.{alias.name}".strip(".")
            if whole in FILES:
                known[alias.asname or alias.name] = whole
            elif is_private(alias.name) and not is_inside(module, path):
                yield whole
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            path = known.get(ast.unparse(node.value))
            if path is not None and not is_inside(module, path):
                yield f"{path}.{node.attr}"


def is_inside(module, path):
    """Whether a module is in the folder of another one, or further inside."""
    package = FILES[path].name == "__init__.py"
    folder = path if package else path.rpartition(".")[0] or path
    return f"{module}.".startswith(f"{folder}.")


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def test_no_room_reaches_into_another():
    """A room is what is in one folder; its private names are known in there only."""
    found = {m: [*reach_ins(m, tree)] for m, tree in TREES.items()}
    assert {m: names for m, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line", ["from lantern.core.value import _x", "from lantern.core import value as v"]
)
def test_reach_ins_are_found(line):
    tree = ast.parse(f"{line}\nv._x")
    for module in ("rules.number", "op", "torch.nn.init", "control.hooks"):
        assert [*reach_ins(module, tree)] == ["core.value._x"]
    assert [*reach_ins("core.tree", tree)] == []
    assert [*reach_ins("rules.number", ast.parse("from lantern.op import _x"))]


def test_circles_are_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c"}


@pytest.mark.parametrize("path", sorted(HOME.rglob("README.md")), ids=str)
def test_a_room_names_each_of_its_files(path):
    text = path.read_text()
    for file in path.parent.glob("*.py"):
        assert file.name == "__init__.py" or file.name in text


def of_each_module(faults):
    """No module has faults; those of all are named at once."""
    found = {module: [*faults(module)] for module in FILES if module}
    assert {module: names for module, names in found.items() if names} == {}


def test_imports_only_go_down():
    def faults(module):
        others = {name for name in IMPORTS[module] if room(name) != room(module)}
        return {name for name in others if floor(name) > floor(module)}

    of_each_module(faults)


def test_libraries_are_imported_where_they_may_be():
    def faults(module):
        packages = {name.partition(".")[0] for name in NAMES[module]}
        for package, allowed in ALLOWED_IMPORTS.items():
            # A face of its own, and a format whose arrays are NumPy's.
            free = package == "numpy" and module.startswith(("torch.", "onnx."))
            if package in packages and module not in allowed and not free:
                yield package

    of_each_module(faults)


def test_functions_have_a_budget_of_lines():
    def faults(module):
        for node in nodes(TREES[module]):
            function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            if function and node.end_lineno - node.lineno >= 60:
                yield node.name

    of_each_module(faults)


def test_every_module_and_public_name_has_a_docstring():
    def faults(module):
        tree = TREES[module]
        named = {"the module": tree, **dict(definitions(tree))}
        return [name for name, node in named.items() if not ast.get_docstring(node)]

    of_each_module(faults)


def test_only_documented_errors_are_raised():
    def faults(module):
        for node in nodes(TREES[module]):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                name = ast.unparse(node.exc.func)
                if name not in ALLOWED_BUILTIN_ERRORS and hasattr(builtins, name):
                    yield name

    of_each_module(faults)


def test_exported_names_exist():
    def faults(module):
        exported = getattr(sys.modules.get(f"lantern.{module}"), "__all__", [])
        for name in exported:
            if not hasattr(sys.modules[f"lantern.{module}"], name):
                yield name
        yield from {name for name in exported if exported.count(name) > 1}

    of_each_module(faults)


def definitions(tree, prefix=""):
    """Public classes, functions and methods, by name."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        if "overload" in map(ast.unparse, node.decorator_list):
            continue  # the documented one comes last
        yield f"{prefix}{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from definitions(node, f"{node.name}.")


def test_greenlet_is_imported_in_exactly_one_file():
    users = {module for module, names in NAMES.items() if "greenlet" in names}
    assert users == ALLOWED_IMPORTS["greenlet"]


def source_of(function):
    return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]


def yields(node):
    return [n for n in ast.walk(node) if isinstance(n, ast.Yield | ast.YieldFrom)]


def delegate(node, function):
    """The helper that a ``yield from`` calls."""
    return function.__globals__[ast.unparse(node.value.func)]


def check_hand_over(tree, function=None, constant=False):
    """One yield of the value, at the top of the body; then only contributions.

    What the rule forgets with the hand-over (``x := None``, ``del x``) is not read
    again; an operand that is not read again is forgotten, for a frame keeps its
    variables, and they their memory.
    """
    statements = [s for s in tree.body if yields(s)]
    first, later = statements[0], statements[1:]
    if isinstance(getattr(first, "value", None), ast.YieldFrom):
        assert later == [], "a rule that delegates does nothing else"
        helper = delegate(first.value, function)
        check_hand_over(source_of(helper), helper, constant)
        return
    assert isinstance(first, ast.Expr if constant else ast.Assign), "the hand-over"
    assert isinstance(first.value, ast.Yield), "the hand-over is a statement of its own"
    assert first.value.value is not None, "the hand-over gives the value away"
    assert len(yields(first)) == 1
    assert bool(later) is not constant, "contributions follow"
    for statement in later:
        check_contributions(statement, function)
    position = tree.body.index(first)
    forgotten = {n.target.id for n in ast.walk(first) if isinstance(n, ast.NamedExpr)}
    for statement in tree.body[:position]:
        for node in ast.walk(statement):
            if isinstance(node, ast.Delete):
                forgotten |= {target.id for target in node.targets}
    rest = [node for s in tree.body[position + 1 :] for node in ast.walk(s)]
    read = {n.id for n in rest if isinstance(n, ast.Name) and type(n.ctx) is ast.Load}
    operands = {argument.arg for argument in tree.args.posonlyargs}
    assert constant or forgotten & operands == operands - read
    assert forgotten & read == set()


def check_contributions(statement, function):
    """Every yield is a statement: nothing looks at an answer to a contribution."""
    plain = [n.value for n in ast.walk(statement) if isinstance(n, ast.Expr)]
    for node in yields(statement):
        assert node in plain, "a second hand-over"
        assert node.value is not None, "a contribution"
        if isinstance(node, ast.YieldFrom):
            helper = delegate(node, function)
            check_contributions(source_of(helper), helper)


def test_no_two_rules_of_the_library_have_one_name():
    """The later one would be found under the name of the earlier."""
    kinds = {"op", "elementwise", "linear", "bilinear", "constant", "adjoint"}
    names = [
        node.name.lstrip("_")
        for tree in TREES.values()
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(x).partition("(")[0] in kinds for x in node.decorator_list)
    ]
    assert len(names) > 190
    assert [name for name in names if names.count(name) > 1] == []


@pytest.mark.parametrize("name", OURS)
class TestRule:
    def test_docstring_says_shapes_and_rule(self, name):
        docstring = inspect.getdoc(OURS[name].rule)
        assert "\nShapes:\n" in docstring
        assert "\nRule:\n" in docstring
        assert "result:" in docstring

    def test_exactly_one_hand_over(self, name):
        rule = OURS[name].rule
        check_hand_over(source_of(rule), rule, OURS[name].kind == "constant")

    def test_it_is_public_under_its_name_or_that_of_a_wrapper(self, name):
        op = OURS[name]
        if not op.rule.__name__.startswith("_"):
            module = sys.modules[op.rule.__module__]
            assert name in module.__all__
            assert getattr(module, name) is op.function


BAD_RULES = {
    "two hand-overs": "a = yield x\n b = yield x\n yield b",
    "a hand-over in a branch": "if x:\n  a = yield x\n yield a",
    "a value inside an expression": "a = 1 + (yield x)\n yield a",
    "no contribution": "a = yield x",
    "nothing handed over": "a = yield\n yield a",
    "a forgotten name that is read": "a = yield (x, x := None)[0]\n yield a * x",
    "a deleted name that is read": "z = x\n del x\n a = yield z\n yield a * x",
    "an operand that is kept unread": "a = yield x * x\n yield a",
    "an answer to a contribution": "a = yield x\n b = (yield a) or (yield a)\n yield b",
}


@pytest.mark.parametrize("fault", BAD_RULES)
def test_the_check_of_hand_overs_finds_faults(fault):
    good = ast.parse("def rule(x, /):\n z = x * x\n a = yield z\n yield a * x").body[0]
    check_hand_over(good)
    bad = ast.parse(f"def rule(x, /):\n {BAD_RULES[fault]}").body[0]
    with pytest.raises(AssertionError):
        check_hand_over(bad)


def test_every_error_is_a_lantern_error_and_a_builtin():
    for name in lantern.errors.__all__:
        error = getattr(lantern, name)
        assert issubclass(error, lantern.LanternError)
        others = set(error.__mro__) - {lantern.LanternError, Exception, BaseException}
        builtin = {c for c in others if c.__module__ == "builtins"} - {object}
        assert builtin or error is lantern.LanternError
        assert name.endswith("Error")


IMPORT = """
import sys, numpy, greenlet
before = set(sys.modules)
import lantern
added = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(added - sys.stdlib_module_names))
"""


def test_import_pulls_in_nothing_but_numpy_and_greenlet():
    run = [sys.executable, "-W", "error", "-c", IMPORT]
    found = subprocess.run(
        run, capture_output=True, text=True, check=True, cwd=HOME.parent
    )
    assert found.stdout.split() == ["lantern"]


LATER = """
import sys
import lantern
from lantern.core.numpy_protocols import find_operation
homes = {f"lantern.{module}" for module in lantern._LATER.values()}
print("early:", *sorted(homes & set(sys.modules)))
print(find_operation("einsum").name, find_operation("none such"))
for name in lantern.__all__:
    getattr(lantern, name)
print("never:", *sorted(homes - set(sys.modules)))
"""


def test_what_is_imported_when_it_is_asked_for_is_not_imported_before():
    run = [sys.executable, "-c", LATER]
    found = subprocess.run(
        run, capture_output=True, text=True, check=True, cwd=HOME.parent
    )
    assert found.stdout.splitlines() == ["early:", "einsum None", "never:"]


def test_operations_that_are_imported_later_are_in_the_table_with_all_their_names():
    table = {}
    for name, home in lantern._LATER.items():
        table.setdefault(f"lantern.{home}", set()).add(name)
    operations = {home for home in table if ".tensor." in home}
    assert operations
    for home in operations:
        assert table[home] == {*importlib.import_module(home).__all__}


def test_only_public_names_are_listed():
    found = {n: getattr(lantern, n) for n in dir(lantern)}
    assert not [name for name in found if name.startswith("_")]
    modules = {n for n, x in found.items() if inspect.ismodule(x)}
    assert modules == lantern._MODULES


def test_no_module_hides_what_is_imported_when_it_is_asked_for():
    """``import lantern.x`` would put the module in the place of ``lantern.x``."""
    assert not (lantern._LATER.keys() & FILES.keys())
    assert lantern._LATER.keys() <= set(dir(lantern))
