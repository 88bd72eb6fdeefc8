"""Shapes and order: NumPy's own calls on tracked arrays, and their edges."""

from fractions import Fraction

import numpy as np
import pytest

import lantern
from lantern import Tensor, grad, vjp
from lantern.errors import ArgumentError, LanternError
from lantern.testing import check_grads, random_like


def array(*shape, seed=0):
    """Different numbers, of both signs, none near another or zero."""
    size = int(np.prod(shape))
    numbers = np.random.default_rng(seed).permutation(size) - size // 2
    return (0.2 * (numbers + 0.3 + 0.11 * seed)).reshape(shape)


def check_as_numpy(f, *operands, order=2):
    """Value, type and shape as on plain arrays; derivatives as by differences."""
    plain = f(*operands)
    seen, pullback = vjp(f, *operands)
    for a, b in zip(lantern.tree_leaves(seen), lantern.tree_leaves(plain), strict=True):
        assert type(a) is type(b) or np.ndim(a) == 0
        assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype)
        np.testing.assert_array_equal(a, b)
    check_grads(f, operands, order=order, atol=1e-6, rtol=1e-6)
    gradients = pullback(random_like(plain, np.random.default_rng(0)))
    assert not any(np.shares_memory(g, x) for g in gradients for x in operands)
    small = [x.astype(np.float32) for x in operands]
    y, pullback = vjp(f, *small)
    for a, b in zip(
        lantern.tree_leaves(y), lantern.tree_leaves(f(*small)), strict=True
    ):
        assert a.dtype == b.dtype
    for g in pullback(random_like(y, np.random.default_rng(0))):
        assert g.dtype == np.float32


def calls(text, *shapes):
    """Calls of NumPy as text, one a line, on arrays x, y of the given shapes."""
    names = "xyz"[: len(shapes)]
    for line in filter(None, map(str.strip, text.splitlines())):
        yield pytest.param(
            eval(f"lambda {','.join(names)}: {line}", {"np": np, "lantern": lantern}),
            shapes,
            id=f"{line} {shapes}",
        )


