"""NumPy's protocols, by which ``np.sin(x)`` of a tracked x finds the rules.

A universal function or array function of NumPy is looked up by name among Lantern's
functions. What compares, counts or rounds works on the plain values, for its derivative
is zero; what has no rule raises.
"""

import inspect
import sys
from functools import cache, partial
from typing import Any, ClassVar

from lantern.core.namespace import tables
from lantern.core.operation import Op, registry
from lantern.core.tree import tree_leaves, tree_map
from lantern.core.value import Value, base, is_complex, is_container, is_tracked
from lantern.errors import DetachError, MissingRuleError, MutationError

__all__ = [
    "OUR_NAMES",
    "ArrayProtocols",
    "find_function",
    "find_operation",
    "scipys_words",
    "works_on_plain_values",
]

# Other names of NumPy and SciPy for functions of ours.
OUR_NAMES = {
    "absolute": "abs",
    "amax": "max",
    "amin": "min",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "concatenate": "concat",
    "conjugate": "conj",
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "mod": "remainder",
    "power": "pow",
    "psi": "digamma",
    "transpose": "permute_dims",
    "true_divide": "divide",
}
_PLAIN = frozenset(
    (
        "all allclose any argmax argmin argpartition argsort argwhere array2string "
        "array_equal array_equiv array_repr array_str bitwise_and bitwise_or "
        "bitwise_xor can_cast ceil common_type count_nonzero digitize equal fix "
        "flatnonzero floor floor_divide greater greater_equal "
        "isclose iscomplex iscomplexobj isfinite isin isinf isnan isneginf isposinf "
        "isreal isrealobj less less_equal lexsort logical_and logical_not logical_or "
        "logical_xor matrix_rank may_share_memory min_scalar_type nanargmax nanargmin "
        "ndim nonzero not_equal result_type rint round searchsorted shape "
        "shares_memory signbit size spacing trunc "
        "empty_like ones_like zeros_like"
    ).split()
)
_SECOND_IS_OUT = frozenset({"fix", "isneginf", "isposinf"})
_METHODS = {
    ("add", "reduce"): "sum",
    ("multiply", "reduce"): "prod",
    ("maximum", "reduce"): "max",
    ("minimum", "reduce"): "min",
    ("logaddexp", "reduce"): "logsumexp",
    ("add", "accumulate"): "cumsum",
    ("multiply", "accumulate"): "cumprod",
    ("maximum", "accumulate"): "cummax",
    ("minimum", "accumulate"): "cummin",
}


_AT = {name: name for name in ("add", "subtract", "multiply", "divide", "power")} | {
    "minimum": "min",
    "maximum": "max",
}
# What Python calls on the right operand where the left one leaves it to that.
_REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "remainder": "__rmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
}


def works_on_plain_values(name: str) -> bool:
    """Whether a function of NumPy has derivative zero, and a plain result."""
    return name in _PLAIN


def find_function(name: str, module: str = "numpy") -> Any:
    """Lantern's function for a function of NumPy or SciPy; None if there is none."""
    functions = lantern = sys.modules["lantern"]
    for part in ("linalg", "fft"):
        if module.endswith(part):
            functions = getattr(functions, part)
    found = getattr(functions, OUR_NAMES.get(name, name), None)
    if found is None and "scipy.special" in sys.modules:
        found = getattr(lantern.scipy.special, name, None)
    return found if callable(found) else None


def find_operation(name: str) -> Op | None:
    """The operation of a name; its module may have to be imported for it."""
    if name not in registry:
        getattr(sys.modules["lantern"], name, None)
    return registry.get(name)


_signature = cache(inspect.signature)


