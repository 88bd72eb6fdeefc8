"""Which function computes a node: ours, one of the file's, or the reference's."""

import inspect
from typing import Any

from lantern.errors import FileFormatError
from lantern.onnx.extra import package
from lantern.onnx.functions import (
    counted_nodes,
    domain_of,
    domain_versions,
    with_attributes,
)
from lantern.onnx.operators import entries as entries  # fills the table
from lantern.onnx.operators.control import CONTROL
from lantern.onnx.operators.table import lookup
from lantern.onnx.plan import Graph, Names, Node, Setting, attribute_value, called
from lantern.onnx.reference import reference_step

__all__ = ["planned"]


def planned(proto: Any, setting: Setting, names: Names, graph: Any) -> Node:
    """A node, and what computes it.

    Raises:
        FileFormatError: if nobody knows the operator, or not these attributes.
    """
    domain = domain_of(proto)
    if (domain, proto.op_type) in setting.functions:
        return _call(proto, setting, names, setting.functions[domain, proto.op_type])
    schema = _schema(proto, domain, setting)
    if proto.op_type in CONTROL and domain in ("", *_PREVIEWS):
        node = Node(proto, None, set(), _nothing)
        node.step = CONTROL[proto.op_type](node, setting, names, graph)
        return node
    _check_attributes(proto, schema)
    function = lookup(domain, proto.op_type, schema.since_version)
    node = Node(proto, schema, set(), _nothing)
    node.opset_imports = [package().helper.make_opsetid(domain, schema.since_version)]
    if function is None:
        node.step = reference_step(node, setting)
        return node
    options = {a.name: attribute_value(a, setting) for a in proto.attribute}
    known = inspect.signature(function).parameters
    if "outputs" in known:  # how many results are asked for
        options["outputs"] = len(node.outputs)
    if "opset" in known:
        options["opset"] = schema.since_version
    plain = getattr(function, "reals_only", False)
    other = (lambda: reference_step(node, setting)) if plain else None
    node.step = _own_step(function, options, other)
    return node


# Domains of what the format may change yet.
_PREVIEWS = ("ai.onnx.preview", "ai.onnx.preview.training")


def _nothing(run: Any, values: Any, inputs: Any) -> Any:
    raise NotImplementedError


def _own_step(function: Any, options: dict[str, Any], other: Any) -> Any:
    """How one of our functions computes a node; of other types, the reference."""
    if other is None:
        return lambda run, values, inputs: function(*inputs, **options)

    made: list[Any] = []  # once it is needed

    def step(run: Any, values: Any, inputs: list[Any]) -> Any:
        first = inputs[0]
        if first.dtype.kind == "f" and first.dtype.isbuiltin == 1:
            return function(*inputs, **options)
        if not made:
            made.append(other())
        return made[0](run, values, inputs)

    return step


def _schema(proto: Any, domain: str, setting: Setting) -> Any:
    """What the package knows of an operator in the file's version of its domain."""
    onnx = package()
    if domain not in setting.opsets:
        raise FileFormatError(
            f"onnx.load: the file has an operator {proto.op_type} of the domain "
            f"{domain!r}, and does not say which version of that domain."
        )
    try:
        return onnx.defs.get_schema(proto.op_type, setting.opsets[domain], domain)
    except onnx.defs.SchemaError:
        where = f" of the domain {domain!r}" if domain else ""
        raise FileFormatError(
            f"onnx.load: the operator {proto.op_type}{where} is not known in version "
            f"{setting.opsets[domain]}. Write the model with operators of ONNX, or "
            f"with functions that are made of them."
        ) from None


def _check_attributes(proto: Any, schema: Any) -> None:
    """Refuse attributes that an operator does not have."""
    known = schema.attributes
    given = {a.name for a in proto.attribute}
    if len(given) < len(proto.attribute) or not given <= set(known):
        raise FileFormatError(
            f"onnx.load: {proto.op_type} has the attributes {sorted(given)}, and knows "
            f"{sorted(known)}, each once."
        )
    missing = [name for name in known if known[name].required and name not in given]
    if missing:
        raise FileFormatError(
            f"onnx.load: {proto.op_type} has no attribute {missing[0]!r}, which it "
            f"needs."
        )


def _call(proto: Any, setting: Setting, names: Names, function: Any) -> Node:
    """A call of a function: its body, in a scope of its own."""
    setting.limits.call(counted_nodes(function, setting), f"function {function.name!r}")
    body = with_attributes(function, proto)
    graph = Graph(body, setting.inside(domain_versions(function)), None)
    return Node(proto, None, set(), called(graph))
