"""``jit``: a function that runs as a compiled program where it can, and as it is else.

For each signature, the types and structure of the arguments, the function is staged
once. A call looks up its signature, asks whether all that was taken for constant is as
it was, and runs the program. Whatever cannot be staged, or leaves the program, runs as
the plain function does, so that every result and every exception is Python's.
"""

import gc
import os
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from contextlib import nullcontext
from functools import partial, update_wrapper
from types import FunctionType
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

from lantern.blocks import between_turns, mutex
from lantern.core.tree import tree_children
from lantern.core.value import Value
from lantern.errors import OptionError, StagingError
from lantern.staging.calls import COMPILED, NeedsFunctionError
from lantern.staging.closures import functions_of
from lantern.staging.derived import (
    Derived,
    Forward,
    Parts,
    Pullback,
    Pushforward,
    StaleError,
    call_tracked,
    tracked,
)
from lantern.staging.fixed import AGAIN, Fixed, ints_of
from lantern.staging.gradients import derivative_of, floats_of
from lantern.staging.guards import Guards
from lantern.staging.interpret import run
from lantern.staging.ir import Function, walk
from lantern.staging.known import Awaited, KnownError, Look
from lantern.staging.native.background import later
from lantern.staging.native.disk import save
from lantern.staging.native.engine import Builtin, is_available, warm_up
from lantern.staging.native.layout import is_known
from lantern.staging.native.native import Native
from lantern.staging.native.slots import SpentError
from lantern.staging.operators import Careful
from lantern.staging.optional import settled
from lantern.staging.passes import in_order
from lantern.staging.program import PLAIN, Program, stage
from lantern.staging.session import NeedsCareError
from lantern.staging.staged import is_staged
from lantern.staging.structure import (
    UNDEFINED,
    NeedsKeptError,
    check_equal,
    check_faithful,
    describe,
    is_undefined,
    leaves_of,
)
from lantern.staging.surface import Surface
from lantern.staging.trees import is_changeable, is_tree
from lantern.staging.watch import watched

__all__ = ["Compiled", "explain", "jit", "mode"]

P = ParamSpec("P")
R = TypeVar("R")

MOST_SPECIALISATIONS = MOST_FIXED = 16
_CHANGES = (
    f"{MOST_SPECIALISATIONS} programs were made of it, for other types, or because "
    f"what it reads had changed"
)
_OTHERS = "an argument is no number, and no structure of them"
MOST_LEAVES = 256
OFTEN = 5
"""Changes of other globals before machine code asks for those that are read by name."""
_UNKNOWN = object()
_NUMBERS = frozenset({float, int, bool})
_RESULTS = (float, int, bool, str, bytes, complex)
_MODES = ("off", "interpret", "O0", "O2", "tiers")


def mode() -> str:
    """How programs run: what LANTERN_JIT says, else the best that there is.

    That is "tiers": a short program is interpreted at first, and all others run without
    LLVM's passes, until a thread in the background has compiled them with all.
    """
    chosen = os.environ.get("LANTERN_JIT", "tiers")
    if chosen not in _MODES:
        raise OptionError(
            f"LANTERN_JIT={chosen!r}: there is no such mode. Choose one of {_MODES}."
        )
    return chosen if chosen in _MODES[:2] or is_available() else "off"


class Specialisation(NamedTuple):
    """What becomes of the calls of one signature.

    Attributes:
        run: computes the results from the numbers in the arguments; None if the plain
            function runs.
        program: what was staged.
        guards: what must be as it was.
        reason: why the plain function runs.
        native: the machine code, if there is some.
        is_refused: whether the function has something that is not staged.
    """

    run: Callable[[list[Any]], list[Any]] | None
    program: Program | None = None
    guards: Guards | None = None
    reason: str = ""
    native: Native | None = None
    is_refused: bool = False