def _accepts(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether one of our functions has the parameters of this call."""
    try:
        _signature(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _taken_out(name: str, kwargs: dict[str, Any]) -> Any:
    """Take ``out=`` from the arguments: a buffer, or None."""
    out = kwargs.pop("out", None)
    if type(out) is tuple and len(out) == 1:
        out = out[0]
    if isinstance(out, Value):
        if out.changes:
            return out
        raise MutationError(
            f"{name}: out= cannot be a tensor, which never changes. Use the "
            f"function's result, or a lantern.Buffer for out."
        )
    if any(x is not None for x in (out if type(out) is tuple else (out,))):
        raise DetachError(
            f"{name}: with a tracked value, out= would make its result a constant. "
            f"Use the function's result, or a lantern.Buffer for out."
        )
    return None


def _write_at(name: str, target: Any, index: Any, *v: Any) -> None:
    """What ``np.add.at(b, index, v)`` and the like do to a buffer."""
    if not isinstance(target, Value) or not target.changes:
        raise MutationError(
            f"numpy.{name}.at: the array cannot be written to, or would lose a "
            f"derivative. Make it a lantern.Buffer, or use x.at[index].add(v)."
        )
    method = getattr(target.freeze().at[index], _AT.get(name, ""), None)  # type: ignore[attr-defined]  # a buffer
    if method is None or len(v) != 1:
        raise MissingRuleError(
            f"numpy.{name}.at: no rule for it. Choose one of {', '.join(_AT)}, or "
            f"write b[index] = numpy.{name}(b[index])."
        )
    target[...] = method(*v)  # type: ignore[index]  # a buffer


def _crossed(x: Any, y: Any) -> tuple[Any, Any]:
    """Two arrays in the shapes in which each element of one meets all of the other."""
    lantern: Any = sys.modules["lantern"]
    x, y = lantern.asarray(x), lantern.asarray(y)
    return lantern.reshape(x, x.shape + (1,) * len(y.shape)), y


def _in_domain(name: str, x: Any, *others: Any) -> tuple[Any, ...]:
    """The arguments of a function of ``numpy.emath``, complex where need be."""
    plain = abs(base(x)) > 1 if name.startswith("arc") else base(x) < 0
    outside = not is_complex(x) and getattr(plain, "any", lambda: plain)()
    return x + 0j if outside else x, *others


def _call(name: str, function: Any, args: Any, kwargs: Any) -> Any:
    """Run our function as NumPy's was called, or say that there is no rule for it."""
    if function is not None and _accepts(function, args, kwargs):
        return function(*args, **kwargs)
    options = f" with these arguments ({', '.join(kwargs)})" if function else ""
    raise MissingRuleError(
        f"{name}: no rule for a tracked value{options}. Write it with the functions of "
        f"lantern, or register a rule (lantern.op)."
    )


def scipys_words() -> str:
    """What to say if a function of SciPy asks for a plain value; else nothing."""
    called, frame = None, sys._getframe()
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if module.startswith("pandas."):
            return str(tables.refusal(frame.f_code.co_name))
        if module.startswith("scipy."):
            called = _counterpart(module, frame) or called
        elif called or not module.startswith(("lantern.", "numpy.")):
            break  # whoever called SciPy, or what SciPy has called
        frame = frame.f_back  # type: ignore[assignment]
    if called is None:
        return ""
    theirs, ours = called
    others = (
        "what lantern.scipy has, or write it with lantern's functions, or as a rule "
        "(lantern.custom_rule)"
    )
    return (
        f"{theirs}: SciPy's own function would make a constant of a tracked value. "
        f"Use {ours or others}."
    )


def _counterpart(module: str, frame: Any) -> tuple[str, str] | None:
    """A public function of SciPy that a frame runs, and ours, if there is one."""
    part, inside = module.split(".")[1], frame.f_locals
    owner = getattr(inside.get("self"), "name", None)  # a distribution
    path = [part, owner] if isinstance(owner, str) and part == "stats" else [part]
    # A decorator's own function, or another that it calls in its place.
    wrapped = (
        getattr(inside.get(x), "__name__", "_") for x in frame.f_code.co_freevars
    )
    for name in (frame.f_code.co_name, *wrapped):
        words = [*path, name]
        if not name.startswith("_") and callable(_found(sys.modules["scipy"], words)):
            name = ".".join(["scipy", *words])
            ours = _found(sys.modules["lantern"], ["scipy", *words])
            return name, f"lantern.{name}" if ours else ""
    return None


def _found(owner: Any, words: Any) -> Any:
    """What has a path in a module; perhaps None."""
    for word in words:
        owner = getattr(owner, word, None)
    return owner


class ArrayProtocols:
    """The methods by which NumPy hands over an operation on a tracked value."""

    __slots__ = ()
    rank: ClassVar[float]  # of a value

    def called(self, numpys: Any, args: Any, function: Any, inputs: Any) -> Any:
        """What ours makes of its inputs, in place of NumPy's function of arguments."""
        return function(*inputs)

    def __array_ufunc__(
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """Run a universal function of NumPy or SciPy by the rule of its name."""
        name = ufunc.__name__
        plain = name in _REFLECTED and method == "__call__" and not kwargs
        if plain and not isinstance(inputs[0], Value):  # in fewer steps, as y.__radd__
            reflected = getattr(self, _REFLECTED[name])
            if self.rank:  # an array: as ``called`` has it, in no call
                z = reflected(inputs[0])
            else:
                z = self.called(ufunc, inputs, reflected, inputs[:1])
            if z is not NotImplemented:
                return z
        if len(inputs) > 1 and any(map(is_container, inputs)):
            return NotImplemented
        if kwargs.get("out") is not None:
            b = _taken_out(f"numpy.{name}", kwargs)
            z = self.__array_ufunc__(ufunc, method, *inputs, **kwargs)
            return b.take_result(z) if b is not None else z
        if method == "at":
            return _write_at(name, *inputs)
        if method == "outer":
            return ufunc(*_crossed(*inputs), **kwargs)
        if method != "__call__":
            ours = _METHODS.get((name, method))
            function = find_function(ours) if ours else None
            if function is not None:
                kwargs.setdefault("axis", 0)  # as a ufunc, and unlike np.sum
            return _call(f"numpy.{name}.{method}", function, inputs, kwargs)
        if works_on_plain_values(name):
            return getattr(ufunc, method)(*map(base, inputs), **kwargs)
        function = find_function(name)
        if function is not None and not kwargs:
            return self.called(ufunc, inputs, function, inputs)
        return _call(f"numpy.{name}", function, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """Run an array function of NumPy by the rule of its name."""
        name, module = func.__name__, func.__module__
        kwargs = dict(kwargs)
        if name in _SECOND_IS_OUT and len(args) > 1:
            args, kwargs["out"] = args[:1], args[1]
        if kwargs.get("out") is not None:
            b = _taken_out(f"{module}.{name}", kwargs)
            z = self.__array_function__(func, types, args, kwargs)
            return b.take_result(z) if b is not None else z
        kwargs.pop("out", None)
        if kwargs.get("casting") == "same_kind":
            del kwargs["casting"]  # the default, said aloud by np.row_stack
        if works_on_plain_values(name):
            return func(*tree_map(base, args), **tree_map(base, kwargs))
        if module.endswith("scimath"):
            args = _in_domain(name, *args)
        function = find_function(name, module)
        if function is None and not any(map(is_tracked, tree_leaves((args, kwargs)))):
            return func(*tree_map(base, args), **tree_map(base, kwargs))  # as np.savez
        call = partial(_call, f"{module}.{name}", function)
        if kwargs or len(args) != 1 or function is None:
            return call(args, kwargs)
        return self.called(func, args, lambda *args: call(args, {}), args)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        """Become a plain array, unless that would lose a derivative."""
        if not is_tracked(self):
            return base(self).__array__(*args, **kwargs)
        raise DetachError(
            scipys_words()
            or "numpy.array: a tracked value would become a constant. Use "
            "lantern.array or lantern.stack to build an array of tracked numbers, a "
            "lantern.Buffer for b in b[i] = x, or lantern.stop_gradient to detach it "
            "on purpose."
        )
