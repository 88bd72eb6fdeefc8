"""Tasks: bodies that pause; the same laws as for a ``k`` that escapes at once."""

import contextvars
import gc
import weakref

import greenlet
import pytest

from lantern.cps import Task, reset, shift
from lantern.cps.handler import Unwind
from lantern.cps.task import _thread
from lantern.errors import NoDelimiterError, ResumptionError


def make(body):
    """A task whose body gets its own ``pause``."""
    task = Task(lambda: body(lambda value=None: task.pause(value)))
    return task


def test_runs_to_its_end():
    task = Task(lambda: 7)
    assert not task.over
    assert task.go_on() == 7
    assert task.over


def test_values_go_both_ways():
    task = make(lambda pause: [pause("a"), pause("b")])
    assert [task.go_on(), task.go_on(1), task.go_on(2)] == ["a", "b", [1, 2]]


def test_as_with_reset_and_shift():
    def program(pause):
        return 10 * pause("first") + pause("second")

    task = make(program)
    kept = []
    answers = [
        reset(lambda: program(lambda v: shift(lambda k: kept.append(k) or v))),
        kept.pop()(4),
        kept.pop()(5),
    ]
    assert [task.go_on(), task.go_on(4), task.go_on(5)] == answers


def test_many_side_by_side():
    tasks = [make(lambda pause, i=i: [pause(i) for _ in range(3)]) for i in range(50)]
    for turn in range(3):
        got = [t.go_on(turn - 1) for t in tasks]
        assert got == list(range(50))
    assert all(t.go_on(2) == [0, 1, 2] for t in tasks)


def test_an_error_of_the_body_comes_out():
    def body(pause):
        pause()
        raise ValueError("inside")

    task = make(body)
    task.go_on()
    with pytest.raises(ValueError, match="inside"):
        task.go_on()
    assert task.over


def test_an_error_goes_in_and_may_be_caught():
    def body(pause):
        try:
            pause()
        except KeyError as error:
            return f"caught {error}"

    task = make(body)
    task.go_on()
    assert task.go_on(error=KeyError("x")) == "caught 'x'"


def test_over_is_over():
    task = Task(lambda: 1)
    task.go_on()
    with pytest.raises(ResumptionError, match="is over"):
        task.go_on()


def test_a_task_cannot_go_on_inside_itself():
    task = Task(lambda: task.go_on())
    with pytest.raises(ResumptionError, match="runs already"):
        task.go_on()


def test_pause_from_outside():
    task = make(lambda pause: pause())
    task.go_on()
    with pytest.raises(NoDelimiterError, match="does not run"):
        task.pause()
    task.unwind()


def test_unwinding_runs_finally_blocks():
    log = []

    def body(pause):
        try:
            pause()
        finally:
            log.append("finally")

    task = make(body)
    task.go_on()
    task.unwind()
    assert log == ["finally"]
    assert task.over
    task.unwind()  # once more does nothing


def test_unwinding_one_that_has_not_begun():
    task = Task(lambda: pytest.fail("must not run"))
    task.unwind()
    assert task.over


def test_unwinding_passes_other_errors_on():
    def body(pause):
        try:
            pause()
        finally:
            raise OSError("cleaning up")

    task = make(body)
    task.go_on()
    with pytest.raises(OSError, match="cleaning up"):
        task.unwind()


def test_unwinding_passes_the_unwinding_of_another_task_on():
    def body(pause):
        try:
            pause()
        finally:
            raise Unwind(None)

    task = make(body)
    task.go_on()
    with pytest.raises(Unwind):
        task.unwind()


def test_a_body_that_pauses_while_unwound_is_told():
    def body(pause):
        try:
            pause()
        finally:
            pause()

    task = make(body)
    task.go_on()
    with pytest.raises(ResumptionError, match="pauses while"):
        task.unwind()
    task.unwind()


def test_context_variables_are_its_own():
    variable = contextvars.ContextVar("variable", default=0)
    variable.set(1)

    def body(pause):
        seen = variable.get()
        variable.set(2)
        pause()
        return seen, variable.get()

    task = make(body)
    task.go_on()
    assert variable.get() == 1
    variable.set(3)
    assert task.go_on() == (1, 2)
    assert variable.get() == 3


def test_shift_in_a_task_captures_past_it():
    log = []

    def program():
        task = Task(lambda: shift(lambda k: log.append("handler") or k(5) + 100))
        return task.go_on() * 10

    assert reset(program) == 150
    assert log == ["handler"]


def test_an_abort_in_a_task_unwinds_to_the_delimiter():
    log = []

    def body():
        try:
            return shift(lambda k: "aborted")
        finally:
            log.append("finally")

    assert reset(lambda: Task(body).go_on() + " not reached") == "aborted"
    assert log == ["finally"]


def test_nested_tasks():
    inner = make(lambda pause: pause("inner") + 1)
    outer = make(lambda pause: (pause(inner.go_on()), inner.go_on(1)))
    assert outer.go_on() == "inner"
    assert outer.go_on("back") == ("back", 2)


def test_keyboard_interrupt_comes_out():
    def body():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Task(body).go_on()


def test_nothing_is_left():
    class Thing:
        pass

    def run():
        thing = Thing()
        tasks = [make(lambda pause: (thing, pause())) for _ in range(20)]
        for task in tasks:
            task.go_on()
        for task in tasks[:10]:
            task.go_on()
        for task in tasks[10:]:
            task.unwind()
        return weakref.ref(thing)

    gone = run()
    gc.collect()
    assert gone() is None


def test_workers_are_used_again():
    def count():
        gc.collect()
        return sum(issubclass(type(x), greenlet.greenlet) for x in gc.get_objects())

    def run():
        for _ in range(100):
            task = make(lambda pause: pause())
            task.go_on()
            task.go_on()

    run()
    before = count()
    run()
    assert count() == before


def test_the_answer_comes_to_who_makes_it_go_on_last():
    task = make(lambda pause: (pause(1), 2)[1])
    assert task.go_on() == 1
    assert greenlet.greenlet(task.go_on).switch() == 2


def test_what_ends_a_worker_comes_to_who_makes_its_task_go_on():
    Task(lambda: 1).go_on()  # its worker is used again, below another parent

    def run():
        here = greenlet.getcurrent()
        return Task(lambda: greenlet.getcurrent().parent is here).go_on()

    assert greenlet.greenlet(run).switch()


def test_who_makes_a_task_go_on_is_told_of_a_foreign_switch():
    here = greenlet.getcurrent()
    with pytest.raises(ResumptionError, match="switched to by someone else"):
        Task(here.switch).go_on()


def test_a_body_that_pauses_is_told_of_a_foreign_switch():
    told = []

    def body(pause):
        try:
            pause(greenlet.getcurrent())
        except ResumptionError as error:
            told.append(str(error))

    task = make(body)
    task.go_on().switch()
    assert "switched to by someone else" in told[0]
    assert task.over


def test_a_task_is_unwound_that_was_interrupted_just_before_its_body_went_on():
    log = []

    def body(pause):
        try:
            pause()
        finally:
            log.append("finally")

    task = make(body)
    task.go_on()
    task._driver = greenlet.getcurrent()  # the line before the switch has run
    task.unwind()
    assert log == ["finally"]


def test_a_worker_that_an_interrupt_ended_while_idle_gets_no_task():
    Task(lambda: 1).go_on()
    worker = _thread.idle[-1]
    worker.parent = greenlet.getcurrent()
    with pytest.raises(KeyboardInterrupt):
        worker.throw(KeyboardInterrupt)
    assert Task(lambda: 2).go_on() == 2
