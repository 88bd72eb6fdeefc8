"""What users meet when something is not possible: the right exception, in words."""

import subprocess
import sys

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern import checkpoint, early_exit, grad, hook, jvp, vjp, vmap
from lantern.effects import Effect, handle
from lantern.errors import (
    ArgumentError,
    BatchedValueError,
    DetachError,
    EscapedError,
    NoDelimiterError,
)

V = np.array([1.0, 2.0, 3.0])


class Mine(StopIteration):
    """An exception of a user's own, of the kind that no generator lets through."""


def stop(*_):
    raise Mine("mine")


def squared(x):
    return hook(stop, x * x) * x


def by_custom_vjp(forward, backward):
    f = lantern.custom_vjp(lambda x: x * x)
    f.defvjp(forward, backward)
    return f


class Stops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        stop()


def of_a_module():
    model = torch.nn.Linear(2, 1)
    model.register_full_backward_hook(stop)
    model(torch.ones(1, 2, requires_grad=True)).sum().backward()


def of_a_tensor():
    x = torch.ones(2, requires_grad=True)
    y = x * x
    y.register_hook(stop)
    y.sum().backward()


by_jvp = lantern.custom_jvp(lambda x: x * x)
by_jvp.defjvp(stop)

STOPPED = {
    "hook": lambda: grad(squared)(2.0),
    "hook of arrays": lambda: grad(lambda x: squared(x).sum())(V),
    "hook of several": lambda: grad(lambda x: sum(hook(stop, [x * x, x])))(2.0),
    "hook under vjp": lambda: vjp(squared, 2.0)[1](1.0),
    "hook in a second derivative": lambda: grad(grad(squared))(2.0),
    "hook under jacrev": lambda: lantern.jacrev(squared)(V),
    "hook under vmap": lambda: vmap(grad(squared))(V),
    "hook under jvp": lambda: jvp(grad(squared), (2.0,), (1.0,)),
    "hook, switching": lambda: grad(squared, driver="switching")(2.0),
    "hook in a checkpoint": lambda: grad(checkpoint(squared))(2.0),
    "hook in two": lambda: grad(checkpoint(checkpoint(squared)))(2.0),
    "function under jvp": lambda: jvp(by_jvp, (2.0,), (1.0,)),
    "hook in a checkpoint under vjp": lambda: vjp(checkpoint(squared), 2.0)[1](1.0),
    "body": lambda: grad(stop)(2.0),
    "body under jvp": lambda: jvp(stop, (2.0,), (1.0,)),
    "checkpoint": lambda: grad(checkpoint(stop))(2.0),
    "custom_vjp, forward": lambda: grad(by_custom_vjp(stop, stop))(2.0),
    "custom_vjp": lambda: grad(by_custom_vjp(lambda x: (x * x, x), stop))(2.0),
    "vmap": lambda: vmap(stop)(V),
    "early_exit": lambda: early_exit(stop),
    "Function": lambda: Stops.apply(torch.ones(2, requires_grad=True)).sum().backward(),
    "a module's hook": of_a_module,
    "a tensor's hook": of_a_tensor,
}


class TestAUsersStopIteration:
    @pytest.mark.parametrize("name", STOPPED)
    def test_passes_through_untouched(self, name):
        with pytest.raises(Mine, match="mine") as caught:
            STOPPED[name]()
        assert caught.value.__cause__ is None
        assert grad(lambda x: x * x * x)(3.0) == 27.0

    def test_of_a_generator_of_their_own_is_what_python_makes_of_it(self):
        def broken():
            yield stop()

        with pytest.raises(RuntimeError, match="generator raised StopIteration"):
            grad(lambda x: x * next(broken()))(2.0)
        with pytest.raises(RuntimeError, match="generator raised StopIteration"):
            grad(lambda x: hook(lambda g: next(broken()), x))(2.0)


def into_an_array(x):
    out = np.zeros(3)
    for i in range(3):
        out[i] = x[i] ** 2
    return out.sum()


class TestWritingIntoAPlainArray:
    @pytest.mark.parametrize(
        "derivative",
        [
            lambda: grad(into_an_array)(V),
            lambda: vjp(into_an_array, V),
            lambda: jvp(into_an_array, (V,), (V,)),
            lambda: grad(grad(into_an_array))(V),
            lambda: lantern.jacfwd(into_an_array)(V),
            lambda: lantern.hessian(into_an_array)(V),
            lambda: vmap(grad(into_an_array))(np.stack([V, V])),
        ],
    )
    def test_raises_the_error_itself_at_the_users_line(self, derivative):
        with pytest.raises((DetachError, BatchedValueError), match="lantern") as caught:
            derivative()
        lines = [str(entry.statement) for entry in caught.traceback]
        assert any("out[i] = x[i] ** 2" in line for line in lines)
        assert caught.value.__cause__ is None

    def test_another_value_error_stays(self):
        def f(x):
            np.zeros(2)[0] = [1.0, 2.0]
            return x

        with pytest.raises(ValueError, match="setting an array element"):
            grad(f)(2.0)


