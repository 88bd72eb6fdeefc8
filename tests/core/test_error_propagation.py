"""An exception of a backward step travels along the chain rule until it is caught."""

import gc
import signal
import traceback

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, value_and_grad, vjp
from lantern.core.error_propagation import Failed
from lantern.core.replay import Replayable
from lantern.op import elementwise, op

pytestmark = pytest.mark.usefixtures("probe", "own_rules")
DRIVERS = ["in place", "switching"]


class BackwardError(Exception):
    """Raised by a backward step."""


def rules(error=None, catch=BackwardError, substitute=7.0):
    """A rule that fails on its way back, and one that catches what fails after it."""
    caught = []

    @op
    def fails(x, /):
        yield x * 1.0
        raise BackwardError("back") if error is None else error

    @op
    def guarded(x, /):
        try:
            z_bar = yield x * 1.0
        except catch as raised:
            caught.append(str(raised))  # the exception itself holds frames
            z_bar = substitute * (x * 0 + 1)
        yield z_bar

    return fails, guarded, caught


POINTS = {"number": 3.0, "array": np.array([3.0, 4.0])}


def total(y):
    return lantern.sum(y)


@pytest.mark.parametrize("x", POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_a_rule_catches_what_fails_after_it_and_the_rest_goes_on(driver, x):
    fails, guarded, caught = rules()

    def f(x):
        return total(lantern.exp(fails(lantern.sin(guarded(x * x)))) * 2.0)

    value, gradient = value_and_grad(f, driver=driver)(x)
    np.testing.assert_allclose(gradient, 7.0 * 2 * x)
    np.testing.assert_allclose(value, np.sum(2 * np.exp(np.sin(x * x))))
    assert caught == ["back"]


@pytest.mark.parametrize("x", POINTS.values(), ids=POINTS)
@pytest.mark.parametrize("driver", DRIVERS)
def test_branches_that_did_not_fail_count_in_full(driver, x):
    """The second branch runs between the guard and what fails; it loses nothing."""
    fails, guarded, _ = rules()

    def f(x):
        first = guarded(x)
        second = x * x * x
        return total(fails(first) + second)

    np.testing.assert_allclose(grad(f, driver=driver)(x), 7.0 + 3 * x**2)


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_path_around_the_guard_is_an_error_and_no_wrong_gradient(driver):
    fails, guarded, _caught = rules()

    @op
    def fails_at_both(x, y, /):
        yield x * y
        raise BackwardError("both")

    def around(x):
        return fails(guarded(x) * 1.0 + x)  # caught on one path, an input on the other

    def beside(x):
        return fails_at_both(guarded(x), x)

    for f in (around, beside):
        with pytest.raises(BackwardError):
            grad(f, driver=driver)(2.0)
    assert grad(lambda x: guarded(x * x), driver=driver)(3.0) == 6.0


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_exception_that_nobody_catches_keeps_its_traceback(driver):
    fails, guarded, caught = rules(catch=KeyError)

    def f(x):
        return fails(guarded(lantern.exp(x)) * x) * x

    with pytest.raises(BackwardError, match="back") as info:
        grad(f, driver=driver)(0.5)
    names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
    assert names[-1] == "fails"
    assert caught == []
    assert info.value.__context__ is None


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_guard_may_raise_another_exception_which_an_older_guard_catches(driver):
    causes = []
    fails, _, caught = rules()

    @op
    def translates(x, /):
        try:
            z_bar = yield x * 1.0
        except BackwardError as error:
            raise LookupError("translated") from error
        yield z_bar

    @op
    def guarded_later(x, /):
        try:
            z_bar = yield x
        except LookupError as error:
            causes.append(type(error.__cause__))
            z_bar = 11.0
        yield z_bar

    def f(x):
        return fails(translates(guarded_later(x * x)))

    assert grad(f, driver=driver)(3.0) == 66.0
    assert causes == [BackwardError]
    with pytest.raises(LookupError):
        grad(lambda x: fails(translates(x)), driver=driver)(3.0)
    assert caught == []


def test_floating_point_errors_of_numpy():
    @op
    def finite(x, /):
        """The slope is cut where the rest of the program has none."""
        try:
            z_bar = yield x
        except FloatingPointError:
            z_bar = 0 * x
        yield z_bar

    def steep(x):
        return lantern.sum(x * 1e200 * 1e200)

    def f(x, y):
        return steep(finite(x * 2.0)) + lantern.sum(y * y)

    x, y = np.full(2, 1e-300), np.array([1.0, 2.0])
    with np.errstate(over="raise"):
        with pytest.raises(FloatingPointError):
            grad(steep)(x)
        x_bar, y_bar = grad(f, argnums=(0, 1))(x, y)
    np.testing.assert_array_equal(x_bar, [0.0, 0.0])
    np.testing.assert_array_equal(y_bar, 2 * y)


def test_a_pullback_that_fails_and_is_called_again():
    fail = [True]
    _, guarded, _caught = rules()

    @op
    def sometimes(x, /):
        z_bar = yield x * x
        if fail[0]:
            raise BackwardError("sometimes")
        yield z_bar * 2 * x

    for x in POINTS.values():
        value, pullback = vjp(lambda x: sometimes(guarded(x * 1.0)), x)
        for failing, expected in ((1, 7.0), (0, 2 * x), (1, 7.0), (0, 2 * x)):
            fail[0] = bool(failing)
            np.testing.assert_allclose(pullback(value / value)[0] - expected, 0)
        _, pullback = vjp(lambda x: sometimes(x * 1.0), x)
        for failing in (True, False, True, False):
            fail[0] = failing
            if failing:
                with pytest.raises(BackwardError):
                    pullback(value / value)
            else:
                np.testing.assert_allclose(pullback(value / value)[0], 2 * x)


def test_several_results_know_of_a_failure():
    fails, guarded, _caught = rules()

    def f(x):
        values, vectors = lantern.linalg.eigh(guarded(x))
        return total(fails(values)) + total(vectors[0] * 0.0)

    x = np.array([[2.0, 1.0], [1.0, 3.0]])
    np.testing.assert_allclose(grad(f)(x), np.full((2, 2), 7.0))


def test_in_nested_derivatives():
    fails, guarded, _ = rules()

    def forward(f):
        return lambda x: jvp(f, (x,), (1.0,))[1]

    def slope(x):
        return grad(lambda y: fails(guarded(y * y * x)))(3.0)  # 7 * 2 * 3 * x

    assert grad(slope)(2.0) == 42.0
    assert forward(slope)(2.0) == 42.0


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_is_no_error_stops_at_once(driver, error):
    fails, guarded, caught = rules(error, catch=Exception)
    with pytest.raises(type(error)):
        grad(lambda x: fails(guarded(x)), driver=driver)(3.0)
    error.__traceback__ = None
    assert caught == []


def test_an_interrupt_while_an_exception_travels():
    fails, guarded, _ = rules()

    @op
    def interrupted(x, /):
        try:
            z_bar = yield x
        finally:
            signal.raise_signal(signal.SIGINT)
        yield z_bar

    with pytest.raises(KeyboardInterrupt):
        grad(lambda x: fails(interrupted(guarded(x))))(3.0)
    assert grad(guarded)(3.0) == 1.0


@pytest.mark.parametrize("x", [2.0, np.array([2.0, 3.0])], ids=["number", "array"])
def test_a_long_chain_hands_an_exception_on(x):
    fails, guarded, _ = rules()

    def f(x):
        y = guarded(x)
        for _ in range(20_000):
            y = y * 1.0
        return total(fails(y))

    np.testing.assert_array_equal(grad(f)(x), 7.0)


def test_frames_of_a_failed_pass_are_released():
    """Nothing is kept alive by an exception that was caught, not even in a cycle."""
    fails, guarded, _ = rules()
    gc.disable()
    try:
        for x in POINTS.values():
            before = len(gc.get_objects())
            for _ in range(20):
                grad(lambda x: total(fails(guarded(x * 1.0) * 2.0)))(x)
            assert len(gc.get_objects()) - before < 20
    finally:
        gc.enable()


@pytest.mark.parametrize("x", POINTS.values(), ids=POINTS)
def test_a_checkpoint_hands_an_exception_on_to_what_it_computed(x):
    fails, guarded, caught = rules()

    def caught_inside(x):
        return total(fails(lantern.checkpoint(lambda y: guarded(y * y))(x)))

    def caught_before(x):
        return total(fails(lantern.checkpoint(lambda y: y * y)(guarded(x))))

    def not_caught(x):
        return total(fails(lantern.checkpoint(lambda y: y * y)(x)))

    np.testing.assert_allclose(grad(caught_inside)(x), 7.0 * 2 * x)
    np.testing.assert_allclose(grad(caught_before)(x), 7.0 + 0 * x)
    assert caught == ["back", "back"]
    with pytest.raises(BackwardError):
        grad(not_caught)(x)


def test_a_traceback_names_what_failed_and_not_what_it_passed():
    fails, guarded, _ = rules(catch=KeyError)
    with pytest.raises(BackwardError) as info:
        grad(lambda x: fails(guarded(guarded(x * x) * 1.0)))(0.5)
    names = [frame.name for frame in traceback.extract_tb(info.value.__traceback__)]
    assert names[-1] == "fails"
    assert "guarded" not in names


GUARDED = {
    "general": (op, np.array([3.0, 4.0])),
    "elementwise": (elementwise, np.array([3.0, 4.0])),
    "complex": (op, np.array([3.0 + 1j, 4.0])),
    "complex, elementwise": (elementwise, np.array([3.0 + 1j, 4.0])),
    "an elementwise number": (elementwise, 3.0),
}


@pytest.mark.parametrize("name", GUARDED)
def test_rules_of_every_kind_catch_what_fails_after_them(name):
    kind, x = GUARDED[name]
    fails, _, _ = rules()

    @kind
    def guards(x, /):
        try:
            z_bar = yield x * 1.0
        except BackwardError:
            z_bar = 7.0 + 0 * x
        yield z_bar

    for f in (guards, lambda x: guards(x * 1.0), lambda x: guards(x * 0.5 + x * 0.5)):
        slope = grad(lambda x, f=f: total(fails(f(x))).real)(x)
        np.testing.assert_allclose(slope, 7.0 + 0 * x)


def test_what_comes_through_a_branch_beside_a_failure_hides_nothing():
    fails, guarded, _ = rules()

    def f(x):
        y = guarded(x * 1.0)
        failing = fails(y)
        return total(failing) + total(lantern.where(np.zeros(2, bool), y, 0.0))

    np.testing.assert_array_equal(grad(f)(POINTS["array"]), 7.0)


@pytest.mark.parametrize("x", POINTS.values(), ids=POINTS)
def test_a_pass_that_was_broken_off_leaves_no_exception_to_the_next(x):
    fail = [True]
    _, guarded, caught = rules()

    @op
    def sometimes(x, /):
        z_bar = yield x * 1.0
        if fail[0]:
            raise BackwardError("sometimes")
        yield z_bar

    def f(x):
        first, second = guarded(x * 1.0), sometimes(x)  # which nobody guards
        return total(sometimes(first) + second)

    _, pullback = vjp(f, x)
    with pytest.raises(BackwardError):
        pullback(1.0)
    assert caught == []
    fail[0] = False
    np.testing.assert_allclose(pullback(1.0)[0], 2.0 + 0 * x)


def test_a_pullback_in_the_midst_of_a_failed_one_does_not_fail():
    fail, inner = [True], []
    _, guarded, _ = rules()

    @op
    def both(x, y, /):
        z_bar = yield x + y
        if fail[0]:
            raise BackwardError("both")
        yield z_bar
        yield z_bar

    @op
    def asks(x, /):
        try:
            z_bar = yield x * 1.0
        except BackwardError:
            fail[0] = False
            inner.append(pullback(1.0)[0])
            z_bar = 5.0
        yield z_bar

    _, pullback = vjp(lambda x: both(guarded(x * 1.0), asks(x * 1.0)), 3.0)
    assert pullback(1.0) == (12.0,)
    assert inner == [2.0]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("kind", [op, elementwise])
def test_a_rule_is_closed_where_the_program_fails_though_its_result_is_held(
    kind, driver
):
    log, held = [], []

    @kind
    def watched(x, /):
        try:
            z_bar = yield 2.0 * x
            yield 2.0 * z_bar
        finally:
            log.append("closed")

    def f(x):
        held.append(watched(x))
        raise KeyError

    for x in (1.0, np.ones(3)):
        with pytest.raises(KeyError):
            grad(f, driver=driver)(x)
    assert log == ["closed"] * 2


def test_a_rule_that_waits_for_an_exception_is_closed_with_it():
    log = []

    def rule():
        try:
            yield 1.0
            yield 2.0
        finally:
            log.append("closed")

    held = rule(), Replayable(rule, (), {})
    for waiting in (Failed(held[0], KeyError()), held[1]):
        next(waiting)
        started = getattr(waiting, "started", None)
        waiting.close()
        assert log.pop() == "closed", started
        assert not log


def test_a_failed_rule_is_known_by_the_code_of_its_own():
    def rule():
        yield 1.0

    assert Failed(rule(), KeyError()).gi_code is rule.__code__
