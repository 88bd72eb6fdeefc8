"""The function that Python calls: guards, arguments taken apart, a result put together.

Whatever is not as the program was made for goes to the object that the builtin belongs
to, which is called with the same arguments.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from lantern.staging.ir import Function
from lantern.staging.native.declarations import RAISING, declared
from lantern.staging.native.emit import (
    emit_body,
    emit_program,
    is_recursive,
    most_slots,
    returned,
    saves,
)
from lantern.staging.native.engine import stack, suspended
from lantern.staging.native.layout import tuple_items
from lantern.staging.native.questions import Question
from lantern.staging.native.scalars import boxed
from lantern.staging.native.text import Text, Words, llvm_type
from lantern.staging.types import BOOL, FLOAT, INT, Type

__all__ = ["Leaf", "Plan", "Same", "module_text"]

STACK = 1 << 20
"""Bytes of the C stack that a program may take that calls itself and has no own."""

MARGIN = 1 << 20
"""Bytes that are left at the end of its own."""


class Plan(NamedTuple):
    """How a structure is taken apart: by its class and its parts.

    Attributes:
        cls: tuple, list, a named tuple's class, or a dataclass.
        parts: the plans of what is in it.
        names: the fields of a dataclass.
    """

    cls: type
    parts: tuple[Any, ...]
    names: tuple[str, ...] = ()


class Leaf(NamedTuple):
    """A number among the arguments, or one of the results.

    Attributes:
        flag: which result says whether it is an int; None for what has one type.
    """

    flag: int | None = None


class Same(NamedTuple):
    """An object that is there as it is: None, or a constant."""

    value: Any


# Calls and records move the top in memory: through a register that holds its address,
# as code for a global that may lie elsewhere does it, that is forwarded a third faster.
_PRELUDE = """
@top = global ptr null
@arena_end = global ptr null
@stack_end = internal global ptr null
@words = dso_local global [{words} x i64] zeroinitializer
@zeros = internal constant [{zeros} x i64] zeroinitializer
!0 = !{{!"branch_weights", i32 1, i32 100000}}
!1 = !{{}}
attributes #0 = {{ nounwind }}
attributes #2 = {{ nounwind willreturn memory(none) nobuiltin }}
"""


def module_text(
    main: Function,
    arguments: Sequence[Any],
    result: Any,
    places: Sequence[tuple[int, int]],
    questions: Sequence[tuple[Question, int]],
) -> tuple[str, list[int]]:
    """A module of LLVM's for a program, and the addresses that are in its table.

    Args:
        main: the program.
        arguments: for each argument a ``Plan``, a ``Leaf``, or ``Same``.
        result: likewise.
        places: addresses, and addresses of what has to stand there.
        questions: likewise, and addresses of what has to be the answer.
    """
    words = Words()
    parts = _Wrapper(main, words).parts(arguments, result, places, questions)
    count = max(len(words.addresses), 1)
    prelude = _PRELUDE.format(words=count, zeros=most_slots(main) + 1)
    vectors = [f"{at} = internal constant {x}" for x, at in words.constants.items()]
    text = "\n".join([prelude, *vectors, *parts])
    return declared(text), words.addresses


_CLASSES = {FLOAT: float, INT: int, BOOL: bool}


class _Wrapper:
    """The text of one wrapper."""

    def __init__(self, main: Function, words: Words) -> None:
        self.main = main
        self.text = Text(words)
        self.doubts: list[str] = []
        self.boxed: list[tuple[str, Type]] = []
        self.parameters = iter(main.body.parameters)

    def parts(
        self,
        arguments: Sequence[Any],
        result: Any,
        places: Sequence[tuple[int, int]],
        questions: Sequence[tuple[Question, int]],
    ) -> list[str]:
        """The whole function, and those that it calls."""
        text, let = self.text, self.text.let
        has_saved = saves(self.main)
        top = let("load ptr, ptr @top") if has_saved else ""
        if has_saved:
            waiting = let(f"load i64, ptr {text.address(suspended())}")
            self.doubts.append(let(f"icmp ne i64 {waiting}, 0"))
        self._look(len(arguments), places)
        self._ask(questions)
        for i, plan in enumerate(arguments):
            at = let(f"getelementptr ptr, ptr %args, i64 {i}") if i else "%args"
            self.take(plan, let(f"load ptr, ptr {at}"))
        self._bail()
        taken = [self._unboxed(x, known) for x, known in self.boxed]
        found, parts = self._run(taken)
        whole = "\n".join([*text.lines, *parts])
        may_raise = any(x in whole for x in RAISING)
        if has_saved:
            text.do(f"store ptr {top}, ptr @top")
        kinds = [x.type for x in self.main.body.results]
        self.results = list(zip(kinds, found, strict=True))
        text.do(f"ret ptr {self.give(result, iter(range(len(self.results))))}")
        text.begin("bail")
        if has_saved:
            text.do(f"store ptr {top}, ptr @top")
        self._call_owner(may_raise)
        lines = "\n".join(text.lines)
        head = "define ptr @wrapper(ptr %self, ptr %args, i64 %n, ptr %names) #0"
        return [*parts, f"{head} {{\nentry:\n{lines}\n}}"]

    def _look(self, count: int, places: Sequence[tuple[int, int]]) -> None:
        """Leave, if there are other arguments, or what stands somewhere is other."""
        let, address = self.text.let, self.text.address
        self.doubts.append(let(f"icmp ne i64 %n, {count}"))
        self.doubts.append(let("icmp ne ptr %names, null"))
        for place, expected in places:
            now = let(f"load i64, ptr {address(place)}")
            then = let(f"load i64, ptr {address(expected)}")
            self.doubts.append(let(f"icmp ne i64 {now}, {then}"))
        self._bail()

    def _ask(self, questions: Sequence[tuple[Question, int]]) -> None:
        """Leave, if there is something else where something was."""
        let, address = self.text.let, self.text.address
        for question, expected in questions:
            now = question.asked(self.text)
            then = let(f"load ptr, ptr {address(expected)}")
            self.doubts.append(let(f"icmp ne ptr {now}, {then}"))
            if question.kind in ("attribute", "method"):
                self._bail()  # it may have raised
        self._bail()

    def _bail(self) -> None:
        """Leave, if something that is in doubt is not as it should be."""
        if self.doubts:
            self.text.bail_if(self._any(self.doubts))
            self.doubts = []

    def _any(self, doubts: list[str]) -> str:
        whole, *rest = doubts
        for doubt in rest:
            whole = self.text.let(f"or i1 {whole}, {doubt}")
        return whole

    def _call_owner(self, may_raise: bool) -> None:
        """Hand the arguments on, unless the handler of a signal has raised."""
        text, let = self.text, self.text.let
        if may_raise:
            raised = let("call ptr @PyErr_Occurred()")
            text.fork(let(f"icmp eq ptr {raised}, null"), "plain", "raised")
            text.begin("raised")
            text.do("ret ptr null")
            text.begin("plain")
        text.do(
            "%r = musttail call ptr @PyObject_Vectorcall("
            "ptr %self, ptr %args, i64 %n, ptr %names)"
        )
        text.do("ret ptr %r")

    def _run(self, taken: list[str]) -> tuple[list[str], list[str]]:
        """The program's results, and the functions that it needs."""
        if not is_recursive(self.main):
            return emit_body(self.main, taken, self.text)
        let, kind = self.text.let, returned(self.main)
        parts = [emit_program(self.main, self.text.words)]
        types = [llvm_type(p.type) for p in self.main.body.parameters]
        args = [f"{t} {x}" for t, x in zip(types, taken, strict=True)]
        if stack() is not None:
            self._switch(args)
            whole = let(f"load {kind}, ptr @found")
            parts.append(self.on_own_stack())
        else:
            frame = let("call ptr @llvm.frameaddress.p0(i32 0)")
            limit = let(f"getelementptr i8, ptr {frame}, i64 -{STACK}")
            self.text.do(f"store ptr {limit}, ptr @stack_end")
            whole = let(f"call {kind} @f0({', '.join(args)})")
        self.text.bail_if(let(f"extractvalue {kind} {whole}, 0"))
        places = range(1, 1 + len(self.main.body.results))
        return [let(f"extractvalue {kind} {whole}, {i}") for i in places], parts

    def _switch(self, args: list[str]) -> None:
        """Run the program on a stack of its own."""
        text, own = self.text, stack()
        assert own is not None  # as has been asked
        text.do(f"store ptr {text.address(own.start + MARGIN)}, ptr @stack_end")
        for i, x in enumerate(args):
            text.do(
                f"store {x}, ptr {text.let(f'getelementptr i64, ptr @given, i64 {i}')}"
            )
        switch, end = text.address(own.switch), text.address(own.end)
        text.do(f"call void {switch}(ptr {end}, ptr @run)")

    def on_own_stack(self) -> str:
        """What runs there: the arguments and the results are in memory."""
        text = Text(self.text.words)
        kinds = [llvm_type(p.type) for p in self.main.body.parameters]
        args = []
        for i, k in enumerate(kinds):
            place = text.let(f"getelementptr i64, ptr @given, i64 {i}")
            args.append(f"{k} {text.let(f'load {k}, ptr {place}')}")
        kind = returned(self.main)
        whole = text.let(f"call {kind} @f0({', '.join(args)})")
        text.do(f"store {kind} {whole}, ptr @found")
        text.do("ret void")
        lines = "\n".join(text.lines)
        places = max(len(kinds), 1)
        return (
            f"@given = internal global [{places} x i64] zeroinitializer\n"
            f"@found = internal global {kind} zeroinitializer\n"
            f"define internal void @run() noinline #0 {{\nentry:\n{lines}\n}}"
        )

    def take(self, plan: Any, x: str) -> None:
        """Take an argument apart; what it should be is left in doubt."""
        let = self.text.let
        if isinstance(plan, Plan) and plan.names:
            self._take_fields(plan, x)
        elif isinstance(plan, Plan):
            self._must_be(x, plan.cls)
            self._bail()
            size = let(f"load i64, ptr {let(f'getelementptr i8, ptr {x}, i64 16')}")
            self.doubts.append(let(f"icmp ne i64 {size}, {len(plan.parts)}"))
            self._bail()
            items = self._items(x, plan.cls)
            for i, part in enumerate(plan.parts):
                at = let(f"getelementptr ptr, ptr {items}, i64 {i}")
                self.take(part, let(f"load ptr, ptr {at}"))
        elif isinstance(plan, Leaf):
            known = next(self.parameters).type
            if known in _CLASSES:
                self._must_be(x, _CLASSES[known])
            self.boxed.append((x, known))
        else:
            self.doubts.append(let(f"icmp ne ptr {x}, {self.text.object(plan.value)}"))

    def _take_fields(self, plan: Plan, x: str) -> None:
        """Take an object apart that has its fields, and no attributes besides.

        Python is asked for each, and the reference given back: the object has one.
        """
        let, text = self.text.let, self.text
        self._must_be(x, plan.cls)
        self._bail()
        if getattr(plan.cls, "__dictoffset__", 0):
            size = let(f"call i64 @attributes_of(ptr {x})")
            self.doubts.append(let(f"icmp ne i64 {size}, {len(plan.names)}"))
        for name, part in zip(plan.names, plan.parts, strict=True):
            found = let(f"call ptr @field_of(ptr {x}, ptr {text.object(name)})")
            self.doubts.append(let(f"icmp eq ptr {found}, null"))
            self._bail()
            self.take(part, found)

    def _items(self, x: str, cls: type) -> str:
        let = self.text.let
        if cls is list:
            return let(f"load ptr, ptr {let(f'getelementptr i8, ptr {x}, i64 24')}")
        return let(f"getelementptr i8, ptr {x}, i64 {tuple_items()}")

    def _must_be(self, x: str, cls: type) -> None:
        let = self.text.let
        found = let(f"load ptr, ptr {let(f'getelementptr i8, ptr {x}, i64 8')}")
        self.doubts.append(let(f"icmp ne ptr {found}, {self.text.object(cls)}"))

    def _unboxed(self, x: str, known: Type) -> str:
        let = self.text.let
        if known is FLOAT:
            return let(f"load double, ptr {let(f'getelementptr i8, ptr {x}, i64 16')}")
        if known is INT:
            value = let(f"call i64 @as_int(ptr {x})")
            self.text.bail_if(let(f"icmp eq i64 {value}, {-(2**63)}"))
            return value
        if known is BOOL:
            return let(f"icmp eq ptr {x}, {self.text.object(True)}")
        return x

    def give(self, plan: Any, results: Any) -> str:
        """Put the result together; null, if memory ends."""
        text = self.text
        if isinstance(plan, Leaf):
            known, value = self.results[next(results)]
            if plan.flag is None:
                return self._boxed(known, value)
            return self._boxed_as(value, self.results[plan.flag][1])
        if isinstance(plan, Plan):
            return self._whole(plan, [self.give(part, results) for part in plan.parts])
        plain = text.object(plan.value)
        text.do(f"call void @Py_IncRef(ptr {plain})")
        return plain

    def _whole(self, plan: Plan, parts: list[str]) -> str:
        """What holds some parts: null, and they are given back, where memory ends.

        Whatever makes an object here gives null then, and has raised an exception.
        """
        text, let = self.text, self.text.let
        lost, out = text.fresh("lost"), text.fresh("out")
        pairs = zip(parts, plan.parts, strict=True)
        fresh = [x for x, kind in pairs if not isinstance(kind, Same)]
        if plan.names:  # a class is not called with null
            self._unless_null(fresh, lost)
            x = self._called(plan, parts)
            self._unless_null([x], lost)
            self._give_back(parts)
        else:
            x = self._allotted(plan)
            self._unless_null([*fresh, x], lost)
            if plan.cls not in (tuple, list) and tuple_items() > 24:  # its hash
                at = let(f"getelementptr i8, ptr {x}, i64 24")
                text.do(f"store i64 -1, ptr {at}")
            items = self._items(x, plan.cls)
            for i, part in enumerate(parts):
                at = let(f"getelementptr ptr, ptr {items}, i64 {i}")
                text.do(f"store ptr {part}, ptr {at}")
        full = text.label
        text.jump(out)
        text.begin(lost)
        self._give_back(parts if plan.names else [*parts, x])
        text.jump(out)
        text.begin(out)
        return let(f"phi ptr [{x}, %{full}], [null, %{lost}]")

    def _unless_null(self, objects: list[str], lost: str) -> None:
        """Go on elsewhere if one of some objects could not be made."""
        if objects:
            text, on = self.text, self.text.fresh("made")
            missing = self._any([text.let(f"icmp eq ptr {x}, null") for x in objects])
            text.do(f"br i1 {missing}, label %{lost}, label %{on}, !prof !0")
            text.begin(on)

    def _give_back(self, parts: list[str]) -> None:
        for part in parts:
            self.text.do(f"call void @Py_DecRef(ptr {part})")

    def _allotted(self, plan: Plan) -> str:
        """A tuple, a list or a named tuple, empty still."""
        text, let, count = self.text, self.text.let, len(plan.parts)
        if plan.cls in (tuple, list):
            make = "PyTuple_New" if plan.cls is tuple else "PyList_New"
            return let(f"call ptr @{make}(i64 {count})")
        cls = text.object(plan.cls)
        return let(f"call ptr @PyType_GenericAlloc(ptr {cls}, i64 {count})")

    def _called(self, plan: Plan, parts: list[str]) -> str:
        """An object of a dataclass, by a call of the class, unless one has raised."""
        text, let = self.text, self.text.let
        row = let(f"alloca [{len(parts)} x ptr]")
        for i, part in enumerate(parts):
            at = let(f"getelementptr ptr, ptr {row}, i64 {i}")
            text.do(f"store ptr {part}, ptr {at}")
        by_name = any(f.kw_only for f in fields(plan.cls))
        names = text.object(plan.names) if by_name else "null"
        cls, count = text.object(plan.cls), 0 if by_name else len(parts)
        return let(f"call ptr @made(ptr {cls}, ptr {row}, i64 {count}, ptr {names})")

    def _boxed_as(self, value: str, flag: str) -> str:
        """A float as an int, if it is one."""
        text = self.text
        names = [text.fresh(x) for x in ("whole", "float", "boxed")]
        text.fork(flag, names[0], names[1])
        ways = []
        for label, known in zip(names, (INT, FLOAT), strict=False):
            text.begin(label)
            x = text.let(f"fptosi double {value} to i64") if known is INT else value
            ways.append(f"[{self._boxed(known, x)}, %{label}]")
            text.jump(names[2])
        text.begin(names[2])
        return text.let(f"phi ptr {', '.join(ways)}")

    def _boxed(self, known: Type, value: str) -> str:
        if known is not BOOL:
            return boxed(self.text, value, known)
        both = [self.text.object(x) for x in (True, False)]
        x = self.text.let(f"select i1 {value}, ptr {both[0]}, ptr {both[1]}")
        self.text.do(f"call void @Py_IncRef(ptr {x})")
        return x
