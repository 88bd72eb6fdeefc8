"""debug(): what it finds and where, what it freezes, and that it is gone afterwards."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest

import lantern
from lantern import (
    AnomalyError,
    ArgumentError,
    backward_steps,
    checkpoint,
    custom_rule,
    debug,
    grad,
    hook,
    jvp,
    no_grad,
    vjp,
)
from lantern.op import elementwise, op
from lantern.transforms.forward import Forward
from lantern.transforms.reverse import Reverse

pytestmark = pytest.mark.usefixtures("probe")

HERE = Path(__file__)


def line_with(text):
    """The number of the only line of this file that ends in a comment."""
    lines = HERE.read_text(encoding="utf-8").splitlines()
    (number,) = (i for i, line in enumerate(lines, 1) if line.endswith(f"# {text}"))
    return number


def run(verb, f, x):
    if verb == "grad":
        return grad(f)(x)
    if verb == "switching":
        return grad(f, driver="switching")(x)
    if verb == "pullback":
        return vjp(f, x)[1](1.0)
    if verb == "steps":
        return [cotangents for _, cotangents in backward_steps(f, x)]
    return jvp(f, (x,), (np.ones_like(x),))


def custom_elementwise(rule):
    return custom_rule(rule, kind="elementwise")


REVERSE = ("grad", "switching", "pullback", "steps")


@pytest.fixture(autouse=True)
def _quiet_numpy():
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("verb", [*REVERSE, "jvp"])
class TestForward:
    def test_a_nan(self, verb):
        def f(x):
            y = x * 2.0
            y = np.sqrt(y - 5.0)  # the nan
            return lantern.sum(y * 0.5)

        with debug() as report, pytest.raises(AnomalyError, match="sqrt gave nan"):
            run(verb, f, np.ones(2))
        (finding,) = report.findings
        assert (finding.kind, finding.phase) == ("nan", "forward")
        assert finding.line.number == line_with("the nan")
        assert Path(finding.line.file) == HERE
        assert "np.sqrt(y - 5.0)" in str(report)

    def test_an_infinity(self, verb):
        def f(x):
            return lantern.sum(1.0 / x)  # the infinity

        with debug() as report, pytest.raises(AnomalyError, match="divide gave inf"):
            run(verb, f, np.zeros(2))
        assert report.findings[0].line.number == line_with("the infinity")

    def test_what_came_in_is_no_finding(self, verb):
        with debug() as report:
            run(verb, lambda x: lantern.sum(x * 2.0), np.array([np.nan, np.inf]))
        assert report.findings == []
        assert str(report) == "debug: nothing was found"

    def test_a_type(self, verb):
        wide = np.ones(2)

        def f(x):
            return lantern.sum(x * wide)  # the type

        with debug() as report, pytest.warns(UserWarning, match="made float64") as told:
            run(verb, f, np.ones(2, np.float32))
        assert report.findings[0].kind == "dtype"
        assert (told[0].filename, told[0].lineno) == (str(HERE), line_with("the type"))
        said = pytest.warns(UserWarning, match="made float64 of float32")
        x = np.ones(2, np.complex64)
        with debug(), said:
            jvp(lambda x: np.exp(x) * wide, (x,), (x,))

    def test_a_shape(self, verb):
        column = np.ones((3, 1))

        def f(x):
            return lantern.sum(x - column)  # the shape

        with debug() as report, pytest.warns(UserWarning, match=r"made shape \(3, 3\)"):
            run(verb, f, np.ones(3))
        assert report.findings[0].line.number == line_with("the shape")


@pytest.mark.parametrize("verb", REVERSE)
class TestBackward:
    def test_a_nan_that_the_forward_pass_did_not_have(self, verb):
        def f(x):
            y = np.sqrt(x)  # zero times infinity
            return lantern.sum(y * 0.0)

        with debug() as report, pytest.raises(AnomalyError, match="backward step"):
            run(verb, f, np.zeros(2))
        (finding,) = report.findings
        assert (finding.kind, finding.operation) == ("nan", "sqrt")
        assert finding.line.number == line_with("zero times infinity")

    def test_an_infinity(self, verb):
        with debug(), pytest.raises(AnomalyError, match="step of sqrt gave inf"):
            run(verb, lambda x: lantern.sum(np.sqrt(x)), np.zeros(2))

    def test_the_branch_not_taken_is_no_finding(self, verb):
        def f(x):
            safe = lantern.where(x > 0.5, x, 1.0)
            return lantern.sum(lantern.where(x > 0.5, np.sqrt(x), safe))

        with debug() as report:
            run(verb, f, np.array([0.0, 2.0]))
        assert report.findings == []

    def test_a_type(self, verb):
        def f(x):
            y = hook(lambda g: g.astype(np.float64), x * np.float32(2.0))  # wide
            return lantern.sum(y)

        said = pytest.warns(UserWarning, match="gave float64 to float32")
        with debug() as report, said:
            run(verb, f, np.ones(2, np.float32))
        assert report.findings[0].line.number == line_with("wide")
        assert report.findings[0].phase == "backward"

    @pytest.mark.parametrize("make", [op, elementwise, custom_elementwise])
    def test_a_shape_that_only_broadcasts(self, verb, make):
        @make
        def twice(x, /):
            z_bar = yield x * 2.0
            yield np.sum(z_bar) * 2.0

        def f(x):
            y = twice(x * 1.0)  # one number for three
            return lantern.sum(y * np.ones(3))

        said = pytest.warns(
            UserWarning, match=r"step of twice gave shape \(\) to \(3,\)"
        )
        with debug() as report, said as told:
            run(verb, f, np.ones(3))
        (finding,) = report.findings
        assert (finding.kind, finding.phase) == ("shape", "backward")
        assert told[0].lineno == line_with("one number for three")

    @pytest.mark.parametrize("make", [op, elementwise, custom_elementwise])
    def test_a_shape_that_is_right(self, verb, make):
        @make
        def product(x, y, /):
            z_bar = yield x * y
            x_bar = z_bar * y
            yield x_bar.sum(0) if make is op else x_bar
            yield z_bar * x

        with debug(shape="raise"):
            run(verb, lambda x: product(x, np.ones((2, 3))).sum(), np.ones(3))

    def test_an_error_tells_its_way(self, verb):
        def fail(g):
            raise KeyError("mine")

        def f(x):
            y = hook(fail, x * 2.0)  # the hook
            z = np.sin(y)  # the sine
            return lantern.sum(z)

        with debug(), pytest.raises(KeyError, match="mine") as caught:
            run(verb, f, np.ones(2))
        notes = caught.value.__notes__
        assert [
            f"test_debug.py:{line_with(x)}" in note
            for x, note in zip(("the hook", "the sine"), notes, strict=False)
        ] == [True, True]
        assert "step of hook" in notes[0]
        assert "came from sin" in notes[1]
        assert "came from sum" in notes[2]

    def test_a_long_way_is_cut_short(self, verb):
        def fail(g):
            raise KeyError

        def f(x):
            y = hook(fail, x)
            for _ in range(20):
                y = y * 2.0
            return lantern.sum(y)

        with debug(), pytest.raises(KeyError) as caught:
            run(verb, f, np.ones(2))
        assert len(caught.value.__notes__) == 10
        assert caught.value.__notes__[-1] == "and so on, to the result"


class TestActions:
    def test_warn_and_ignore(self):
        f = grad(lambda x: lantern.sum(np.sqrt(x)))
        with debug(inf="ignore"):
            f(np.zeros(2))
        with debug(inf="warn"), pytest.warns(UserWarning, match="gave inf"):
            f(np.zeros(2))
        with debug(shape="raise"), pytest.raises(AnomalyError, match="made shape"):
            grad(lambda x: lantern.sum(x * np.ones((2, 1))))(np.ones(2))

    def test_a_line_is_told_once(self):
        def f(x):
            return sum(lantern.sum(x * np.ones((2, 1))) for _ in range(3))

        with debug() as report, pytest.warns(UserWarning, match="made shape") as told:
            grad(f)(np.ones(2))
        assert (len(told), len(report.findings)) == (1, 1)

    def test_other_words_are_refused(self):
        with pytest.raises(ArgumentError, match="nan='stop'"), debug(nan="stop"):
            pass


def frozen(*arrays):
    return [not x.flags.writeable for x in arrays]


class TestFreezing:
    def test_a_write_raises_at_its_line(self):
        w = np.ones(2)

        def f(x):
            y = x * w
            w[0] = 5.0
            return lantern.sum(y)

        with debug(), pytest.raises(ValueError, match="read-only") as caught:
            grad(f)(np.ones(2))
        assert caught.traceback[-1].statement.lines[0].strip() == "w[0] = 5.0"
        assert frozen(w) == [False]

    def test_only_what_is_saved_and_only_until_the_derivative_is_over(self):
        x, w, c = np.ones(2), np.ones(2), np.ones(2)
        seen = []

        def f(x):
            y = lantern.sum(x * w + c)
            seen.extend(frozen(w, c))
            return y

        with debug():
            grad(f)(x)
            assert frozen(x, w, c) == [False] * 3
        assert seen == [True, False]

    def test_a_pullback_keeps_it_until_the_block_is_closed(self):
        w = np.ones(2)
        with debug():
            _, pullback = vjp(lambda x: lantern.sum(x * w), np.ones(2))
            assert frozen(w) == [True]
            pullback(1.0)
            assert frozen(w) == [True]
        assert frozen(w) == [False]
        pullback(1.0)
        assert frozen(w) == [False]

    def test_views_and_their_owner(self):
        owner = np.ones((2, 3))
        view, other = owner[0], owner[1:]
        seen = []

        def f(x):
            y = lantern.sum(x * view) + lantern.sum(other * x)
            seen.extend(frozen(owner, view, other))
            return y

        with debug():
            grad(f)(np.ones(3))
        assert seen == [True] * 3
        assert frozen(owner, view, other) == [False] * 3

    def test_what_was_read_only_stays_so(self):
        w = np.ones(2)
        w.flags.writeable = False
        with debug():
            grad(lambda x: lantern.sum(x * w))(np.ones(2))
        assert frozen(w) == [True]

    def test_derivatives_that_share_an_array(self):
        w = np.ones(2)
        seen = []

        def f(x):
            y = lantern.sum(x * w)
            grad(lambda u: lantern.sum(u * w))(np.ones(2))
            seen.extend(frozen(w))
            return y

        with debug():
            grad(f)(np.ones(2))
        assert seen == [True]
        assert frozen(w) == [False]

    def test_not_if_it_is_not_wanted(self):
        w = np.ones(2)

        def f(x):
            y = lantern.sum(x * w)
            w[0] = 1.0
            return y

        with debug(freeze=False):
            gradient = grad(f)(np.ones(2))
        np.testing.assert_array_equal(gradient, [1.0, 1.0])
        np.testing.assert_array_equal(w, [1.0, 1.0])

    def test_after_an_error(self):
        w = np.ones(2)
        with debug(), pytest.raises(ZeroDivisionError):
            grad(lambda x: lantern.sum(x * w) * (1 / 0))(np.ones(2))
        assert frozen(w) == [False]


class TestBlock:
    def test_leaves_nothing_behind(self):
        before = Reverse.__init__, Forward.__init__
        with debug():
            with debug():
                grad(lambda x: x * x)(1.0)
            assert Reverse.__init__ is not before[0]
        assert (Reverse.__init__, Forward.__init__) == before
        assert "Looking" not in type(Reverse("grad")).__name__

    def test_other_threads_are_not_looked_at(self):
        results = []
        with debug():
            thread = threading.Thread(
                target=lambda: results.append(grad(lambda x: np.sqrt(x))(np.zeros(())))
            )
            thread.start()
            thread.join()
        assert np.isinf(results[0])

    def test_the_inner_block_counts(self):
        f = grad(lambda x: lantern.sum(np.sqrt(x)))
        with debug(), debug(inf="ignore"):
            gradient = f(np.zeros(2))
        np.testing.assert_array_equal(gradient, [np.inf, np.inf])

    def test_every_nesting(self):
        f = lambda x: x**3 * lantern.sin(x)  # noqa: E731
        derivatives = (grad, lambda f: lambda x: jvp(f, (x,), (1.0,))[1])
        for outer in derivatives:
            for inner in derivatives:
                expected = outer(inner(f))(0.7)
                with debug() as report:
                    assert outer(inner(f))(0.7) == expected
                assert report.findings == []

    def test_checkpoints_and_blocks_without_derivatives(self):
        def f(x):
            with no_grad(x):
                scale = x * x
            return lantern.sum(checkpoint(lambda y: np.sin(y) * scale)(x))

        expected = grad(f)(np.ones(2))
        with debug():
            np.testing.assert_array_equal(grad(f)(np.ones(2)), expected)
            np.testing.assert_array_equal(run("pullback", f, np.ones(2))[0], expected)

    def test_a_nan_in_the_second_run_of_a_checkpoint(self):
        f = checkpoint(lambda x: lantern.sum(np.sqrt(x) * 0.0))
        with debug(), pytest.raises(AnomalyError, match="sqrt gave nan"):
            grad(f)(np.zeros(2))

    def test_no_cycles(self):
        def once():
            with debug():
                grad(lambda x: lantern.sum(np.sin(x) * x))(np.ones(2))

        once()
        gc.collect()
        gc.disable()
        try:
            once()
            assert gc.collect() == 0
        finally:
            gc.enable()
