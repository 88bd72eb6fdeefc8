"""A rule that starts at a level of examples: its batching rule, its arguments."""

from functools import partial
from typing import Any

from lantern.core.dispatch import start
from lantern.core.operation import Function, Op, RuleFunction, operation_of
from lantern.vectorizing.batching_rules import (
    BATCHING_RULES,
    BatchingRule,
    elementwise,
    one_by_one,
    reorder,
)
from lantern.vectorizing.indexing_rules import read, write

__all__ = ["TAKE_BATCHED_STATICS", "batching_rule_of", "function_of"]

_BY_INDEX = {"getitem": read, "scatter": write, "put": write, "add_at": write}
_BATCHING_RULES = BATCHING_RULES | _BY_INDEX
TAKE_BATCHED_STATICS = frozenset((elementwise, one_by_one, reorder, read, write))


def batching_rule_of(operation: Op) -> BatchingRule:
    """How an operation is computed for all examples at once: what its record says."""
    if operation.batching is None:
        default = elementwise if operation.kind == "elementwise" else one_by_one
        known = _BATCHING_RULES if operation.own else {}
        operation.batching = known.get(operation.name, default)
    batching: BatchingRule = operation.batching
    return batching


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
