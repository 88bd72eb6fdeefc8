"""A stand-in for CuPy where there is no GPU: what it refuses, CuPy 14.2 refuses.

``Array`` is no ndarray and never becomes one by itself: it has a namespace of its own
(``xp``, ``xp.linalg``, ``xp.fft``, ``special``) that takes and gives Arrays, 0-d ones
where NumPy gives scalars; it does not mix with arrays of NumPy; and every copy between
it and the host is counted in ``copies``. What CuPy lacks, names and parameters, is
listed in tests/cupy_tables.py.

References:
    cupy/__init__.py, _core/core.pyx, _core/_kernel.pyx, _core/_routines_indexing.pyx
    and cupyx/scipy/special of CuPy 14.2.
"""

import sys
import types
from collections import Counter
from weakref import WeakValueDictionary

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special

from tests import fake_nccl
from tests.cupy_tables import (
    ABOUT,
    AT,
    CONVERTING,
    COPYING,
    CREATION,
    LOOKING,
    METHODS,
    MISSING_FUNCTIONS,
    MISSING_PARAMETERS,
    REDUCTIONS,
    SPECIAL_FUNCTIONS,
)

# How often something was copied, by direction: "to host" and "to device".
copies = Counter()
# By the identity of the memory on the host, the Array that is no view of another.
owners = WeakValueDictionary()
# How many Arrays there are, and may be.
alive = Counter(limit=1_000_000)

SCALARS = bool | int | float | complex | np.generic


def wrap(result):
    """What NumPy returned, as CuPy returns it."""
    if isinstance(result, np.ndarray | np.generic | bool):
        host = np.asarray(result)
        if host.dtype.kind not in "biufc":
            raise ValueError(f"Unsupported dtype {host.dtype}")
        return object.__new__(Array)._holding(host)
    if isinstance(result, list):
        return [wrap(x) for x in result]
    if type(result).__name__.startswith("Unique"):
        return type(result)(*map(wrap, result))
    # No tuple of CuPy's linalg has names.
    return tuple(map(wrap, result)) if isinstance(result, tuple) else result


def unwrap(x):
    """What is handed to NumPy; an array of NumPy is refused."""
    if isinstance(x, Array):
        return x._host
    if isinstance(x, list | tuple):
        return type(x)(map(unwrap, x))
    if isinstance(x, dict):
        return {key: unwrap(value) for key, value in x.items()}
    if x is None or x is ... or isinstance(x, slice | type | str | np.dtype | SCALARS):
        return x
    raise TypeError(f"Unsupported type {type(x)}")


def holds_array(tree):
    """Whether there is an Array among arguments."""
    if isinstance(tree, list | tuple):
        return any(map(holds_array, tree))
    return isinstance(tree, Array)


def compute(function, args, kwargs):
    """Run a function of NumPy; a GPU knows no warnings of its arithmetic."""
    with np.errstate(all="ignore"):
        result = function(*unwrap(args), **unwrap(kwargs))
    if args and isinstance(args[0], Array) and result is args[0]._host:
        return args[0]
    return wrap(result) if kwargs.get("out") is None else kwargs["out"]


def look(name, args=()):
    """Count the copy of a number to the host, if a function of arrays makes one."""
    if name in LOOKING or (name == "linspace" and holds_array(args)):
        copies["to host"] += 1


def refuse_axis(x, axis=None, *_, **__):
    """Raise for an axis of what has none, where NumPy takes 0 and -1."""
    if axis not in (None, ()) and not x.ndim:
        raise np.exceptions.AxisError(axis, 0)


def refuse(name, kwargs):
    """Keyword arguments, if CuPy has them."""
    for parameters, names in MISSING_PARAMETERS.items():
        for parameter in set(parameters.split()) & set(kwargs):
            if name in names.split():
                raise TypeError(f"{name}() got an unexpected keyword {parameter!r}")
    return kwargs


