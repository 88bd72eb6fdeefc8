"""Python's own functions on staged values: what ``max`` or ``range`` become."""

import builtins
import functools
import itertools
import math
import operator
import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from lantern.errors import StagingError
from lantern.staging.control import IF, StoppedError, has_staged, truth
from lantern.staging.ir import current, taking_ahead
from lantern.staging.session import Session
from lantern.staging.staged import NeedsPlainError, Staged, is_staged, operate, perform
from lantern.staging.trees import StagedTree
from lantern.staging.types import BOOL, FLOAT, INT

__all__ = [
    "COMPENSATES",
    "TABLE",
    "Items",
    "Once",
    "StagedRange",
    "itself",
    "ordered",
]


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

    def __iter__(self) -> Iterator[Any]:
        raise NeedsPlainError("range: of a length that is known when the program runs.")


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
    (x,) = map(session.lt.truth, args or (False,))
    return Staged(truth(x)) if is_staged(x) else bool(x)


def _extreme(op: Callable[[Any, Any], Any]) -> Any:
    def extreme(session: Session, *args: Any, key: Any = None, **other: Any) -> Any:
        if len(args) == 1 and _is_row(args[0]) and key is None and not other:
            f = max if op is operator.gt else min
            return session.lt.reduced(f, args[0], itself)
        rest = iter(args[0] if len(args) == 1 else args)
        found = next(rest, _NONE)
        if found is _NONE and len(args) == 1 and "default" in other:
            return other["default"]
        if found is _NONE or other.keys() - {"default"} or (other and len(args) > 1):
            raise StoppedError  # Python says why
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


_NONE = object()


def _is_row(x: Any) -> bool:
    """Whether it is known only when the program runs how many items there are."""
    return isinstance(x, StagedTree | StagedRange)


def itself(x: Any) -> Any:
    """What is there already."""
    return x


def _chosen(condition: Any, x: Any, y: Any) -> Any:
    return IF(condition, lambda: x, lambda: y)


def _sum(session: Session, xs: Any, start: Any = 0) -> Any:
    if isinstance(xs, list | tuple) and not has_staged((xs, start)):
        return sum(xs, start)
    if _is_row(xs) and type(start) is int and start == 0:
        return session.lt.reduced(sum, xs, itself)
    each, total = iter(xs), start
    # What a derivative tracks is no float: Python adds it up as it is.
    if COMPENSATES and not session.derivatives and _kind(total) in (int, float):
        if _kind(total) is int:
            for x in each:
                total = total + x
                if _kind(x) not in (int, bool):
                    break
        if _kind(total) is float:
            return _compensated(total, each)
    for x in each:
        total = total + x
    return total


def _product(session: Session, xs: Any, *, start: Any = 1) -> Any:
    total = start
    for x in xs:
        total = total * x
    return total


def _fsum(session: Session, xs: Any) -> Any:
    items = [_operand("fsum", x) for x in xs]
    if not any(map(is_staged, items)):
        return math.fsum(items)
    return operate("fsum", *items)


def _dist(session: Session, p: Any, q: Any) -> Any:
    ends = [[_as_float("dist", x) for x in row] for row in (p, q)]
    if len(ends[0]) != len(ends[1]):
        raise StoppedError  # Python says why
    steps = [x - y for x, y in zip(*ends, strict=True)]
    if not any(map(is_staged, steps)):
        return math.hypot(*steps)
    return perform("math.hypot", tuple(steps), {})


def _is_close(
    session: Session, x: Any, y: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0
) -> Any:
    """``math.isclose``, by the tests that Python makes."""
    x, y, *tolerances = (_as_float("isclose", z) for z in (x, y, rel_tol, abs_tol))
    if not any(map(is_staged, (x, y, *tolerances))):
        return math.isclose(x, y, rel_tol=tolerances[0], abs_tol=tolerances[1])
    lt = session.lt
    for z in tolerances:
        lt.claim(lt.not_(z < 0.0), None)
    rel_tol, abs_tol = tolerances
    far, *near = (_applied(math.fabs, z) for z in (y - x, rel_tol * y, rel_tol * x))
    is_near = (far <= abs_tol) | (far <= near[0]) | (far <= near[1])
    are_finite = _applied(math.isfinite, x) & _applied(math.isfinite, y)
    return (x == y) | (are_finite & is_near)


