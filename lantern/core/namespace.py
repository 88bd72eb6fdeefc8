"""The namespace that computes on a value: the only file that chooses by its type.

A rule asks ``xp = namespace(x)`` and calls ``xp.sin(x)``: a module of plain functions
for Python scalars, an array library for arrays, and ``lantern`` itself for a value that
an outer derivative tracks. A forward step calls the function of the operation's own
name, so that each derivative around it meets the same rule again.
"""

from collections.abc import Hashable
from importlib import import_module
from typing import Any

from lantern.core import scalar_functions
from lantern.errors import ArgumentError, MissingRuleError

__all__ = [
    "common_namespace",
    "is_scalar",
    "namespace",
    "register_namespace",
    "register_tracking",
    "tables",
]

_GENERIC = (
    "abs ceil conj floor ieee_divide ieee_pow imag logical_not maximum minimum "
    "ignore_fp_warnings real relu "
    "select sign where zeros_like"
).split()


class ScalarNamespace:
    """Functions of a number class that is not Python's own.

    Args:
        kind: the class's name, for messages.
        functions: what the class can compute, by the standard's names.
    """

    def __init__(self, kind: str, functions: dict[str, Any]) -> None:
        self._kind = kind
        self.__dict__.update(
            {name: getattr(scalar_functions, name) for name in _GENERIC}
        )
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise MissingRuleError(
            f"{name}: {self._kind} numbers have no such function. "
            f"Convert them to float first, or use mpmath.mpf."
        )


def _decimals() -> ScalarNamespace:
    methods = {"exp": "exp", "log": "ln", "log10": "log10", "sqrt": "sqrt"}
    Decimal = import_module("decimal").Decimal
    functions = {name: getattr(Decimal, method) for name, method in methods.items()}
    return ScalarNamespace("Decimal", functions)


def _mpmath() -> ScalarNamespace:
    mp = import_module("mpmath").mp
    same = (
        "exp expm1 log log1p log10 sqrt cbrt sin cos tan asin acos atan atan2 sinh "
        "cosh tanh asinh acosh atanh erf erfc gamma floor ceil sign hypot conj pi inf "
        "nan"
    ).split()
    functions = {name: getattr(mp, name) for name in same}
    functions |= {
        "lgamma": mp.loggamma,
        "polygamma": mp.psi,
        "log2": lambda x: mp.log(x, 2),
        "real": mp.re,
        "imag": mp.im,
        "abs": mp.fabs,
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: mp.log1p(mp.exp(x)),
    }
    return ScalarNamespace("mpmath", functions)


class TableNamespace:
    """In place of functions: tables with labels are not computed with."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise self.refusal(name)

    def refusal(self, name: str) -> ArgumentError:
        """What a pandas table or column is told."""
        return ArgumentError(
            f"{name}: a pandas DataFrame or Series has labels, which a derivative "
            f"would lose. Give its numbers: x.to_numpy()."
        )


tables = TableNamespace()


def _intervals() -> ScalarNamespace:
    iv = import_module("mpmath").iv
    same = "exp expm1 log log1p log10 sqrt sin cos tan atan2 gamma pi inf".split()
    functions = {name: getattr(iv, name) for name in same if hasattr(iv, name)}
    return ScalarNamespace("interval", {**functions, "abs": abs})


def _uncertainties() -> ScalarNamespace:
    functions = vars(import_module("uncertainties.umath"))
    own = {"abs": abs, "pi": scalar_functions.pi}
    return ScalarNamespace("uncertain", functions | own)


_namespaces: dict[type, Any] = {
    **dict.fromkeys((int, bool, complex), scalar_functions),
    float: scalar_functions.floats,
}
_tracking: list[Any] = []  # the namespaces of values that wrap others
_by_package: dict[str, Any] = {
    "decimal": _decimals,
    "fractions": lambda: scalar_functions,
    "pandas": lambda: tables,
    "mpmath": _mpmath,
    "mpmath.ctx_iv": _intervals,
    "uncertainties": _uncertainties,
}


def register_namespace(owner: type | str, functions: Any) -> None:
    """Name the functions for a class, or for every class of a package.

    Args:
        owner: a class, or the name of a package.
        functions: the namespace; for a package, a thunk that returns it.

    Example:
        >>> import lantern
        >>> from types import SimpleNamespace
        >>> class Celsius(float):
        ...     pass
        >>> register_namespace(Celsius, SimpleNamespace(exp=lambda x: "hot"))
        >>> lantern.exp(Celsius(40.0))
        'hot'
    """
    if isinstance(owner, str):
        _by_package[owner] = functions
    else:
        _namespaces[owner] = functions


def register_tracking(owner: type, functions: Any) -> None:
    """Name the functions for a class of values that wrap others.

    They come before those of plain values, and in the order in which they are named:
    what an outer derivative tracks may be an array of examples, not the reverse.
    """
    _namespaces[owner] = functions
    if functions not in _tracking:
        _tracking.append(functions)


def _find(cls: type) -> Any:
    for base in cls.__mro__:
        if base in _namespaces:
            found = _namespaces[base]
            break
        module = base.__module__
        package = module if module in _by_package else module.partition(".")[0]
        if package in _by_package:
            found = _by_package[package]()
            break
    else:
        found = scalar_functions
    _namespaces[cls] = found
    return found


def namespace(x: Any, y: Any = None) -> Any:
    """The functions that compute on one operand, or on two.

    Tracked values come before arrays, arrays before Python scalars.

    Raises:
        ArgumentError: if they are arrays of two libraries.

    Example:
        >>> namespace(2.0).sqrt(2.25)
        1.5
    """
    cls = type(x)
    try:
        found = _namespaces[cls]
    except KeyError:
        found = _find(cls)
    if y is None or type(y) is cls:
        return found
    kind = type(y)
    functions = _namespaces[kind] if kind in _namespaces else _find(kind)
    if is_scalar(functions):  # one of them may be complex
        return scalar_functions if is_scalar(found) else found
    if functions is found:
        return found
    return functions if is_scalar(found) or _yields(cls, kind) else found


def is_scalar(functions: Any) -> bool:
    """Whether functions are those of Python's own numbers."""
    return functions is scalar_functions or functions is scalar_functions.floats


def common_namespace(*operands: Any) -> Any:
    """As ``namespace``, for any number of operands.

    Example:
        >>> common_namespace(2.0, 1, 3.0).sqrt(2.25)
        1.5
    """
    first, *others = operands
    for other in others:
        if namespace(first, other) is not namespace(first):
            first = other
    return namespace(first)


def _yields(cls: type, other: type) -> bool:
    """Whether values of a class leave the choice of functions to those of another.

    Scalars of an array library, which have a hash, go with the arrays of any.
    """
    for own in _tracking:
        if own in (_namespaces[cls], _namespaces[other]):
            return _namespaces[other] is own
    if issubclass(cls, Hashable) or issubclass(other, Hashable):
        return issubclass(cls, Hashable)
    if tables in (_namespaces[cls], _namespaces[other]):
        raise tables.refusal(f"{cls.__name__} and {other.__name__}")
    names = [f"{kind.__module__}.{kind.__qualname__}" for kind in (cls, other)]
    raise ArgumentError(
        f"{names[0]} and {names[1]}: arrays of two libraries meet in one operation. "
        f"Move one: x = lantern.to_device(x, lantern.device(y))."
    )
