"""A rule that starts at a level of examples: its form, its function, its arguments."""

from functools import partial
from types import CodeType
from typing import Any

from lantern.core.dispatch import Function, RuleFunction, operation_of, start
from lantern.vectorizing.batching_rules import Form, form_of

__all__ = ["function_of", "reading"]

_readings: dict[CodeType, Any] = {}


def reading(rule: RuleFunction) -> tuple[Form, int | None, tuple[str, ...]]:
    """A rule's form, how many operands it has (None: any), and the other names."""
    code = rule.__code__
    if code not in _readings:
        operation = operation_of(rule)
        count = operation.arity if operation.arity >= 0 else None
        names = code.co_varnames[code.co_posonlyargcount : code.co_argcount]
        _readings[code] = form_of(operation), count, names
    return _readings[code]


def function_of(rule: RuleFunction) -> Function:
    """What computes the rule's operation.

    A rule that many operations share is no function, nor is one of several closures.
    """
    operation = operation_of(rule)
    if operation.function is rule or operation.rule is not rule:
        return partial(_started, rule)
    return operation.function


def _started(rule: Any, *operands: Any, **statics: Any) -> Any:
    return start(rule, operands, (), statics)
