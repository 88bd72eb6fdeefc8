"""Faults at every instruction of the library's inner rooms, in small programs.

An exception is raised where CPython could raise one: an interrupt behind a call, at the
door of a function and at the end of a turn of a loop; a lack of memory at whatever
makes an object; too deep a recursion at whatever calls. After each fault the same
program has to give its result again, with nothing left alive, and all ambient state as
it was.

    python -m tests.contract.faults [--every N] [--programs WORDS] [--kinds WORDS]

Kinds: ``interrupt``, ``memory`` and ``depth``, raised at an instruction; ``limit``, a
recursion limit that is reached somewhere; ``signals``, an alarm at a moment of chance;
``allocations``, each failing once.
"""

import argparse
import ast
import contextvars
import dis
import functools
import gc
import itertools
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import lantern
from tests.conftest import check_answers, leftovers, set_all_aside, surroundings
from tests.contract.programs import PROGRAMS

HOME = lantern.__file__.rpartition("__init__")[0]
ROOMS = tuple(
    HOME + place
    for place in (
        "blocks.py cps/ core/ op.py transforms/reverse.py transforms/forward.py "
        "transforms/recorded.py eager/ torch/optim/ torch/tensor/gradients.py "
        "torch/autograd/__init__.py control/ batching/"
    ).split()
)

# By how the names of instructions begin: those that call, and others that make objects.
CALLS = ("CALL", "BINARY", "COMPARE", "CONTAINS", "FOR_ITER", "GET_ITER", "LOAD_ATTR")
CALLS += ("LOAD_METHOD", "STORE_ATTR", "STORE_SUBSCR", "SEND", "UNARY", "BEFORE_WITH")
MAKES = ("BUILD", "MAKE_", "LIST_", "SET_", "DICT_", "MAP_", "FORMAT", "UNPACK_EX")
AT_INSTRUCTIONS = {
    "interrupt": KeyboardInterrupt,
    "memory": MemoryError,
    "depth": RecursionError,
}
KINDS = (*AT_INSTRUCTIONS, "limit", "signals", "allocations")


@functools.cache
def raising(code):
    """What may be raised at each instruction of a code object: {offset: kinds}."""
    found, before = {}, None
    cleaning = _lines_that_clean_up(code.co_filename)
    steps = [step for step in dis.get_instructions(code) if step.opname != "CACHE"]
    for i, step in enumerate(steps):
        kinds = found[step.offset] = set()
        name = step.opname
        behind_a_call = before is not None and before.opname.startswith("CALL")
        if (
            name == "RESUME"
            or name.startswith("JUMP_BACKWARD")
            or (behind_a_call and _handler(code, before) == _handler(code, step))
        ):
            kinds.add("interrupt")
        if step.positions.lineno not in cleaning and not _leaves_a_block(steps, i):
            if name.startswith(CALLS + MAKES):
                kinds.add("memory")
            if name.startswith(CALLS):
                kinds.add("depth")
        before = step
    return found


def _handler(code, step):
    """Where an exception of an instruction is handled, in its own function."""
    for entry in dis._parse_exception_table(code):
        if entry.start <= step.offset < entry.end:
            return entry.target
    return None


def _leaves_a_block(steps, i):
    """Whether an instruction is a part of the call with which `with` leaves its block.

    What is wrong there is not for the block to mend.
    """
    nones = [step.opname == "LOAD_CONST" and step.argval is None for step in steps]
    return any(nones[j : j + 3] == [True] * 3 for j in range(max(i - 4, 0), i))


@functools.cache
def _lines_that_clean_up(path):
    """The lines of `finally` and of `__exit__`: they may be interrupted, no more.

    What puts back what was there cannot do it without memory.
    """
    lines = set()
    for node in ast.walk(ast.parse(Path(path).read_text())):
        bodies = [node.finalbody] if isinstance(node, ast.Try) else []
        if isinstance(node, ast.FunctionDef) and node.name == "__exit__":
            bodies.append(node.body)
        for statement in itertools.chain.from_iterable(bodies):
            lines.update(range(statement.lineno, statement.end_lineno + 1))
    return lines


def traced(run, on_instruction):
    """Run with a function called before every instruction of the rooms."""

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.startswith(ROOMS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    def local(frame, event, argument):
        if event == "opcode":
            on_instruction(frame.f_code, frame.f_lasti)
        return local

    before = sys.gettrace()
    gc.disable()  # it would run lines of ours, at moments of its own
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)
        gc.enable()


class Fault:
    """An exception at a visit of an instruction."""

    all_is_freed = True

    def __init__(self, kind, code, offset, visit):
        self.kind, self.code, self.offset, self.visit = kind, code, offset, visit
        self.expected = AT_INSTRUCTIONS[kind]

    def __str__(self):
        step = next(
            s for s in dis.get_instructions(self.code) if s.offset == self.offset
        )
        path = self.code.co_filename.removeprefix(HOME)
        return (
            f"{self.kind}, visit {self.visit} of {path}:{step.positions.lineno} "
            f"{self.code.co_qualname} {step.opname}"
        )

    def attempt(self, run):
        """Run, and raise there."""
        left = self.visit

        def on_instruction(code, offset):
            nonlocal left
            if code is self.code and offset == self.offset:
                left -= 1
                if left == 0:
                    raise self.expected("injected")

        traced(run, on_instruction)