class Compiled:
    """A function and its programs, by signature.

    Args:
        f: the plain function.
        exact: whether every bit is as the plain function has it.
        is_direct: whether machine code may take arguments as they come, and look at
            what it has taken for constant by itself.
    """

    def __init__(
        self, f: Callable[..., Any], exact: bool = False, is_direct: bool = True
    ) -> None:
        update_wrapper(self, f)  # first: f's own attributes may have any names
        self.f, self.exact, self.is_direct = f, exact, is_direct
        self.known: dict[Any, Specialisation] = {}
        self.derived: dict[Any, Parts | None] = {}
        self.fixed: dict[Any, Callable[..., Any]] = {}
        self.calls: Counter[Any] = Counter()
        self.builtin: Builtin | None = None
        self.direct: Specialisation | None = None
        self.count = self.changes = 0
        self.argnums = _argnums(f)
        self._lock = mutex()
        COMPILED[id(self)] = f
        _kept.append(self)  # so that its id stays its own

    def __repr__(self) -> str:
        return f"<jit {getattr(self.f, '__qualname__', self.f)!s}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return lambda *args, **kwargs: self(instance, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result: by a program, or by the plain function."""
        if kwargs:
            placed = _placed(self.f, args, kwargs)
            if placed is None:
                return self.f(*args, **kwargs)
            return (self.builtin.function if self.builtin else self)(*placed)
        try:
            signature = self.signature_of(args)
        except Exception:  # an object without one of its fields
            signature = _UNKNOWN
        if signature is None:
            return self._call_tracked(args)
        if signature is _UNKNOWN:
            return self.f(*args)
        found = self.known.get(signature)
        if found is not None and (found.guards is None or found.guards.hold()):
            if found is self.direct and found.native and self.builtin:
                again = found.native.refreshed()
                if again is None:  # the machine code has just left the program
                    return self.f(*args)
                if again:
                    self._ask_for_names(found)
                    return self.builtin.function(*args)
        else:
            found = self.specialise(signature, args)
            if found is self.direct and self.builtin is not None:
                return self.builtin.function(*args)
        if found.run is None or found.program is None:
            return self._run_for_ints(args) if found.is_refused else self.f(*args)
        is_spent = False
        try:
            results = found.run(found.program.take_apart(args))
            return found.program.put_together(results)
        except SpentError:
            is_spent = True
        except Exception:  # whatever it is, the plain function says it: outside of here
            pass
        if is_spent:
            self._use_if_known(found)
            return self._by_builtin(found, args)
        return self.f(*args)

    def _run_for_ints(self, args: tuple[Any, ...]) -> Any:
        """The result by a program for these ints, if they have come often."""
        ints = ints_of(args, self._apart(args))
        if ints not in self.fixed:
            self.calls[ints] += 1
            is_seldom = self.calls[ints] < AGAIN or len(self.fixed) >= MOST_FIXED
            if not ints or is_seldom or any(i < 0 for i in self.argnums):
                return self.f(*args)
            self.fixed[ints] = jit(Fixed(self.f, ints), exact=self.exact)
        known = dict(ints)
        return self.fixed[ints](*[x for i, x in enumerate(args) if i not in known])

    def _by_builtin(self, found: Specialisation, args: tuple[Any, ...]) -> Any:
        """The result by machine code, if nothing has changed meanwhile."""
        if found is self.direct and self.builtin is not None:
            return self.builtin.function(*args)
        return self.f(*args)

    def signature_of(self, args: tuple[Any, ...]) -> Any:
        """What a program for some arguments is known by."""
        return signature_of(args, self._apart(args))

    def _apart(self, args: tuple[Any, ...]) -> Collection[int]:
        """The arguments that a derivative is taken by: they are taken apart."""
        return {i % len(args) for i in self.argnums} if args else ()

    def _call_tracked(self, args: tuple[Any, ...]) -> Any:
        """The result for numbers that derivatives track: by programs of these."""
        plain, by = tracked(args)
        if not by:
            return self.f(*args)
        key = (*map(type, plain), by)
        if not all(map(_NUMBERS.__contains__, key[:-1])):
            key = signature_of(plain, [i for i, _ in by]), by
        for _ in range(2):
            if key not in self.derived:
                self.derived[key] = self._differentiated(plain, by)
            parts = self.derived[key]
            if parts is None:
                break
            try:
                return call_tracked(parts, args, by)
            except StaleError:
                del self.derived[key]
        return self.f(*args)

    def _differentiated(self, args: tuple[Any, ...], by: Any) -> Parts | None:
        """The programs for derivatives by some leaves of arguments."""
        self.changes += 1
        if self.changes > MOST_SPECIALISATIONS:
            return None
        forward = jit(Forward(self.f, by), exact=self.exact)
        pullback = Compiled(Pullback(self.f, by), self.exact, is_direct=False)
        pushforward = jit(Pushforward(self.f, by), exact=self.exact)
        parts = Parts(forward, pullback, pushforward)
        owner = owner_of(forward)
        parts.there = there = owner.specialisation(args)
        if there.program is None or is_changeable(
            node for f in functions_of(there.program.function) for node in walk(f.body)
        ):
            return None
        parts.count = len(floats_of(there.program.result[1]))
        parts.back = pullback.specialisation((*args, (0.0,) * parts.count))
        if not parts.count or parts.back.program is None:
            return None
        known, signature = owner.known, owner.signature_of(args)
        parts.is_current = lambda: known.get(signature) is there
        return parts

    def specialisation(self, args: tuple[Any, ...]) -> Specialisation:
        """What calls with such arguments run now."""
        signature = self.signature_of(args)
        if signature is None:
            return Specialisation(None, reason=_OTHERS)
        found = self.known.get(signature)
        if found is None or (found.guards is not None and not found.guards.hold()):
            found = self.specialise(signature, args)
        return found

    def specialise(self, signature: Any, args: tuple[Any, ...]) -> Specialisation:
        """Stage the function for a signature; note why, if that cannot be done."""
        with self._lock:
            if self.direct is not None and self.direct is self.known.get(signature):
                self._run_directly(None)  # it was made for what has changed since
            self.count += 1
            made = self._made(args)
            self.known[signature] = made
            self._run_directly(made)
            return made

    def _made(self, args: tuple[Any, ...]) -> Specialisation:
        """What becomes of calls like this one.

        Garbage is collected later: that may take as long as all the rest.
        """
        is_collecting = gc.isenabled()
        try:
            gc.disable()
            return self._made_now(args)
        finally:
            if is_collecting:
                gc.enable()

    def _made_now(self, args: tuple[Any, ...]) -> Specialisation:
        how = mode()
        if how == "off":
            _say_once()
            return Specialisation(None, reason="nothing compiles it")
        if self.count > MOST_SPECIALISATIONS:
            return Specialisation(None, reason=_CHANGES)
        try:
            look = Look() if self._may_look(how) else None
            with in_order() if self.exact else nullcontext():
                program, guards = staged(self.f, args, self._apart(args), look)
            if self.exact:
                _check_order(program)
            if how == "interpret":
                return Specialisation(
                    lambda numbers: run(program.function, numbers), program, guards
                )
            may_be_direct = self.is_direct and self.builtin is not None
            native = Native(program, guards, args, may_be_direct, self.exact)
            _kept.append(native)  # machine code has the addresses of what it holds
            made = Specialisation(native.run, program, guards, native=native)
            if how != "tiers":
                native.compile(0 if how == "O0" else native.thorough)
            elif look is None or not look.note or not native.find_noted(look.note):
                if not native.may_wait():
                    native.hurry()
                if native.level < native.best:
                    later(lambda: self.improve(made))
                if look is not None and look.name is not None:
                    later(partial(_note, look.name, native))
            return made
        except Exception as error:
            return Specialisation(None, reason=_reason(error), is_refused=True)

    def _may_look(self, how: str) -> bool:
        """Whether another process may have noted which code this comes to."""
        is_plain = how == "tiers" and self.is_direct and self.builtin is not None
        if not is_plain or self.exact or type(self.f) is not FunctionType:
            return False
        return derivative_of(self.f) is not None

    def _ask_for_names(self, made: Specialisation) -> None:
        """Have machine code ask for the globals that are read: others change often."""
        native = made.native
        if native is None or native.changes != OFTEN:
            return

        @between_turns
        def job() -> None:
            native.ask_for_names()
            self._use_if_known(made)

        later(job)

    @between_turns
    def improve(self, made: Specialisation) -> None:
        """Compile a program with all passes, and run that from now on."""
        assert made.native is not None  # it is what is compiled
        try:
            made.native.compile(made.native.best)
        except StagingError as error:  # an operation has no machine code
            known = [x for x, found in self.known.items() if found is made]
            for signature in known:
                self.known[signature] = Specialisation(None, reason=_reason(error))
        self._use_if_known(made)
        warm_up()  # for the next one

    def _use_if_known(self, made: Specialisation) -> None:
        with self._lock:
            if any(found is made for found in self.known.values()):
                self._run_directly(made)

    def _run_directly(self, made: Specialisation | None) -> None:
        """Have the builtin run machine code by itself; None: have it call this."""
        address = None
        if made is not None:
            native = made.native
            if native is None or native.entry is None or not native.is_direct:
                return
            address = native.entry
        if self.builtin is not None:
            self.builtin.use(address)
            self.direct = made


