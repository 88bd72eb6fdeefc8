"""Backward passes step by step: gradients when they are ready, and the debugger."""

import io
import tracemalloc

import numpy as np
import pytest

import lantern
from lantern import (
    ArgumentError,
    NotScalarError,
    ShapeError,
    backward_steps,
    checkpoint,
    debug,
    grad,
    hook,
    jvp,
)
from lantern.cps import shift
from lantern.debugger import Session, Terminal, run
from lantern.debugging.source_line import Line

pytestmark = pytest.mark.usefixtures("probe")


def network(p, x):
    h = np.tanh(x @ p["w"][0] + p["b"])
    for _ in range(2):
        h = np.tanh(h @ p["w"][1] + p["b"]) + h
    return lantern.sum(h * h) * p["scale"]


def parameters():
    rng = np.random.default_rng(0)
    return {
        "w": [rng.normal(size=(3, 4)), rng.normal(size=(4, 4))],
        "b": rng.normal(size=4),
        "scale": 0.5,
        "unused": 2.0,
        "none": None,
    }


X = np.random.default_rng(1).normal(size=(5, 3))


def gradients(steps):
    return {op.path: cotangents[0] for op, cotangents in steps if op.is_input}


class TestGradients:
    def test_are_those_of_grad(self):
        found = gradients(backward_steps(network, parameters(), X))
        expected = grad(network)(parameters(), X)
        assert set(found) == {(k,) for k in ("b", "scale", "unused")} | {
            ("w", 0),
            ("w", 1),
        }
        for path, g in found.items():
            want = expected
            for key in path:
                want = want[key]
            np.testing.assert_array_equal(g, want)
            assert type(g) is type(want)

    def test_of_several_arguments(self):
        f = lambda x, y, *, z: x * y * z  # noqa: E731
        found = gradients(backward_steps(f, 2.0, 3.0, argnums=(1, 0), z=5.0))
        assert found == {(1,): 10.0, (0,): 15.0}

    def test_are_born_as_soon_as_nothing_can_add_to_them(self):
        p = {"first": 2.0, "last": 3.0, "both": 5.0}

        def f(p):
            y = p["first"] * p["both"]
            y = lantern.sin(y)
            return y * p["last"] * p["both"]

        names = [op.path[0] if op.path else op.name for op, _ in backward_steps(f, p)]
        assert names == [
            *("multiply", "multiply", "last", "sin"),
            *("multiply", "first", "both"),
        ]

    def test_an_input_that_is_the_result(self):
        assert gradients(backward_steps(lambda x: x, 2.0)) == {(): 1.0}
        assert gradients(backward_steps(lambda x: 7.0, 2.0)) == {(): 0.0}

    def test_with_checkpoints_all_are_safe(self):
        def f(p, x):
            hidden = lambda h: np.tanh(h @ p["w"][1] + p["b"])  # noqa: E731
            return lantern.sum(checkpoint(lambda h: hidden(h))(x @ p["w"][0]))

        found = gradients(backward_steps(f, parameters(), X))
        np.testing.assert_array_equal(found["w", 1], grad(f)(parameters(), X)["w"][1])

    def test_inside_another_derivative(self):
        def slope(x):
            (g,) = gradients(backward_steps(lambda y: y**3 * x, x)).values()
            return g

        assert slope(2.0) == 24.0
        assert grad(slope)(2.0) == 36.0
        assert jvp(slope, (2.0,), (1.0,))[1] == 36.0