CALLS = [
    *calls(
        """
        np.reshape(x, (4, -1))
        np.reshape(x, 24, order="F")
        np.reshape(x, (4, -1), order="F")
        np.reshape(x, (2, 12), "A")
        np.reshape(x, (3, 8), copy=True)
        np.ravel(x)
        np.ravel(x, "F")
        np.ravel(x.T, "K")
        np.ravel(x.T, "A")
        np.transpose(x)
        np.transpose(x, (1, -1, 0))
        np.permute_dims(x, (1, 2, 0))
        np.matrix_transpose(x)
        np.swapaxes(x, 0, -1)
        np.moveaxis(x, 0, -1)
        np.moveaxis(x, (0, 1), (-1, 0))
        np.rollaxis(x, 2)
        np.rollaxis(x, 0, 3)
        np.rollaxis(x, -1, -2)
        np.squeeze(x[:1], axis=0)
        np.expand_dims(x, (0, -1))
        np.broadcast_to(x, (2, 2, 3, 4))
        np.astype(x, x.dtype)
        np.atleast_1d(x, x[0, 0, 0], x[0])
        np.atleast_2d(x[0, 0, 0], x[0, 0], x)
        np.atleast_3d(x[0, 0, 0], x[0, 0], x[0], x)
        np.flip(x)
        np.flip(x, (0, 2))
        np.fliplr(x)
        np.flipud(x)
        np.rot90(x)
        np.rot90(x, 2, (1, 2))
        np.rot90(x, -1, (2, 0))
        np.rot90(x, 4)
        np.roll(x, 5)
        np.roll(x, (1, -2), (0, 2))
        np.tile(x, (2, 1, 1, 2))
        np.repeat(x, 2)
        np.repeat(x, 0, axis=1)
        np.repeat(x, [2, 0, 3], axis=1)
        np.resize(x, (5, 6))
        np.resize(x, 5)
        np.tril(x)
        np.triu(x, -1)
        np.diag(x[0], 1)
        np.diag(x[0, 0], -1)
        np.diag(x[0, 0], 2)
        np.diagflat(x, 1)
        np.diagonal(x, 1, 2, 0)
        np.take(x, [0, -1, 0])
        np.take(x, [[1, 0]], axis=1)
        np.take(x, 2, axis=-1)
        np.take(x, [7, -9], axis=0, mode="wrap")
        np.take(x, [7, -9], axis=0, mode="clip")
        np.take(x, [True, False], axis=0)
        np.take_along_axis(x, np.array([[[0], [2], [3]]]), 2)
        np.take_along_axis(x, np.array([5, 5, 1]), None)
        np.compress([True, False, True], x, axis=1)
        np.compress([False, True], x)
        np.extract(base(x) > 0, x)
        np.sort(x)
        np.sort(x, axis=0, kind="stable")
        np.sort(x, axis=None)
        np.partition(x, 1)
        np.partition(x, (1, 3), axis=None)
        np.unique(x)
        np.unique(x, axis=1)
        np.split(x, 3, axis=1)
        np.split(x, [1, 3], axis=2)
        np.split(x, [3, 1, 9], axis=2)
        np.array_split(x, 3, axis=-1)
        np.hsplit(x, 3)
        np.hsplit(x[0, 0], 2)
        np.vsplit(x, 2)
        np.dsplit(x, [1])
        np.unstack(x, axis=1)
        np.delete(x, 1, axis=1)
        np.delete(x, slice(None, None, 2))
        np.delete(x, [0, -1], axis=2)
        np.delete(x, [True, False], axis=0)
        np.trim_zeros(np.concat([0 * x[0, 0, :2], x[0, 0], 0 * x[0, 0, :1]]))
        np.trim_zeros(np.concat([0 * x[0], x[0]]), "f", axis=0)
        np.broadcast_arrays(x, x[0, 0], x[:, :, :1])
        np.where(base(x) > 0, x, 0 * x)
        np.append(x, x[:1], axis=0)
        np.append(x, 5.0)
        np.sort_complex(x)
        np.piecewise(x, [x < -1, x > 1], [lambda x: x**2, 0.5, lambda x: -x])
        np.piecewise(x[0, 0, 0], [x[0, 0, 0] < 9], [np.sin])
        np.apply_along_axis(np.sum, 1, x)
        np.apply_along_axis(lambda r: np.outer(r, r), 1, x)
        """.replace("base(x)", "lantern.core.value.base(x)"),
        (2, 3, 4),
    ),
    *calls(
        """
        np.concat([x, y])
        np.concatenate((x, y), axis=-1)
        np.concat([x, y, np.ones(1, x.dtype)], axis=None)
        np.stack([x, y], axis=-1)
        np.hstack([x, y])
        np.hstack([x[0], y[0]])
        np.vstack([x, y])
        np.vstack([x[0], y])
        np.dstack([x, y])
        np.dstack([x[0], y[0]])
        np.column_stack([x, y[:, 0]])
        np.block([[x, y], [y, x]])
        np.block([x[0], y[0, 0]])
        np.block(x)
        np.append(x, y)
        np.insert(x, 1, y[0], axis=0)
        np.insert(x, 1, y[0, 0])
        np.insert(x, [2], y[:, :1], axis=1)
        np.insert(x, [0, -1, 2], y, axis=1)
        np.insert(x, slice(0, 2), y, axis=0)
        np.insert(x, np.array([True, False]), y[:1], axis=0)
        np.insert(x, 1, y.T, axis=1)
        np.select([y > 1, y > 0], [x, y], 1.0)
        np.select([y > 0], [x[0]], y)
        np.choose(np.array([[0], [1]]), [x, y])
        np.choose(np.array([-1, 4, 2]), (x, y), mode="wrap")
        np.choose(np.array([-1, 4, 2]), (x, y), mode="clip")
        np.meshgrid(x[0], y[:, 0])
        np.meshgrid(x[0], y[0], x[:, 1], indexing="ij")
        np.meshgrid(x[0], y[0], x[:, 1], sparse=True)
        np.union1d(x, y)
        np.intersect1d(x, np.concat([y[0], x[0]]))
        np.setdiff1d(x, x[0])
        np.setxor1d(np.concat([y[0], x[0]]), x)
        """,
        (2, 3),
        (2, 3),
    ),
]


@pytest.mark.parametrize(("f", "shapes"), CALLS)
def test_calls_of_numpy(f, shapes):
    check_as_numpy(f, *(array(*s, seed=i) for i, s in enumerate(shapes)))


