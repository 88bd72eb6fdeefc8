"""Operators that the package's reference evaluator computes, on tracked arrays too.

Its operators are written with NumPy's functions, which find Lantern's rules. What it
does in loops over elements is no derivative: there the body counts that the format
itself gives the operator. Where there is none either, the operator computes as it does,
and says on the way back that it has no derivative.
"""

from typing import Any

import numpy as np

from lantern.core.dispatch import register_rule, start
from lantern.core.value import Rule, Value, base
from lantern.errors import FileFormatError, LanternError, MissingRuleError
from lantern.onnx.extra import package
from lantern.onnx.functions import domain_of, domain_versions, with_attributes
from lantern.onnx.operators.table import CONSTANT
from lantern.onnx.plan import Graph, called

__all__ = ["reference_step"]


def reference_step(node: Any, setting: Any) -> Any:
    """How the reference computes a node."""
    evaluator = _Evaluator(node, setting)

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        while inputs and inputs[-1] is None:
            inputs = inputs[:-1]
        if not any(map(_is_tracked, inputs)):
            return evaluator.plain(run, inputs)
        if node.proto.op_type in CONSTANT:
            return evaluator.plain(run, [base(x) for x in inputs])
        return evaluator.tracked(run, inputs)

    return step


def _is_tracked(x: Any) -> bool:
    """Whether a derivative goes through a value, or through a part of a sequence."""
    if isinstance(x, list):
        return any(map(_is_tracked, x))
    return isinstance(x, Value)


class _Evaluator:
    """The ways to compute a node; what takes time to prepare, once it is needed."""

    def __init__(self, node: Any, setting: Any) -> None:
        self.node, self.setting = node, setting
        self.operator = _operator(node, setting)
        self.bodies: dict[Any, Any] = {}
        self.fails = False
        if self.operator is None and not _has_body(node.schema):
            raise FileFormatError(
                f"onnx.load: nothing computes the operator {node.proto.op_type} here."
            )

    def plain(self, run: Any, inputs: list[Any]) -> Any:
        """Results of plain arrays."""
        if self.operator is None:
            return self.body(inputs)(run, {}, inputs)
        with np.errstate(all="ignore"):
            return self.operator.run(*inputs)

    def tracked(self, run: Any, inputs: list[Any]) -> Any:
        """Results of arrays that a derivative goes through."""
        if _has_body(self.node.schema):
            return self.body(inputs)(run, {}, inputs)
        if not self.fails:
            try:
                results = self.operator.run(*inputs)
            except (LanternError, TypeError, ValueError):
                self.fails = True
            else:
                if not _is_lost(results):
                    return results
                self.fails = True
        return self._without_derivative(run, inputs)

    def body(self, inputs: list[Any]) -> Any:
        """The function that the format gives an operator, for inputs of these types."""
        kinds = tuple(None if x is None else (base(x).dtype, x.shape) for x in inputs)
        if not self.node.schema.has_function:
            key: Any = kinds
        else:
            key = None
        if key not in self.bodies:
            self.bodies[key] = _body_step(self.node, self.setting, inputs)
        return self.bodies[key]

    def _without_derivative(self, run: Any, inputs: list[Any]) -> Any:
        parts = [x for y in inputs for x in (y if isinstance(y, list) else [y])]
        tracked = [x for x in parts if isinstance(x, Value)]
        plain = [[*map(base, x)] if isinstance(x, list) else base(x) for x in inputs]
        name = self.node.proto.op_type
        return tuple(
            start(_rule, tracked, (), {"value": z, "name": name}) if _is_real(z) else z
            for z in self.plain(run, plain)
        )


def _opaque(*operands: Any, value: Any, name: str) -> Rule:
    """A value that was computed from operands in a way that has no derivative."""
    yield value
    raise MissingRuleError(
        f"onnx: the operator {name} has no derivative here. Take the gradient of a "
        f"part of the model behind it, or run it in torch.no_grad()."
    )


_rule = register_rule(_opaque, "general")


def _is_real(z: Any) -> bool:
    return isinstance(z, np.ndarray) and z.dtype in (np.float16, np.float32, np.float64)


def _is_lost(results: Any) -> bool:
    """Whether a result has numbers of a kind that a derivative would go through."""
    return any(_is_real(z) for z in results)


def _operator(node: Any, setting: Any) -> Any:
    """The reference's operator, which takes what Lantern tracks for arrays.

    None where it has none, or one that is itself a function.
    """
    domain = domain_of(node.proto)
    if domain not in _HOMES:
        return None
    load = package("onnx.reference.ops" + _HOMES[domain]).load_op
    try:
        version = setting.opsets[domain]
        own = {} if domain else {"evaluator_cls": _Refused}
        cls = load(domain, node.proto.op_type, version, **own)
    except (_WantedError, NotImplementedError, RuntimeError, ValueError):
        return None
    if not isinstance(cls, type):
        return None

    class Tolerant(cls):  # type: ignore[misc, valid-type]
        """Takes tracked values for arrays."""

        def _check_and_fix_outputs(self, results: Any) -> Any:
            return tuple(np.array(z) if np.isscalar(z) else z for z in results)

    Tolerant.__name__ = cls.__name__
    run = {"log": _nothing, "opsets": setting.opsets, "verbose": 0, "new_ops": None}
    try:
        return Tolerant(node.proto, run)
    except (RuntimeError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise FileFormatError(
            f"onnx.load: the operator {node.proto.op_type} is damaged: {error}"
        ) from None


# Where the reference keeps the operators of a domain.
_HOMES = {
    "": "",
    "ai.onnx.ml": ".aionnxml",
    "ai.onnx.preview": ".aionnx_preview",
    "ai.onnx.preview.training": ".aionnx_preview_training",
}


def _nothing(*args: Any) -> None:
    pass


class _WantedError(Exception):
    """The reference asks for an evaluator: the operator is a function."""


class _Refused:
    def __init__(self, *args: Any, **options: Any) -> None:
        raise _WantedError


def _has_body(schema: Any) -> bool:
    return bool(schema.has_function or schema.has_context_dependent_function)


def _body_step(node: Any, setting: Any, inputs: list[Any]) -> Any:
    """A body of an operator that is a function, planned."""
    onnx = package()
    schema, proto = node.schema, node.proto
    if schema.has_function:
        function = schema.function_body
        if isinstance(function, bytes):
            function = onnx.FunctionProto.FromString(function)
    else:
        kinds = []
        for x in inputs:
            kind = onnx.TypeProto()
            if x is not None:
                element = onnx.helper.np_dtype_to_tensor_dtype(base(x).dtype)
                kind = onnx.helper.make_tensor_type_proto(element, x.shape)
            kinds.append(kind.SerializeToString())
        text = schema.get_context_dependent_function(proto.SerializeToString(), kinds)
        function = onnx.FunctionProto.FromString(text)
    whole = onnx.NodeProto()
    whole.CopyFrom(proto)
    given = {a.name for a in proto.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            default = whole.attribute.add()
            default.CopyFrom(attribute.default_value)
            default.name = name
    body = with_attributes(function, whole)
    return called(Graph(body, setting.inside(domain_versions(function)), None))
