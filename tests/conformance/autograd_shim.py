"""HIPS autograd's names over Lantern's functions: a pytest plugin for one run.

Loaded before autograd could be (``-p autograd_shim``), it puts modules of autograd's
names in place. Those files of autograd that only compose (``test_util``, ``wrap_util``,
``util``, ``differential_operators``, ``misc.flatten``, ``misc.optimizers``) are loaded
unchanged from the copy that AUTOGRAD_SUITE names; whatever differentiates is Lantern's.
"""

import functools
import importlib
import itertools
import os
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import scipy.stats

import lantern
from lantern.core.numpy_protocols import find_function
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Value, base, is_complex, is_tracked
from lantern.errors import DetachError, MissingRuleError
from lantern.op import op

COPY = Path(os.environ["AUTOGRAD_SUITE"], "autograd")


def module(name, **names):
    """A module of autograd's name."""
    made = ModuleType(f"autograd{name}")
    made.__path__ = [str(COPY.joinpath(*name.split(".")))]
    vars(made).update(names)
    sys.modules[made.__name__] = made
    parent, _, child = made.__name__.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)
    return made


# autograd.core: the pullback takes and gives conjugates, for autograd's gradient of a
# real function of x + iy is df/dx - i df/dy.


def conj(tree):
    return tree_map(lambda x: lantern.conj(x) if is_complex(x) else x, tree)


def make_vjp(f, x):
    def numbers_and_truths(x):
        y = f(x)  # a truth has no derivative: autograd's is zero, Lantern refuses it
        return ((), y) if isinstance(y, bool | np.bool_) else (y, None)

    value, pullback, truth = lantern.vjp(numbers_and_truths, x, has_aux=True)
    if truth is not None:
        return lambda g: vspace(x).zeros(), truth
    space = vspace(value)
    return lambda g: conj(pullback(conj(space.like(g)))[0]), value


def make_jvp(f, x):
    return lambda v: lantern.jvp(f, (x,), (v,))


class VSpace:
    """The vector space of a value: of an array, or of a structure of arrays."""

    def __init__(self, value):
        self.tree = tree_map(lambda leaf: np.zeros_like(base(leaf)), value)
        for leaf in tree_leaves(self.tree):
            if leaf.dtype.kind not in "fciu":
                raise TypeError(f"there is no vector space of type {leaf.dtype}")
        self.iscomplex = any(map(is_complex, tree_leaves(self.tree)))
        self.shape = getattr(self.tree, "shape", None)

    def __eq__(self, other):
        return self.form() == other.form()

    def __repr__(self):
        return str(self.form())

    def form(self):
        return tree_map(lambda leaf: f"{leaf.dtype}{leaf.shape}", self.tree)

    def like(self, tree):
        """A value in the containers of this space."""
        return tree_map(lambda _, leaf: leaf, self.tree, tree)

    def map(self, f, *trees):
        return tree_map(f, self.tree, *trees)

    @property
    def size(self):
        return sum(x.size * (2 if is_complex(x) else 1) for x in self.leaves())

    def leaves(self):
        return list(tree_leaves(self.tree))

    def zeros(self):
        return self.map(np.copy)

    def ones(self):
        return self.map(lambda x: x + (1 + 1j if is_complex(x) else 1))

    def randn(self):
        def draw(x):
            y = np.random.randn(*x.shape)
            y = y + 1j * np.random.randn(*x.shape) if is_complex(x) else y
            return np.asarray(y).astype(x.dtype)

        return self.map(draw)

    def standard_basis(self):
        for i, leaf in enumerate(self.leaves()):
            units = (1, 1j) if is_complex(leaf) else (1,)
            for place, unit in itertools.product(np.ndindex(leaf.shape), units):
                vector, seen = self.zeros(), itertools.count()
                for x in tree_leaves(vector):
                    if next(seen) == i:
                        x[place] = unit
                yield vector

    def add(self, x, y):
        return self.map(lambda _, a, b: a + b, x, y)

    def scalar_mul(self, x, a):
        return self.map(lambda _, leaf: leaf * a, x)

    def inner_prod(self, x, y):
        def product(_, a, b):
            return lantern.sum(lantern.real(lantern.conj(a) * b))

        return sum(tree_leaves(self.map(product, x, y)))

    def covector(self, x):
        return conj(x)