class TestOutsideOfDelimiters:
    def test_pause(self):
        with pytest.raises(NoDelimiterError, match=r"^pause: no Program .* Call it"):
            lantern.pause()

    def test_leave(self):
        kept = []
        early_exit(kept.append)
        with pytest.raises(NoDelimiterError, match=r"^early_exit: leave was called"):
            kept[0](1.0)


asked = Effect("asked")


def give_up(x):
    """Ends the body that asks, with a value."""
    return x
    yield


class TestLeavingADerivative:
    @pytest.mark.parametrize(
        ("name", "derivative"),
        [
            ("vmap", lambda f: vmap(f)(V)),
            ("grad", lambda f: grad(f)(2.0)),
            ("jvp", lambda f: jvp(f, (2.0,), (1.0,))),
            ("vjp", lambda f: vjp(f, 2.0)),
        ],
    )
    def test_with_a_value_of_it_is_refused(self, name, derivative):
        words = f"the body was left with a value of a {name}"
        with pytest.raises(EscapedError, match=f"^early_exit: {words}"):
            early_exit(lambda leave: derivative(lambda x: leave([x * x])))
        with pytest.raises(EscapedError, match=f"^handle: {words}"):
            handle(lambda: derivative(lambda x: asked(x * x)), {asked: give_up})

    def test_with_another_value_is_right(self):
        assert early_exit(lambda leave: vmap(lambda x: leave(2.0))(V)) == 2.0

        def f(x):
            return early_exit(lambda leave: vmap(lambda v: leave(x * x))(V))

        assert grad(f)(3.0) == 6.0

    def test_inside_of_it_is_right(self):
        got = vmap(lambda x: early_exit(lambda leave: leave(x * x)))(V)
        np.testing.assert_array_equal(got, V * V)


class TestFunctionsOfScipy:
    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("linalg.expm", lambda s, x: s.linalg.expm(np.eye(3) * x)),
            ("linalg.solve", lambda s, x: s.linalg.solve(np.eye(3) + x, V)),
            ("special.logsumexp", lambda s, x: s.special.logsumexp(x)),
            ("special.softmax", lambda s, x: s.special.softmax(x)),
            ("signal.convolve", lambda s, x: s.signal.convolve(x, V)),
            ("stats.norm.logpdf", lambda s, x: s.stats.norm.logpdf(x)),
        ],
    )
    def test_are_named_with_ours(self, name, call):
        scipy = pytest.importorskip("scipy", reason="whose functions are called")
        words = rf"^scipy\.{name}: .* Use lantern\.scipy\.{name}\.$"
        with pytest.raises(DetachError, match=words):
            grad(lambda x: call(scipy, x).sum())(V)
        with pytest.raises(BatchedValueError, match=words):
            vmap(lambda x: call(scipy, x))(np.stack([V, V]))
        ours = lantern.scipy
        assert np.isfinite(grad(lambda x: lantern.sum(call(ours, x)))(V)).all()

    def test_that_we_have_not_say_where_to_look(self):
        integrate = pytest.importorskip("scipy.integrate", reason="what is called")
        words = r"^scipy\.integrate\.simpson: .* Use what lantern\.scipy has"
        with pytest.raises(DetachError, match=words):
            grad(integrate.simpson)(V)

    def test_are_not_named_where_they_call_back(self):
        integrate = pytest.importorskip("scipy.integrate", reason="what calls back")

        def inner(t):
            return grad(lambda x: float(x))(t)

        with pytest.raises(DetachError, match=r"^float: "):
            integrate.quad(inner, 0.0, 1.0)


def circles():
    in_list, in_dict = [1.0], {"a": 1.0}
    in_list.append(in_list)
    in_dict["b"] = (2.0, in_dict)
    return {
        r"list holds itself, at x(\[\d\])*\[1\]": in_list,
        r"dict holds itself, at x(\[\d\])*\['b'\]\[1\]": in_dict,
    }