def _applied(f: Any, x: Any) -> Any:
    """A function of math, which no derivative goes through."""
    return operate(f"math.{f.__name__}", x) if is_staged(x) else f(x)


def _operand(asked: str, x: Any) -> Any:
    """A float or an int, as Python's functions of C take them."""
    if isinstance(x, StagedTree):
        return x.unboxed()
    if type(x) not in (Staged, float, int, bool):
        raise StagingError(f"{asked}: of other objects than numbers.")
    return x


def _as_float(asked: str, x: Any) -> Any:
    x = _operand(asked, x)
    return operate("to_float", x) if is_staged(x) else float(x)


COMPENSATES = sum([1e100, 1.0, -1e100]) == 1.0
"""Whether this Python adds up floats with what rounding has lost (from 3.12 on)."""

_COMPENSATES_INTS = sum([1e16, 1, -1e16]) == 1.0
"""Whether it does so with ints among them."""


def _kind(x: Any) -> type:
    """The class of what is added up; of a number, as it is when the program runs."""
    if isinstance(x, StagedTree):
        return float  # or the program is left
    if type(x) is not Staged:
        return type(x)
    if x.node.loose:
        raise StagingError("sum: of an int on one way and a float on another.")
    return {FLOAT: float, INT: int, BOOL: bool}.get(x.node.type, Staged)


def _compensated(total: Any, rest: Iterator[Any]) -> Any:
    """A sum that begins with a float, as Python adds it up.

    References:
        Neumaier (1974), Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
        Summen: what is lost of the smaller operand is added up by itself.
    """
    lost: Any = 0.0
    for x in rest:
        kind = _kind(x)
        is_long = type(x) is int and not -(2**63) <= x < 2**63
        if is_long or kind not in (float, int, bool):
            total = _with(total, lost) + x
            break
        y: Any = x.unboxed() if isinstance(x, StagedTree) else x * 1.0
        now = total + y
        if kind is float or _COMPENSATES_INTS:
            rests = (total - now) + y, (y - now) + total
            lost = lost + _chosen(abs(total) >= abs(y), *rests)
        total = now
    else:
        return _with(total, lost)
    for x in rest:
        total = total + x
    return total


def _with(total: Any, lost: Any) -> Any:
    """A sum and what was lost of it, unless that is nothing, or no finite number."""
    size = abs(lost)
    is_some = _chosen(size > 0.0, size <= sys.float_info.max, False)
    return IF(is_some, lambda: total + lost, lambda: total)


def _every(stop_at: bool) -> Any:
    def every(session: Session, xs: Any) -> Any:
        last: Any = not stop_at
        if _is_row(xs):
            return session.lt.reduced(any if stop_at else all, xs, itself)

        def ends() -> Any:
            return last if is_staged(last) else bool(last) is stop_at

        items: list[Any] = []
        for x in Items(xs, ends):
            last = x
            items.append(x)
        found: Any = not stop_at
        for x in reversed(items):
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


MOST_AHEAD = 1_000
"""Items of an iterator that are taken although a loop may have been left by then."""


class Once:
    """An iterator, which is used up: on the way of the program where it was made.

    One that is used up ahead is of no use to anybody but the loop that does it.
    """

    __slots__ = ("block", "items", "user")

    def __init__(self, items: Iterator[Any]) -> None:
        self.items, self.block, self.user = items, current.blocks[-1], None

    def __iter__(self) -> "Once":
        return self

    def __next__(self) -> Any:
        user = current.ahead and current.ahead[0]
        if current.blocks[-1] is not self.block or self.user not in (None, user):
            raise StagingError(
                "an iterator is used up on one way of the program alone, or in a turn "
                "of a loop. Make a list of it."
            )
        self.user = user
        return next(self.items)


