"""A stand-in for CuPy where there is no GPU: what it refuses, CuPy 14.1 refuses.

``Array`` is no ndarray and never becomes one by itself: it has a namespace of its own
(``xp``, ``xp.linalg``, ``xp.fft``, ``special``) that takes and gives Arrays, 0-d ones
where NumPy gives scalars; it does not mix with arrays of NumPy; and every copy between
it and the host is counted in ``copies``. What CuPy lacks, names and parameters, is
listed in tables below.

References:
    cupy/_core/core.pyx, _kernel.pyx and _routines_indexing.pyx of CuPy 14.1.
"""

import operator
import sys
import types
from collections import Counter

import numpy as np
import scipy.special

# How often something was copied, by direction: "to host" and "to device".
copies = Counter()
# How many Arrays there are.
alive = Counter()

MISSING_FUNCTIONS = set(
    "asmatrix block bmat cumulative_prod cumulative_sum einsum_path frompyfunc "
    "fromregex geomspace histogram_bin_edges insert isnat matvec nanpercentile "
    "nanquantile polyder polydiv polyint seterr spacing unstack vecdot vecmat "
    "linalg.diagonal linalg.matrix_norm linalg.multi_dot linalg.outer linalg.svdvals "
    "linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm".split()
)
MISSING_PARAMETERS = {
    "initial where": "sum prod max min amax amin nansum nanprod nanmax nanmin",
    "where": "all any mean nanmean",
    "where mean correction": "std var nanstd nanvar",
    "weights": "percentile quantile",
    "order stable": "sort argsort",
    "kind order": "partition argpartition",
    "min max": "clip",
    "mode": "take",
    "sorted": "unique",
    "keepdims": "count_nonzero",
    "subok": "broadcast_to",
    "shape": "reshape",
    "device": "zeros ones full empty eye arange linspace asarray astype",
    "upper": "cholesky",
    "hermitian": "svd pinv",
    "rtol": "pinv matrix_rank",
}
SPECIAL_FUNCTIONS = (
    "bdtr beta betainc betaincinv betaln binom boxcox boxcox1p cbrt digamma ellipe "
    "ellipj ellipk entr erf erfc erfcinv erfcx erfinv exp10 exp2 expi expit expm1 expn "
    "exp1 exprel gamma gammainc gammaincc gammaincinv gammainccinv gammaln gammasgn "
    "huber i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e kl_div lambertw log1p log_expit log_ndtr "
    "log_softmax loggamma logit logsumexp ndtr ndtri poch polygamma pseudo_huber psi "
    "rel_entr rgamma sici softmax xlog1py xlogy y0 y1 yn zeta zetac"
).split()
# Functions that make an array of something else than arrays.
CREATION = set(
    "arange array asarray ascontiguousarray blackman diag_indices empty eye fftfreq "
    "full hamming hanning identity indices kaiser linspace logspace ones rfftfreq tri "
    "tril_indices triu_indices zeros".split()
)
COPYING = {"array", "asarray", "ascontiguousarray"}
# Functions that compute with types and shapes alone.
ABOUT = set(
    "broadcast_shapes can_cast common_type iscomplexobj isdtype isrealobj isscalar "
    "issubdtype ndim promote_types result_type shape size".split()
)
SCALARS = bool | int | float | complex | np.generic


def wrap(result):
    """What NumPy returned, as CuPy returns it."""
    if isinstance(result, np.ndarray | np.generic | bool):
        if np.asarray(result).dtype.kind not in "biufc":
            raise ValueError(f"Unsupported dtype {np.asarray(result).dtype}")
        return Array._of(np.asarray(result))
    if hasattr(result, "_fields"):
        return type(result)(*map(wrap, result))
    if isinstance(result, list | tuple):
        return type(result)(map(wrap, result))
    return result


def unwrap(x):
    """What is handed to NumPy; an array of NumPy is refused."""
    if isinstance(x, Array):
        return x._host
    if isinstance(x, np.ndarray):
        raise TypeError(f"Unsupported type {type(x)}")
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
    out = kwargs.get("out")
    with np.errstate(all="ignore"):
        result = function(*unwrap(args), **unwrap(kwargs))
    return out if out is not None else wrap(result)