class Limit:
    """A recursion limit that some call of the program reaches."""

    expected, all_is_freed = RecursionError, True

    def __init__(self, above):
        self.above = above

    def __str__(self):
        return f"a limit of {self.above} more frames"

    def attempt(self, run):
        before, frame, depth = sys.getrecursionlimit(), sys._getframe(), 0
        while frame is not None:
            frame, depth = frame.f_back, depth + 1
        try:
            sys.setrecursionlimit(depth + self.above)
            run()
        finally:
            sys.setrecursionlimit(before)


class Alarm:
    """A signal whose handler raises, after a time."""

    expected, all_is_freed = KeyboardInterrupt, True

    def __init__(self, seconds):
        self.seconds = seconds

    def __str__(self):
        return f"a signal after {1e6 * self.seconds:.0f} µs"

    def attempt(self, run):
        try:
            signal.setitimer(signal.ITIMER_REAL, self.seconds)
            run()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)


class Allocation:
    """One allocation that fails, by a hook in CPython's own test module.

    CPython itself then loses a reference here and there, and keeps what it leads to.
    """

    expected = MemoryError, SystemError  # NumPy and CPython forget to say which
    all_is_freed = False

    def __init__(self, number):
        self.number = number

    def __str__(self):
        return f"no memory for allocation {self.number}"

    def attempt(self, run):
        import _testcapi

        _testcapi.set_nomemory(self.number, self.number + 1)
        try:
            run()
        finally:
            _testcapi.remove_mem_hooks()


def faults(run, kinds, every=1):
    """The faults of some kinds for a program: each ``every``-th."""
    visits = Counter()
    traced(run, lambda code, offset: visits.update([(code, offset)]))
    at_instructions = (
        Fault(kind, code, offset, visit)
        for (code, offset), count in visits.items()
        for kind in AT_INSTRUCTIONS
        if kind in kinds and kind in raising(code).get(offset, ())
        for visit in sorted({1, 2, count} & set(range(1, count + 1)))
    )
    yield from itertools.islice(at_instructions, 0, None, every)
    if "limit" in kinds:
        yield from map(Limit, range(3, 120, every if every < 10 else 7))
    if "signals" in kinds:
        began = time.perf_counter()
        run()
        longest, rng = 1.1 * (time.perf_counter() - began), random.Random(0)
        for _ in range(max(2_000 // len(PROGRAMS) // every, 5)):
            yield Alarm(rng.uniform(2e-6, longest))
    if "allocations" in kinds:
        yield from map(Allocation, range(0, 3_000, every))


class Trial:
    """A program, and what is to be as it was after each fault in it.

    Attributes:
        lost_in_finalisers: exceptions that Python could only report.
    """

    def __init__(self, name):
        self.name, self.run = name, PROGRAMS[name]
        for _ in range(2):  # the first use fills caches
            self.run()
        self.expected = self.run()
        self.lost_in_finalisers = 0
        set_all_aside()
        self.before = surroundings()

    def wrong_after(self, fault):
        """What a fault has left wrong, in words."""
        wrong = []
        hook, sys.unraisablehook = sys.unraisablehook, self._reported
        try:
            fault.attempt(self.run)
        except fault.expected:
            pass
        except BaseException as error:
            wrong.append(f"raised {type(error).__name__}: {error}")
        finally:
            sys.unraisablehook = hook
        after = surroundings()
        for key, value in self.before.items():
            if after[key] != value:
                wrong.append(f"{key}: {value} -> {after[key]}")
        self._put_back()
        try:
            if not _same(self.run(), self.expected):
                wrong.append("the next result")
            check_answers()
        except BaseException as error:
            wrong.append(f"the next call: {error!r}")
        if (left := leftovers()) and fault.all_is_freed:
            wrong.append(f"alive: {[type(x).__qualname__ for x in left[:6]]}")
        if left:
            left.clear()
            set_all_aside()
        return wrong

    def _reported(self, unraisable):
        """Count what a finaliser could not raise."""
        self.lost_in_finalisers += 1

    def _put_back(self):
        """What a fault has changed is found once."""
        for variable in list(contextvars.copy_context()):
            if "lantern." in variable.name:
                variable.set(contextvars.Context().run(variable.get))
        gc.set_threshold(*self.before["collector"][1])
        np.seterr(**self.before["floating-point errors"])


def _same(a, b):
    try:
        np.testing.assert_equal(a, b)
    except AssertionError:
        return False
    return True


def put_alarms_on():
    """Let an alarm raise, as Ctrl-C does; what was there before."""
    return signal.signal(signal.SIGALRM, signal.default_int_handler)


def try_program(name, kinds, every=1, report=print):
    """Faults in a program: how many, and how many of them left something wrong."""
    trial, tried, lost = Trial(name), 0, 0
    for fault in list(faults(trial.run, kinds, every)):
        tried += 1
        if wrong := trial.wrong_after(fault):
            lost += 1
            report(f"  {name}: {fault}: {'; '.join(wrong)}")
    return tried, lost, trial.lost_in_finalisers


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="try each N-th only")
    parser.add_argument("--programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--kinds", nargs="*", default=list(KINDS[:5]), choices=KINDS)
    options = parser.parse_args(arguments)
    put_alarms_on()
    total = Counter()
    for name in options.programs:
        began = time.perf_counter()
        counts = try_program(name, set(options.kinds), options.every)
        total.update(dict(zip("tlf", counts, strict=True)))
        seconds = time.perf_counter() - began
        tried, lost, ignored = counts
        print(
            f"{name:22}{tried:7} tried{lost:5} lost{ignored:5} reported by a finaliser"
            f"{seconds:7.1f} s",
            flush=True,
        )
    print(f"{'all':22}{total['t']:7} tried{total['l']:5} lost{total['f']:5} reported")
    return total["l"]


if __name__ == "__main__":
    sys.exit(bool(main()))
