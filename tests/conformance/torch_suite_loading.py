"""Files of PyTorch's that are loaded although names are missing.

A name that cannot be imported becomes a ``Missing``, which fails the test that uses it
and no other. Of a support file that cannot be loaded as a whole, each definition is
executed when it is first asked for.
"""

import ast
import builtins
import functools
import sys
import types
from pathlib import Path


class MissingNameError(Exception):
    """A test used a name that could not be imported."""


class Missing:
    """Stands for a name; an error as soon as a running test uses it."""

    loading = True

    def __init__(self, name):
        self.__dict__["name"] = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if self.loading:
            return Missing(f"{self.name}.{name}")
        raise MissingNameError(f"{self.name}.{name}")

    def __call__(self, *args, **options):
        if self.loading:
            return Missing(f"{self.name}()")
        raise MissingNameError(self.name)

    def __mro_entries__(self, bases):
        name = self.name

        def start(self, *args, **options):
            raise MissingNameError(name)

        return (type(name.rpartition(".")[2], (), {"__init__": start}),)


def guarded(node, names):
    """A statement after which each name is there, if need be as a ``Missing``."""
    lines = [f"{name} = __missing__({path!r})" for name, path in names]
    handler = ast.ExceptHandler(
        type=ast.Name("Exception", ast.Load()),
        name=None,
        body=[ast.parse(line).body[0] for line in lines],
    )
    return ast.Try(body=[node], handlers=[handler], orelse=[], finalbody=[])


def late(decorator):
    """``__decorate__(lambda: decorator)``: what fails in it fails the test."""
    source = ast.parse("__decorate__(lambda: 0)", mode="eval").body
    source.args[0].body = decorator
    return source


class Tolerant(ast.NodeTransformer):
    """Guards what a file imports, assigns and decorates at its own level."""

    inside = False

    def visit_ImportFrom(self, node):
        if node.module == "__future__" or self.inside:
            return node
        return [
            guarded(
                ast.ImportFrom(module=node.module, names=[part], level=node.level),
                [(part.asname or part.name, f"{node.module}.{part.name}")],
            )
            for part in node.names
        ]

    def visit_Import(self, node):
        if self.inside:
            return node
        return [
            guarded(ast.Import(names=[part]), [(part.asname or "_", part.name)])
            for part in node.names
        ]

    def visit_Assign(self, node):
        target = node.targets[0]
        if (
            self.inside
            or not isinstance(node.value, ast.Call | ast.Dict)
            or not isinstance(target, ast.Name)
        ):
            return node
        return guarded(node, [(target.id, target.id)])

    def visit_For(self, node):
        if not self.inside:  # what a round makes of tests is lost, and no more
            handler = ast.ExceptHandler(
                type=ast.Name("Exception", ast.Load()), name=None, body=[ast.Pass()]
            )
            node.body = [ast.Try(node.body, [handler], [], [])]
        return node

    def visit_FunctionDef(self, node):
        if node.name.startswith("test"):
            node.decorator_list = list(map(late, node.decorator_list))
        return node

    def visit_ClassDef(self, node):
        before, self.inside = self.inside, True
        self.generic_visit(node)
        self.inside = before
        return node if before else guarded(node, [(node.name, node.name)])


def decorate(make):
    """A decorator; one whose test fails if it could not be made."""
    try:
        return make()
    except Exception as error:
        reason = f"decorator: {type(error).__name__}: {error}"

    def decorator(function):
        @functools.wraps(function)
        def fail(self, *args, **options):
            raise MissingNameError(reason)

        return fail

    return decorator


def load(path, name):
    """A module from a file of PyTorch's."""
    tree = ast.fix_missing_locations(
        Tolerant().visit(ast.parse(Path(path).read_text()))
    )
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    vars(module).update(__missing__=Missing, __decorate__=decorate)
    exec(compile(tree, str(path), "exec"), vars(module))
    return module


class Builtins(dict):
    """Python's own names, and after them those of a borrowed module."""

    def __init__(self, module):
        super().__init__(vars(builtins))
        self.module = module

    def __missing__(self, name):
        try:
            return getattr(self.module, name)
        except AttributeError:
            raise KeyError(name) from None


class Borrowed(types.ModuleType):
    """A support module: our names first, then its own definitions one by one.

    What it has not, or cannot execute, is False if it is a constant, a decorator that
    does nothing if it is called so, and else a ``Missing``.
    """

    __path__ = ()
    _CONSTANTS = ("TEST_", "IS_", "SM", "HAS_", "PLATFORM")
    _DECORATORS = (
        "skip xfail expected only slow tf32 with_tf32 mark unMark disable serial bf32 "
        "reduced patch gc wrapDeterministic"
    ).split()

    def __init__(self, name, names, path=None):
        super().__init__(name)
        vars(self).update(names, __builtins__=Builtins(self), definitions={})
        for node in ast.parse(Path(path).read_text()).body if path else []:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.definitions[node.name] = node
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                self.definitions.setdefault(node.targets[0].id, node)
        sys.modules[name] = self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        node = self.definitions.pop(name, None)
        if node is not None:
            code = ast.fix_missing_locations(ast.Module([node], []))
            try:
                exec(compile(code, self.__name__, "exec"), vars(self))
            except Exception as error:
                vars(self)[name] = Missing(f"{self.__name__}.{name}: {error!r}")
            return vars(self)[name]
        if name.isupper() or name.startswith(
            ("TEST_", "IS_", "SM", "HAS_", "PLATFORM")
        ):
            found = False
        elif name.startswith(tuple(self._DECORATORS)):
            found = idle
        else:
            found = Missing(f"{self.__name__}.{name}")
        vars(self)[name] = found
        return found


def idle(*args, **options):
    """A decorator, with options or without, that does nothing."""
    if (
        len(args) == 1
        and not options
        and isinstance(args[0], type | types.FunctionType)
    ):
        return args[0]
    return idle
