"""Python's own functions on staged values: what ``max`` or ``range`` become."""

import builtins
import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any

from lantern.errors import StagingError
from lantern.staging.control import IF, StoppedError, has_staged, truth
from lantern.staging.ir import current
from lantern.staging.session import Session
from lantern.staging.staged import Staged, is_staged, operate
from lantern.staging.trees import StagedTree
from lantern.staging.types import BOOL, FLOAT, INT

__all__ = ["TABLE", "Once", "StagedRange", "ordered"]


def _range(session: Session, *args: Any) -> Any:
    if not any(map(is_staged, args)):
        return range(*args)
    start, end, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    return StagedRange(start, end, step)


class StagedRange:
    """A range whose bounds are known when the program runs."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step
        if is_staged(step) or type(step) is not int or step == 0:
            raise StagingError(
                "range: its step is known only when the program runs. Use a plain int."
            )
        for x in (start, stop):
            if not (type(x) is int or (is_staged(x) and x.node.type in (INT, BOOL))):
                raise StoppedError


def _float(session: Session, *args: Any) -> Any:
    (x,) = args or (0.0,)
    if not is_staged(x):
        return float(x)
    if isinstance(x, StagedTree):
        x = x.unboxed()
    return operate("plain_float" if x.node.type is FLOAT else "to_float", x)


def _int(session: Session, *args: Any) -> Any:
    (x,) = args or (0,)
    return operate("to_int", x) if is_staged(x) else int(x)


def _bool(session: Session, *args: Any) -> Any:
    (x,) = args or (False,)
    return Staged(truth(x)) if is_staged(x) else bool(x)


def _extreme(op: Callable[[Any, Any], Any]) -> Any:
    def extreme(session: Session, *args: Any, key: Any = None, **other: Any) -> Any:
        items = tuple(args[0]) if len(args) == 1 else args
        if not items and len(args) == 1 and "default" in other:
            return other["default"]
        if not items or other.keys() - {"default"} or (other and len(args) > 1):
            raise StoppedError  # Python says why
        found, *rest = items
        if key is None:
            for x in rest:
                found = _chosen(op(x, found), x, found)
            return found
        best = session.call(key, found)
        for x in rest:
            own = session.call(key, x)
            found, best = _chosen(op(own, best), (x, own), (found, best))
        return found

    return extreme


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return IF(condition, lambda: x, lambda: y)


def _sum(session: Session, xs: Any, start: Any = 0) -> Any:
    if has_staged(xs) if isinstance(xs, list | tuple) else True:
        for x in xs:
            start = start + x
        return start
    return sum(xs, start)


def _every(stop_at: bool) -> Any:
    def every(session: Session, xs: Any) -> Any:
        found: Any = not stop_at
        for x in reversed(list(xs)):
            found = _chosen(
                x, stop_at if stop_at else found, found if stop_at else False
            )
        return found

    return every


def _isinstance(session: Session, x: Any, cls: Any) -> Any:
    if isinstance(x, Once):
        raise StagingError("isinstance: of an iterator. Make a list of it.")
    if not is_staged(x):
        session.guards.asked(x, cls)
        return isinstance(x, cls)
    classes = cls if isinstance(cls, tuple) else (cls,)
    if isinstance(x, StagedTree):
        if any(type(c) is not type for c in classes):
            raise StagingError("isinstance: of a class that says by itself what it is.")
        return _is_among(x, classes)
    return issubclass(_class_of(session, "isinstance", x), classes)


def _class_of(session: Session, asked: str, x: Staged) -> type:
    """The class of a number."""
    if session.derivatives and x.node.type is FLOAT:
        raise StagingError(
            f"{asked}: a number that a derivative tracks is of another class. Ask "
            f"for the structure around it."
        )
    if x.node.loose:
        raise StagingError(f"{asked}: it is an int on one way and a float on another.")
    return {FLOAT: float, INT: int, BOOL: bool}[x.node.type]


def _type(session: Session, *args: Any) -> Any:
    if len(args) != 1:
        raise StagingError("type: a class is not made inside. Make it outside.")
    (x,) = args
    if type(x) is Staged and x.node.type.is_number:
        return _class_of(session, "type", x)
    if not is_staged(x) and (session.is_inside(x) or type(x) in _ATOMS):
        return type(x)
    raise StagingError("type: of an object of the caller's. Ask by isinstance.")


_ATOMS = (bool, int, float, str, bytes, type(None))


def _is_among(x: StagedTree, classes: tuple[type, ...]) -> Any:
    """Whether an object is of some classes; one of a class never met is not known."""
    met = dict.fromkeys([*classes, *map(type, x.node.example), *_USUAL])

    def ask(kinds: list[type]) -> Any:
        if not kinds:
            raise StoppedError
        first, *rest = kinds
        return IF(x.is_instance(first), lambda: first in among, lambda: ask(rest))

    among = {c for c in met if issubclass(c, classes)}
    return ask(list(met))


_USUAL = (type(None), float, int, tuple, list)


def _len(session: Session, x: Any) -> Any:
    if isinstance(x, StagedTree):
        return x.size()
    return _LEN(session, x)


class Once:
    """An iterator, which is used up: on the way of the program where it was made."""

    __slots__ = ("block", "items")

    def __init__(self, items: Iterator[Any]) -> None:
        self.items, self.block = items, current.blocks[-1]

    def __iter__(self) -> Iterator[Any]:
        if current.blocks[-1] is not self.block:
            raise StagingError(
                "an iterator is used up on one way of the program alone, or in a turn "
                "of a loop. Make a list of it."
            )
        return self.items


def _next(session: Session, x: Any, *default: Any) -> Any:
    if not isinstance(x, Once):
        raise StagingError("next: of what is no iterator made inside. Write a loop.")
    try:
        return next(iter(x), *default)
    except StopIteration:
        raise StoppedError from None


def _once(f: Any) -> Any:
    made = _plain(f)
    return lambda *args, **kwargs: Once(made(*args, **kwargs))


def _map(session: Session, f: Any, *xs: Any) -> Any:
    return Once(iter([session.call(f, *args) for args in zip(*xs, strict=False)]))


def _plain(f: Any) -> Any:
    def reading(session: Session, *args: Any, **kwargs: Any) -> Any:
        for x in args:
            if isinstance(x, StagedRange):
                raise StagingError(
                    f"{f.__name__}: of a range that is known when the program runs."
                )
        return f(*args, **kwargs)

    return reading


def _text(f: Any) -> Any:
    def text(session: Session, *args: Any) -> Any:
        if any(map(has_staged, args)):
            raise StagingError(
                f"{f.__name__}: a text of what is known only when the program runs. "
                f"Write it outside of the function."
            )
        return reading(session, *args)

    reading = _plain(f)
    return text


def _round(session: Session, x: Any, digits: Any = None) -> Any:
    if not is_staged(x):
        return round(x, digits)
    if digits is not None or x.node.type is not FLOAT:
        raise StagingError("round: to digits it is not staged. Round afterwards.")
    return operate("round_to_int", x)


def _reduce(session: Session, f: Any, xs: Any, *start: Any) -> Any:
    values = [*start, *xs]
    found = values[0]
    for x in values[1:]:
        found = session.call(f, found, x)
    return found


def _partial(session: Session, f: Any, *args: Any, **kwargs: Any) -> Any:
    return session.made(functools.partial(f, *args, **kwargs))


def ordered(session: Session, xs: Any, *, key: Any = None, reverse: Any = False) -> Any:
    """``sorted``: of numbers known later by comparing neighbours."""
    items = list(xs)
    keys = items if key is None else [session.call(key, x) for x in items]
    if not has_staged(keys):
        order = sorted(range(len(items)), key=keys.__getitem__, reverse=reverse)
        return session.made([items[i] for i in order])
    if len(items) > MOST_SORTED or not all(type(x) in _SORTED for x in keys):
        raise StagingError(f"sorted: of others than up to {MOST_SORTED} numbers.")
    for x in keys:
        session.lt.claim(x == x, None)  # nan has no order
    for last in range(len(items) - 1, 0, -1):
        for i in range(last):
            x, y = ((keys[k], items[k]) for k in (i, i + 1))
            swaps = x[0] < y[0] if reverse else x[0] > y[0]
            x, y = _chosen(swaps, (y, x), (x, y))
            (keys[i], items[i]), (keys[i + 1], items[i + 1]) = x, y
    return session.made(items)


MOST_SORTED = 16
_SORTED = (Staged, float, int, bool)


def _getattr(session: Session, x: Any, name: Any) -> Any:
    if type(name) is not str:
        raise StagingError("getattr: of a name that is no str.")
    return session.lt.attribute(x, name)


def _abs(session: Session, x: Any) -> Any:
    return abs(x)


def _pow(session: Session, x: Any, y: Any) -> Any:
    return x**y


def _divmod(session: Session, x: Any, y: Any) -> Any:
    return x // y, x % y


_LEN = _plain(len)
TABLE: dict[Any, Callable[..., Any]] = {
    builtins.range: _range,
    float: _float,
    int: _int,
    bool: _bool,
    max: _extreme(operator.gt),
    min: _extreme(operator.lt),
    sum: _sum,
    any: _every(True),
    all: _every(False),
    isinstance: _isinstance,
    type: _type,
    next: _next,
    map: _map,
    getattr: _getattr,
    abs: _abs,
    pow: _pow,
    divmod: _divmod,
    round: _round,
    functools.reduce: _reduce,
    functools.partial: _partial,
    sorted: ordered,
    len: _len,
    **{
        f: _plain(f)
        for f in (
            list,
            tuple,
            dict,
            set,
            callable,
        )
    },
    **{f: _once(f) for f in (zip, enumerate, reversed, iter)},
    **{f: _text(f) for f in (str, repr)},
}
