"""Values that say themselves what functions do with them: ``__torch_function__``.

Nothing is asked until there is someone to ask. With the first object of a class of
tensors of a program's own, or the first class with a ``__torch_function__`` that is no
tensor, the code of PyTorch's functions, methods, operators and properties is exchanged
for code that asks (``arm``). They stay the objects that they are, so that whoever has
kept one asks too. Programs without such classes pay nothing for them.
"""

import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from lantern.blocks import between_turns
from lantern.errors import ArgumentError, MissingRuleError
from lantern.torch.tables import another
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.operators import as_view
from lantern.torch.tensor.subclasses import ARMING, SILENT, asks, joined
from lantern.torch.tensor.tensor import Tensor

__all__ = [
    "BLOCKS_ALONE",
    "DisableTorchFunction",
    "arm",
    "asked",
    "default",
    "disarm",
    "for_a_while",
    "functions",
    "handled",
    "is_armed",
    "is_on",
    "members",
    "modes",
    "one_by_one",
    "watch",
]

# Where functions stand, and what the paths of those that were made elsewhere begin
# with: the other names of these modules are helpers.
HOMES = {
    "lantern.torch": ("lantern.torch.functions.", "lantern.torch.methods."),
    "lantern.torch.fft": (),
    "lantern.torch.linalg": ("lantern.torch.linalg.",),
    "lantern.torch.special": (),
    "lantern.torch.nn.functional": ("lantern.torch.nn.functional.",),
    "lantern.torch.nn.init": (),
}
# They make tensors of anything, or ask what something is.
_NEVER = set(
    "compile from_dlpack from_numpy is_storage is_tensor load save typename "
    "vmap".split()
)
# They make tensors of anything, and blocks see them.
BLOCKS_ALONE = {"as_tensor", "asarray", "tensor"}
# What Lantern itself asks of a tensor.
_INNER = set("as_subclass changes emerge gradient like_this numpy_face".split())
_UNARY = (
    "neg pos invert abs getitem setitem len contains bool float int index complex repr "
    "format array reversed deepcopy"
).split()
_BINARY = (
    "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift radd rsub "
    "rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift iadd isub "
    "imul itruediv ifloordiv imod ipow iand ior ixor ilshift irshift lt le eq ne gt ge"
).split()
# The method that is shown for an operator; for others it is the operator itself.
_SHOWN_AS = dict(
    pair.split(":")
    for pair in (
        "add:add radd:add sub:sub mul:mul rmul:mul truediv:div mod:remainder "
        "matmul:matmul pow:pow rand:bitwise_and ror:bitwise_or rxor:bitwise_xor "
        "lt:lt le:le ne:ne gt:gt ge:ge neg:neg pos:positive abs:abs iadd:add_ "
        "isub:sub_ imul:mul_ itruediv:div_ ifloordiv:floor_divide_ imod:remainder_ "
        "ipow:pow_"
    ).split()
)
_OF_CLASSES = ("repr", "format", "deepcopy")
_AS_THEY_ARE = ("_base", "grad", "_grad")  # properties whose values keep their class

_off: ContextVar[bool] = ContextVar("nothing is asked", default=False)
_plain: dict[FunctionType, FunctionType] = {}  # those exchanged, as they were
_lasting = False  # whether they stay exchanged
# The blocks that see each function, the inner ones last.
modes: ContextVar[tuple[Any, ...]] = ContextVar("blocks that are asked", default=())


@contextmanager
def DisableTorchFunction() -> Iterator[None]:
    """A block in which nothing is asked.

    Example:
        >>> import lantern.torch as torch
        >>> class Named(torch.Tensor):
        ...     pass
        >>> x = torch.ones(2).as_subclass(Named)
        >>> with torch._C.DisableTorchFunctionSubclass():
        ...     type(x + 1).__name__, type(torch.exp(x)).__name__
        ('Tensor', 'Tensor')
        >>> type(x + 1).__name__
        'Named'
    """
    token = _off.set(True)
    try:
        yield
    finally:
        _off.reset(token)