class TestSteps:
    def test_an_operation_of_the_user_has_its_own_name(self):
        @lantern.custom_rule
        def triple(x, /):
            z_bar = yield 3 * x
            yield z_bar * 3

        def f(x):
            return triple(x) * x

        names = [op.name for op, _ in backward_steps(f, 2.0)]
        assert names == ["multiply", "triple", "input"]

    def test_a_line_in_a_notebook_is_a_line_of_a_cell(self):
        assert str(Line("somewhere/ipykernel_12/345.py", 5, "f")) == "cell:5"
        assert str(Line("somewhere/345.py", 5, "f")) == "345.py:5"

    def test_go_in_the_reverse_of_the_execution(self):
        def f(x):
            return lantern.exp(lantern.sin(lantern.cos(x)))

        names = [op.name for op, _ in backward_steps(f, 1.0)]
        assert names == ["exp", "sin", "cos", "input"]

    def test_tell_cotangents_and_contributions(self):
        c = np.array([2.0, 3.0])
        steps = backward_steps(lambda x: lantern.sum(x * c), np.ones(2))
        (op, cotangents), (op2, cotangents2), _ = steps
        assert (op.name, op.cotangent) == ("sum", 1.0)
        np.testing.assert_array_equal(cotangents, [[1.0, 1.0]])
        assert op2.name == "multiply"
        np.testing.assert_array_equal(cotangents2, [c])

    def test_tell_the_users_line(self):
        op, _ = next(backward_steps(lambda x: np.sin(x), 1.0))
        assert op.line.file == __file__
        assert "np.sin(x)" in str(op)

    def test_of_complex_values_tell_gradients(self):
        f = lambda z: lantern.abs(z * (1 + 2j)) ** 2  # noqa: E731
        steps = list(backward_steps(f, 1 + 1j))
        assert steps[-1].cotangents[0] == pytest.approx(grad(f)(1 + 1j))
        assert steps[-2].cotangents[0] == pytest.approx(grad(f)(1 + 1j))

    def test_of_several_results(self):
        f = lambda m: lantern.sum(lantern.linalg.qr(m)[1])  # noqa: E731
        m = np.array([[2.0, 1.0], [1.0, 3.0]])
        np.testing.assert_array_equal(gradients(backward_steps(f, m))[()], grad(f)(m))

    def test_leave_out_what_nothing_has_reached(self):
        def f(x):
            np.sin(x)
            return x * 2.0

        assert [op.name for op, _ in backward_steps(f, 1.0)] == ["multiply", "input"]

    def test_hooks_run_in_their_step(self):
        seen = []
        steps = backward_steps(lambda x: hook(seen.append, x * 2.0) * 3.0, 1.0)
        next(steps)
        assert seen == []
        assert next(steps).op.name == "hook"
        assert seen == [3.0]

    def test_handlers_have_their_turn(self):
        order = []

        def handler():
            answer = yield 2.0
            order.append("handler")
            return answer

        def f(x):
            return x * shift(handler) * x

        names = [op.name for op, _ in backward_steps(f, 3.0)]
        assert names == ["multiply", "multiply", "shift", "input"]
        assert order == ["handler"]

    def test_of_a_long_chain(self):
        def f(x):
            for _ in range(5_000):
                x = x * 1.0 + 0.0
            return x

        assert sum(1 for _ in backward_steps(f, 1.0)) == 10_001

    def test_under_debug(self):
        with debug():
            assert gradients(backward_steps(lambda x: x * x, 3.0)) == {(): 6.0}


class TestErrors:
    def test_of_the_function(self):
        with pytest.raises(ZeroDivisionError):
            backward_steps(lambda x: x / 0, 1.0)
        with pytest.raises(NotScalarError, match="backward_steps"):
            backward_steps(lambda x: x, np.ones(2))
        with pytest.raises(ArgumentError, match="backward_steps"):
            backward_steps(3.0, 1.0)

    def test_of_the_backward_pass(self):
        steps = backward_steps(lambda x: hook(lambda g: 1 / 0, x * 2.0) * 3.0, 1.0)
        with pytest.raises(ZeroDivisionError):
            list(steps)
        assert list(steps) == []

    def test_that_a_handler_does_not_see(self):
        """It travels along the chain rule, to an input: no gradient in part."""

        def handler():
            try:
                answer = yield 2.0
            except ZeroDivisionError:
                return 0.0
            return answer

        def f(x):
            y = x * 5.0 * shift(handler)
            return hook(lambda g: 1 / 0, y) * x

        with pytest.raises(ZeroDivisionError):
            gradients(backward_steps(f, 3.0))

    def test_a_pass_that_is_given_up(self):
        closed = []

        def handler():
            try:
                yield 2.0
            finally:
                closed.append(True)

        with backward_steps(lambda x: x * shift(handler), 1.0) as steps:
            next(steps)
        assert closed == [True]
        assert list(steps) == []
        assert "over" in repr(steps)


class TestFusedOptimiser:
    def test_updates_in_place_equal_those_afterwards(self):
        rate = 0.1
        plain, fused = parameters(), parameters()
        for _ in range(3):
            g = grad(network)(plain, X)
            plain["b"] = plain["b"] - rate * g["b"]
            plain["w"] = [w - rate * d for w, d in zip(plain["w"], g["w"], strict=True)]
            for op, cotangents in backward_steps(network, fused, X):
                if op.path in (("b",), ("w", 0), ("w", 1)):
                    array = fused["b"] if op.path == ("b",) else fused["w"][op.path[1]]
                    array -= rate * cotangents[0]
        for a, b in zip(
            [plain["b"], *plain["w"]], [fused["b"], *fused["w"]], strict=True
        ):
            np.testing.assert_array_equal(a, b)

    def test_only_one_gradient_exists_at_a_time(self):
        layers = [np.eye(200) for _ in range(20)]

        def f(layers):
            h = np.ones((1, 200))
            for w in layers:
                h = np.tanh(h @ w)
            return lantern.sum(h)

        def peak(run):
            run()
            tracemalloc.start()
            try:
                run()
                return tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()

        def fused():
            for op, cotangents in backward_steps(f, layers):
                if op.is_input:
                    layers[op.path[0]] -= 0.0 * cotangents[0]

        assert peak(fused) < 0.65 * peak(lambda: grad(f)(layers))


