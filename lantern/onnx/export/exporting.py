"""``export``: modules as ONNX files, checked by running them on other inputs."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.errors import ArgumentError, EagerError
from lantern.files import write_file
from lantern.onnx.export import entries as entries  # fills the table
from lantern.onnx.export.basic import refuse
from lantern.onnx.export.builder import Builder
from lantern.onnx.export.tracing import traced
from lantern.onnx.extra import package
from lantern.onnx.loading import load
from lantern.torch.autograd import no_grad
from lantern.torch.nn.module import Module
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["export"]


def export(
    module: Any,
    args: Any,
    path: Any = None,
    *,
    input_names: Any = None,
    output_names: Any = None,
) -> Any:
    """A module as an ONNX model: of what it computes when it is called once.

    As PyTorch's tracer does, it writes down the operations of this call: shapes are
    those of ``args``, and so are the ways that Python's ``if`` and ``for`` have gone.
    The module is run as in ``eval()``. What was written is then run, on ``args`` and on
    other inputs of these shapes; should it give other values than the module, because
    something in it went by values or was computed without tensors, that is an error.

    Args:
        module: a ``Module``, or a function of tensors.
        args: what it is called with: a tensor, or a tuple of tensors.
        path: where to write the file, or an open binary file; None for nowhere.
        input_names: names of the inputs; "input", "input_1", ... if not given.
        output_names: names of the outputs, likewise.

    Returns:
        The ``ModelProto``. Parameters have their names in ``module.state_dict()``.

    Raises:
        MissingRuleError: for a function that is not written as operators.
        EagerError: if the file gives other values than the module.

    Example:
        >>> import lantern.onnx
        >>> import lantern.torch as torch
        >>> nn = torch.nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> file = lantern.onnx.export(model, torch.randn(4, 2))
        >>> [tensor.name for tensor in file.graph.initializer]
        ['0.weight', '0.bias', '2.weight', '2.bias']
    """
    args = _taken(args)
    modes = _evaluated(module)
    try:
        with no_grad():
            proto, unknown = _written(module, args, input_names, output_names)
            _check(module, proto, args, unknown)
    finally:
        for part, training in modes:
            part.training = training
    if path is not None:
        write_file("onnx.export", path, proto.SerializeToString())
    return proto


def _taken(args: Any) -> tuple[Any, ...]:
    """The arguments, with arrays of their own."""
    package()
    args = (args,) if isinstance(args, Tensor) else tuple(args)
    if not args or not all(isinstance(x, Tensor) for x in args):
        raise ArgumentError(
            "onnx.export: args has to be a tensor or a tuple of tensors. Give numbers "
            "as tensors, torch.tensor(x), or close the function over them."
        )
    return tuple(fresh(np.array(base(x))) for x in args)


def _evaluated(module: Any) -> list[tuple[Any, bool]]:
    """Put a module into ``eval()``; what its parts were in before."""
    if not isinstance(module, Module):
        return []
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    return modes


def _written(module: Any, args: Any, input_names: Any, output_names: Any) -> Any:
    weights = {}
    if isinstance(module, Module):
        for name, x in [*module.named_parameters(), *module.named_buffers()]:
            weights[id(base(x))] = name, base(x)
    builder = Builder(weights)
    names = _names("input", input_names, len(args))
    for x, name in zip(args, names, strict=True):
        builder.bind(x, name)
    result, unknown = traced(builder, lambda: module(*args))
    outputs = _tensors(result)
    made = _names("output", output_names, len(outputs))
    return builder.model(list(args), outputs, (names, made)), unknown


def _names(what: str, given: Any, count: int) -> list[str]:
    if given is None:
        return [what] + [f"{what}_{i}" for i in range(1, count)]
    if len(set(given)) != count:
        raise ArgumentError(
            f"onnx.export: {what}_names has to have {count} different names, got "
            f"{list(given)}."
        )
    return list(given)


def _tensors(z: Any) -> list[Any]:
    """The results of a module, in a row."""
    if isinstance(z, dict):
        z = list(z.values())
    if isinstance(z, list | tuple):
        return [x for part in z for x in _tensors(part)]
    return [z]


def _check(module: Any, proto: Any, args: Any, unknown: list[str]) -> None:
    """Hold the file to the module, on its inputs and on others."""
    package("onnx.checker").check_model(proto, full_check=True)
    model = load(proto, elements=1 << 62)
    rng = np.random.default_rng(0)
    above, below = (tuple(_other(x, rng, sign) for x in args) for sign in (1, -1))
    for inputs in (args, above, below):
        wanted = _tensors(module(*inputs))
        found = _tensors(model(*inputs))
        for z, w in zip(found, wanted, strict=True):
            a, b = base(z), base(w)
            scale = np.abs(b[np.isfinite(b)]).max(initial=1e-3) if b.size else 1.0
            close = a.shape == b.shape and a.dtype == b.dtype
            if not close or not np.allclose(
                a, b, rtol=1e-3, atol=1e-4 * float(scale), equal_nan=True
            ):
                if unknown:
                    raise refuse(" and ".join(dict.fromkeys(unknown)))
                raise EagerError(
                    "onnx.export: on other inputs than args, the module does not what "
                    "was written down: something in it goes by values of the inputs, "
                    "is computed without functions of tensors, or is written through a "
                    "view. Keep that out of the module; use torch.where, or x[i] = v."
                )


def _other(x: Any, rng: Any, sign: float) -> Any:
    """Another input of this shape and type; numbers of one sign."""
    array = base(x)
    if array.dtype.kind in "fc":
        spread = np.abs(array).max(initial=1e-2)
        noise = (1 + np.abs(rng.normal(size=array.shape))) * spread
        return fresh((array + sign * noise).astype(array.dtype))
    if array.dtype.kind in "iu" and array.size > 1:
        return fresh(rng.permutation(array.reshape(-1)).reshape(array.shape))
    return x
