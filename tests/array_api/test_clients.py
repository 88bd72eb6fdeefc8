"""Libraries that compute by the array API standard, on arrays of Lantern's.

SciPy is asked by an environment variable, before it is imported: so in a child.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import lantern

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


class TestEinops:
    """Its functions for arrays of the standard, in every mode."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda e, x: e.rearrange(x, "a b c -> c (a b)"),
            lambda e, x: e.rearrange(x, "a b (c d) -> (a d) (b c)", d=2),
            lambda e, x: e.reduce(x, "a b c -> a c", "mean"),
            lambda e, x: e.reduce(x, "a b c -> b", "max"),
            lambda e, x: e.repeat(x, "a b c -> a b c d", d=2),
            lambda e, x: e.pack([x, 2 * x], "a * c")[0],
            lambda e, x: e.unpack(x, [[1], [2]], "a * c")[1],
        ],
    )
    def test_values_and_derivatives(self, call):
        einops = pytest.importorskip("einops", reason="whose functions are called")
        ours = pytest.importorskip("einops.array_api", reason="for any array")

        def f(x):
            return call(ours, x)

        want = call(einops, A)
        np.testing.assert_allclose(np.asarray(f(lantern.Tensor(A))), want)
        twice = lantern.vmap(f)(np.stack([A, -A]))
        np.testing.assert_allclose(twice, np.stack([want, call(einops, -A)]))
        lantern.testing.check_grads(lambda x: lantern.sum(f(x) ** 2), (A,))