class Ufunc:
    """A universal function: of Arrays and scalars."""

    def __init__(self, ufunc):
        self.ufunc, self.__name__ = ufunc, ufunc.__name__

    def __call__(self, *args, **kwargs):
        for x in args:
            if not isinstance(x, Array | SCALARS):
                raise TypeError(f"Unsupported type {type(x)}")
        return compute(self.ufunc, args, kwargs)

    def at(self, x, index, y=None):
        if self.__name__ not in AT:
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        if x.dtype.name not in AT[self.__name__].split():
            raise TypeError(f"{self.__name__}.at only supports {AT[self.__name__]}")
        self.ufunc.at(x._host, host_index(index), unwrap(y))

    def outer(self, x, y, **kwargs):
        return compute(self.ufunc.outer, (x, y), kwargs)

    def _along(self, method, *args):
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.__name__}.{method}` is not supported")
        return compute(getattr(self.ufunc, method), args, {})

    def reduce(self, x, axis=0, dtype=None, out=None, keepdims=False):
        return self._along("reduce", x, axis, dtype, None, keepdims)

    def accumulate(self, x, axis=0, dtype=None, out=None):
        return self._along("accumulate", x, axis, dtype)


class Function:
    """An array function: of Arrays, with the parameters that CuPy has."""

    def __init__(self, function, name):
        self.function, self.__name__ = function, name

    def __call__(self, *args, **kwargs):
        name, first = self.__name__, args[0] if args else None
        if name == "may_share_memory":
            return self.function(*unwrap(args), **kwargs)
        refuse(name, kwargs)
        if name in CONVERTING:
            args = tuple(xp.asarray(x) for x in args)
        if name in COPYING and not holds_array(args):
            copies["to device"] += 1
            return wrap(np.array(self.function(*args, **kwargs)))
        if name not in CREATION | ABOUT and not holds_array((args, *kwargs.values())):
            raise TypeError(f"{name}: unsupported types {[*map(type, args)]}")
        if name in ("astype", "broadcast_to", "lexsort"):
            unsupported = not isinstance(first, Array)
        else:
            joins = name in ("concat", "concatenate", "stack", "vstack", "hstack")
            unsupported = joins and not all(isinstance(x, Array) for x in first)
            if name.startswith("concat") and not all(x.ndim for x in first):
                raise TypeError("zero-dimensional arrays cannot be concatenated")
        if unsupported:
            raise TypeError(f"{name}: unsupported type {type(first)}")
        look(name, args)
        if name in REDUCTIONS:
            refuse_axis(*args, **kwargs)
        return compute(self.function, args, kwargs)


class Namespace(types.ModuleType):
    """A module of functions under NumPy's names, where CuPy has them."""

    def __init__(self, module, prefix=""):
        super().__init__(f"standin.{prefix}".rstrip("."))
        self._module, self._prefix = module, prefix

    def __getattr__(self, name):
        if name.startswith("_") or self._prefix + name in MISSING_FUNCTIONS:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(self._module, name)
        if isinstance(found, np.ufunc):
            found = Ufunc(found)
        elif callable(found) and not isinstance(found, type):
            found = Function(found, name)
        setattr(self, name, found)
        return found


def host_index(index):
    """An index for NumPy; lists and arrays on the host are copied to the device."""
    parts = index if isinstance(index, tuple) else (index,)
    for part in parts:
        if isinstance(part, np.ndarray | list):
            copies["to device"] += 1
        if isinstance(part, Array) and part.dtype == bool:
            copies["to host"] += 1  # how many it chooses
    dotted = any(part is ... for part in parts)
    parts = tuple(i._host if isinstance(i, Array) else i for i in parts)
    return parts if dotted else (*parts, ...)  # never a scalar


class Device(str):
    """Where an Array lies."""

    __slots__ = ()
    id = 0

    def __new__(cls, number=None):
        if number not in (None, 0):
            raise RuntimeError("cudaErrorInvalidDevice: invalid device ordinal")
        return super().__new__(cls, "standin:0")

    def __enter__(self):
        return self

    def __exit__(self, *_): ...

    def use(self): ...


ABOUT_DEVICE = {"name": b"stand-in", "totalGlobalMem": 1 << 30, "major": 9, "minor": 0}
RUNTIME = types.SimpleNamespace(
    getDeviceCount=lambda: 1,
    getDevice=lambda: 0,
    deviceSynchronize=lambda: None,
    getDeviceProperties=lambda number: ABOUT_DEVICE | {"multiProcessorCount": 1},
)
POOL = types.SimpleNamespace(
    used_bytes=lambda: 512 * alive["arrays"],
    total_bytes=lambda: 512 * alive["arrays"],
    free_all_blocks=lambda: None,
)


class Array:
    """An array on the device."""

    __slots__ = ("__weakref__", "_host", "base")
    __module__ = "standin"
    __array_priority__ = 100
    __hash__ = None
    device = Device()

    def __init__(self, shape, dtype=float):
        self._holding(np.empty(unwrap(tuple(shape)), dtype))

    def _holding(self, host):
        alive["arrays"] += 1
        if alive["arrays"] > alive["limit"]:
            raise MemoryError("Out of memory allocating bytes")
        self._host = memory = host
        while isinstance(memory.base, np.ndarray):
            memory = memory.base
        self.base = owners.get(id(memory))
        if self.base is None:
            owners[id(memory)] = self
        return self

    def __del__(self, alive=alive):
        alive["arrays"] -= 1

    def get(self):
        """A copy on the host."""
        copies["to host"] += 1
        return self._host.copy()

    def __array__(self, dtype=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` "
            "to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        if not all(
            isinstance(x, Array | np.ndarray | SCALARS) for x in (*inputs, *out)
        ):
            return NotImplemented
        try:
            function = getattr(find(ufunc.__name__), method)
        except AttributeError:
            return NotImplemented
        if ufunc in COMPARISONS.values():  # a workaround of CuPy's, numpy issue 12142
            scalar = [isinstance(x, np.ndarray) and x.ndim == 0 for x in inputs]
            inputs = [x.item() if s else x for x, s in zip(inputs, scalar, strict=True)]
        return function(*inputs, **kwargs, **({"out": out[0]} if out else {}))

    def __array_function__(self, func, types, args, kwargs):
        functions = xp
        try:
            for part in (*func.__module__.split(".")[1:], func.__name__):
                functions = getattr(functions, part)
        except AttributeError:
            return NotImplemented
        if not all(issubclass(t, Array | np.ndarray) for t in types):
            return NotImplemented
        return functions(*args, **kwargs)

    @property
    def __cuda_array_interface__(self):
        return self._host.__array_interface__

    def __getitem__(self, index):
        return wrap(self._host[host_index(index)])

    def __setitem__(self, index, value):
        if isinstance(value, np.ndarray):
            parts = index if isinstance(index, tuple) else (index,)
            advanced = [p for p in parts if isinstance(p, Array | np.ndarray | list)]
            if value.ndim and not advanced:
                raise ValueError("non-scalar numpy.ndarray cannot be used for fill")
            value = Function(np.asarray, "asarray")(value)
        self._host[host_index(index)] = unwrap(value)

    def __iter__(self):
        return (self[i] for i in range(len(self._host)))

    def __len__(self):
        return len(self._host)

    def __deepcopy__(self, memo):
        return self.copy()

    def reshape(self, *shape, order="C"):
        return wrap(self._host.reshape(*shape, order=order))

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if np.dtype(dtype).kind not in "biufc":
            raise ValueError(f"Unsupported dtype {np.dtype(dtype)}")
        return wrap(self._host.astype(dtype, copy=copy))

    def fill(self, value):
        self._host.fill(unwrap(value))

    def __getattr__(self, name):
        if name not in METHODS:
            raise AttributeError(f"'ndarray' object has no attribute {name!r}")
        method = getattr(self._host, name)

        def call(*args, **kwargs):
            look(name)
            if name in REDUCTIONS:
                refuse_axis(self, *args, **kwargs)
            return compute(method, args, refuse(name, kwargs))

        return call


