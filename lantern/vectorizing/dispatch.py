"""A rule that starts at a level of examples: its batching rule, its arguments."""

from functools import partial
from typing import Any, NoReturn

from lantern.core.dispatch import start
from lantern.core.operation import Function, Op, RuleFunction, operation_of
from lantern.vectorizing.batching_rules import (
    BATCHING_RULES,
    BatchedCall,
    BatchingRule,
    elementwise,
    one_by_one,
    reorder,
)
from lantern.vectorizing.indexing_rules import read, write

__all__ = [
    "TAKE_BATCHED_STATICS",
    "batching_rule_of",
    "by_rule",
    "function_of",
    "give_batching_rule",
]

_BY_INDEX = {"getitem": read, "scatter": write, "put": write, "add_at": write}
_BATCHING_RULES = BATCHING_RULES | _BY_INDEX
TAKE_BATCHED_STATICS: set[BatchingRule]
TAKE_BATCHED_STATICS = {elementwise, one_by_one, reorder, read, write}


def by_rule(call: BatchedCall) -> NoReturn:
    """A rule whose steps are operations, so that it computes on batched values itself.

    ``Examples.begin`` starts it on them.
    """
    raise NotImplementedError


def give_batching_rule(
    function: Function, batching: BatchingRule, statics: bool = False
) -> None:
    """Say how an operation is computed for all examples at once.

    Args:
        function: the operation.
        batching: its batching rule.
        statics: whether that takes arguments that are no operands, and are batched.
    """
    rule: Any = function.rule  # type: ignore[attr-defined]  # given by lantern.op
    operation_of(rule).batching = batching
    if statics:
        TAKE_BATCHED_STATICS.add(batching)


def batching_rule_of(operation: Op) -> BatchingRule:
    """How an operation is computed for all examples at once: what its record says."""
    if operation.batching is None:
        default = elementwise if operation.kind == "elementwise" else one_by_one
        known = _BATCHING_RULES if operation.own else {}
        operation.batching = known.get(operation.name, default)
    batching: BatchingRule = operation.batching
    return batching


def function_of(rule: RuleFunction, operation: Op) -> Function:
    """What computes a rule's operation.

    A rule that many operations share is no function, nor is one of several closures.
    """
    if operation.function is rule or operation.rule is not rule:
        return partial(_started, rule)
    return operation.function


def _started(rule: Any, *operands: Any, **statics: Any) -> Any:
    return start(rule, operands, (), statics)