def _placed(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...] | None:
    """Arguments as a call has them that gives none by name; None if none can."""
    if type(f) is not FunctionType:
        return None
    code, defaults = f.__code__, f.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    if not kwargs.keys() <= {*names[max(len(args), code.co_posonlyargcount) :]}:
        return None
    known = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    known |= kwargs
    rest = names[len(args) : 1 + max(map(names.index, kwargs))]
    return (*args, *(known[x] for x in rest)) if known.keys() >= {*rest} else None


def _note(name: str, native: Native) -> None:
    """Note for other processes what the code of a program is kept under."""
    found = native.noted()
    if found is not None:
        save(name, found)


_kept: list[Any] = []
_said: list[bool] = []


def _say_once() -> None:
    if _said or os.environ.get("LANTERN_JIT") == "off":
        return
    _said.append(True)
    if is_known():
        why = "llvmlite is not installed"
        remedy = 'Install it with pip install "lantern-ad[jit]"'
    else:
        why = "this Python keeps its objects otherwise than is known here"
        remedy = "Take CPython 3.11 to 3.14, with its lock"
    warnings.warn(
        f"jit: {why}, so that functions run as they are. {remedy}.",
        RuntimeWarning,
        stacklevel=4,
    )


def signature_of(args: tuple[Any, ...], apart: Collection[int] = ()) -> Any:
    """What a program is made for: structure, types, and what is no number.

    Args:
        args: of a call.
        apart: positions of arguments that are taken apart, although they be trees.

    Returns:
        None for arguments that no program is made for.
    """
    texts: list[str] = []
    kinds: list[Any] = []
    for i, arg in enumerate(args):
        kind = type(arg)
        if kind in _NUMBERS:
            kinds.append(kind)
            texts.append(".")
        elif isinstance(arg, Value):  # a derivative tracks it
            return None
        elif i not in apart and is_tree(arg):
            kinds.append(kind)
            texts.append("tree")
        else:
            leaves = leaves_of(arg)
            if len(leaves) > MOST_LEAVES:
                return None
            for x in leaves:
                if type(x) not in _NUMBERS and type(x) not in PLAIN:
                    return None
                kinds.append(type(x) if type(x) in _NUMBERS else (type(x), x))
            texts.append(describe(arg))
    return (", ".join(texts), *kinds)