def to_device(x):
    """A copy of something on the host."""
    copies["to device"] += 1
    return wrap(np.array(x))


class Ufunc:
    """A universal function: of Arrays and scalars."""

    def __init__(self, ufunc):
        self._ufunc, self.__name__ = ufunc, ufunc.__name__
        self.nin, self.nout = ufunc.nin, ufunc.nout

    def __call__(self, *args, **kwargs):
        for x in args:
            if not isinstance(x, Array | SCALARS):
                raise TypeError(f"Unsupported type {type(x)}")
        if kwargs.get("out") is None:
            kwargs.pop("out", None)
        return compute(self._ufunc, args, kwargs)

    def at(self, x, index, y=None):
        if self.__name__ not in ("add", "subtract", "maximum", "minimum"):
            raise NotImplementedError(f"`{self.__name__}.at` is not supported yet")
        self._ufunc.at(x._host, host_index(index), unwrap(y))

    def outer(self, x, y, **kwargs):
        return compute(self._ufunc.outer, (x, y), kwargs)

    def _along(self, method, *args, **kwargs):
        if self.__name__ not in ("add", "multiply"):
            raise NotImplementedError(f"`{self.__name__}.{method}` is not supported")
        return compute(getattr(self._ufunc, method), args, kwargs)

    def reduce(self, x, axis=0, dtype=None, out=None, keepdims=False):
        return self._along("reduce", x, axis, dtype, None, keepdims)

    def accumulate(self, x, axis=0, dtype=None, out=None):
        return self._along("accumulate", x, axis, dtype)


class Function:
    """An array function: of Arrays, with the parameters that CuPy has."""

    def __init__(self, function, name):
        self._function, self.__name__ = function, name
        self._missing = {
            parameter
            for parameters, names in MISSING_PARAMETERS.items()
            if name in names.split()
            for parameter in parameters.split()
        }

    def __call__(self, *args, **kwargs):
        name = self.__name__
        for parameter in self._missing & set(kwargs):
            raise TypeError(f"{name}() got an unexpected keyword argument {parameter!r}")
        if name in COPYING and not holds_array(args):
            return to_device(self._function(*args, **kwargs))
        if name not in CREATION | ABOUT and not holds_array((args, *kwargs.values())):
            raise TypeError(f"{name}: Unsupported types {[*map(type, args)]}")
        check = CHECKS.get(name)
        if check is not None:
            check(*args)
        return compute(self._function, args, kwargs)


def check_arrays(arrays, *_, **__):
    """Nothing but Arrays can be joined."""
    if not isinstance(arrays, Array) and not all(isinstance(x, Array) for x in arrays):
        raise TypeError("Only cupy arrays can be concatenated")


def check_first(x, *_, **__):
    """The first argument is an Array."""
    if not isinstance(x, Array):
        raise TypeError(f"Unsupported type {type(x)}")


CHECKS = dict.fromkeys("concat concatenate stack vstack hstack".split(), check_arrays)
CHECKS |= dict.fromkeys("where astype broadcast_to".split(), check_first)


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
    plain = tuple(i._host if isinstance(i, Array) else i for i in parts)
    return plain if ... in parts_of(plain) else (*plain, ...)  # never a scalar


def parts_of(index):
    """The parts of an index that can be compared."""
    return [i for i in index if not isinstance(i, np.ndarray | list)]