class TestStructures:
    @pytest.mark.parametrize("words", circles())
    @pytest.mark.parametrize(
        "use",
        [
            lambda tree: grad(lambda x: 1.0)(tree),
            lambda tree: vjp(lambda x: 1.0, tree),
            lambda tree: vjp(lambda x: tree, 1.0),
            lambda tree: jvp(lambda x: 1.0, (tree,), (tree,)),
            lambda tree: jvp(lambda x: tree, (1.0,), (1.0,)),
            lambda tree: vmap(lambda x: tree)(V),
            lambda tree: lantern.jacfwd(lambda x: tree)(V),
            lambda tree: grad(checkpoint(lambda x, t: x))(1.0, tree),
            lambda tree: lantern.tree_map(abs, tree),
            lambda tree: lantern.tree_map(max, tree, tree),
            lambda tree: list(lantern.tree_leaves(tree)),
            lambda tree: list(lantern.tree_paths(tree)),
            lambda tree: lantern.tree_structure(tree),
        ],
    )
    def test_that_hold_themselves_are_refused(self, words, use):
        with pytest.raises(ArgumentError, match=words):
            use(circles()[words])

    def test_a_part_may_stand_in_two_places(self):
        part = [1.0]
        assert lantern.tree_map(lambda x: x + 1, [part, part]) == [[2.0], [2.0]]

    def test_a_recursion_error_of_the_function_stays(self):
        def endless(x):
            return endless(x)

        with pytest.raises(RecursionError):
            lantern.tree_map(endless, [1.0])

    @pytest.mark.parametrize(
        ("call", "path"),
        [
            (lambda t: grad(lambda x: x[0])(t), r"x\[1\]\['w'\]"),
            (lambda t: vjp(lambda x: x[0], t), r"x\[1\]\['w'\]"),
            (lambda t: jvp(lambda x: x[0], (t,), (t,)), r"x\[0\]\[1\]\['w'\]"),
            (lambda t: vjp(lambda x: [x, t], 1.0), r"y\[1\]\[1\]\['w'\]"),
            (lambda t: vmap(lambda x: [x, t])(V), r"y\[1\]\[1\]\['w'\]"),
            (lambda t: vmap(lambda x: x)([V, t[1]]), r"x\[1\]\['w'\]"),
        ],
    )
    def test_the_place_of_a_bad_leaf_is_named(self, call, path):
        with pytest.raises(ArgumentError, match=rf"'text' of type str at {path}[.,]"):
            call([1.0, {"w": "text"}])


STAR = """
before = set(dir())
from lantern import *
import types, builtins
found = {n: x for n, x in vars().items() if n not in before}
del found["before"], found["types"], found["builtins"]
assert not [n for n, x in found.items() if isinstance(x, types.ModuleType)]
assert not [n for n in found if n[0] == "_"]
import lantern, sys
assert found.keys() == set(lantern.__all__)
assert {"grad", "vmap", "hessian", "Program", "sin", "Tensor", "pi"} <= found.keys()
assert "lantern.torch" not in sys.modules and "scipy" not in sys.modules
assert grad(lambda x: sin(x) * x)(0.0) == 0.0
print("right")
"""


def test_a_star_gives_the_public_names():
    run = [sys.executable, "-W", "error", "-c", STAR]
    found = subprocess.run(run, capture_output=True, text=True)
    assert found.stdout.strip() == "right", found.stderr
    assert len(set(lantern.__all__)) == len(lantern.__all__)


SLOW = (
    "importlib.metadata importlib.resources email zipfile socket asyncio unittest "
    "pathlib urllib logging tempfile"
)


def imported_by(program):
    """What a program imports besides NumPy."""
    program = f"import sys, numpy; before = {{*sys.modules}}\n{program}"
    program += "\nprint(*sys.modules.keys() - before)"
    run = [sys.executable, "-c", program]
    found = subprocess.run(run, capture_output=True, text=True, check=True)
    return {*found.stdout.split()}


def test_slow_modules_are_imported_when_they_are_used():
    """By ``import lantern``: 20 ms of 110 went to two of them."""
    found = imported_by("import lantern")
    assert "lantern" in found
    assert not {*SLOW.split()} & found


def test_what_few_networks_need_is_imported_when_it_is_asked_for():
    """By a program that takes one step: 20 ms of 190 went to layers, and others."""
    found = imported_by(
        "import lantern.torch as torch; nn = torch.nn\n"
        "model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))\n"
        "optimiser = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "y = torch.arange(4) % 2\n"
        "nn.functional.cross_entropy(model(torch.ones(4, 8)), y).backward()\n"
        "optimiser.step()"
    )
    late = {f"lantern.torch.{name}.seldom" for name in ("nn", "nn.functional", "optim")}
    late |= {"lantern.torch.autograd.seldom", "lantern.torch.autograd.function"}
    late |= {"lantern.engines.gpu.arrays", "lantern.tensor.linalg.eigen_svd"}
    late |= {"lantern.engines.convolution", "difflib", "string"}
    assert "lantern.torch.optim.descent" in found
    assert not late & found
