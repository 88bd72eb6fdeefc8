"""The namespace of the array API standard, and what it asks of an array object.

The standard's own suite is run by ``tests/conformance/array_api.py``; these tests are
the fast ones.
"""

import copy
import inspect
import operator
import pickle

import numpy as np
import pytest

import lantern
from lantern import array_api as xp
from lantern.array_api.signatures import CONSTANTS, SIGNATURES, _found, conforming
from lantern.core.tree import tree_leaves
from lantern.core.value import is_tracked
from lantern.testing import check_grads

# How many functions the standard has: beside its extensions, and in them.
COUNTS = {"": 133, "linalg": 23, "fft": 14}

MATRIX = np.array([[0.9, 0.3], [0.3, 0.8]])
INTEGERS = np.array([[1, 2], [3, 4]])
MASK = np.array([[True, False], [True, True]])

# The arguments of a call, as functions of the tensor x; by default x for each array.
ARGUMENTS = {
    "acosh": lambda x: ((x + 1,), {}),
    "arange": lambda x: ((3.0,), {"dtype": xp.float32}),
    "asarray": lambda x: (([x, x],), {}),
    "astype": lambda x: ((x, xp.float32), {}),
    "broadcast_arrays": lambda x: ((x, x[0]), {}),
    "broadcast_to": lambda x: ((x, (3, 2, 2)), {}),
    "can_cast": lambda x: ((xp.float32, xp.float64), {}),
    "clip": lambda x: ((x,), {"min": 0.4, "max": 0.85}),
    "concat": lambda x: (([x, x],), {"axis": 1}),
    "cumulative_prod": lambda x: ((x,), {"axis": 0, "include_initial": True}),
    "cumulative_sum": lambda x: ((x,), {"axis": 1, "dtype": xp.float32}),
    "diff": lambda x: ((x,), {"n": 1, "append": x}),
    "empty": lambda x: (((0, 2),), {}),
    "empty_like": lambda x: ((x[:0],), {}),
    "expand_dims": lambda x: ((x,), {"axis": 1}),
    "eye": lambda x: ((2, 3), {"k": 1}),
    "finfo": lambda x: ((x,), {}),
    "full": lambda x: (((2,), x[0, 0]), {}),
    "full_like": lambda x: ((x, 2.0), {}),
    "iinfo": lambda x: ((xp.int8,), {}),
    "isdtype": lambda x: ((xp.float64, "real floating"), {}),
    "linspace": lambda x: ((x[0, 0], x[0, 1], 4), {"endpoint": False}),
    "meshgrid": lambda x: ((x[0], x[1]), {"indexing": "ij"}),
    "moveaxis": lambda x: ((x, 0, 1), {}),
    "nonzero": lambda x: ((x,), {}),
    "ones": lambda x: (((2,),), {"dtype": xp.complex64}),
    "permute_dims": lambda x: ((x,), {"axes": (1, 0)}),
    "repeat": lambda x: ((x, 2), {"axis": 0}),
    "reshape": lambda x: ((x,), {"shape": (4,)}),
    "result_type": lambda x: ((x, xp.float32, 1.0), {}),
    "roll": lambda x: ((x,), {"shift": 1}),
    "searchsorted": lambda x: ((x[0], x), {"side": "right"}),
    "squeeze": lambda x: ((x[None],), {"axis": 0}),
    "stack": lambda x: (([x, x],), {}),
    "take": lambda x: ((x, xp.asarray([1, 0])), {"axis": 1}),
    "take_along_axis": lambda x: ((x, xp.asarray([[1, 0]])), {}),
    "tile": lambda x: ((x, (2, 1)), {}),
    "where": lambda x: ((xp.asarray(MASK), x, 0.0), {}),
    "zeros": lambda x: ((2,), {}),
    "fft.fftfreq": lambda x: ((4,), {"d": 0.5, "dtype": xp.float32}),
    "fft.rfftfreq": lambda x: ((4,), {"d": 0.5}),
    "linalg.cross": lambda x: ((x[:, [0, 1, 1]], x[:, [1, 0, 1]]), {}),
    "linalg.matrix_power": lambda x: ((x, 3), {}),
    "linalg.outer": lambda x: ((x[0], x[1]), {}),
    "linalg.pinv": lambda x: ((x,), {"rtol": 0.01}),
}
# Functions whose results belong to no derivative.
CONSTANT = set(
    "all any argmax argmin argsort bitwise_and bitwise_invert bitwise_left_shift "
    "bitwise_or bitwise_right_shift bitwise_xor ceil count_nonzero empty_like equal "
    "floor floor_divide greater greater_equal isfinite isinf isnan less less_equal "
    "logical_and logical_not logical_or logical_xor nonzero not_equal "
    "ones_like round searchsorted sign signbit trunc zeros_like full_like "
    "linalg.matrix_rank".split()
)
WITHOUT_ARRAYS = set(
    "arange can_cast empty eye finfo iinfo isdtype ones result_type zeros fft.fftfreq "
    "fft.rfftfreq".split()
)
ON_INTEGERS = {name for name in SIGNATURES if name.startswith("bitwise")}
# A derivative needs the vectors too, or multiplies in another order: what LAPACK and
# BLAS then compute is as exact, to the last bits of the largest number, and not equal.
OF_ANOTHER_ROUTINE = {"linalg.eigvalsh", "linalg.matrix_power", "linalg.svdvals"}
NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
# Two spellings of a default that mean the same.
SAME = {("norm", "backward"): None, ("stable", True): None}
# NumPy has these under the name, but not with these arguments.
OTHERWISE_IN_NUMPY = {"fft.fftfreq", "from_dlpack", "finfo", "sort", "argsort"}


