"""Moving arrays from device to device, and arrays of two libraries that meet."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.tensor.backend.cupy_namespace import DeviceNamespace
from tests import fake_cupy as standin


@pytest.fixture
def x(backend):
    return backend.array(np.arange(6.0).reshape(2, 3) / 4 + 0.5)


def output_of(code):
    run = [sys.executable, "-W", "error", "-c", code]
    home = Path(lantern.__file__).parent.parent
    return subprocess.run(
        run, capture_output=True, text=True, check=True, cwd=home
    ).stdout


class TestTransfers:
    def test_to_the_device_and_back(self, backend):
        x = np.array([0.5, -1.5])
        y = lantern.to_device(x, backend.device)
        assert type(y) is backend.kind
        assert (lantern.device(x), lantern.device(y)) == ("cpu", backend.device)
        back = lantern.to_device(y, "cpu")
        assert type(back) is np.ndarray
        np.testing.assert_array_equal(back, x)

    def test_what_lies_there_is_returned_as_it_is(self, backend, x):
        kind = backend.device.partition(":")[0]
        for name in (kind, backend.device):
            assert lantern.to_device(x, name) is x
        host = backend.host(x)
        assert lantern.to_device(host, "cpu") is host
        assert lantern.to_device(2.0, backend.device) == 2.0

    def test_structures(self, backend, x):
        tree = {"w": np.ones(2), "b": [x, 0.5, None]}
        there = lantern.to_device(tree, backend.device)
        assert type(there["w"]) is backend.kind
        assert there["b"][0] is x
        assert there["b"][1:] == [0.5, None]

    @pytest.mark.parametrize("start", ["host", "device"])
    def test_derivatives_come_back(self, backend, start):
        x = np.array([[0.5, -1.5]])
        if start == "device":
            x = backend.array(x)
        home, away = lantern.device(x), "cpu" if start == "device" else backend.device

        def f(x):
            y = x.to(away)
            assert y.device == away
            z = y.to_device(home)
            return lantern.sum(lantern.sin(z) * z + lantern.exp(x))

        def plain(x):
            return lantern.sum(lantern.sin(x) * x + lantern.exp(x))

        for derivative in (
            grad,
            lambda f: lambda x: jvp(f, (x,), (x,))[1],
            lambda f: grad(lambda x: lantern.sum(grad(f)(x) * x)),
            lambda f: lambda x: jvp(grad(f), (x,), (x,))[1],
        ):
            got, want = derivative(f)(x), derivative(plain)(x)
            assert lantern.device(got) == lantern.device(want) == home
            assert type(got) is type(want)
            np.testing.assert_allclose(
                lantern.to_device(got, "cpu"), lantern.to_device(want, "cpu")
            )

    def test_indices_in_a_map_over_examples(self, backend, x):
        here = backend.host(x)
        for index in (np.array([2, 0]), np.array([True, False, True])):

            def f(x, index=index):
                return lantern.vmap(
                    grad(lambda row: lantern.sum(row[index] * row[index]))
                )(x)

            got = f(x, backend.array(index))
            assert type(got) is backend.kind
            np.testing.assert_array_equal(backend.host(got), f(here))

    def test_counts_of_repetitions_may_lie_there(self, backend, x):
        counts = np.array([2, 1, 0])
        got = grad(lambda x: lantern.sum(lantern.repeat(x, backend.array(counts), 1)))(
            x
        )
        np.testing.assert_array_equal(backend.host(got), [[2, 1, 0]] * 2)

    @pytest.mark.parametrize("name", ["normal", "standard_gamma", "exponential"])
    def test_draws_lie_where_their_parameters_do(self, backend, x, name):
        def drawn(x):
            return getattr(lantern.random, name)(np.random.default_rng(0), x)

        here = backend.host(x)
        for f in (drawn, grad(lambda x: lantern.sum(drawn(x)))):
            got = f(x)
            assert type(got) is backend.kind
            np.testing.assert_allclose(backend.host(got), f(here), rtol=1e-12)

    def test_one_transfer_each_way(self, backend):
        x = np.ones(3)
        y, pullback = vjp(lambda x: x.to(backend.device), x)
        assert type(y) is backend.kind
        (x_bar,) = pullback(backend.array(np.arange(3.0)))
        assert type(x_bar) is np.ndarray
        np.testing.assert_array_equal(x_bar, np.arange(3.0))

    @pytest.mark.parametrize("name", ["tpu", "cpu:x", "", 3, None])
    def test_unknown_devices(self, name):
        with pytest.raises(lantern.ArgumentError, match=r"no device .*Choose one of"):
            lantern.to_device(np.ones(2), name)

    def test_without_cupy_the_error_says_what_to_install(self):
        code = (
            "import sys; sys.modules['cupy'] = None\n"
            "import lantern, numpy\n"
            "for f in (lambda: lantern.to_device(numpy.ones(2), 'cuda'),\n"
            "          lambda: lantern.device('cuda:0')):\n"
            "    try: f()\n"
            "    except lantern.MissingExtraError as error: print(error)\n"
        )
        lines = output_of(code).splitlines()
        assert len(lines) == 2
        for line in lines:
            assert "pip install cupy-cuda12x" in line
            assert "cupy-cuda13x" in line

    def test_arrays_of_cupy_are_known_by_their_package(self):
        """Nothing registers CuPy but its name; here the stand-in takes it."""
        code = (
            "import sys, numpy, lantern\n"
            "from tests import fake_cupy\n"
            "fake_cupy.Array.__module__ = 'cupy'\n"
            "sys.modules['cupy'] = fake_cupy.xp\n"
            "sys.modules['cupyx.scipy.special'] = fake_cupy.special\n"
            "x = fake_cupy.wrap(numpy.array([0.5, 1.0]))\n"
            "y = lantern.grad(lambda x: (x * x).sum())(x)\n"
            "z = lantern.grad(lambda x: lantern.erf(2.0 * x).sum())(y.sum() * 0)\n"
            "print(type(y) is type(z) is fake_cupy.Array, lantern.device(y))\n"
            "there = lantern.to_device(numpy.ones(2), 'cuda')\n"
            "print(type(there) is fake_cupy.Array, lantern.device(there))\n"
        )
        assert output_of(code) == "True cuda:0\n" * 2

    def test_lantern_does_not_import_cupy_by_itself(self):
        code = (
            "import sys, lantern, numpy\n"
            "lantern.grad(lambda x: lantern.sum(x.to('cpu') * x))(numpy.ones(2))\n"
            "print('cupy' in sys.modules)"
        )
        assert output_of(code) == "False\n"


class TestFunctionsOfDevices:
    """Where a library like CuPy differs from NumPy."""

    def test_its_scipy_is_imported_in_silence(self, monkeypatch, tmp_path):
        (tmp_path / "loud").mkdir()
        (tmp_path / "loud" / "signal.py").write_text(
            "import warnings\n"
            "warnings.warn('cupyx.jit.rawkernel is experimental.', FutureWarning)\n"
            "convolve = sum\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        functions = DeviceNamespace(standin.xp, "loud.special", "scipy", "standin")
        assert functions.scipys("convolve", "signal") is sum
        with pytest.raises(lantern.MissingExtraError, match=r"loud\.linalg"):
            functions.scipys("expm", "linalg")

    @pytest.mark.parametrize(
        "p", [[0.0, 2.0, 0.0, -8.0, 0.0, 0.0], [1, 2, 5], [0.0, 3.0], [0.0, 0.0], [2]]
    )
    def test_roots(self, backend, p):
        want = np.roots(p)
        got = lantern.roots(backend.array(np.array(p)))
        assert got.dtype == want.dtype
        np.testing.assert_allclose(
            np.sort_complex(backend.host(got)), np.sort_complex(want)
        )

    def test_equal_distances(self, backend):
        for numbers in ([1.0, 1.0], [0, 3]):
            start, stop = np.array(numbers), np.array([1, 2])
            there = backend.array(start), backend.array(stop)
            for options in (
                {"num": 4},
                {"num": 3, "endpoint": False, "axis": -1},
                {"num": 1},
                {"num": 0},
                {"num": 4, "dtype": int},
            ):
                got, want = (
                    lantern.linspace(*pair, **options)
                    for pair in (there, (start, stop))
                )
                assert got.dtype == want.dtype
                np.testing.assert_allclose(backend.host(got), want)

    def test_the_intersection_of_what_is_said_to_be_unique(self, backend):
        x, y = np.array([3.0, 1.0, 2.0]), np.array([2.0, 5.0, 3.0])
        got = lantern.intersect1d(backend.array(x), backend.array(y), True)
        np.testing.assert_array_equal(backend.host(got), [2.0, 3.0])

    def test_a_partition_at_a_place_that_is_not_there(self, x):
        for kth in (3, -4, (0, 3)):
            with pytest.raises(lantern.ArgumentError, match=r"no element .* among 3"):
                lantern.partition(x, kth)

    def test_solutions_for_several_matrices(self, backend):
        a, b = np.eye(2) + 0.25, np.arange(12.0).reshape(3, 2, 2)
        for pair in ((a, b), (b + 3 * np.eye(2), a)):
            got = lantern.linalg.solve(*map(backend.array, pair))
            np.testing.assert_allclose(backend.host(got), np.linalg.solve(*pair))

    def test_a_pseudo_inverse_without_elements(self, backend):
        got = lantern.linalg.pinv(backend.array(np.ones((0, 3))))
        assert got.shape == (3, 0)


MIXED = {
    "add": lambda x, y: x + y,
    "multiply": lantern.multiply,
    "matmul": lambda x, y: x @ y.T,
    "power": lambda x, y: x**y,
    "maximum": lantern.maximum,
    "where": lambda x, y: lantern.where(y > 0, x, y),
    "concat": lambda x, y: lantern.concat([x, y]),
    "numpy.add": np.add,
}


class TestMixing:
    """Arrays of two libraries never meet in one operation."""

    @pytest.mark.parametrize("name", MIXED)
    @pytest.mark.parametrize("tracked", ["left", "right", "both", "outer"])
    @pytest.mark.parametrize("swapped", [False, True])
    def test_an_error_names_both(self, backend, x, name, tracked, swapped):
        f, y = MIXED[name], np.ones((2, 3))
        x, y = (y, x) if swapped else (x, y)
        argnums = {"left": 0, "right": 1}.get(tracked, (0, 1))

        def loss(x, y):
            if tracked == "outer":
                return grad(lambda z: lantern.sum(f(z, y)))(x)[0, 0]
            return lantern.sum(f(x, y))

        with pytest.raises(TypeError, match=r"arrays of two libraries") as caught:
            grad(loss, argnums)(x, y)
        message = str(caught.value)
        assert isinstance(caught.value, lantern.ArgumentError)
        assert "numpy.ndarray" in message
        assert f"{backend.kind.__module__}.{backend.kind.__name__}" in message
        assert "lantern.to_device" in message

    @pytest.mark.parametrize("name", ["multiply", "maximum", "where", "concat"])
    def test_plain_arrays(self, x, name):
        with pytest.raises(lantern.ArgumentError, match="arrays of two libraries"):
            MIXED[name](x, np.ones((2, 3)))

    def test_seeds_and_tangents(self, x):
        _, pullback = vjp(lambda x: 2.0 * x, x)
        with pytest.raises(lantern.ArgumentError, match="arrays of two libraries"):
            pullback(np.ones((2, 3)))
        with pytest.raises(lantern.ArgumentError, match="arrays of two libraries"):
            jvp(lambda x: 2.0 * x, (x,), (np.ones((2, 3)),))

    def test_another_type_error_stays_what_it_is(self, x):
        with pytest.raises(TypeError) as caught:
            grad(lambda x: lantern.sum(x + "a"))(x)
        assert "libraries" not in str(caught.value)
