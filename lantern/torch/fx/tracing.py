"""Programs written down while they run on stand-ins of their arguments.

Only while one is written down, or once there is a ``GraphAppendingTracer``, functions
of ``torch`` ask whether an argument is a stand-in; in all other programs they are what
they are.
"""

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import ArgumentError, EagerError
from lantern.torch import asking
from lantern.torch.fx.graph import Graph
from lantern.torch.fx.node import Node, map_aggregate
from lantern.torch.nn.module import Module
from lantern.torch.nn.simple import Simple
from lantern.torch.tables import another
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "Tracer", "TracerBase",
    "wrap",
]  # fmt: skip

_HOMES = (
    "lantern.torch",
    "lantern.torch.fft",
    "lantern.torch.linalg",
    "lantern.torch.nn.functional",
    "lantern.torch.nn.init",
    "lantern.torch.special",
)
_STARS: dict[Any, str] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
_wrapped: list[tuple[dict[str, Any], str]] = []


class TraceError(ValueError):
    """A program asks for a value that is not there while it is written down."""


class Proxy:
    """What stands for a result while a program is written down.

    Args:
        node: the step whose result it stands for.
        tracer: who writes it down.

    Example:
        >>> import lantern.torch as torch
        >>> graph = torch.fx.Graph()
        >>> y = torch.fx.Proxy(graph.placeholder("x")) + 1
        >>> y, y.node.args
        (Proxy(add), (x, 1))
    """

    _noted_later = True  # by its tracer

    def __init__(self, node: Node, tracer: Any = None) -> None:
        self.node = node
        self.tracer = tracer or GraphAppendingTracer(node.graph)

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> "Attribute":
        if k.startswith("__") and k.endswith("__"):
            raise AttributeError(k)
        return Attribute(self, k)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of what the value is."""
        step = ("call_method", "__call__", (self, *args), kwargs)
        return self.tracer.create_proxy(*step)

    def __iter__(self) -> Any:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def __len__(self) -> int:
        raise TraceError(
            "'len' is not supported in symbolic tracing by default. If you want this "
            "call to be recorded, please call torch.fx.wrap('len') at module scope"
        )

    def keys(self) -> Any:
        """The names of what the value has."""
        return self.tracer.keys(self)

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """A call of one of PyTorch's functions, or of a tensor's method."""
        tracer = _stand_ins(args, kwargs or {})[0].tracer
        name = func.__name__
        if vars(Tensor).get(name) is func:
            return tracer.create_proxy("call_method", name, args, kwargs or {})
        return tracer.create_proxy("call_function", func, args, kwargs or {})


class Attribute(Proxy):
    """An attribute of a stand-in: a step only if it is not called.

    Args:
        root: whose attribute it is.
        attr: its name.
    """

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root, self.attr, self.tracer = root, attr, root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]  # made when it is asked for
        """The step that reads it."""
        if self._node is None:
            args = (self.root, self.attr)
            made = self.tracer.create_proxy("call_function", getattr, args, {})
            self._node = made.node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """A call of the method."""
        step = ("call_method", self.attr, (self.root, *args), kwargs)
        return self.tracer.create_proxy(*step)


def _operator(function: Callable[..., Any], turned: bool) -> Callable[..., Any]:
    def method(self: Proxy, *args: Any) -> Any:
        operands = (*args, self) if turned else (self, *args)
        return self.tracer.create_proxy("call_function", function, operands, {})

    return method


for _name in (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift lt le eq ne "
    "gt ge neg pos invert abs getitem"
).split():
    _function = getattr(operator, f"__{_name}__")
    setattr(Proxy, f"__{_name}__", _operator(_function, False))
for _name in "add sub mul truediv floordiv mod pow matmul and or xor".split():
    _function = getattr(operator, f"__{_name}__")
    setattr(Proxy, f"__r{_name}__", _operator(_function, True))
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]  # lost with __eq__


class TracerBase:
    """What writes steps into a graph."""

    graph: Graph

    def create_node(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A step."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """What stands for a step's result."""
        return Proxy(node, self)

    def create_arg(self, a: Any) -> Any:
        """An argument as it is written down."""
        return a.node if isinstance(a, Proxy) else a

    def create_proxy(
        self,
        kind: str,
        target: Any,
        args: Any,
        kwargs: Any,
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Any = None,
    ) -> Proxy:
        """A step, and what stands for its result."""
        args, kwargs = (map_aggregate(x, self.create_arg) for x in (args, kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a value is true: not known while a program is written down."""
        raise TraceError(
            "symbolically traced variables cannot be used as inputs to control flow"
        )

    def iter(self, obj: Proxy) -> Any:
        """The parts of a value: as many as the line that asks has names for them."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_globals.get("__name__") == __name__:
            frame = frame.f_back
        count = None if frame is None else _unpacked(frame)
        if count is None:
            raise TraceError(
                "Proxy object cannot be iterated. This can be attempted when the Proxy "
                "is used in a loop or as a *args or **kwargs function argument."
            )
        return (obj[i] for i in range(count))  # type: ignore[index]  # set above

    def keys(self, obj: Proxy) -> Any:
        """The names of what a value has."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Writes down what functions do with stand-ins, wherever they are called.

    Args:
        graph: where the steps come.

    Example:
        >>> import lantern.torch as torch
        >>> graph = torch.fx.Graph()
        >>> tracer = torch.fx.proxy.GraphAppendingTracer(graph)
        >>> x = torch.fx.Proxy(graph.placeholder("x"), tracer)
        >>> torch.relu(x).node.target is torch.relu
        True
    """

    def __init__(self, graph: Graph) -> None:
        asking.arm()
        self.graph = graph


def _unpacked(frame: Any) -> int | None:
    """How many parts the instruction wants that a frame is at."""
    import dis

    at = [i for i in dis.get_instructions(frame.f_code) if i.offset >= frame.f_lasti]
    if at and at[0].opname == "UNPACK_SEQUENCE":
        return at[0].arg
    return None


class Tracer(TracerBase):
    """Writes down what a module, or a function, does.

    A subclass may say which modules are one step (``is_leaf_module``), and what becomes
    of their calls (``call_module``).

    Args:
        autowrap_modules: modules whose functions are one step each.
        autowrap_functions: functions that are one step.
        param_shapes_constant: has no effect.

    Example:
        >>> import lantern.torch as torch
        >>> class Whole(torch.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return isinstance(m, torch.nn.Sequential)
        >>> net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.ReLU()))
        >>> [node.op for node in Whole().trace(net).nodes]
        ['placeholder', 'call_module', 'output']
    """

    def __init__(
        self,
        autowrap_modules: Any = (),
        autowrap_functions: Any = (),
        param_shapes_constant: bool = False,
    ) -> None:
        super().__init__()
        self.autowrapped = [
            *autowrap_functions,
            *(f for m in autowrap_modules for f in vars(m).values() if callable(f)),
        ]
        self.module_stack: dict[str, Any] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a module is one step: those of ``torch.nn`` are, but containers."""
        from lantern.torch import nn

        ours = m.__module__.startswith(("lantern.torch.nn", "torch.nn"))
        return ours and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The name of a module in the one that is written down."""
        for name, module in self.root.named_modules(remove_duplicate=False):
            if module is mod:
                return name
        raise ArgumentError(
            f"module is not installed as a submodule: {type(mod).__name__}. Assign it "
            "to an attribute of the module that is traced."
        )

    def call_module(
        self, m: Module, forward: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """What becomes of a call of a module: one step, or what it does itself."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def create_arg(self, a: Any) -> Any:
        """As of ``TracerBase``; a tensor is an attribute of the module."""
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._place_of(a), (), {})
        return super().create_arg(a)

    def _place_of(self, x: Tensor) -> str:
        for name, known in [*self.root.named_parameters(), *self.root.named_buffers()]:
            if known is x:
                return name
        for name, module in self.root.named_modules():
            for attribute, value in vars(module).items():
                if value is x:
                    return f"{name}.{attribute}" if name else attribute
        names = (f"_tensor_constant{i}" for i in range(sys.maxsize))
        name = next(n for n in names if not hasattr(self.root, n))
        setattr(self.root, name, x)
        return name

    def trace(self, root: Any, concrete_args: Any = None) -> Graph:
        """Write down a module, or a function.

        Args:
            root: the module or function.
            concrete_args: the values of some arguments, by name.

        Returns:
            The graph.
        """
        is_module = isinstance(root, Module)
        self.root: Any = root if is_module else Module()
        function = type(root).forward if is_module else root
        self.graph = Graph(root if is_module else None, type(self))
        arguments, named = self._arguments(function, is_module, concrete_args or {})
        with asking.for_a_while(), _asking(self):
            bound = functools.partial(function, root) if is_module else function
            bound = bound if isinstance(root, Simple) else _without_stars(bound)
            result = bound(*arguments, **named)
        self.create_node(
            "output", "output", (map_aggregate(result, self.create_arg),), {}
        )
        return self.graph

    def _arguments(
        self, function: Any, is_module: bool, known: dict[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Stand-ins for the arguments of a function; those with stars come last."""
        positional: list[Any] = []
        named: dict[str, Any] = {}
        parameters = [*inspect.signature(function).parameters.values()][is_module:]
        if isinstance(self.root, Simple):
            parameters = self.root.inputs()
        starred = [p for p in parameters if p.kind in _STARS]
        for p in [p for p in parameters if p.kind not in _STARS] + starred:
            if p.name in known:
                value = known[p.name]
            else:
                default = () if p.default is p.empty else (p.default,)
                target = f"{_STARS.get(p.kind, '')}{p.name}"
                value = self.create_proxy("placeholder", target, default, {}, p.name)
            if p.kind is p.KEYWORD_ONLY and not starred:
                named[p.name] = value
            else:
                positional.append(value)
        return positional, named


def _stand_ins(args: Any, kwargs: Any) -> list[Proxy]:
    found: list[Proxy] = []

    def note(x: Any) -> Any:
        if isinstance(x, Proxy):
            found.append(x)
        return x

    map_aggregate((args, kwargs), note)
    return found


def _without_stars(function: Any) -> Any:
    """A function whose ``*args`` and ``**kwargs`` are arguments behind all others."""
    if isinstance(function, functools.partial):
        return functools.partial(_without_stars(function.func), *function.args)
    if type(function) is not FunctionType:
        return function
    code = function.__code__
    both = inspect.CO_VARARGS, inspect.CO_VARKEYWORDS
    stars = [flag for flag in both if code.co_flags & flag]
    if not stars:
        return function
    made = another(function, function.__name__)
    made.__code__ = code.replace(
        co_flags=code.co_flags & ~sum(stars),
        co_argcount=code.co_argcount + code.co_kwonlyargcount + len(stars),
        co_kwonlyargcount=0,
    )
    return made


def _recording(function: Any) -> Any:
    """A function that is written down where an argument is a stand-in."""

    @functools.wraps(function)
    def ask(*args: Any, **kwargs: Any) -> Any:
        found = _stand_ins(args, kwargs)
        if not found:
            return function(*args, **kwargs)
        if function.__name__ == "einsum":
            args = asking.one_by_one(args)
        return found[0].tracer.create_proxy("call_function", function, args, kwargs)

    return ask


@contextmanager
@between_turns
def _asking(tracer: Tracer) -> Iterator[None]:
    """A block in which functions of ``torch`` and modules ask for stand-ins."""
    call = Module.__call__

    def called(self: Module, *args: Any, **kwargs: Any) -> Any:
        forward = functools.partial(call, self)
        return tracer.call_module(self, forward, args, kwargs)

    changed: list[tuple[dict[str, Any], str, Any]] = []
    known: dict[int, Any] = {}
    for home in _HOMES:
        space = vars(sys.modules[home]) if home in sys.modules else {}
        for name, f in list(space.items()):
            if isinstance(f, FunctionType) and not name.startswith("__"):
                made = known.setdefault(id(f), _recording(f))
                changed.append((space, name, f))
                space[name] = made
    for f in tracer.autowrapped:
        known.setdefault(id(f), _recording(f))
    # The same functions under names of the program's own modules.
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", {})
        ours = getattr(module, "__name__", "").startswith("lantern.")
        for name, f in list(space.items()) if not ours else ():
            if id(f) in known and isinstance(f, FunctionType):
                changed.append((space, name, f))
                space[name] = known[id(f)]
    for space, name in _wrapped:
        changed.append((space, name, space[name]))
        space[name] = _recording(space[name])
    Module.__call__ = called  # type: ignore[method-assign]
    try:
        yield
    finally:
        Module.__call__ = call  # type: ignore[method-assign]
        for space, name, f in reversed(changed):
            space[name] = f


def wrap(fn_or_name: Any) -> Any:
    """Let a function of the calling module be one step, whatever it does.

    Args:
        fn_or_name: the function, as a decorator, or its name.

    Raises:
        RuntimeError: if it is not a function of a module.
        TypeError: for something else.

    Example:
        >>> import lantern.torch as torch
        >>> def inside():
        ...     torch.fx.wrap(len)
        >>> inside()
        Traceback (most recent call last):
            ...
        lantern.errors.EagerError: wrap must be called at the top level of a module
    """
    name = getattr(fn_or_name, "__name__", fn_or_name)
    if not isinstance(name, str):
        raise ArgumentError(
            "Unsupported type for global function! Must be either a callable or string "
            "name"
        )
    frame: Any = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise EagerError("wrap must be called at the top level of a module")
    space = frame.f_globals
    if name not in space and hasattr(__builtins__, name):
        space[name] = getattr(__builtins__, name)
    if callable(fn_or_name):
        space.setdefault(name, fn_or_name)
    _wrapped.append((space, name))
    return fn_or_name