class Array:
    """An array on the device."""

    __slots__ = ("_host",)
    __array_priority__ = 100
    __hash__ = None
    device = "standin:0"

    def __init__(self, shape, dtype=float):
        if isinstance(shape, Array):
            raise TypeError("an array's shape is made of integers")
        self._host = np.empty(shape, dtype)
        alive["arrays"] += 1

    @classmethod
    def _of(cls, host):
        x = object.__new__(cls)
        x._host = host
        alive["arrays"] += 1
        return x

    def __del__(self):
        alive["arrays"] -= 1

    def get(self):
        """A copy on the host."""
        copies["to host"] += 1
        return self._host.copy()

    def __array__(self, dtype=None, copy=None):
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` "
            "to construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **kwargs):
        if not all(isinstance(x, Array | np.ndarray | SCALARS) for x in (*inputs, *out)):
            return NotImplemented
        try:
            function = find(ufunc.__name__)
            function = function if method == "__call__" else getattr(function, method)
        except AttributeError:
            return NotImplemented
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

    def __getitem__(self, index):
        return wrap(self._host[host_index(index)])

    def __setitem__(self, index, value):
        self._host[host_index(index)] = unwrap(value)

    def __iter__(self):
        return (self[i] for i in range(len(self._host)))

    def __len__(self):
        return len(self._host)

    def __deepcopy__(self, memo):
        return wrap(self._host.copy())

    __copy__ = __deepcopy__

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
        return lambda *args, **kwargs: compute(
            getattr(self._host, name), args, refuse(name, kwargs)
        )


def refuse(name, kwargs):
    """The keyword arguments of a method, if CuPy's has them."""
    for parameter in {"initial", "where", "mean", "correction"} & set(kwargs):
        raise TypeError(f"{name}() got an unexpected keyword argument {parameter!r}")
    return kwargs


METHODS = set(
    "all any argmax argmin argpartition argsort clip compress conj conjugate copy "
    "cumprod cumsum diagonal dot flatten max mean min nonzero prod ravel repeat round "
    "searchsorted sort squeeze std sum swapaxes take trace transpose var".split()
)


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
    if name not in ("eq", "ne", "lt", "le", "gt", "ge"):
        setattr(Array, f"__r{name}__", lambda x, y: ufunc(y, x))
        setattr(Array, f"__i{name}__", in_place)


def by_copy(name):
    """A method that reads the only element, and so copies it to the host."""
    function = getattr(operator, name, None)

    def method(x, *args):
        host = x.get()
        return getattr(host, name)(*args) if function is None else function(host)

    return method


for _name, _ufunc in {
    **{"matmul": np.matmul, "divmod": np.divmod},
    **{"add": np.add, "sub": np.subtract, "mul": np.multiply, "pow": np.power},
    **{"truediv": np.divide, "floordiv": np.floor_divide, "mod": np.remainder},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor},
    **{"lshift": np.left_shift, "rshift": np.right_shift, "eq": np.equal},
    **{"ne": np.not_equal, "lt": np.less, "le": np.less_equal},
    **{"gt": np.greater, "ge": np.greater_equal},
}.items():
    install(_name, _ufunc)
for _name in ("bool", "float", "int", "complex", "repr", "str", "format"):
    setattr(Array, f"__{_name}__", by_copy(f"__{_name}__"))
for _name in ("item", "tolist"):
    setattr(Array, _name, by_copy(_name))
for _name in "shape dtype ndim size nbytes itemsize strides flags".split():
    setattr(Array, _name, property(lambda x, n=_name: getattr(x._host, n)))
for _name in ("T", "mT", "real", "imag"):
    setattr(Array, _name, property(lambda x, n=_name: wrap(getattr(x._host, n))))
for _name, _ufunc in {
    **{"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}
}.items():
    setattr(Array, f"__{_name}__", lambda x, u=_ufunc: find(u.__name__)(x))

xp = Namespace(np)
xp.linalg, xp.fft = Namespace(np.linalg, "linalg."), Namespace(np.fft, "fft.")
xp.ndarray = Array
special = types.ModuleType("standin.special")
sys.modules["standin.special"] = special
for _name in SPECIAL_FUNCTIONS:
    _found = getattr(scipy.special, _name)
    _made = Ufunc(_found) if isinstance(_found, np.ufunc) else Function(_found, _name)
    setattr(special, _name, _made)


def polygamma(n, x):
    """As cupyx's, which asks ``(n == 0).astype``."""
    if not isinstance(n, Array | np.generic):
        raise AttributeError("'bool' object has no attribute 'astype'")
    return compute(scipy.special.polygamma, (n, x), {})


special.polygamma = polygamma


def find(name):
    """A universal function by NumPy's or SciPy's name."""
    return getattr(xp, name, None) or getattr(special, name)
