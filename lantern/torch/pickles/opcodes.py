"""The steps of a pickle, none of which imports or runs anything: it is read as data.

A pickle is a program for a stack. Here its steps can only push plain values, put them
into containers, and ask a table what a name of the file means. What they may build is
bounded before it is built: bytes, steps, containers, depth, and how much there is to
see for who follows every reference.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from lantern.errors import FileFormatError, LanternError
from lantern.torch.file_format import damaged, read_up_to, short
from lantern.torch.serialization import get_safe_globals

__all__ = ["Named", "Reference", "Unpickler", "is_key"]

_MOST_BYTES = 64 << 20
_MOST_STEPS = 1_000_000
_MOST_CONTAINERS = 250_000
_MOST_TO_SEE = 10_000_000
_DEEPEST = 100
_KEYS = (str, int, float, bool, bytes, type(None))
_CONTAINERS = (list, dict, tuple, set, OrderedDict)
# What a step of a damaged pickle may do to its stack.
_STUMBLES = (
    LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError,
    struct.error, LanternError,
)  # fmt: skip


class Reference:
    """What may be an argument, but no value: a name of the file, or memory."""

    __slots__ = ()


class Named(Reference):
    """A name of the file, as the table knows it.

    Args:
        path: the name, with its module.
        call: what stands for calling it.
    """

    __slots__ = ("call", "path")

    def __init__(self, path: str, call: Any) -> None:
        self.path, self.call = path, call


def is_key(x: Any) -> bool:
    """Whether something may be a key: hashing other things could take for ever."""
    return all(type(k) in _KEYS for k in (x if type(x) is tuple else (x,)))


class Unpickler:
    """What reads one pickle after another from an open file.

    Args:
        file: the open file.
        name: what an error calls it.
        meaning: what a name of the file stands for; raises for others.
        stored: what a reference to memory outside of the pickle stands for.
    """

    def __init__(
        self,
        file: Any,
        name: str,
        meaning: Callable[[str, str], Any],
        stored: Callable[[Any], Any],
    ) -> None:
        self.file, self.name = file, name
        self.meaning, self.stored = meaning, stored

    def load(self) -> Any:
        """The value of the next pickle.

        Raises:
            FileFormatError: if it is damaged, too large, or asks for anything else.
        """
        self.left, self.containers = _MOST_BYTES, 0
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []  # stacks under marks
        self.memo: dict[int, Any] = {}
        # By identity: how deep a container is and how much there is to see in it (None:
        # a reference to memory is in it); and which containers are parts of others.
        self.extents: dict[int, tuple[int, int] | None] = {}
        self.parts: set[int] = set()
        try:
            for _ in range(_MOST_STEPS):
                key = self.read(1)
                if key == b".":
                    return self.result()
                STEPS.get(key, Unpickler.unknown)(self)
        except FileFormatError:
            raise
        except _STUMBLES as error:
            raise damaged(
                self.name, f"has a damaged pickle ({short(str(error))})."
            ) from None
        raise damaged(self.name, f"has a pickle of more than {_MOST_STEPS} steps.")

    # --- bytes ------------------------------------------------------------------------

    def read(self, length: int) -> bytes:
        """So many bytes."""
        self.left -= length
        if self.left < 0:
            raise damaged(self.name, f"has a pickle of more than {_MOST_BYTES} bytes.")
        if length > 64:
            found = read_up_to(self.file, length, self.name)
        else:
            found = self.file.read(length)
        if len(found) != length:
            raise damaged(self.name, "is cut off: its pickle has no end.")
        return found

    def number(self, form: str) -> Any:
        """A number of a fixed form."""
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def line(self) -> str:
        """A name, up to the end of its line."""
        found = bytearray()
        while (letter := self.read(1)) != b"\n":
            found += letter
            if len(found) > 300:
                raise damaged(self.name, "has a pickle with an endless name.")
        return found.decode()

    # --- containers -------------------------------------------------------------------

    def new(self, container: Any, parts: Any = ()) -> None:
        """Push a new container."""
        self.containers += 1
        if self.containers > _MOST_CONTAINERS:
            raise damaged(
                self.name, f"has a pickle of more than {_MOST_CONTAINERS} containers."
            )
        self.push(container, parts)

    def push(self, x: Any, parts: Any) -> None:
        """Push what was made, of parts: a container, or a tensor with attributes."""
        # Another one may have had its place in memory before.
        self.extents.pop(id(x), None)
        self.parts.discard(id(x))
        self.measure(x, parts)
        self.stack.append(x)

    def measure(self, container: Any, parts: Any) -> None:
        """Know how large a container is with more parts."""
        depth, seen = self.extents.get(id(container)) or (1, 1)
        seen += len(parts)
        for part in parts:
            if isinstance(part, Reference):
                if type(container) is not tuple:
                    raise self.misplaced()
                self.extents[id(container)] = None
                return
            if type(part) not in _KEYS:
                inner = self.extents.get(id(part), (1, 1))
                if inner is None:
                    raise self.misplaced()
                depth, seen = max(depth, 1 + inner[0]), seen + inner[1]
                self.parts.add(id(part))
        if id(container) in self.parts:
            raise damaged(self.name, "has a pickle with a container that holds itself.")
        if depth > _DEEPEST:
            raise damaged(self.name, f"has containers deeper than {_DEEPEST}.")
        if seen > _MOST_TO_SEE:
            raise damaged(self.name, "has containers that repeat one another for ever.")
        if parts:
            self.extents[id(container)] = depth, seen

    def misplaced(self) -> Exception:
        """The error for a class, a function or bare memory among the values."""
        return damaged(
            self.name,
            "holds a class, a function or bare memory as a value. Save tensors and "
            "plain values in its place.",
        )

    def filled(self, kind: Any, parts: list[Any]) -> Any:
        """The container on the stack, which takes parts now."""
        container = self.stack[-1]
        if not isinstance(container, kind) or type(container) not in _CONTAINERS:
            raise damaged(
                self.name, f"fills a {type(container).__name__:.80}, no container."
            )
        self.measure(container, parts)
        return container

    def fill_list(self, parts: list[Any]) -> None:
        """Put parts into the list on the stack."""
        self.filled(list, parts).extend(parts)

    def fill_dictionary(self, parts: list[Any]) -> None:
        """Put keys and values, in turn, into the dictionary on the stack."""
        for key in parts[::2]:
            if not is_key(key):
                kind = type(key).__name__
                raise damaged(self.name, f"has a key of type {kind:.80}, no plain one.")
        self.filled(dict, parts).update(zip(parts[::2], parts[1::2], strict=True))

    def popped(self) -> list[Any]:
        """What was pushed since the last mark."""
        found, self.stack = self.stack, self.below.pop()
        return found

    # --- names ------------------------------------------------------------------------

    def called(self) -> None:
        """Have the table do what stands for a call."""
        arguments, function = self.stack.pop(), self.stack.pop()
        if type(function) is not Named or type(arguments) is not tuple:
            raise damaged(self.name, "calls something that is no function.")
        found = function.call(*arguments)
        if isinstance(found, dict):
            self.new(found, [*found.values()])
        elif type(found) in _CONTAINERS:
            self.new(found, found)
        else:
            self.push(found, [x for x in arguments if not self.is_reference(x)])

    def is_reference(self, x: Any) -> bool:
        """Whether something is a reference, or has one in it."""
        return isinstance(x, Reference) or self.extents.get(id(x), ()) is None

    def built(self) -> None:
        """Give an object its state: that of a module has the versions of its parts."""
        state, x = self.stack.pop(), self.stack[-1]
        if type(x) is OrderedDict and type(state) is dict and {*state} <= {"_metadata"}:
            self.measure(x, [*state.values()])
            vars(x).update(state)
        elif any(type(x) is c for c in get_safe_globals()):
            self.measure(x, [state])
            if hasattr(x, "__setstate__"):
                x.__setstate__(state)
            else:
                vars(x).update(state)
        else:
            raise damaged(self.name, f"gives a {type(x).__name__:.80} a state.")

    def result(self) -> Any:
        """What is left on the stack."""
        (found,) = self.stack
        if self.below:
            raise damaged(self.name, "has a damaged pickle (an open mark).")
        self.push([], [found])  # a reference is no value
        return found

    def unknown(self) -> None:
        """Refuse a step that is not of this format."""
        raise damaged(
            self.name,
            "has steps that PyTorch's files do not have. Save it anew by torch.save, "
            "with the protocol that it has by default.",
        )

    # --- one step ---------------------------------------------------------------------

    def mark(self) -> None:
        """Begin a stack above this one."""
        if len(self.below) > _DEEPEST:
            raise damaged(self.name, f"has containers deeper than {_DEEPEST}.")
        self.below.append(self.stack)
        self.stack = []

    def tuple_of(self, count: int) -> None:
        """Make a tuple of the last few values."""
        parts = tuple(self.stack[-count:])
        if len(parts) != count:
            raise damaged(self.name, "has a damaged pickle (an empty stack).")
        del self.stack[-count:]
        self.new(parts, parts)

    def long(self) -> None:
        """Push a whole number of many bytes."""
        packed = self.read(self.number("B"))
        self.stack.append(int.from_bytes(packed, "little", signed=True))

    def remember(self, place: int) -> None:
        """Remember what is on the stack."""
        self.memo[place] = self.stack[-1]

    def protocol(self) -> None:
        """Check which edition of the format follows."""
        if (edition := self.number("B")) != 2:
            raise damaged(
                self.name,
                f"is a pickle of protocol {edition}. torch.save writes 2, if it is not "
                "told otherwise: save it anew.",
            )


def _pushed(read: Callable[[Unpickler], Any]) -> Callable[[Unpickler], None]:
    """The step that pushes a value."""
    return lambda self: self.stack.append(read(self))


def _text(self: Unpickler, form: str) -> str:
    return self.read(self.number(form)).decode("utf-8", "surrogatepass")


def _tuple_since_mark(self: Unpickler) -> None:
    parts = tuple(self.popped())
    self.new(parts, parts)


# Each step by its byte: https://docs.python.org/3/library/pickletools.html
STEPS: dict[bytes, Callable[[Unpickler], None]] = {
    b"\x80": Unpickler.protocol,
    b"(": Unpickler.mark,
    b"N": _pushed(lambda self: None),
    b"\x88": _pushed(lambda self: True),
    b"\x89": _pushed(lambda self: False),
    b"K": _pushed(lambda self: self.number("B")),
    b"M": _pushed(lambda self: self.number("<H")),
    b"J": _pushed(lambda self: self.number("<i")),
    b"\x8a": Unpickler.long,
    b"G": _pushed(lambda self: self.number(">d")),
    b"X": _pushed(lambda self: _text(self, "<I")),
    b"U": _pushed(lambda self: _text(self, "B")),
    b")": lambda self: self.new(()),
    b"]": lambda self: self.new([]),
    b"}": lambda self: self.new({}),
    b"t": _tuple_since_mark,
    b"\x85": lambda self: self.tuple_of(1),
    b"\x86": lambda self: self.tuple_of(2),
    b"\x87": lambda self: self.tuple_of(3),
    b"a": lambda self: self.fill_list([self.stack.pop()]),
    b"e": lambda self: self.fill_list(self.popped()),
    b"s": lambda self: self.fill_dictionary([self.stack.pop(-2), self.stack.pop()]),
    b"u": lambda self: self.fill_dictionary(self.popped()),
    b"q": lambda self: self.remember(self.number("B")),
    b"r": lambda self: self.remember(self.number("<I")),
    b"h": _pushed(lambda self: self.memo[self.number("B")]),
    b"j": _pushed(lambda self: self.memo[self.number("<I")]),
    b"c": _pushed(lambda self: self.meaning(self.line(), self.line())),
    b"Q": _pushed(lambda self: self.stored(self.stack.pop())),
    b"R": Unpickler.called,
    b"\x81": Unpickler.called,
    b"b": Unpickler.built,
}