@between_turns
def staged(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    apart: Collection[int] = (),
    look: Any = None,
) -> tuple[Program, Guards]:
    """The program of a function for arguments, and what it takes for constant.

    Args:
        f, args: the function and the arguments.
        apart: positions of arguments that are taken apart, although they be trees.
        look: for the code of a gradient: where it may be known, the rest is awaited.
    """
    trees = [i for i, x in enumerate(args) if i not in apart and is_tree(x)]
    for i, x in enumerate(args):
        if i not in trees:
            check_faithful(x)
            check_equal(x)
    recursive: set[Any] = set()
    kept: set[Any] = set()
    is_careful = False
    while True:
        surface = (Careful if is_careful else Surface)(recursive, kept)
        session = surface.session
        session.look = None if is_careful else look

        def body(*values: Any, surface: Surface = surface) -> Any:
            for x in values:
                surface.session.take(x)
            result = settled(surface.call(f, *values))
            _check_result(surface, result)
            return result

        body.__name__ = getattr(f, "__name__", "f")
        try:
            with watched(session.may_run) if is_careful else nullcontext():
                program = stage(body, *args, trees=trees, loose=True)
        except NeedsCareError:
            is_careful = True
            continue
        except KnownError:
            return Awaited(args, partial(staged, f, args, apart)), session.guards
        except NeedsKeptError as need:
            if need.place in kept:
                UNDEFINED.refuse()
            kept.add(need.place)
            continue
        except NeedsFunctionError as need:
            if need.code in recursive:
                raise StagingError("a function calls itself without end.") from need
            recursive.add(need.code)
            continue
        _check_program(program)
        program.function = _unwrapped(program.function)
        return program, session.guards