def install(name, ufunc):
    """The operators ``x op y``, ``y op x`` and ``x op= y``."""

    def operate(x, y):
        if isinstance(y, Array):
            return find(ufunc.__name__)(x, y)
        if getattr(y, "__array_ufunc__", 0) is None:
            return NotImplemented
        return ufunc(x, y)

    def in_place(x, y):
        return find(ufunc.__name__)(x, y, out=x)

    setattr(Array, f"__{name}__", operate)
    if ufunc not in COMPARISONS.values():
        setattr(Array, f"__r{name}__", lambda x, y: ufunc(y, x))
        setattr(Array, f"__i{name}__", in_place)


def by_copy(name):
    """A method that copies elements to the host."""
    return lambda x, *args: getattr(x.get(), name)(*args)


def find(name):
    """A universal function by NumPy's or SciPy's name."""
    return getattr(xp, name, None) or getattr(special, name)


OPERATORS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "pow": np.power}
OPERATORS |= {"matmul": np.matmul, "truediv": np.divide, "mod": np.remainder}
OPERATORS |= {"floordiv": np.floor_divide, "divmod": np.divmod}
OPERATORS |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
OPERATORS |= {"lshift": np.left_shift, "rshift": np.right_shift}
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less}
COMPARISONS |= {"le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
for _name, _ufunc in (OPERATORS | COMPARISONS).items():
    install(_name, _ufunc)
for _name, _function in UNARY.items():
    setattr(Array, f"__{_name}__", lambda x, f=_function: getattr(xp, f)(x))
for _name in "__bool__ __float__ __int__ __complex__ __repr__ item tolist".split():
    setattr(Array, _name, by_copy(_name))


class Flags:
    """As CuPy's: whether an array may be written to is nobody's business."""

    def __init__(self, flags):
        for name in ("c_contiguous", "f_contiguous", "owndata"):
            setattr(self, name, getattr(flags, name))


Array.flags = property(lambda x: Flags(x._host.flags))
Array.data = property(lambda x: types.SimpleNamespace(ptr=x._host.ctypes.data))
for _name in "shape dtype ndim size nbytes itemsize strides".split():
    setattr(Array, _name, property(lambda x, n=_name: getattr(x._host, n)))
for _name in ("T", "mT", "real", "imag"):
    setattr(Array, _name, property(lambda x, n=_name: wrap(getattr(x._host, n))))


def where(condition, *choices):
    """As CuPy's, which asks ``condition.astype``."""
    if not isinstance(condition, Array | np.generic):
        raise AttributeError(f"{type(condition)} has no attribute 'astype'")
    if not all(isinstance(x, Array | SCALARS) for x in choices):
        raise TypeError(f"Unsupported types {[*map(type, choices)]}")
    if not choices:
        look("nonzero")
    return compute(np.where, (condition, *choices), {})


def inv(a):
    """As cuSOLVER's, which makes nan of a singular matrix."""
    try:
        return compute(np.linalg.inv, (a,), {})
    except np.linalg.LinAlgError:
        return xp.full_like(a, np.nan)


def solve(a, b):
    """As cuSOLVER's; it does not broadcast, and makes nan of a singular matrix."""
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    try:
        return compute(np.linalg.solve, (a, b), {})
    except np.linalg.LinAlgError:
        return xp.full_like(b, np.nan)


def svd(a, full_matrices=True, compute_uv=True):
    """As cuSOLVER's, whose singular vectors have other signs."""
    if not compute_uv:
        return compute(np.linalg.svd, (a, full_matrices, False), {})
    u, s, v = compute(np.linalg.svd, (a, full_matrices), {})
    u._host[..., : s.shape[-1] : 2] *= -1
    v._host[..., : s.shape[-1] : 2, :] *= -1
    return u, s, v


def eigh(a, UPLO="L"):
    """As cuSOLVER's, whose eigenvectors have other signs."""
    w, v = compute(np.linalg.eigh, (a, UPLO), {})
    v._host[..., ::2] *= -1
    return w, v


def eigvals(a):
    """As cuSOLVER's, which are complex in any case."""
    z = np.linalg.eigvals(a._host)
    return wrap(z.astype(np.result_type(z, np.complex64)))


def matrix_rank(a, tol=None):
    """As CuPy's, which stays on the device."""
    return wrap(np.asarray(np.linalg.matrix_rank(a._host, tol)))


def tensordot(a, b, axes=2):
    """As CuPy's, which knows two ways to say that there are no axes."""
    if not (a.ndim and b.ndim) and axes not in (0, ((), ())):
        raise ValueError("An input is zero-dim while axes has dimensions")
    return compute(np.tensordot, (a, b, axes), {})


def roots(p):
    """As CuPy's, of polynomials with a symmetric companion matrix: hardly any."""
    raise NotImplementedError("Only symmetric 2d arrays are supported currently")


def isin(x, y, assume_unique=False, invert=False):
    """As CuPy's, which takes no numbers."""
    return compute(np.isin, (x, y.ravel(), assume_unique, invert), {})


def convolve(x, y, mode="full", method="auto"):
    """As cupyx's, which does not choose a method for several axes."""
    if method == "auto" and x.ndim > 1:
        raise NotImplementedError("Only 1d inputs are supported currently")
    return compute(scipy.signal.convolve, (x, y, mode), {})


def polygamma(n, x):
    """As cupyx's, which asks ``(n == 0).astype``."""
    if not isinstance(n, Array | np.generic):
        raise AttributeError("'bool' object has no attribute 'astype'")
    return compute(scipy.special.polygamma, (n, x), {})


def expm(a):
    """As cupyx's, which takes one matrix."""
    if a.ndim != 2:
        raise ValueError("expected a square matrix")
    copies["to host"] += 1  # how often to square depends on its norm
    return compute(scipy.linalg.expm, (a,), {})


xp = Namespace(np)
xp.linalg, xp.fft = Namespace(np.linalg, "linalg."), Namespace(np.fft, "fft.")
for _function in (where, tensordot, roots, isin):
    setattr(xp, _function.__name__, _function)
for _function in (inv, solve, svd, eigh, eigvals, matrix_rank):
    setattr(xp.linalg, _function.__name__, _function)
xp.ndarray, xp.get_default_memory_pool = Array, lambda: POOL
# One kernel; what it computes is what the function does.
xp.fuse = lambda kernel_name: lambda function: function
xp.cuda = types.SimpleNamespace(Device=Device, runtime=RUNTIME, **fake_nccl.CUDA)
special = sys.modules["standin.special"] = types.ModuleType("standin.special")
for _name in SPECIAL_FUNCTIONS:
    _found = getattr(scipy.special, _name)
    _made = Ufunc(_found) if isinstance(_found, np.ufunc) else Function(_found, _name)
    setattr(special, _name, _made)
special.polygamma = polygamma
linalg = sys.modules["standin.linalg"] = types.ModuleType("standin.linalg")
linalg.expm = expm
signal = sys.modules["standin.signal"] = types.ModuleType("standin.signal")
signal.convolve = convolve
linalg.solve_triangular = Function(scipy.linalg.solve_triangular, "solve_triangular")