class TestNumbersAndLists:
    @pytest.mark.parametrize(
        ("f", "slope"),
        [
            (lambda x: np.reshape(x, (1, 1)), 1),
            (lambda x: lantern.reshape(x, -1), 1),
            (lambda x: np.broadcast_to(x, (2, 3)), 6),
            (lambda x: np.tile(x, (2, 2)), 4),
            (lambda x: np.repeat(x, 3), 3),
            (lambda x: np.expand_dims(x, 0), 1),
            (lambda x: np.squeeze(x), 1),
            (lambda x: np.ravel(x), 1),
            (lambda x: np.atleast_3d(x), 1),
            (lambda x: np.append(np.ones(2), x), 1),
            (lambda x: np.insert(np.ones(2), [0, 1], x), 2),
            (lambda x: np.hstack([x, 1.0, x]), 2),
            (lambda x: np.stack([x, 1.0, x]), 2),
            (lambda x: np.block([x, 1.0]), 1),
            (lambda x: lantern.concat([[1.0, 2.0], lantern.atleast_1d(x)]), 1),
            (lambda x: np.resize(x, 5), 5),
            (
                lambda x: np.diagflat(x, 1),
                1,
            ),
            (lambda x: np.take(x, [0, 0]), 2),
            (lambda x: np.transpose(x), 1),
            (lambda x: np.flip(x), 1),
            (lambda x: np.select([np.ones(2) > 0], [x]), 2),
            (lambda x: np.meshgrid(x, np.ones(2))[0], 2),
            (lambda x: np.broadcast_arrays(x, np.ones(3))[0], 3),
        ],
    )
    def test_a_tracked_number(self, f, slope):
        seen = []
        gradient = grad(lambda x: lantern.sum(seen.append(f(x)) or seen[-1]))(2.0)
        assert gradient == slope
        assert type(seen[0]) is Tensor
        np.testing.assert_array_equal(lantern.stop_gradient(seen[0]), f(2.0))
        assert grad(grad(lambda x: lantern.sum(f(x) ** 2)))(2.0) == 2 * slope

    def test_objects_are_refused(self):
        with pytest.raises(ArgumentError, match="float"):
            grad(lambda x: lantern.reshape(x, 1).sum())(Fraction(1, 2))


METHODS = """
    x.reshape(6, 4)
    x.reshape((6, -1), order="F")
    x.transpose(2, 0, 1)
    x.transpose((2, 0, 1))
    x.transpose(None)
    x.transpose()
    x.T
    x.mT
    x.swapaxes(0, 1)
    x.ravel()
    x.ravel("F")
    x.flatten(order="F")
    x.squeeze()
    x.take([1, 0], axis=1)
    x.take([5, 5], mode="clip")
    x.compress([True, False], axis=0)
    x.repeat(2, axis=0)
    x.repeat([1, 2, 0], 1)
    x.diagonal(0, 1, 2)
    x.trace(0, 1, 2)
    x.conj()
    x.astype(x.dtype, copy=False)
    x[0].T[::-1, None]
"""


@pytest.mark.parametrize(("f", "shapes"), [*calls(METHODS, (2, 3, 4))])
def test_methods(f, shapes):
    check_as_numpy(f, array(*shapes[0]))


@pytest.mark.parametrize("order", "CFAK")
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_order_of_memory(order, axes):
    x = array(2, 3, 4).transpose(axes)
    np.testing.assert_array_equal(lantern.ravel(x, order), np.ravel(x, order))
    seen, pullback = vjp(lambda x: lantern.ravel(x, order), x)
    np.testing.assert_array_equal(seen, np.ravel(x, order))
    (gradient,) = pullback(np.arange(24.0))
    expected = np.arange(24.0)[np.argsort(np.ravel(_positions(x), order))]
    np.testing.assert_array_equal(gradient.ravel(), expected)


def _positions(x):
    """Numbers 0, 1, ... in index order, laid out in memory as x is."""
    y = np.empty_like(x)
    y[...] = np.arange(x.size).reshape(x.shape)
    return y