def _unwrapped(main: Function) -> Function:
    """The function that a program does nothing but call."""
    calls = [x for x in main.body.nodes if x.op == "call"]
    rest = {x.op for x in main.body.nodes if x.op != "call"}
    if len(calls) != 1 or not rest <= {"result"}:
        return main
    (call,), inside = calls, calls[0].static
    results = main.body.results
    same = [x.static for x in results] == list(range(len(inside.body.results)))
    if list(call.inputs) != main.body.parameters or not same:
        return main
    if any(f is inside for g in _calls_of(inside) for f in functions_of(g)):
        return main  # it calls itself
    found: Function = inside
    return found


def _calls_of(f: Function) -> list[Function]:
    return [x.static for x in walk(f.body) if x.op == "call"]


def _check_result(surface: Surface, result: Any) -> None:
    """Refuse to return what the plain function would make anew, or hand back."""
    for x in leaves_of(result):
        if is_undefined(x):
            x.refuse()
        if not is_staged(x) and type(x) not in _RESULTS:
            raise StagingError(
                f"return: an object of type {type(x).__name__}, which each call would "
                f"have in common. Return numbers and structures of them."
            )
    _check_own(surface, result, set())


def _check_own(surface: Surface, x: Any, seen: set[int]) -> None:
    """Refuse to return an object that somebody has, or one at two places: as copies."""
    parts = tree_children(x)
    if parts is None:
        return
    if isinstance(x, defaultdict) and not isinstance(x.default_factory, type | None):
        raise StagingError("return: a defaultdict by a function. Return dict(it).")
    if hasattr(type(x), "__post_init__"):
        raise StagingError(f"return: a {type(x).__name__}, with its __post_init__.")
    if not isinstance(x, tuple | None):
        if surface.session.is_callers(x):
            raise StagingError(
                f"return: a {type(x).__name__} that the caller has. Return a new one."
            )
        if id(x) in seen:
            raise StagingError(
                f"return: the same {type(x).__name__} at two places. Return two."
            )
        seen.add(id(x))
    for _, part in parts:
        _check_own(surface, part, seen)


def _check_program(program: Program) -> None:
    for x in program.function.body.results:
        if not x.type.is_number:
            raise StagingError(
                "return: an object of the caller's. Return numbers and structures."
            )
    for f in functions_of(program.function):
        if f is not program.function and any(x.loose for x in f.body.results):
            raise StagingError(
                f"{f.name}: it returns an int on one way and a float on another. Write "
                f"0.0 for 0."
            )
        for op, known in {(x.op, x.type) for x in walk(f.body)}:
            if op.startswith("numpy.") or known.kind == "array":
                raise StagingError(
                    f"{op}: NumPy's functions and arrays are not compiled yet. "
                    f"Use lantern's functions on numbers."
                )


def _check_order(program: Program) -> None:
    """Refuse a derivative that adds up in another order than the plain one."""
    for f in functions_of(program.function):
        if f.name.endswith("_backward"):
            raise StagingError(
                "exact: the derivative of a function that calls itself adds up what "
                "its calls contribute in another order."
            )