def function_of(name, namespace=xp):
    return operator.attrgetter(name)(namespace)


def call(name, x):
    """Call a function of the standard with sample arguments made of x."""
    if name in ARGUMENTS:
        args, options = ARGUMENTS[name](x)
    else:
        parameters = inspect.signature(SIGNATURES[name]).parameters.values()
        only = inspect.Parameter.POSITIONAL_ONLY
        args, options = [x for p in parameters if p.kind is only], {}
    return args, options


def sample(name):
    return INTEGERS if name in ON_INTEGERS else MATRIX


def plain(tree):
    return lantern.tree_map(lantern.stop_gradient, tree)


@pytest.fixture
def tracked():
    """An array that an open derivative tracks."""
    derivative = lantern.transforms.reverse.Reverse("test")
    yield lambda x: lantern.Tensor(x, derivative)
    derivative.close()


class TestNames:
    def test_every_name_of_the_standard_is_there(self):
        owners = [name.rpartition(".")[0] for name in SIGNATURES]
        assert {owner: owners.count(owner) for owner in COUNTS} == COUNTS
        numpy = MATRIX.__array_namespace__()
        for name in (*CONSTANTS, *SIGNATURES):
            assert function_of(name) is not Ellipsis
            assert operator.attrgetter(name)(numpy) is not Ellipsis
        assert set(dir(xp)) >= {*CONSTANTS, "sum", "linalg", "fft"}
        assert "inv" in dir(xp.linalg)

    @pytest.mark.parametrize("name", ["cbrt", "linalg.expm", "_private"])
    def test_no_other_name_is(self, name):
        with pytest.raises(AttributeError, match="standard has no"):
            function_of(name)

    @pytest.mark.parametrize("name", SIGNATURES)
    def test_a_function_has_the_standards_signature_and_a_docstring(self, name):
        function = function_of(name)
        assert inspect.signature(function) == inspect.signature(SIGNATURES[name])
        assert function.__name__ == name.rpartition(".")[2]
        assert pickle.loads(pickle.dumps(function)) is function

    def test_version(self):
        x = xp.asarray([1.0])
        assert x.__array_namespace__() is xp
        assert x.__array_namespace__(api_version="2024.12") is xp
        assert xp.__array_api_version__ == "2024.12"
        with pytest.raises(lantern.ArgumentError, match=r"2099\.01"):
            x.__array_namespace__(api_version="2099.01")

    def test_info(self):
        info = xp.__array_namespace_info__()
        assert info.default_device() in info.devices()
        assert info.default_dtypes()["real floating"] == xp.float64
        assert info.capabilities()["data-dependent shapes"]

    def test_types_are_described_in_pythons_numbers(self):
        for x in (xp.float32, np.dtype("float32"), xp.asarray(1.0, dtype=xp.complex64)):
            info = xp.finfo(x)
            assert (type(info.eps), info.bits, info.dtype) == (float, 32, xp.float32)
            assert info.min == -info.max
        assert xp.iinfo(xp.asarray(1, dtype=xp.uint8)).max == 255