def test_wrong_shapes_and_options():
    x = np.ones((2, 3))
    for f in (
        lambda x: np.reshape(x, (4, 2)),
        lambda x: np.reshape(x, 6, order="Q"),
        lambda x: x.T.reshape(6, copy=False),
        lambda x: np.transpose(x, (0, 0)),
        lambda x: np.moveaxis(x, 5, 0),
        lambda x: np.squeeze(x, 0),
        lambda x: np.broadcast_to(x, (2, 2)),
        lambda x: np.concat([x, x[0]]),
        lambda x: np.stack([x, x[0]]),
        lambda x: np.stack([]),
        lambda x: np.split(x, 4),
        lambda x: np.dsplit(x, 1),
        lambda x: np.take(x, 9),
        lambda x: np.take(x, 0, mode="other"),
        lambda x: np.take_along_axis(x, np.array([0]), 0),
        lambda x: np.compress([[True]], x),
        lambda x: np.repeat(x, -1),
        lambda x: np.repeat(x, [1, 2], axis=1),
        lambda x: np.resize(x, -1),
        lambda x: np.diag(x[None]),
        lambda x: np.rot90(x, axes=(0, 0)),
        lambda x: np.block([[x], x]),
        lambda x: np.select([], []),
        lambda x: np.choose(np.array(7), [x, x]),
        lambda x: np.meshgrid(x, indexing="zz"),
        lambda x: np.trim_zeros(x, "x"),
        lambda x: np.insert(x, 9, 1.0),
        lambda x: np.delete(x, 9),
    ):
        with pytest.raises((ValueError, IndexError)):
            grad(lambda x, f=f: f(x).sum())(x)
    with pytest.raises(TypeError):
        np.block((Tensor(x), x))
    with pytest.raises(LanternError):
        grad(lambda x: np.concat([x, x], out=np.empty((4, 3))).sum())(x)


def test_integers_are_constants():
    def f(x):
        rounded = x.astype(int)
        assert type(rounded) is np.ndarray
        return lantern.sum(x * rounded)

    np.testing.assert_array_equal(grad(f)(np.array([1.7, 2.2])), [1, 2])
    assert (
        vjp(lambda x: np.concat([x, x], dtype=np.float32), np.ones(2))[0].dtype == "f4"
    )


def test_complex_arrays():
    z = array(2, 3) + 1j * array(2, 3, seed=1)
    for f in (
        lambda z: z[[0, 0, 1]] ** 2,
        lambda z: np.roll(np.flip(z), 1).T,
        lambda z: np.concat([np.tril(z), np.tile(z, 2)], axis=1),
        lambda z: np.pad(z, 2, "reflect"),
        lambda z: np.sort(z, axis=None),
        lambda z: lantern.at(z)[[0, 0]].multiply(z),
        lambda z: np.repeat(z, [1, 2], axis=0),
    ):
        np.testing.assert_allclose(vjp(f, z)[0], f(z), rtol=1e-14)
        check_grads(f, (z,), order=2, atol=1e-5)


def test_empty_arrays():
    x = np.zeros((0, 3))
    for f in (
        lambda x: np.reshape(x, (3, 0)),
        lambda x: np.concat([x, x]),
        lambda x: np.repeat(x, 2, axis=0),
        lambda x: np.tile(x, (2, 1)),
        lambda x: np.sort(x, axis=0),
        lambda x: np.roll(x, 1, axis=0),
        lambda x: np.pad(x, 1),
        lambda x: np.resize(x, (2, 2)),
        lambda x: np.trim_zeros(x),
        lambda x: x[:, []],
        lambda x: np.unique(x),
        lambda x: lantern.at(x)[:, 1].set(2.0),
    ):
        value, pullback = vjp(f, x)
        np.testing.assert_array_equal(value, f(x))
        assert pullback(np.ones_like(value))[0].shape == (0, 3)


def test_untracked_tensors():
    x = Tensor(array(2, 3))
    plain = lantern.stop_gradient(x)
    for f in (
        lambda x: np.sort(x),
        lambda x: np.pad(x, 1),
        lambda x: np.hstack([x, x]),
        lambda x: np.take(x, [0, 0], 1),
        lambda x: lantern.at(x)[0].set(1.0),
    ):
        y = f(x)
        assert type(y) is Tensor
        np.testing.assert_array_equal(lantern.stop_gradient(y), f(plain))
    y = Tensor(np.array([2.0, 1.0]))
    y.sort()
    np.testing.assert_array_equal(lantern.stop_gradient(y), [1.0, 2.0])