vspace = VSpace

# autograd.extend: a primitive is an operation whose rule asks for what was declared.

primitive_vjps, primitive_jvps = {}, {}


def primitive(f):
    def rule(*operands, **statics):
        z = function(*operands, **statics) if any_value(operands) else None
        if z is None:
            z = f(*operands, **statics)
        z_bar = yield z
        for i in range(len(operands)):
            yield pull(i, z, operands, statics, z_bar)

    def pull(i, *rest):
        if function not in primitive_vjps:
            raise MissingRuleError(f"{f}: no vjp is declared. Call defvjp.")
        z, operands, statics, z_bar = rest
        return primitive_vjps[function](i, z, operands, statics)(z_bar)

    operation = op(rule)

    def function(*args, **kwargs):
        if not any(isinstance(x, Value) for x in args):
            return f(*args, **kwargs)
        return operation(*args, **kwargs)

    functools.update_wrapper(function, f)
    function.defgrad = functools.partial(_defgrad, function)
    function.defvjp = functools.partial(_old_defvjp, function)
    function.defvjp_is_zero = lambda argnums: defvjp(function, *[None for _ in argnums])
    return function


def any_value(operands):
    return any(isinstance(x, Value) for x in operands)


def defvjp_argnum(function, make):
    primitive_vjps[function] = make


def defvjp(function, *makers, argnums=None):
    table = dict(zip(argnums or itertools.count(), makers, strict=False))

    def make(i, z, operands, statics):
        if table[i] is None:
            return lambda g: None
        return table[i](z, *operands, **statics)

    primitive_vjps[function] = make


def defjvp(function, *makers, argnums=None):
    """Nothing: Lantern derives the forward rule."""


def notrace_primitive(f):
    return lambda *args, **kwargs: f(*tree_map(base, args), **kwargs)


_declared = {}


def _defgrad(function, maker, argnum=0):
    table = _declared.setdefault(function, {})
    table[argnum] = maker
    defvjp(function, *table.values(), argnums=table)


def _old_defvjp(function, maker, argnum=0):
    def make(z, *args):
        return lambda g: maker(g, z, vspace(args[argnum]), vspace(g), *args)

    _defgrad(function, make, argnum)


# autograd.numpy: NumPy's own functions, which find Lantern's by NumPy's protocols; and
# Lantern's where NumPy has no protocol (lists of tracked numbers, ``np.array``).


class Namespace(ModuleType):
    """A module of plain functions, each of which takes tracked values."""

    def __init__(self, name, plain):
        super().__init__(f"autograd.{name}")
        self.__path__ = []
        self._plain = plain

    def __getattr__(self, name):
        found = getattr(self._plain, name)
        if callable(found) and not isinstance(found, type):
            found = differentiable(found, name, self._plain.__name__)
        setattr(self, name, found)
        return found


def differentiable(plain, name, where):
    """A function of NumPy, or Lantern's of the same name."""

    @functools.wraps(plain)
    def function(*args, **kwargs):
        try:
            return plain(*args, **kwargs)
        except DetachError:
            ours = find_function(name, where)
            if ours is None or not any(map(is_tracked, tree_leaves((args, kwargs)))):
                raise
            return ours(*args, **kwargs)

    return function


def make_diagonal(x, offset=0, axis1=0, axis2=1):
    """Diagonal matrices; autograd has this beside NumPy's functions."""
    return np.eye(x.shape[-1]) * x[..., None]


