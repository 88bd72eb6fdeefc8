"""Functions of a file: how many nodes they come to, and their bodies for one call."""

from typing import Any

from lantern.errors import FileFormatError
from lantern.onnx.extra import package

__all__ = [
    "counted_nodes",
    "domain_of",
    "domain_versions",
    "function_table",
    "with_attributes",
]

_MOST, _DEEP = 1 << 20, 64


def domain_of(proto: Any) -> str:
    """The domain of an operator or a version, the format's own under its short name."""
    return "" if proto.domain == "ai.onnx" else proto.domain


def domain_versions(proto: Any) -> dict[str, int]:
    """The versions of the domains that a model or a function names."""
    return {domain_of(opset): opset.version for opset in proto.opset_import}


def function_table(model: Any) -> dict[tuple[str, str], Any]:
    """The functions of a model, by domain and name."""
    return {(domain_of(f), f.name): f for f in model.functions}


def counted_nodes(function: Any, setting: Any) -> int:
    """How many nodes a call of a function comes to, once all calls are written out.

    Raises:
        FileFormatError: if it calls itself.
    """
    counts = setting.counts
    key = (domain_of(function), function.name)
    if key in counts:
        if counts[key] is None:
            raise FileFormatError(
                f"onnx.load: the function {function.name!r} calls itself. Such a file "
                f"is refused."
            )
        return counts[key]
    if sum(count is None for count in counts.values()) >= _DEEP:
        raise FileFormatError(
            f"onnx.load: functions call one another {_DEEP} deep. Such a file is "
            f"refused."
        )
    counts[key] = None
    counts[key] = min(_count(function.node, setting), _MOST + 1)
    return counts[key]


def _count(nodes: Any, setting: Any) -> int:
    total = 0
    for node in nodes:
        key = (domain_of(node), node.op_type)
        total += 1
        if key in setting.functions:
            total += counted_nodes(setting.functions[key], setting)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                total += _count(graph.node, setting)
    return total


def with_attributes(function: Any, call: Any) -> Any:
    """A function's body, its attributes replaced by those of a call."""
    given = {a.name: a for a in function.attribute_proto}
    given.update({a.name: a for a in call.attribute})
    body = package().FunctionProto()
    body.CopyFrom(function)
    for node in body.node:
        _replace(node, given)
    return body


def _replace(node: Any, given: dict[str, Any]) -> None:
    kept = []
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in given:
                continue  # the operator's own default
            name = attribute.name
            attribute.CopyFrom(given[attribute.ref_attr_name])
            attribute.name = name
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                _replace(inner, given)
        kept.append(attribute)
    if len(kept) < len(node.attribute):
        copies = [
            package().AttributeProto.FromString(a.SerializeToString()) for a in kept
        ]
        del node.attribute[:]
        node.attribute.extend(copies)
