"""Brackets without a data dependency, operations that see the answer, early exits."""

import contextlib
import threading

import numpy as np
import pytest

import lantern
from lantern import (
    both_ways,
    bracket,
    early_exit,
    grad,
    jvp,
    value_and_grad,
    vjp,
    with_answer,
)
from lantern.errors import (
    ArgumentError,
    EscapedError,
    MissingRuleError,
    NoDelimiterError,
    RuleError,
)
from lantern.op import op

pytestmark = pytest.mark.usefixtures("probe", "own_rules")
DRIVERS = ["in place", "switching"]


@pytest.fixture
def log():
    return []


def noting(log):
    """A rule that notes its way there and back, and a context manager that notes."""

    @op
    def step(x, /, name):
        log.append(name)
        z_bar = yield x * 2.0
        log.append(f"{name} back")
        yield z_bar * 2.0

    @contextlib.contextmanager
    def span(name):
        log.append(f"enter {name}")
        try:
            yield name
        except BaseException as error:
            log.append(f"{name} saw {type(error).__name__}")
            raise
        finally:
            log.append(f"exit {name}")

    return step, span


@pytest.mark.parametrize("driver", DRIVERS)
def test_one_body_spans_an_operation_and_all_that_comes_after_it(driver, log):
    step, span = noting(log)

    @op
    def spanning(x, /):
        local = [x]  # shared by both halves, without a context object
        try:
            with span("op"):
                z_bar = yield x * 1.0
                log.append(f"local {local.pop()}")
        finally:
            log.append("finally")
        yield z_bar

    grad(lambda x: step(spanning(step(x, name="a")), name="b"), driver=driver)(3.0)
    assert log == [
        *("a", "enter op", "b", "b back", "local 6.0", "exit op", "finally", "a back")
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_bracket_closes_when_the_backward_pass_of_its_block_is_complete(driver, log):
    step, span = noting(log)

    def f(x):
        y = step(x, name="a")
        with bracket(span("outer")) as name:
            assert name == "outer"
            with bracket(span("inner")):
                y = step(y, name="b")
            y = step(y, name="c")
        return step(y, name="d")

    assert grad(f, driver=driver)(1.0) == 16.0
    assert log == [
        *("a", "enter outer", "enter inner", "b", "c", "d"),
        *("d back", "c back", "b back", "exit inner", "exit outer", "a back"),
    ]


@pytest.mark.parametrize("driver", DRIVERS)
def test_both_ways_holds_for_the_block_and_for_its_backward_pass(driver, log):
    step, span = noting(log)

    def f(x):
        y = step(x, name="a")
        with both_ways(lambda: span("block")) as name:
            assert name == "block"
            y = step(y, name="b")
        return step(y, name="c")

    assert grad(f, driver=driver)(1.0) == 8.0
    assert log == [
        *("a", "enter block", "b", "exit block", "c"),
        *("c back", "enter block", "b back", "exit block", "a back"),
    ]


def test_where_there_is_no_single_backward_pass(log):
    """Undifferentiated, forward mode, vjp: a bracket ends with its block."""
    step, span = noting(log)

    def with_bracket(x):
        with bracket(span("s")):
            y = step(x, name="a")
        return step(y, name="b")

    there = ["enter s", "a", "exit s", "b"]
    with_bracket(1.0)
    assert log == there
    del log[:]
    jvp(with_bracket, (1.0,), (1.0,))
    assert [entry for entry in log if "back" not in entry] == there
    del log[:]
    _, _pullback = vjp(with_bracket, 1.0)
    assert log == there


def test_both_ways_in_each_call_of_a_pullback(log):
    step, span = noting(log)

    def f(x):
        with both_ways(lambda: span("s")):
            y = step(x, name="a")
        return step(y, name="b")

    f(1.0)
    assert log == ["enter s", "a", "exit s", "b"]
    _, pullback = vjp(f, 1.0)
    for _ in range(3):
        del log[:]
        assert pullback(1.0) == (4.0,)
        assert log == ["b", "b back", "enter s", "a", "a back", "exit s"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_brackets_in_nested_derivatives_belong_to_the_innermost(driver, log):
    step, span = noting(log)

    def inner(y):
        with bracket(span("inner")):
            return step(y, name="y")

    def outer(x):
        with bracket(span("outer")):
            slope = grad(inner, driver=driver)(x)
            return slope * x

    assert grad(outer, driver=driver)(3.0) == 2.0
    expected = ["enter outer", "enter inner", "y", "y back", "exit inner", "exit outer"]
    assert [entry for entry in log if entry in expected] == expected
    assert log.count("exit outer") == log.count("exit inner") == 1


def test_a_jvp_inside_a_grad_leaves_the_bracket_to_the_grad(log):
    _, span = noting(log)

    def f(x):
        with bracket(span("s")):
            y = jvp(lambda u: u * u * x, (x,), (1.0,))[1]
        log.append("rest")
        return y

    assert grad(f)(3.0) == 12.0
    assert log == ["enter s", "rest", "exit s"]


@pytest.mark.parametrize("where", ["block", "rest", "backward"])
@pytest.mark.parametrize("make", ["bracket", "both_ways"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_manager_exits_once_whatever_happens(driver, make, where, log):
    _, span = noting(log)

    @op
    def breaks(x, /):
        if where != "backward":
            raise KeyError(where)
        yield x
        raise KeyError(where)

    def f(x):
        manager = span("s")
        with bracket(manager) if make == "bracket" else both_ways(lambda: span("s")):
            y = breaks(x) if where != "rest" else x * 2.0
        return breaks(y) if where == "rest" else y * 2.0

    with pytest.raises(KeyError, match=where):
        grad(f, driver=driver)(3.0)
    assert log.count("enter s") == log.count("exit s")
    assert log.count("enter s") == (
        2 if make == "both_ways" and where == "backward" else 1
    )


def test_a_manager_cannot_swallow_an_exception_in_silence():
    """There would be no value to go on with."""
    with pytest.raises(KeyError), bracket(contextlib.suppress(KeyError)):
        raise KeyError
    for where in ("forward", "backward"):

        @op
        def breaks(x, /, where=where):
            if where == "forward":
                raise KeyError
            yield x
            raise KeyError

        def f(x, breaks=breaks):
            with bracket(contextlib.suppress(KeyError)):
                y = x * x
            return breaks(y)

        with pytest.raises(KeyError):
            grad(f)(2.0)


@pytest.mark.parametrize("driver", DRIVERS)
def test_context_variables_of_numpy_and_locks(driver):
    lock, x = threading.Lock(), np.array([1.0, 2.0])

    @op
    def states(x, /):
        assert np.geterr()["over"] == "raise"
        z_bar = yield x * 1.0
        assert np.geterr()["over"] == "raise"
        yield z_bar

    def f(x):
        with bracket(lock), both_ways(lambda: np.errstate(over="raise")):
            y = states(x)
        assert np.geterr()["over"] != "raise"
        assert lock.locked()
        return lantern.sum(y)

    np.testing.assert_array_equal(grad(f, driver=driver)(x), [1.0, 1.0])
    assert not lock.locked()


def test_where_a_derivative_keeps_nothing_a_bracket_ends_with_its_block(log):
    """As in a block without derivatives: its level lets go of every entry."""
    step, span = noting(log)

    def f(x):
        level, suspend = x.level, x.level.suspend
        level.suspend = lambda receiver: receiver.release()
        with bracket(span("s")), both_ways(lambda: span("t")):
            step(x, name="a")
        level.suspend = suspend
        return x * 2.0

    assert grad(f)(3.0) == 2.0
    assert log == ["enter s", "enter t", "a", "exit t", "exit s"]


def test_both_ways_refuses_what_makes_nothing():
    with pytest.raises(ArgumentError, match=r"both_ways.*lambda"):
        both_ways(contextlib.nullcontext())


# Operations that see the answer.


def score_rule():
    @with_answer
    def score_function(log_probability, /, draw):
        loss, _ = yield draw
        yield loss

    return score_function


def test_what_such_an_operation_is_given_stays_as_it_was():
    @with_answer
    def scaled(x, factor, /, by, *, shift):
        _, z_bar = yield x * factor * by + shift
        yield z_bar * factor * by
        yield None

    def loss(x):
        given = [np.full(2, n) for n in (2.0, 3.0, 5.0)]
        z = scaled(x, given[0], given[1], shift=given[2])
        for array in given:
            array[:] = np.nan
        return lantern.sum(z)

    np.testing.assert_array_equal(lantern.grad(loss)(np.ones(2)), [6.0, 6.0])

    @with_answer
    def writing(x, /):
        _, z_bar = yield x
        z_bar *= 2.0
        yield z_bar

    with pytest.raises(ValueError, match="read-only"):
        lantern.grad(lambda x: lantern.sum(writing(x) + x))(np.ones(2))


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_score_function_is_a_local_operation(driver):
    score_function = score_rule()

    def f(p):
        draw = score_function(lantern.log(p), 3)
        assert type(draw) is int
        return draw * 10.0 + p

    assert value_and_grad(f, driver=driver)(0.5) == (30.5, 30.5 / 0.5 + 1.0)


def test_the_estimate_is_the_gradient_of_the_expectation():
    """Summed over all draws of a Bernoulli variable, weighted: exactly the gradient."""
    score_function = score_rule()

    def loss(p, draw, weight):
        chance = p if draw else 1.0 - p
        kept = score_function(lantern.log(chance), draw)
        return (kept * 3.0 + p * p) * weight

    def expectation(p):
        return p * (3.0 + p * p) + (1.0 - p) * (p * p)

    p = 0.3
    found = sum(grad(loss)(p, draw, p if draw else 1 - p) for draw in (0, 1))
    assert found == pytest.approx(grad(expectation)(p), rel=1e-14)


@pytest.mark.parametrize("x", [3.0, np.array([1.0, 2.0])], ids=["number", "array"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_attribution_sees_the_answer_and_the_cotangent(driver, x):
    seen = []

    @with_answer
    def attribute(x, /, name):
        loss, x_bar = yield x
        seen.append((name, x_bar * x / loss))
        yield x_bar

    def f(x):
        y = attribute(x * 2.0, name="y")
        return lantern.sum(y * y + attribute(3.0 * y, name="z") * 0.0)

    np.testing.assert_allclose(grad(f, driver=driver)(x), 8 * x)
    (second, nothing), (first, share) = seen
    assert (second, first) == ("z", "y")
    np.testing.assert_allclose(share, 8 * x**2 / np.sum(4 * x**2))
    np.testing.assert_array_equal(nothing, 0 * x)


def test_the_answer_of_a_program_with_aux_and_of_nested_programs():
    score_function = score_rule()

    def f(p):
        return score_function(lantern.log(p), 2) * p, "aux"

    assert grad(f, has_aux=True)(0.5) == (2.0 + 2.0 * 0.5 / 0.5, "aux")

    def slope(q):  # the inner answer, 2 q p, is a value of the outer derivative
        return grad(lambda p: score_function(lantern.log(p), 2) * q * p)(0.5)

    assert slope(3.0) == 12.0  # 2 q + 2 q p / p
    assert grad(slope)(3.0) == 4.0
    assert jvp(slope, (3.0,), (1.0,)) == (12.0, 4.0)

    def inner_sees_outer(p):  # the operand belongs to the outer derivative
        return grad(lambda y: y * y * score_function(lantern.log(p), 1.0))(3.0)

    assert grad(inner_sees_outer)(0.5) == 6.0 / 0.5


def test_operations_that_see_the_answer_refuse_where_there_is_none():
    score_function = score_rule()

    def f(p):
        return score_function(lantern.log(p), 2.0) * p

    assert f(0.5) == 1.0
    for verb in (lambda: vjp(f, 0.5), lambda: jvp(f, (0.5,), (1.0,))):
        with pytest.raises(MissingRuleError, match=r"score_function.*Use grad"):
            verb()
    with pytest.raises(RuleError, match="with_answer"):
        with_answer(lambda x: x)


def test_an_exception_reaches_a_rule_that_waits_for_the_answer():
    @op
    def fails(x, /):
        yield x
        raise KeyError("back")

    @with_answer
    def guarded(x, /):
        try:
            _, z_bar = yield x
        except KeyError:
            z_bar = 5.0
        yield z_bar

    assert grad(lambda x: fails(guarded(x * x)))(3.0) == 30.0


# Early exits.


def modes(f, x):
    yield grad(f)(x)
    yield grad(f, driver="switching")(x)
    yield jvp(f, (x,), (1.0,))[1]
    yield vjp(f, x)[1](1.0)[0]


def test_an_early_exit_from_a_deep_recursion_keeps_earlier_operations():
    finals = []

    def walk(x, depth, leave):
        try:
            if depth == 0:
                leave(x * 3.0)
            walk(x * 2.0, depth - 1, leave)
        except Exception:  # an exit is no error
            finals.append("error")
        finally:
            finals.append(depth)

    def f(x):
        y = early_exit(lambda leave: walk(x * x, 5, leave))
        return y * x  # 96 x^3

    assert list(modes(f, 2.0)) == [96.0 * 12] * 4
    assert finals == [*range(6)] * 4
    assert grad(grad(f))(2.0) == 96.0 * 12


def test_a_body_that_does_not_leave():
    assert early_exit(lambda leave: 3) == 3
    assert grad(lambda x: early_exit(lambda leave: x * x))(3.0) == 6.0


def test_exits_nest_and_each_leaves_its_own_body():
    def f(x):
        def body(leave_outer):
            def inner(leave_inner):
                if x > 10.0:
                    leave_outer(x * 5.0)
                leave_inner(x * 2.0)

            return early_exit(inner) * 3.0

        return early_exit(body)

    assert grad(f)(1.0) == 6.0
    assert grad(f)(11.0) == 5.0


def test_an_exit_past_an_inner_derivative():
    def f(x):
        def body(leave):
            return grad(lambda y: leave(x * 7.0) if y > 0 else y)(1.0)

        return early_exit(body)

    assert list(modes(f, 2.0)) == [7.0] * 4


INNER = {
    "grad": lambda f: grad(f)(2.0),
    "jvp": lambda f: jvp(f, (2.0,), (1.0,)),
    "vmap": lambda f: lantern.vmap(f)(np.ones(3)),
}
OUTER = {
    "grad": lambda f: grad(f)(3.0),
    "vjp": lambda f: vjp(f, 3.0),
    "jvp": lambda f: jvp(f, (3.0,), (1.0,)),
    "jacrev": lambda f: lantern.jacrev(f)(3.0),
    "taylor": lambda f: lantern.taylor(f, 3.0, 1),
    "vmap": lambda f: lantern.vmap(f)(np.ones(3)),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_an_exit_with_a_value_of_an_inner_derivative_is_refused(inner, outer):
    def f(x):
        return early_exit(lambda leave: INNER[inner](lambda y: leave(x * y)))

    with pytest.raises(EscapedError, match=r"^early_exit: the body was left with"):
        OUTER[outer](f)


def test_an_exit_after_the_end_is_refused():
    kept = []
    early_exit(kept.append)
    with pytest.raises(NoDelimiterError):
        kept[0](1.0)