def convolve(A, B, axes=None, dot_axes=((), ()), mode="full"):
    """autograd's convolution: along some axes, summed over others, for all the rest."""
    A, B = lantern.asarray(A), lantern.asarray(B)
    axes = [tuple(range(A.ndim))] * 2 if axes is None else axes
    parts = []
    for x, along, over in zip((A, B), axes, dot_axes, strict=True):
        rest = [i for i in range(x.ndim) if i not in (*along, *over)]
        x = lantern.permute_dims(x, (*rest, *over, *along))
        sizes = (len(rest), len(rest) + len(over))
        parts.append((x, x.shape[: sizes[0]], x.shape[sizes[0] : sizes[1]]))
    (A, rest_a, over), (B, rest_b, _) = parts
    found = [
        sum(
            lantern.scipy.signal.convolve(A[(*i, *k)], B[(*j, *k)], mode)
            for k in np.ndindex(over)
        )
        for i in np.ndindex(rest_a)
        for j in np.ndindex(rest_b)
    ]
    return lantern.stack(found).reshape(*rest_a, *rest_b, *np.shape(found[0]))


class Int64(np.int64):
    """Rounding: the derivative is zero."""

    def __new__(cls, x):
        return lantern.astype(x, np.int64)


def install():
    """Put the modules in place."""
    package = module("")
    package.__path__ = [str(COPY)]
    module(
        ".core",
        make_vjp=make_vjp,
        make_jvp=make_jvp,
        vspace=vspace,
        VSpace=VSpace,
        primitive=primitive,
        primitive_vjps=primitive_vjps,
        primitive_jvps=primitive_jvps,
    )
    extend = {
        "primitive": primitive,
        "defvjp": defvjp,
        "defjvp": defjvp,
        "defvjp_argnum": defvjp_argnum,
        "notrace_primitive": notrace_primitive,
        "vspace": vspace,
        "VSpace": VSpace,
        "Box": Value,
    }
    module(".extend", **extend)
    module(".tracer", isbox=is_tracked, getval=base, **extend)
    builtins = {
        "isinstance": notrace_primitive(isinstance),
        "type": notrace_primitive(type),
        "tuple": tuple,
        "list": list,
        "dict": dict,
    }
    module(".builtins", **builtins)
    sys.modules["autograd.numpy"] = package.numpy = Namespace("numpy", np)
    package.numpy.make_diagonal, package.numpy.int64 = make_diagonal, Int64
    package.numpy.r_, package.numpy.c_ = lantern.r_, lantern.c_
    package.numpy.stack = lambda arrays, axis=0: np.stack(list(arrays), axis)
    for name in ("linalg", "fft", "random"):
        part = Namespace(f"numpy.{name}", getattr(np, name))
        sys.modules[f"autograd.numpy.{name}"] = part
        setattr(package.numpy, name, part)
    package.numpy.linalg.T = lambda x: np.swapaxes(x, -1, -2)
    package.numpy.linalg._dot = functools.partial(np.einsum, "...ij,...jk->...ik")
    module(".misc")
    operators = importlib.import_module("autograd.differential_operators")
    vars(package).update({k: v for k, v in vars(operators).items() if k[0] != "_"})
    vars(package).update(builtins)
    flatten = importlib.import_module("autograd.misc.flatten").flatten
    install_scipy()
    module(".misc", flatten=flatten, const_graph=lambda f, *args, **kwargs: f)


def install_scipy():
    """Lantern's names of SciPy's functions as autograd's."""
    ours = lantern.scipy
    module(".scipy", signal=ModuleType("autograd.scipy.signal"))
    sys.modules["autograd.scipy"].signal.convolve = convolve
    sys.modules["autograd.scipy.signal"] = sys.modules["autograd.scipy"].signal
    for name in ("integrate", "linalg", "special", "stats"):
        sys.modules[f"autograd.scipy.{name}"] = getattr(ours, name)
        setattr(sys.modules["autograd.scipy"], name, getattr(ours, name))
    mvn = ours.stats.multivariate_normal
    sys.modules["autograd.scipy.stats.multivariate_normal"] = mvn
    ours.stats.dirichlet.rvs = scipy.stats.dirichlet.rvs  # draws are no function


install()
