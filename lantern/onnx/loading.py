"""``load`` and ``save``: models from files, and back into them."""

from typing import Any

from lantern.errors import FileFormatError, LanternError
from lantern.files import write_file
from lantern.onnx.extra import package
from lantern.onnx.limits import Limits
from lantern.onnx.model import Model
from lantern.onnx.reading import read_model

__all__ = ["load", "save"]

_SIZE = 2 << 30  # what a message of the format can hold


def load(source: Any, *, size: int = _SIZE, elements: int | None = None) -> Model:
    """A model from an ONNX file, as a module that runs, is differentiated and trained.

    The file may come from anybody: nothing in it is executed but operators, files that
    it names lie in its folder, and sizes are known before anything is allocated.

    Args:
        source: a path, the bytes of a file, an open binary file, or a ``ModelProto``.
        size: how many bytes the file may have, with those that it names.
        elements: how many elements one value may have in a run; by default 8 million,
            and 64 for each element of inputs and weights.

    Returns:
        A ``Module``. Floating-point initialisers are its parameters.

    Raises:
        FileFormatError: if it is no model, is damaged, asks for more than it may, or
            has an operator that nobody knows.
        MissingExtraError: if the package onnx is not installed.

    Example:
        >>> import lantern.onnx
        >>> import lantern.torch as torch
        >>> from onnx.parser import parse_model
        >>> file = parse_model('''
        ...     <ir_version: 10, opset_import: ["": 20]>
        ...     triple (float[N] x) => (float[N] y)
        ...     <float[1] w = {3}> { y = Mul(x, w) }''').SerializeToString()
        >>> model = lantern.onnx.load(file)
        >>> x = torch.tensor([2.0, 5.0], requires_grad=True)
        >>> model(x).sum().backward()
        >>> x.grad, model.w.grad
        (tensor([3., 3.]), tensor([7.]))
    """
    limits = Limits(size)
    proto, folder = read_model(source, limits)
    try:
        return Model(proto, folder, limits, elements)
    except (LanternError, MemoryError, OSError):
        raise
    except Exception as error:  # of the package's, which has many, for damaged messages
        raise FileFormatError(
            f"onnx.load: the file is damaged: {type(error).__name__}: {error}"
        ) from error


def save(model: Model, path: Any) -> None:
    """Write a loaded model into a file, with the weights as they are now.

    Args:
        model: what ``load`` has returned.
        path: a path, or an open binary file.

    Example:
        >>> import io
        >>> import lantern.onnx
        >>> import lantern.torch as torch
        >>> from onnx.parser import parse_model
        >>> model = lantern.onnx.load(
        ...     parse_model('''
        ...     <ir_version: 10, opset_import: ["": 20]>
        ...     triple (float[N] x) => (float[N] y)
        ...     <float[1] w = {3}> { y = Mul(x, w) }''')
        ... )
        >>> with torch.no_grad():
        ...     _ = model.w.fill_(7.0)
        >>> file = io.BytesIO()
        >>> lantern.onnx.save(model, file)
        >>> lantern.onnx.load(file.getvalue()).w
        Parameter containing:
        tensor([7.], requires_grad=True)
    """
    package()
    write_file("onnx.save", path, model.to_proto().SerializeToString())