def three(x):
    y = x * x
    z = lantern.sin(y)
    return z * 2.0


class TestSession:
    def test_looks_at_primal_and_cotangent(self):
        session = Session(three, 2.0)
        assert (session.value, session.operation.name) == (three(2.0), "multiply")
        session.step()
        assert (session.primal, session.cotangent) == (np.sin(4.0), 2.0)
        assert "sin(y)" in repr(session)
        session.step(2)
        assert session.operation.is_input
        assert session.gradient is None
        session.proceed()
        assert (session.operation, session.primal, session.cotangent) == (None,) * 3
        assert session.gradient == grad(three)(2.0)
        assert repr(session).startswith("over: the gradient is")

    def test_stops_where_it_is_told(self):
        session = Session(three, 2.0)
        assert session.proceed("sin").operation.name == "sin"
        assert (
            session.proceed(lambda op: op.cotangent != 0).operation.name == "multiply"
        )
        assert session.proceed("input").operation.is_input

    def test_goes_on_with_another_cotangent(self):
        session = Session(three, 2.0)
        session.step().cotangent = 0.5
        assert session.proceed().gradient == grad(three)(2.0) / 4
        with pytest.raises(ArgumentError, match="nothing waits"):
            session.cotangent = 1.0
        session = Session(lambda x: lantern.sum(x * 2.0), np.ones(3)).step()
        with pytest.raises(ShapeError):
            session.cotangent = np.ones(2)

    def test_says_where_it_is(self):
        text = Session(three, 2.0).step().where()
        done, now, later = text.splitlines()
        assert "done     multiply" in done
        assert now.startswith(" -> waiting  sin")
        assert "waiting  multiply" in later

    def test_gives_the_structure_of_the_gradient(self):
        found = Session(network, parameters(), X).proceed().gradient
        expected = grad(network)(parameters(), X)
        assert found["none"] is None
        np.testing.assert_array_equal(found["w"][1], expected["w"][1])
        f = lambda x, y: x * y  # noqa: E731
        assert Session(f, 2.0, 3.0, argnums=(0, 1)).proceed().gradient == (3.0, 2.0)

    def test_in_a_notebook(self):
        session = Session(lambda x: lantern.sum(x * 1.5), np.ones((10, 10)))
        session.step()
        page = session._repr_html_()
        assert "float64 of shape (10, 10), from 1.5 to 1.5" in page
        assert "&lt;lambda&gt;" not in page
        assert page.count("<tr>") == 2
        session.close()

    def test_a_block_gives_up_the_rest(self):
        with Session(three, 2.0) as session:
            session.step()
        assert session.operation is None


def talk(*commands, f=three, x=2.0):
    out = io.StringIO()
    result = run(f, x, stdin=io.StringIO("\n".join(commands)), stdout=out)
    return result, out.getvalue()


class TestTerminal:
    def test_a_whole_conversation(self):
        result, said = talk("step", "w", "p primal * 2", "p", "c input", "s", "p 1")
        assert result == grad(three)(2.0)
        assert said.count("before the backward step of") == 3
        assert "-> waiting  sin" in said
        assert str(np.sin(4.0) * 2) in said
        assert "complete: input" in said
        assert "over: the gradient is" in said
        assert said.count("(lantern)") == 6

    def test_an_empty_line_is_a_step_and_the_end_goes_on(self):
        result, said = talk("", "", "")
        assert result == grad(three)(2.0)
        assert said.count("before the backward step of multiply") == 2

    def test_quit_gives_up(self):
        result, said = talk("s", "quit", "s")
        assert result is None
        assert "over" not in said

    def test_slips_are_told(self):
        result, said = talk("p nonsense", "s x", "jump", "help step")
        assert "NameError" in said
        assert "expected a number" in said
        assert "'jump' is no command" in said
        assert "take one step, or n of them" in said
        assert result == grad(three)(2.0)

    def test_commands_have_words_for_help(self):
        for name in dir(Terminal):
            if name.startswith("do_"):
                assert getattr(Terminal, name).__doc__


def test_nothing_is_left_when_a_pass_is_dropped(probe):
    steps = [backward_steps(three, 1.0) for _ in range(2)]
    next(steps[0])
    del steps
    probe()
