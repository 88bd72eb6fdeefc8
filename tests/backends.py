"""Arrays on a device, for the tests: the stand-in's, or with ``--backend cupy`` CuPy's.

Each backend makes device arrays of host arrays and host arrays of device arrays, says
how much memory is in use, and has a block in which nothing may be copied to the host.
"""

import warnings
from contextlib import contextmanager

import numpy as np
import pytest

import lantern
from lantern import Tensor, tree_map
from lantern.core.dispatch import register_class
from lantern.core.namespace import register_namespace
from lantern.core.value import base
from lantern.tensor.backend import rows
from lantern.tensor.backend.cupy_namespace import DeviceNamespace
from lantern.tensor.backend.numpy_namespace import devices
from tests import fake_cupy as standin

# As lantern/tensor/backend/numpy_namespace.py and tensor.py do it for CuPy.
_functions = DeviceNamespace(standin.xp, "standin.special", "scipy", "standin")
devices["standin"] = lambda: _functions
register_namespace("standin", lambda: _functions)
register_class(standin.Array, Tensor)


class StandIn:
    """The stand-in: NumPy's own routines behind CuPy's manners, so to the last bit."""

    name, device, rtol = "standin", "standin:0", 0
    kind, xp = standin.Array, standin.xp

    def array(self, x):
        return standin.wrap(np.array(x))

    def host(self, x):
        return x._host

    @contextmanager
    def without_copies(self, uploads=False, sizes=False):
        standin.copies.clear()
        yield
        allowed = ["to device"] * uploads + ["to host"] * sizes
        assert set(standin.copies) <= set(allowed), standin.copies

    def used(self):
        return standin.alive["arrays"]

    @contextmanager
    def room_for(self, count):
        """Let there be memory for so many more arrays."""
        try:
            standin.alive["limit"] = self.used() + count
            yield
        finally:
            standin.alive["limit"] = 1_000_000


class CuPy:
    """CuPy itself: other routines, so to some digits."""

    name, device, rtol = "cupy", "cuda:0", 1e-9

    def __init__(self):
        self.xp = pytest.importorskip("cupy", reason="CuPy is not installed")
        try:
            self.xp.cuda.runtime.getDeviceCount()
        except self.xp.cuda.runtime.CUDARuntimeError as error:
            pytest.skip(f"no GPU: {error}")
        self.kind, self.small = self.xp.ndarray, self.xp.cuda.MemoryPool()

    def array(self, x):
        return self.xp.array(x)

    def host(self, x):
        return x.get()

    @contextmanager
    def without_copies(self, uploads=False, sizes=False):
        """CuPy raises DeviceSynchronized where it waits for a copy to the host.

        Args:
            uploads: whether copies to the device are allowed; CuPy does not tell.
            sizes: whether the size of a result depends on values, so that CuPy itself
                has to wait for it.
        """
        import cupyx

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is to go some day
            with cupyx.allow_synchronize(sizes):
                yield

    def used(self):
        pools = self.xp.get_default_memory_pool(), self.small
        return pools[0].used_bytes() + pools[1].used_bytes()

    @contextmanager
    def room_for(self, count):
        """Let there be memory for so many more small arrays: in a pool of its own.

        Parts of larger blocks, which other arrays hold, may be free in the usual one.
        """
        self.small.free_all_blocks()
        self.small.set_limit(size=512 * count)
        with self.xp.cuda.using_allocator(self.small.malloc):
            yield


@contextmanager
def as_cuda(backend):
    """Let the device of a name be the backend's: CuPy's is already."""
    if backend.name == "cupy":
        yield
        return
    kind, before = _functions.kind, devices["cuda"]
    _functions.kind, devices["cuda"] = "cuda", lambda: _functions
    try:
        yield
    finally:
        _functions.kind, devices["cuda"] = kind, before


@contextmanager
def numpys_own_sums():
    """The host adds up as the stand-in does: no sum is a product."""
    before, rows.REAL = rows.REAL, frozenset()
    try:
        yield
    finally:
        rows.REAL = before


BACKENDS = {"standin": StandIn, "cupy": CuPy}


def moved(backend, tree):
    """A structure with its host arrays moved to the device."""
    return tree_map(
        lambda x: backend.array(x) if isinstance(x, np.ndarray | np.generic) else x,
        tree,
    )


def settled(name, result):
    """A result without what an array library may choose: signs, and the order of roots.

    Args:
        name: of a function or an operation.
        result: of it, tracked or not.
    """
    if name == "eigh":
        values, vectors = result
        return values, vectors * _signs(vectors)
    if name == "svd" and isinstance(result, tuple):
        u, s, v = result
        return u * _signs(u), s, v * _signs(u).mT
    if name == "roots":
        z = base(result)
        return result[np.argsort(z.real + z.imag / 2)]
    return result


def _signs(vectors):
    return lantern.sign(
        lantern.sum(lantern.stop_gradient(vectors), axis=-2, keepdims=True)
    )


def check_equal(backend, got, want):
    """A device array equals a host array."""
    assert type(got) is backend.kind, type(got)
    assert got.dtype == np.asarray(want).dtype
    if backend.rtol == 0:
        np.testing.assert_array_equal(backend.host(got), want)
    else:
        atol = backend.rtol * max(1.0, np.max(np.abs(want), initial=0))
        np.testing.assert_allclose(
            backend.host(got), want, rtol=backend.rtol, atol=atol
        )