class Items:
    """What a loop goes through, each taken when its turn comes.

    Where it is known only when the program runs whether the loop has been left, items
    are taken ahead.

    Args:
        items: all of them.
        left: says whether the loop has been left.
    """

    __slots__ = ("is_ahead", "items", "left", "turns")

    def __init__(self, items: Any, left: Callable[[], Any]) -> None:
        self.items, self.left = iter(items), left
        self.is_ahead, self.turns = False, 0

    def __iter__(self) -> "Items":
        return self

    def __next__(self) -> Any:
        left = self.left()
        if is_staged(left):
            self.is_ahead = True
        elif left:
            raise StopIteration
        if not self.is_ahead:
            return next(self.items)
        self.turns += 1
        if self.turns > MOST_AHEAD and type(self.items) is Once:  # it may have no end
            raise StagingError(
                f"for: more than {MOST_AHEAD} items of an iterator are taken ahead. "
                f"Loop over a range."
            )
        with taking_ahead((self, self.turns)):
            return next(self.items)


def _next(session: Session, x: Any, *default: Any) -> Any:
    if not isinstance(x, Once):
        raise StagingError("next: of what is no iterator made inside. Write a loop.")
    try:
        return next(x, *default)
    except StopIteration:
        raise StoppedError from None


def _once(f: Any) -> Any:
    made = _plain(f)
    return lambda *args, **kwargs: Once(made(*args, **kwargs))


def _map(session: Session, f: Any, *xs: Any) -> Any:
    return Once(session.call(f, *args) for args in zip(*xs, strict=False))


def _starmap(session: Session, f: Any, rows: Any) -> Any:
    return Once(session.call(f, *args) for args in rows)


def _filter(session: Session, f: Any, xs: Any) -> Any:
    def is_kept(x: Any) -> Any:
        return session.lt.known(x if f is None else session.call(f, x))

    return Once(x for x in xs if is_kept(x))


def _accumulate(
    session: Session, xs: Any, f: Any = None, *, initial: Any = None
) -> Any:
    each = iter(xs)

    def totals() -> Iterator[Any]:
        total = next(each, _NONE) if initial is None else initial
        while total is not _NONE:
            yield total
            x = next(each, _NONE)
            if x is _NONE:
                return
            total = session.call(operator.add if f is None else f, total, x)

    return Once(totals())


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
    if not is_staged(x) and not is_staged(digits):
        return round(x, digits)
    if isinstance(x, StagedTree):
        x = x.unboxed()
    if _kind(x) is not float or (digits is not None and _kind(digits) is not int):
        raise StagingError("round: of an int, or to digits that are none.")
    if digits is None:
        return operate("round_to_int", x)
    return operate("round_to", x, digits)


def _reduce(session: Session, f: Any, xs: Any, *start: Any) -> Any:
    rest = iter(xs)
    found = start[0] if start else next(rest, _NONE)
    if found is _NONE:
        raise StoppedError
    for x in rest:
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
    math.prod: _product,
    math.fsum: _fsum,
    math.dist: _dist,
    math.isclose: _is_close,
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
            deque,
            defaultdict,
            callable,
        )
    },
    itertools.starmap: _starmap,
    itertools.accumulate: _accumulate,
    filter: _filter,
    **{
        f: _once(f)
        for f in (
            zip,
            enumerate,
            reversed,
            iter,
            itertools.chain,
            itertools.chain.from_iterable,
            itertools.combinations,
            itertools.combinations_with_replacement,
            itertools.count,
            itertools.islice,
            itertools.pairwise,
            itertools.permutations,
            itertools.product,
            itertools.repeat,
            itertools.zip_longest,
        )
    },
    **{f: _text(f) for f in (str, repr)},
}