def is_on() -> bool:
    """Whether anything is asked."""
    return not _off.get()


def is_armed() -> bool:
    """Whether there is someone to ask, and anything is asked."""
    return bool(_plain) and is_on()


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    """Arguments, and what lists and tuples among them hold."""
    for x in values:
        if isinstance(x, list | tuple) and type(x) is not Size and not asks(x):
            yield from x
        else:
            yield x


def asked(values: Iterable[Any]) -> list[Any]:
    """Who is asked, one of a class: subclasses first, then as they come."""
    found: list[Any] = []
    for x in values:
        if asks(x) and type(x) not in map(type, found):
            places = (i for i, y in enumerate(found) if isinstance(x, type(y)))
            found.insert(next(places, len(found)), x)
    return found


def handled(function: Any, found: list[Any], args: Any, kwargs: Any) -> Any:
    """What values make of a function.

    Args:
        function: the function.
        found: who is asked, in that order.
        args: its arguments.
        kwargs: its arguments by name.

    Raises:
        TypeError: if all of them return NotImplemented.
    """
    types = tuple(map(type, found))
    for x in found:
        z = x.__torch_function__(function, types, args, kwargs)
        if z is not NotImplemented:
            return z
    raise ArgumentError(
        f"no implementation found for 'torch.{function.__name__}' on types that "
        f"implement __torch_function__: {[t.__name__ for t in types]}"
    )


def _by_mode(function: Any, args: Any, kwargs: Any) -> Any:
    """What the innermost block makes of a function, which the outer ones then see."""
    *outer, mode = modes.get()
    types = tuple(map(type, asked(_flat((*args, *kwargs.values())))))
    token = modes.set(tuple(outer))
    try:
        return mode.__torch_function__(function, types, args, kwargs)
    finally:
        modes.reset(token)


@cache
def _overrides(cls: Any) -> bool:
    """Whether a class of tensors has members that plain tensors have otherwise.

    Those of Lantern's own classes are what functions know them by.
    """
    if cls.__basicsize__ != Tensor.__basicsize__:
        return False  # it has slots of its own: its objects can be of no other class
    found = (c for c in cls.__mro__ if c not in Tensor.__mro__)
    own = set().union(*(vars(c) for c in found if c.__module__[:8] != "lantern."))
    shows = map("__{}__".format, _OF_CLASSES)
    return not own.isdisjoint({name for name, _ in members()}.difference(shows))


@between_turns
def _computed(plain: Any, args: Any, kwargs: Any, values: Iterable[Any]) -> Any:
    """What a function computes, which knows tensors by no members but its own.

    The class is exchanged for that time, not the tensor: what is written, or shown as a
    part of it, is of this one.
    """
    kinds: Any = ((x, type(x)) for x in values if isinstance(x, Tensor))
    worn: list[Any] = [(x, k) for x, k in kinds if k is not Tensor and _overrides(k)]
    if not worn:
        return plain(*args, **kwargs)
    try:
        for x, _ in worn:
            x.__class__ = Tensor
        return plain(*args, **kwargs)
    finally:
        for x, kind in worn:
            x.__class__ = kind


def one_by_one(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """An equation and its operands, which may stand in a list.

    Example:
        >>> one_by_one(("i,i->", [1, 2]))
        ('i,i->', 1, 2)
    """
    listed = len(args) == 2 and isinstance(args[1], list | tuple)
    return (args[0], *args[1]) if listed else args


@cache
def _asking(n: int) -> CodeType:
    """The code of a function that asks, around as many variables as that before it."""
    names = "".join(f"_{i}, " for i in range(n))
    source = f"""\
def outer({names}):
    def ask(*args, _answer, **kwargs):
        return _answer(args, kwargs)
        {names}
    return ask
"""
    space: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), space)
    code: CodeType = space["outer"](*range(n)).__code__
    return code


