"""The functions of a library like CuPy, where they differ from NumPy's.

Where it can be helped, nothing waits for a number from the device: CuPy's own functions
do so now and then, to look whether a special case is at hand.
"""

import sys
import warnings
from contextlib import suppress
from importlib import import_module
from typing import Any

from lantern.core.residuals import register_mutable
from lantern.errors import ArgumentError
from lantern.tensor.backend.numpy_namespace import (
    ArrayNamespace,
    arrays,
    buffers,
    numpy_namespace,
)

__all__ = ["DeviceNamespace"]


class DeviceNamespace(ArrayNamespace):
    """The functions of a library like CuPy, whose arrays do not lie on the host.

    Args:
        module: cupy.
        special: the name of the module with its special functions.
        extra: the package that provides that module, as pip calls it.
        kind: the name of the devices, without their numbers.
    """

    def __init__(self, module: Any, special: str, extra: str, kind: str) -> None:
        super().__init__(module, special, extra)
        self.kind, self.linalg = kind, DeviceLinalg(module)
        buffers.add(module.ndarray)
        arrays.add(module.ndarray)
        register_mutable(module.ndarray, module.array)

    def device(self, x: Any) -> str:
        """The name of the device that an array lies on, with its number."""
        return f"{self.kind}:{x.device.id}"

    def to_device(self, x: Any, device: str) -> Any:
        """An array on a device; x itself, if it lies there."""
        if device in (self.kind, self.device(x)):
            return x
        return super().to_device(x, device)

    def receive(self, x: Any, number: int | None) -> Any:
        """An array of NumPy, or of another device, on the device of a number."""
        with self.module.cuda.Device(number):
            return self.module.asarray(x)

    def sigmoid(self, x: Any) -> Any:
        """``1 / (1 + exp(-x))``; no error tells where ``exp(-x)`` is infinite."""
        half = x.dtype.kind == "f" and x.dtype.itemsize == 2
        return self._sigmoid_of_any(x) if half else 1 / (1 + self.module.exp(-x))

    def where(self, condition: Any, *choices: Any) -> Any:
        """As NumPy's, which takes a plain condition as well."""
        if isinstance(condition, bool):
            condition = self.module.bool_(condition)
        return self.module.where(condition, *choices)

    def count_nonzero(self, x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        """How many elements along axes are not 0."""
        return self.module.sum(x != 0, axis=axis, keepdims=keepdims)

    def cummax(self, x: Any, axis: int) -> Any:
        """The largest element so far along an axis."""
        return self._so_far(self.module.maximum, x, axis)

    def cummin(self, x: Any, axis: int) -> Any:
        """The smallest element so far along an axis."""
        return self._so_far(self.module.minimum, x, axis)

    def _so_far(self, function: Any, x: Any, axis: int) -> Any:
        """``function.accumulate``: each step doubles how far an element has seen."""
        before, reach = (slice(None),) * (axis % x.ndim), 1
        while reach < x.shape[axis]:
            near = x[(*before, slice(reach))]
            far = function(
                x[(*before, slice(reach, None))], x[(*before, slice(-reach))]
            )
            x, reach = self.module.concatenate([near, far], axis), 2 * reach
        return x

    def scipys(self, name: str, part: str = "special") -> Any:
        """A function of the module that stands for SciPy."""
        package = self.special.replace("special", part)
        if package not in sys.modules:
            with warnings.catch_warnings():  # of cupyx's own use of cupyx.jit
                warnings.simplefilter("ignore", FutureWarning)
                with suppress(ImportError):  # which is an error of ours below
                    import_module(package)
        return super().scipys(name, part)

    def convolve_fully(self, x: Any, y: Any) -> Any:
        """The convolution of two arrays; CuPy does not choose how for several axes."""
        whole = {x.dtype.kind, y.dtype.kind} & {*"iub"}
        method = "direct" if whole else "fft"  # as CuPy chooses for one axis
        return self.scipys("convolve", "signal")(x, y, method=method)

    def linspace(
        self,
        start: Any,
        stop: Any,
        num: int = 50,
        endpoint: bool = True,
        dtype: Any = None,
        axis: int = 0,
    ) -> Any:
        """Numbers at equal distances; CuPy's own looks whether the distance is 0."""
        xp = self.module
        if not isinstance(start, xp.ndarray) and not isinstance(stop, xp.ndarray):
            return xp.linspace(start, stop, num, endpoint, False, dtype, axis)
        start, stop = start * 1.0, stop * 1.0
        step = (stop - start) / max(num - 1 if endpoint else num, 1)
        counts = xp.arange(num, dtype=step.real.dtype)
        z = counts.reshape(num, *(1,) * step.ndim) * step + start
        if endpoint and num > 1:
            z[-1] = stop
        z = xp.moveaxis(z, 0, axis)
        if dtype is None:
            return z
        return (xp.floor(z) if xp.dtype(dtype).kind in "iu" else z).astype(dtype)

    def argpartition(self, x: Any, kth: Any, axis: int | None = -1) -> Any:
        """Where sorted elements come from: CuPy's own looks at the positions."""
        length = x.size if axis is None else x.shape[axis]
        for k in kth if hasattr(kth, "__iter__") else (kth,):
            if not -length <= k < length:
                raise ArgumentError(
                    f"partition: there is no element {k} among {length}. Choose kth "
                    f"from {-length} to {length - 1}."
                )
        return self.module.argsort(x, axis)

    def intersect1d(
        self, x: Any, y: Any, assume_unique: bool = False, return_indices: bool = False
    ) -> Any:
        """What two arrays have both: CuPy takes unique elements for sorted ones."""
        return self.module.intersect1d(x, y, return_indices=return_indices)

    def tril_indices(self, n: int, k: int = 0, m: int | None = None) -> Any:
        """Where a lower triangle is: known on the host, and copied from there."""
        return tuple(map(self.module.asarray, numpy_namespace.tril_indices(n, k, m)))

    def triu_indices(self, n: int, k: int = 0, m: int | None = None) -> Any:
        """Where an upper triangle is: known on the host, and copied from there."""
        return tuple(map(self.module.asarray, numpy_namespace.triu_indices(n, k, m)))

    def roots(self, p: Any) -> Any:
        """The roots of a polynomial: eigenvalues of its companion matrix.

        How many there are, and whether they are complex, depends on the values.
        """
        xp = self.module
        places = xp.flatnonzero(p)
        if not places.size:
            return xp.zeros(0)
        first, last = int(places[0]), int(places[-1])
        highest, rest = p[first] * 1.0, p[first + 1 : last + 1]
        companion = xp.eye(rest.size, k=-1, dtype=highest.dtype)
        companion[:1] = -rest / highest
        z = self._found(xp.linalg, "eigvals")(companion)
        z = z if bool((z.imag != 0).any()) else z.real
        return xp.concatenate([z, xp.zeros(p.size - 1 - last, z.dtype)])


class DeviceLinalg:
    """The functions of linear algebra; of those that are not here, the library's.

    Args:
        module: cupy.
    """

    def __init__(self, module: Any) -> None:
        self.module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module.linalg, name)

    def solve(self, a: Any, b: Any) -> Any:
        """The solution x of ``a @ x == b``; CuPy's own does not broadcast."""
        xp = self.module
        if b.ndim > 1 and a.shape[:-2] != b.shape[:-2]:
            batch = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a = xp.broadcast_to(a, batch + a.shape[-2:])
            b = xp.broadcast_to(b, batch + b.shape[-2:])
        return xp.linalg.solve(a, b)

    def pinv(self, a: Any, rcond: Any = 1e-15) -> Any:
        """The pseudo-inverse; CuPy's own waits to know how many values count as 0."""
        xp = self.module
        if a.size == 0:
            return xp.linalg.pinv(a, rcond)
        u, s, v = xp.linalg.svd(a.conj(), full_matrices=False)
        rcond = rcond[..., None] if isinstance(rcond, xp.ndarray) else rcond
        large = s > rcond * xp.max(s, axis=-1, keepdims=True)
        s = xp.where(large, 1 / s, 0)
        return v.mT @ (s[..., None] * u.mT)