@pytest.mark.parametrize("name", [n for n in SIGNATURES if n != "from_dlpack"])
class TestEveryFunction:
    def test_untracked_arrays_give_untracked_tensors(self, name):
        args, options = call(name, xp.asarray(sample(name)))
        z = function_of(name)(*args, **options)
        for leaf in tree_leaves(z):
            assert not isinstance(leaf, np.ndarray | np.generic)
            assert not is_tracked(leaf)
        if name in OTHERWISE_IN_NUMPY:
            return
        expected = function_of(name, np)(*plain(args), **plain(options))
        for got, want in zip(tree_leaves(z), tree_leaves(expected), strict=True):
            if type(got) is lantern.Tensor:
                assert got.dtype == want.dtype
                np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)
            elif name != "iinfo":
                assert got == want

    def test_tracked_arrays_give_tracked_tensors_or_constants(self, name, tracked):
        if name in ON_INTEGERS:
            return
        args, options = call(name, tracked(MATRIX))
        z = function_of(name)(*args, **options)
        leaves = [leaf for leaf in tree_leaves(z) if isinstance(leaf, lantern.Tensor)]
        floating = [leaf for leaf in leaves if leaf.dtype.kind in "fc"]
        expected = name not in CONSTANT | WITHOUT_ARRAYS
        assert all(is_tracked(leaf) is expected for leaf in floating)
        assert floating or name in CONSTANT | WITHOUT_ARRAYS
        args, options = call(name, xp.asarray(MATRIX))
        untracked = tree_leaves(function_of(name)(*args, **options))
        for got, want in zip(tree_leaves(z), untracked, strict=True):
            if isinstance(got, lantern.Tensor):
                got, want = np.asarray(plain(got)), np.asarray(plain(want))
                if name in OF_ANOTHER_ROUTINE:
                    bound = 16 * np.finfo(float).eps * np.abs(want).max()
                    np.testing.assert_allclose(got, want, rtol=0, atol=bound)
                else:
                    np.testing.assert_array_equal(got, want)


class TestResolution:
    def test_what_has_no_rule_raises_for_tracked_values_only(
        self, monkeypatch, tracked
    ):
        monkeypatch.setattr(
            "lantern.array_api.signatures.find_function", lambda *names: None
        )
        tan, argmax = conforming("tan"), conforming("argmax")
        assert float(tan(xp.asarray(0.5))) == np.tan(0.5)
        with pytest.raises(lantern.MissingRuleError, match="tan: no rule"):
            tan(tracked(np.array(0.5)))
        assert int(argmax(tracked(np.array([1.0, 2.0])))) == 1  # its derivative is zero

    @pytest.mark.parametrize("name", SIGNATURES)
    def test_what_computes_has_every_option_with_the_standards_default(self, name):
        own = inspect.signature(_found(name)).parameters
        if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in own.values()):
            return  # handed on to NumPy
        for option in inspect.signature(SIGNATURES[name]).parameters.values():
            if option.kind in NAMED:
                default = own[option.name].default
            if option.kind in NAMED and option.default is not option.empty:
                same = SAME.get((option.name, option.default), option.default)
                assert default in (option.default, same)

    def test_lists_are_returned_where_the_standard_says_so(self):
        x = xp.asarray([1.0, 2.0])
        assert type(xp.meshgrid(x, x)) is list
        assert type(xp.broadcast_arrays(x, x)) is list
        assert type(xp.unstack(x)) is tuple
        assert xp.unique_all(x)._fields[0] == "values"

    def test_plain_arrays_and_numbers_are_taken_too(self):
        z = xp.add(np.ones(2), 1)
        assert type(z) is lantern.Tensor
        np.testing.assert_array_equal(plain(z), [2.0, 2.0])


PROMOTION = [
    ("float32", "float64", "float64"),
    ("int8", "uint8", "int16"),
    ("uint16", "uint32", "uint32"),
    ("complex64", "float64", "complex128"),
    ("bool", "bool", "bool"),
]


@pytest.mark.parametrize(("left", "right", "expected"), PROMOTION)
def test_types_are_promoted(left, right, expected):
    x, y = (xp.ones(2, dtype=getattr(xp, name)) for name in (left, right))
    z = xp.where(xp.asarray([True, False]), x, y)
    assert z.dtype == getattr(xp, expected)
    assert xp.result_type(x, y) == z.dtype
    if expected != "bool":
        assert (x + y).dtype == (y * x).dtype == z.dtype


def test_a_python_number_does_not_widen_an_array():
    x = xp.ones(2, dtype=xp.float32)
    for z in (x + 1.0, 2 * x, xp.pow(x, 2), x / 3, xp.maximum(x, 0)):
        assert z.dtype == xp.float32