def _exchange(
    function: FunctionType,
    shown: Any,
    binary: bool = False,
    shows: bool = False,
    blocks_alone: bool = False,
) -> None:
    """Let a function ask its arguments before it computes.

    Args:
        function: the function; it stays the object that it is.
        shown: what is handed to those that are asked.
        binary: whether it is an operator, which leaves what it does not know to the
            other operand.
        shows: whether it is of what a tensor's class is.
        blocks_alone: whether its arguments are not asked, only blocks.
    """
    if function in _plain:
        return
    plain = another(function, function.__name__)
    takes_rows = function.__name__ == "einsum"

    def answer(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if takes_rows:
            args = one_by_one(args)
        if modes.get():
            z = _by_mode(shown, args, kwargs)
            if z is not NotImplemented:
                return z
        if blocks_alone:
            return plain(*args, **kwargs)
        for x in args if not kwargs else (*args, *kwargs.values()):
            if type(x) not in SILENT:
                break
        else:
            return plain(*args, **kwargs)
        values = list(_flat((*args, *kwargs.values())))
        found = [] if _off.get() else asked(values)
        if not found:
            return _computed(plain, args, kwargs, () if shows else values)
        try:
            return handled(shown, found, args, kwargs)
        except TypeError:
            if binary:
                return NotImplemented
            raise

    _plain[function] = plain
    function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), "_answer": answer}
    function.__wrapped__ = plain  # type: ignore[attr-defined]  # what inspect shows
    function.__code__ = _asking(len(plain.__code__.co_freevars))


def functions() -> Iterator[tuple[str, str, FunctionType]]:
    """PyTorch's functions of tensors: each with its module and its name there."""
    for home, elsewhere in HOMES.items():
        for name, f in vars(import_module(home)).items():
            if type(f) is not FunctionType or name[0] == "_" or name in _NEVER:
                continue
            if f.__module__ in HOMES or f.__module__.startswith(elsewhere):
                yield home, name, f


def members() -> Iterator[tuple[str, Any]]:
    """What tensors have: methods, operators and properties, each with its name."""
    operators = {f"__{name}__" for name in (*_UNARY, *_BINARY)}
    inner = _INNER.union(METHODS)
    for name, member in list(vars(Tensor).items()):
        if type(member) is property and type(member.fget) is FunctionType:
            yield name, member
        public = name in operators or (name[0] != "_" and name not in inner)
        if type(member) is FunctionType and public:
            yield name, member


def arm() -> None:
    """Let PyTorch's functions ask their arguments, from now on."""
    global _lasting
    _lasting = True
    _exchange_all()


@contextmanager
def for_a_while() -> Iterator[None]:
    """A block in which PyTorch's functions ask their arguments."""
    before = bool(_plain)
    _exchange_all()
    try:
        yield
    finally:
        if not (before or _lasting):
            disarm()


def _exchange_all() -> None:
    if _plain:
        return
    for _, name, f in functions():
        _exchange(f, f, blocks_alone=name in BLOCKS_ALONE)
    for name, member in members():
        word = name.strip("_") if name[:2] == "__" else ""
        if type(member) is property:
            assert type(member.fget) is FunctionType
            _exchange(member.fget, member.__get__)
            if type(member.fset) is FunctionType:
                _exchange(member.fset, member.__set__)
        else:
            shown = vars(Tensor)[_SHOWN_AS.get(word, name)]
            _exchange(member, shown, word in _BINARY, word in _OF_CLASSES)


def disarm() -> None:
    """Let them ask nobody: functions are left as they were."""
    global _lasting
    _lasting = False
    for function, plain in _plain.items():
        function.__code__, function.__kwdefaults__ = (
            plain.__code__,
            plain.__kwdefaults__,
        )
        del function.__wrapped__  # type: ignore[attr-defined]
        function.__dict__.update(plain.__dict__)
    _plain.clear()


ARMING.append(arm)


