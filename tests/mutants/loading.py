"""How a changed file gets into a process: as it is imported, or later."""

import ast
import gc
import sys
from functools import _lru_cache_wrapper
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from types import CodeType, FunctionType

from tests.mutants.changes import FILES, HOME, mutated, parsed

NAMES = {
    path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path
    for path in FILES
}


class Loader(SourceFileLoader):
    """Loads a file whose syntax tree has been changed."""

    def __init__(self, name, path, tree, names):
        super().__init__(name, path)
        self.tree, self.names = tree, names

    def get_code(self, fullname):
        return compile(self.tree, self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        vars(module).update(self.names)
        super().exec_module(module)


class Finder(MetaPathFinder):
    """Finds the modules of which there is another tree.

    Args:
        trees: the function of a path that returns the tree, or None.
        names: what the modules find under names of their own.
    """

    def __init__(self, trees, **names):
        self.trees, self.names = trees, names

    def find_spec(self, name, path, target=None):
        tree = self.trees(NAMES[name]) if name in NAMES else None
        if tree is None:
            return None
        place = sys.meta_path.index(self)
        sys.meta_path.remove(self)
        try:
            spec = find_spec(name)
        finally:
            sys.meta_path.insert(place, self)
        spec.loader = Loader(name, spec.origin, tree, self.names)
        return spec


def load_mutated(path, index):
    """Let a file be imported with a change."""
    sys.meta_path.insert(0, Finder(lambda p: mutated(p, index) if p == path else None))


class Marks:
    """Statements of all files that notice when they run.

    Attributes:
        statements: (path, line) of each.
        seen: a byte for each, 1 where it has run.
    """

    def __init__(self):
        self.statements, trees = [], {}
        for path in FILES:
            trees[path] = self._marked(path)
        self.seen = bytearray(len(self.statements))
        sys.meta_path.insert(0, Finder(trees.get, __seen__=self.seen))

    def _marked(self, path):
        """The tree of a file in which each statement of a function is marked."""
        tree = ast.parse((HOME / path).read_text())
        for node in ast.walk(tree):
            for name in ("body", "orelse", "finalbody"):
                body = getattr(node, name, None)
                if isinstance(body, list):
                    setattr(node, name, list(self._with_marks(path, body)))
        return ast.fix_missing_locations(tree)

    def _with_marks(self, path, body):
        for i, node in enumerate(body):
            first = i == 0 and isinstance(node, ast.Expr)
            docstring = first and isinstance(node.value, ast.Constant)
            if not docstring and getattr(node, "module", "") != "__future__":
                mark = ast.parse(f"__seen__[{len(self.statements)}] = 1").body[0]
                for part in ast.walk(mark):
                    ast.copy_location(part, node)
                self.statements.append((path, node.lineno))
                yield mark
            yield node


def functions():
    """All functions of the files that are alive."""
    paths = {str(HOME / path): path for path in FILES}
    found = {path: [] for path in FILES}
    for x in gc.get_objects():
        if type(x) is FunctionType and x.__code__.co_filename in paths:
            found[paths[x.__code__.co_filename]].append(x)
    return found


def caches():
    """What functions of the library have remembered."""
    return [
        x
        for x in gc.get_objects()
        if type(x) is _lru_cache_wrapper and x.__module__.startswith("lantern")
    ]


def _codes(tree, path):
    """The code of each function of a tree."""
    found, rest = {}, [compile(tree, str(HOME / path), "exec", dont_inherit=True)]
    while rest:
        code = rest.pop()
        found.setdefault((code.co_qualname, code.co_firstlineno), []).append(code)
        rest += [x for x in code.co_consts if isinstance(x, CodeType)]
    return found


def give_changed_code(path, index, alive):
    """Change the functions of a file that are alive; whether that could be done."""
    before, after = _codes(parsed(path), path), _codes(mutated(path, index), path)
    changed = 0
    for function in alive:
        code = function.__code__
        key = code.co_qualname, code.co_firstlineno
        old, new = before.get(key, []), after.get(key, [])
        if old == new:
            continue
        if len(old) != 1 or len(new) != 1:
            return False  # two on one line
        if code.co_exceptiontable != old[0].co_exceptiontable:
            return False  # it has a table of handlers of its own
        try:
            function.__code__ = new[0]
        except ValueError:  # it has other free variables
            return False
        changed += 1
    return changed > 0