def _reason(error: Exception) -> str:
    """What went wrong, with the user's line."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        inside = os.sep + os.path.join("lantern", "staging") + os.sep
        if inside not in frame.filename:
            place = f" ({os.path.basename(frame.filename)}, line {frame.lineno})"
    kind = "" if isinstance(error, StagingError) else f"{type(error).__name__}: "
    return f"{kind}{error}{place}"


@overload
def jit(f: Callable[P, R], *, exact: bool = False) -> Callable[P, R]: ...
@overload
def jit(
    f: None = None, *, exact: bool = False
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def jit(f: Callable[..., Any] | None = None, *, exact: bool = False) -> Any:
    """A function that is compiled when it is first called, for each signature.

    What it returns and raises is what f returns and raises. Numbers, tuples, lists and
    dicts of numbers are compiled for; for all else f itself runs, and also where it
    does what cannot be compiled: ``explain`` says so.

    Args:
        f: a function; none, to be used as a decorator with options.
        exact: whether derivatives, too, are the plain function's to the last bit, but
            for the sign of a zero. If not, what a function computes twice is computed
            once, so that its cotangents are added up before they go back and not after
            it. Where a function calls itself, or a value has two names of which one is
            a variable that a branch or a loop assigns to, the order is another one in
            any case: with exact, derivatives of that run as they are. Values have the
            last bit right without it.

    Example:
        >>> import lantern
        >>> @lantern.jit
        ... def newton(x):
        ...     y = x
        ...     while abs(y * y - x) > 1e-12 * x:
        ...         y = 0.5 * (y + x / y)
        ...     return y
        >>> newton(9.0), lantern.jit(lantern.grad(newton))(9.0)
        (3.0, 0.16666666666666669)
    """
    if f is None:
        return lambda g: jit(g, exact=exact)
    if isinstance(getattr(f, "__self__", f), Compiled):
        return f
    if not callable(f):
        raise StagingError(
            f"jit: expected a function, got {type(f).__name__}. Give the function, not "
            f"its result."
        )
    made = Compiled(f, exact)
    if _is_method(f) or not is_known():
        return made
    name = getattr(f, "__name__", "f")
    made.builtin = Builtin(made, name, getattr(f, "__doc__", None))
    return made.builtin.function


def owner_of(f: Any) -> Compiled:
    """What keeps the programs of a function that ``jit`` has made."""
    found = getattr(f, "__self__", f)
    assert isinstance(found, Compiled)
    return found


def _argnums(f: Any) -> tuple[int, ...]:
    """The positions by which a function takes a derivative, if it is known to."""
    if isinstance(f, Derived):
        return tuple(i for i, _ in f.by)
    if isinstance(f, Fixed):
        return tuple(map(f.place, _argnums(f.f)))
    try:
        known = derivative_of(f) if type(f) is FunctionType else None
    except StagingError:
        return ()
    if known is None:
        return ()
    chosen = (known.argnums,) if isinstance(known.argnums, int) else known.argnums
    return tuple(i for i in chosen if type(i) is int)


def _is_method(f: Any) -> bool:
    """Whether a function is one of a class: it must be bound to its objects."""
    *around, _ = getattr(f, "__qualname__", "f").split(".")
    return bool(around) and around[-1] != "<locals>"


def explain(f: Any) -> str:
    """What became of the calls of a function that ``jit`` has made.

    Example:
        >>> import lantern
        >>> f = lantern.jit(lambda x: print(x) or x)
        >>> f(2.0)
        2.0
        2.0
        >>> print(lantern.explain(f))  # doctest: +ELLIPSIS
        <lambda>(float): ...
    """
    f = getattr(f, "__self__", f)
    name = getattr(f, "__name__", "f")
    lines = []
    for signature, found in getattr(f, "known", {}).items():
        kinds = ", ".join(getattr(k, "__name__", repr(k)) for k in signature[1:])
        how = "compiled" if found.run is not None else f"runs as it is: {found.reason}"
        lines.append(f"{name}({kinds}): {how}")
    for ints, found in getattr(f, "fixed", {}).items():
        known = ", ".join(f"argument {i} = {x}" for i, x in ints)
        lines.append(f"with {known}: {explain(found)}")
    for parts in getattr(f, "derived", {}).values():
        if parts is not None:
            every = (parts.forward, parts.pullback, parts.pushforward)
            lines += [explain(part) for part in every if owner_of(part).known]
    return "\n".join(lines) or f"{name}: not called yet"