def as_kind_of(z: Any, cls: Any, args: Iterable[Any] = ()) -> Any:
    """A tensor as one of a class, in the same memory, with its derivative.

    Args:
        z: the tensor.
        cls: the class.
        args: tensors that stay what they are; others were made for this.
    """
    if any(z is x for x in args):
        z = z.view_as(z)
    x = object.__new__(cls)
    x.primal, x.level, x.receiver = z.primal, z.level, z.receiver
    x.viewed = x.sharers = None
    return x if z.viewed is None else as_view(x, z)


def _converted(z: Any, cls: Any, args: list[Any]) -> Any:
    """Results as objects of a class."""
    if isinstance(z, Tensor):
        return z if isinstance(z, cls) else as_kind_of(z, cls, args)
    if isinstance(z, tuple | list) and not isinstance(z, Size):
        parts = [_converted(x, cls, args) for x in z]
        return type(z)(*parts) if hasattr(z, "_fields") else type(z)(parts)
    return z


def nowrap() -> set[Any]:
    """What gives values that keep their class."""
    return {vars(Tensor)[name].__get__ for name in _AS_THEY_ARE}


def default(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """What tensors of a program's own do, if it does not say otherwise.

    The function computes as with plain tensors, and its results are of their class.
    """
    if not all(issubclass(cls, kind) for kind in types):
        return NotImplemented
    kwargs = kwargs or {}
    with DisableTorchFunction():
        z = func(*args, **kwargs)
        if cls is Tensor or func in nowrap():
            return z
        return _converted(z, cls, list(_flat((*args, *kwargs.values()))))


def as_subclass(self: Tensor, cls: Any) -> Any:
    """The tensor as one of a class of a program's own, in the same memory.

    Example:
        >>> import lantern.torch as torch
        >>> class Seconds(torch.Tensor):
        ...     pass
        >>> x = torch.tensor([1.0, 2.0]).as_subclass(Seconds)
        >>> x * 60
        Seconds([ 60., 120.])
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise ArgumentError(f"cls must be a type derived from Tensor, not {cls!r}")
    joined(cls)
    with DisableTorchFunction():
        return as_kind_of(self, cls, [self])


def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """A leaf of a class, in the memory of a tensor."""
    joined(cls)
    with DisableTorchFunction():
        return as_kind_of(data.detach(), cls).requires_grad_(require_grad)


def _make_wrapper_subclass(cls: Any, *args: Any, **options: Any) -> Any:
    """Raises: every tensor has memory of its own."""
    raise MissingRuleError(
        f"{cls.__name__}: there are no tensors here whose values are elsewhere. Use a "
        "class with __torch_function__ that is no tensor."
    )


class _Build:
    """What makes classes, and notes the first with a ``__torch_function__``.

    No frame of ours stands between the frame that makes a class and its metaclass,
    which may look for it: the word is looked for in the constants of that frame's code,
    and only where it is found is the class made by ``look``.
    """

    def __init__(self) -> None:
        self.build = builtins.__build_class__

    @property
    def __call__(self) -> Callable[..., Any]:
        """What is called in this place."""
        constants = sys._getframe(1).f_code.co_consts
        codes = (c for c in constants if isinstance(c, CodeType))
        found = any("__torch_function__" in c.co_names for c in codes)
        return self.look if found else self.build

    def look(self, *args: Any, **options: Any) -> Any:
        """Make a class and look at it.

        Tensors are noted by their first object; those that are ``_noted_later``, our
        own with what is made of them, where they are used.
        """
        made = self.build(*args, **options)
        own = getattr(made, "__dict__", ())
        later = getattr(made, "_noted_later", False) or issubclass(made, Tensor)
        if "__torch_function__" in own and not later:
            arm()
            if builtins.__build_class__ is self:
                builtins.__build_class__ = self.build
        return made


def watch() -> None:
    """Notice the first class with a ``__torch_function__`` that is no tensor."""
    builtins.__build_class__ = _Build()


METHODS: dict[str, Any] = {
    "__torch_function__": classmethod(default),
    "_make_subclass": staticmethod(_make_subclass),
    "_make_wrapper_subclass": staticmethod(_make_wrapper_subclass),
    "as_subclass": as_subclass,
}