class TestCreation:
    def test_asarray(self):
        x = np.array([1.0, 2.0])
        assert np.shares_memory(plain(xp.asarray(x)), x)
        assert not np.shares_memory(plain(xp.asarray(x, copy=True)), x)
        assert xp.asarray(x, dtype=xp.float32).dtype == xp.float32
        assert xp.asarray(3.0).shape == ()
        assert xp.asarray([[1, 2], [3, 4]]).dtype == xp.int64
        with pytest.raises(ValueError, match="copy"):
            xp.asarray(x, dtype=xp.float32, copy=False)

    def test_a_tensor_is_shared_or_copied(self):
        x = xp.asarray([1.0, 2.0])
        shared, copied = xp.asarray(x), xp.asarray(x, copy=True)
        x[0] = 5.0
        assert float(shared[0]) == 5.0
        assert float(copied[0]) == 1.0

    def test_what_is_tracked_stays_so(self):
        def f(x):
            y = xp.asarray([x, 2 * x], copy=True)
            return xp.sum(xp.asarray(y, dtype=xp.float32) ** 2)

        gradient = lantern.grad(f)(np.array([1.0, 2.0]))
        np.testing.assert_allclose(gradient, [10.0, 20.0])

    def test_on_a_device(self):
        x = xp.zeros(2, device="cpu")
        assert x.device == "cpu"
        assert x.to_device("cpu") is x


class TestExchange:
    def test_dlpack_shares_memory_both_ways(self):
        x = np.array([1.0, 2.0])
        inside = xp.from_dlpack(x)
        assert type(inside) is lantern.Tensor
        assert np.shares_memory(np.from_dlpack(inside), x)
        assert inside.__dlpack_device__() == x.__dlpack_device__()
        assert not np.shares_memory(plain(xp.from_dlpack(x, copy=True)), x)

    def test_a_number_is_exchanged_as_an_array_without_axes(self):
        total = xp.sum(xp.asarray([1.0, 2.0]))
        assert np.from_dlpack(total) == 3.0

    def test_dlpack_with_pytorch(self):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        x = torch.tensor([1.0, 2.0])
        inside = xp.from_dlpack(x)
        inside += 1
        np.testing.assert_array_equal(x.numpy(), [2.0, 3.0])
        assert torch.from_dlpack(inside).data_ptr() == x.data_ptr()

    def test_a_tracked_array_does_not_leave_in_silence(self, tracked):
        x = tracked(np.ones(2))
        for leave in (np.asarray, np.from_dlpack, pickle.dumps, float, operator.index):
            with pytest.raises(lantern.DetachError):
                leave(x)
        assert is_tracked(xp.from_dlpack(x))
        assert x.__dlpack_device__() == np.ones(2).__dlpack_device__()

    def test_an_untracked_array_is_plain_for_numpy(self):
        x = np.array([1.0, 2.0])
        assert np.asarray(xp.asarray(x)) is x

    @pytest.mark.parametrize(
        "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
    )
    def test_copies_of_untracked_arrays(self, again):
        x = xp.asarray([1.0, 2.0])
        z = again(x)
        assert type(z) is lantern.Tensor
        np.testing.assert_array_equal(plain(z), plain(x))

    def test_numbers(self):
        assert (bool(xp.asarray(True)), int(xp.asarray(3)), float(xp.asarray(0.5))) == (
            True,
            3,
            0.5,
        )
        assert complex(xp.asarray(1j)) == 1j
        assert [10, 20][xp.asarray(1)] == 20


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq]
COMPARISONS.append(operator.ne)
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


class TestOperators:
    @pytest.mark.parametrize("operation", [*COMPARISONS, operator.floordiv])
    def test_constants_of_untracked_arrays_are_tensors(self, operation):
        a, b = np.array([1.0, 2.0, 5.0]), np.array([2.0, 2.0, 2.0])
        x, y = xp.asarray(a), xp.asarray(b)
        for left, right in ((x, y), (x, b), (x, 2.0)):
            z = operation(left, right)
            assert z.__array_namespace__() is xp
            np.testing.assert_array_equal(plain(z), operation(a, b))
        np.testing.assert_array_equal(plain(operation(2.0, x)), operation(2.0, a))

    @pytest.mark.parametrize("operation", [*COMPARISONS, operator.floordiv])
    def test_constants_of_tracked_arrays_are_plain(self, operation, tracked):
        a = np.array([1.0, 2.0, 5.0])
        x = tracked(a)
        for z in (operation(x, 2.0), operation(x, x * 0 + 2.0), operation(x, a)):
            assert type(z) is np.ndarray
        np.testing.assert_array_equal(operation(x, 2.0), operation(a, 2.0))

    @pytest.mark.parametrize("operation", BITS)
    def test_bits(self, operation):
        a, b = np.array([5, 6]), np.array([1, 2])
        x = xp.asarray(a)
        np.testing.assert_array_equal(plain(operation(x, b)), operation(a, b))
        np.testing.assert_array_equal(plain(operation(9, x)), operation(9, a))
        assert type(operation(x, 1)) is type(operation(9, x)) is lantern.Tensor
        np.testing.assert_array_equal(plain(~x), ~a)
        with pytest.raises(TypeError):
            operation(xp.asarray([1.0]), 1)

    def test_a_mask_selects(self):
        x = xp.asarray([1.0, -2.0, 3.0])
        np.testing.assert_array_equal(plain(x[(x > 0) & (x < 2)]), [1.0])
        x[x < 0] = 0.0
        x[xp.asarray(0), ...] = xp.asarray(7.0)
        np.testing.assert_array_equal(plain(x), [7.0, 0.0, 3.0])


