"""Libraries that compute by the array API standard, on arrays of Lantern's.

SciPy is asked by an environment variable, before it is imported: so in a child.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import lantern
import lantern.torch as torch

OF_SCIPY = """
special.logsumexp(a) · special.softmax(a) · special.log_softmax(a) · special.erf(a)
special.expit(a) · special.gammaln(a) · special.xlogy(a, a) · special.i0(a)
special.betainc(a, a, a / 4) · special.entr(a) · special.rel_entr(a, a + 1)
special.ndtr(a) · special.gammainc(a, a) · fft.fft(a) · fft.ifft(a) · fft.rfft(a)
fft.fftshift(a) · fft.fft2(a.reshape(2, 3)) · integrate.trapezoid(a)
integrate.simpson(a) · integrate.cumulative_trapezoid(a)
integrate.cumulative_simpson(a) · stats.zscore(a) · stats.moment(a, 2) · stats.skew(a)
stats.kurtosis(a) · stats.gmean(a) · stats.hmean(a) · stats.variation(a) · stats.sem(a)
stats.ttest_1samp(a, 0.5).pvalue · stats.pearsonr(a, a[::-1]).statistic
stats.entropy(a) · stats.tmean(a) · signal.convolve(a, a) · signal.fftconvolve(a, a)
signal.detrend(a) · signal.hilbert(a) · cluster.vq.whiten(a.reshape(3, 2))
optimize.rosen(a)
"""
CALLS = [call.strip() for line in OF_SCIPY.splitlines() for call in line.split("·")]
CALLS = [call for call in CALLS if call]
# What SciPy makes plain itself, on its way.
PLAIN = {"integrate.simpson(a)"}

CHILD = """
import sys, warnings
import numpy as np, scipy, lantern
import scipy.cluster.vq
from scipy import cluster, fft, integrate, optimize, signal, special, stats
warnings.simplefilter("ignore")
for call in sys.argv[1:]:
    try:
        want = eval(call, {**globals(), "a": np.array([0.3, 0.7, 1.9, 2.4, 3.3, 0.1])})
        a = lantern.Tensor(np.array([0.3, 0.7, 1.9, 2.4, 3.3, 0.1]))
        got = eval(call, {**globals(), "a": a})
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-10, atol=1e-12)
        print(call, type(got).__name__, sep="|")
    except Exception as error:
        print(call, repr(error).replace(chr(10), " "), sep="|")
"""


def test_functions_of_scipy_take_tensors_and_give_tensors():
    pytest.importorskip("scipy", minversion="1.17", reason="which functions it takes")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = [sys.executable, "-c", CHILD, *CALLS]
    found = subprocess.run(
        run, env=environment, capture_output=True, text=True, check=True
    )
    outcomes = dict(line.split("|", 1) for line in found.stdout.splitlines())
    assert len(outcomes) == len(CALLS) == 40
    wrong = {c: o for c, o in outcomes.items() if o != "Tensor" and c not in PLAIN}
    assert wrong == {}
    assert {outcomes[call] for call in PLAIN} == {"float64"}


A = np.random.default_rng(0).normal(size=(2, 3, 4))


EINOPS = {
    "rearrange": lambda e, x: e.rearrange(x, "a b c -> c (a b)"),
    "rearrange, split": lambda e, x: e.rearrange(x, "a b (c d) -> (a d) (b c)", d=2),
    "rearrange, list": lambda e, x: e.rearrange([x, x * x], "n a b c -> n (a b) c"),
    "reduce, mean": lambda e, x: e.reduce(x, "a b c -> a c", "mean"),
    "reduce, max": lambda e, x: e.reduce(x, "a b c -> b", "max"),
    "reduce, min": lambda e, x: e.reduce(x, "a b c -> b", "min"),
    "reduce, sum": lambda e, x: e.reduce(x, "a b c -> a 1 c", "sum"),
    "reduce, prod": lambda e, x: e.reduce(x, "a b c -> c", "prod"),
    "repeat": lambda e, x: e.repeat(x, "a b c -> a b c d", d=2),
    "repeat, joined": lambda e, x: e.repeat(x, "a b c -> (2 a) b c"),
    "einsum": lambda e, x: e.einsum(x, x, "a b c, a b d -> c d"),
    "pack": lambda e, x: e.pack([x, 2 * x[:, 0]], "a * c")[0],
    "unpack": lambda e, x: e.unpack(x, [[1], [2]], "a * c")[1],
}


@pytest.mark.parametrize("name", EINOPS)
class TestEinops:
    """Its functions, in every mode and with both faces."""

    def test_values_and_derivatives(self, name):
        einops = pytest.importorskip("einops", reason="whose functions are called")

        def f(x):
            return EINOPS[name](einops, x)

        want = f(A)
        np.testing.assert_allclose(np.asarray(f(lantern.Tensor(A))), want)
        twice = lantern.vmap(f)(np.stack([A, -A]))
        np.testing.assert_allclose(twice, np.stack([want, f(-A)]))
        lantern.testing.check_grads(lambda x: lantern.sum(f(x) ** 2), (A,))

    def test_for_any_array_of_the_standard(self, name):
        ours = pytest.importorskip("einops.array_api", reason="for any array")
        import einops

        call = EINOPS[name]
        if name == "einsum":
            assert not hasattr(ours, name)
            return
        found = call(ours, lantern.Tensor(A))
        np.testing.assert_allclose(np.asarray(found), call(einops, A))

    def test_tensors(self, name):
        einops = pytest.importorskip("einops", reason="whose functions are called")
        call, x = EINOPS[name], torch.tensor(A.tolist(), requires_grad=True)
        y = call(einops, x)
        np.testing.assert_allclose(y.detach().numpy(), call(einops, A), rtol=1e-5)
        y.square().sum().backward()
        want = lantern.grad(lambda x: lantern.sum(call(einops, x) ** 2))(A)
        np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-4)


@pytest.mark.parametrize("first", ["einops", "lantern", "lantern.torch"])
def test_einops_may_be_imported_first_or_last(first):
    pytest.importorskip("einops", reason="whose functions are called")
    program = f"""
import {first}, einops, lantern, lantern.torch as torch
x = torch.ones(2, 3)
assert einops.rearrange(x, "a b -> b a").shape == (3, 2)
y = lantern.grad(lambda x: einops.reduce(x * x, "a ->", "sum"))(x.numpy()[0])
assert y.tolist() == [2, 2, 2], y
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