IN_PLACE = {
    "iadd": 2.0,
    "isub": 2.0,
    "imul": 2.0,
    "itruediv": 2.0,
    "ifloordiv": 2.0,
    "imod": 2.0,
    "ipow": 2.0,
    "iand": 2,
    "ior": 2,
    "ixor": 2,
    "ilshift": 2,
    "irshift": 2,
}


class TestInPlace:
    @pytest.mark.parametrize("name", IN_PLACE)
    def test_an_untracked_array_is_written_to(self, name):
        operation, operand = getattr(operator, name), IN_PLACE[name]
        a = np.array([5, 6], dtype=np.float32 if type(operand) is float else np.int16)
        x = xp.asarray(a, copy=True)
        also, z = x, operation(x, operand)
        assert z is also
        expected = operation(a.copy(), operand)
        assert z.dtype == expected.dtype
        np.testing.assert_array_equal(plain(also), expected)

    def test_a_matrix_product(self):
        x = xp.asarray(MATRIX, copy=True)
        x @= x
        np.testing.assert_allclose(plain(x), MATRIX @ MATRIX)

    def test_arrays_without_axes(self):
        x = xp.asarray(1.0)
        also = x
        x += 1
        assert float(also) == 2.0
        total = xp.sum(xp.asarray([1.0, 2.0]))  # NumPy's scalar: a number
        total += xp.asarray([1.0, 2.0])
        np.testing.assert_array_equal(plain(total), [4.0, 5.0])
        first = xp.asarray([1.0])[0]
        first[...] = 3.0
        assert float(first) == 3.0

    def test_a_tracked_name_is_bound_to_a_new_value(self):
        def f(x):
            before = x
            x += 1
            x *= x
            total = xp.zeros(2)
            total += x
            return xp.sum(total * before)  # x * (x + 1)**2

        x = np.array([1.0, 2.0])
        gradient = lantern.grad(f)(x)
        np.testing.assert_allclose(gradient, (x + 1) ** 2 + 2 * x * (x + 1))
        assert x[0] == 1.0

    def test_type_and_shape_stay(self, tracked):
        x = tracked(np.ones(2, dtype=np.float32))
        x *= np.ones(2)
        assert x.dtype == np.float32
        with pytest.raises(lantern.ShapeError, match=r"shape \(3, 2\)"):
            x += np.ones((3, 2))
        count = xp.asarray([1, 2])
        with pytest.raises(lantern.ArgumentError, match="type float64, and x of int64"):
            count += x
        with pytest.raises(TypeError):
            count += 0.5

    def test_parts_of_a_tracked_array_are_not_written_to(self, tracked):
        x = tracked(np.ones(2))
        with pytest.raises(lantern.MutationError):
            x[0] = 1.0
        with pytest.raises(lantern.MutationError):
            xp.zeros(2)[0] = x[0]


def test_code_for_any_array_library_is_differentiable():
    def loss(x, w):
        xp = x.__array_namespace__()
        z = x @ w
        z = z - xp.max(z, axis=1, keepdims=True)
        p = xp.exp(z) / xp.sum(xp.exp(z), axis=1, keepdims=True)
        above = p > 0.5
        chosen = xp.where(above, p, xp.zeros_like(p))
        return xp.sum(xp.log(p)) + xp.mean(chosen) + xp.linalg.vector_norm(w)

    x = np.linspace(-1, 1.5, 6).reshape(3, 2)
    w = np.linspace(0.1, 0.9, 4).reshape(2, 2)
    check_grads(loss, (x, w), order=2)
    assert float(loss(xp.asarray(x), xp.asarray(w))) == pytest.approx(
        float(lantern.value_and_grad(loss)(x, w)[0])
    )
