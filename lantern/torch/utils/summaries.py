"""A model as a table: one line for each layer, with torchinfo's columns and names."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import ArgumentError
from lantern.torch.functions.creation import zeros
from lantern.torch.nn.module import Module
from lantern.torch.nn.parameter import is_lazy
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.tensor import Tensor

__all__ = ["ModelStatistics", "summary"]

_TITLES = {
    "input_size": "Input Shape",
    "output_size": "Output Shape",
    "num_params": "Param #",
    "params_percent": "Param %",
    "kernel_size": "Kernel Shape",
    "mult_adds": "Mult-Adds",
    "trainable": "Trainable",
}


@dataclass
class Layer:
    """One line: a module, and what was seen of its call."""

    name: str
    kind: str
    depth: int
    index: int
    module: Module
    own: int
    inputs: list[int] | None = None
    outputs: list[int] | None = None
    mult_adds: int = 0
    bytes_out: int = 0
    below: list["Layer"] = field(default_factory=list)

    def walk(self) -> Iterator["Layer"]:
        """The layer and those below it."""
        yield self
        for layer in self.below:
            yield from layer.walk()


@dataclass
class ModelStatistics:
    """What ``summary`` returns: prints as a table.

    Attributes:
        total_params: how many numbers the parameters have.
        trainable_params: those that are trained.
        total_mult_adds: multiplications and additions of one forward pass in linear
            and convolutional layers.
        total_input, total_output_bytes, total_param_bytes: memory, in bytes; the
            results of layers twice, as the backward pass has gradients of them.

    Example:
        >>> import lantern.torch as torch
        >>> found = torch.utils.summary(torch.nn.Linear(3, 2), (1, 3))
        >>> found.total_params, found.total_mult_adds
        (8, 8)
    """

    top: Layer
    columns: Sequence[str]
    deepest: int
    total_input: int

    def __post_init__(self) -> None:
        unique = {id(p): p for p in self.top.module.parameters() if not is_lazy(p)}
        self.total_params = sum(p.numel() for p in unique.values())
        self.trainable_params = sum(
            p.numel() for p in unique.values() if p.requires_grad
        )
        layers = list(self.top.walk())
        self.total_mult_adds = sum(x.mult_adds for x in layers)
        self.total_output_bytes = 2 * sum(x.bytes_out for x in layers if not x.below)
        self.total_param_bytes = sum(p.nbytes for p in unique.values())

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The table's lines, as texts by column."""
        yield "Layer (type:depth-idx)", *(_TITLES[name] for name in self.columns)
        for layer in self.top.walk():
            if layer.depth <= self.deepest:
                yield self._name(layer), *(self._cell(layer, c) for c in self.columns)

    def _name(self, layer: Layer) -> str:
        if not layer.depth:
            return layer.kind
        bars = "│    " * (layer.depth - 1)
        return f"{bars}├─{layer.kind}: {layer.depth}-{layer.index}"

    def _cell(self, layer: Layer, column: str) -> str:
        if column in ("input_size", "output_size"):
            shape = layer.inputs if column == "input_size" else layer.outputs
            return "--" if shape is None else str(shape)
        shown_whole = layer.depth == self.deepest and layer.below
        whole = list(layer.walk()) if shown_whole else [layer]
        if column == "mult_adds":
            count = sum(x.mult_adds for x in whole)
            return f"{count:,}" if count else "--"
        if column == "kernel_size":
            size = getattr(layer.module, "kernel_size", None)
            return "--" if size is None else str(_pair(size))
        own = list(layer.module.parameters(recurse=bool(shown_whole)))
        if column == "trainable":
            kinds = {p.requires_grad for p in own}
            return "--" if not own else "Partial" if len(kinds) > 1 else str(*kinds)
        count = sum(x.own for x in whole)
        if any(map(is_lazy, own)):
            return "(lazy)"
        if column == "params_percent":
            share = count / self.total_params if self.total_params else 0
            return f"{share:.2%}" if count else "--"
        frozen = count and not any(p.requires_grad for p in own)
        return "--" if not count else f"({count:,})" if frozen else f"{count:,}"

    def __str__(self) -> str:
        rows = list(self.rows())
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(x.ljust(n) for x, n in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        rule = "=" * max(map(len, lines))
        sizes = (
            self.total_input / 1e6,
            self.total_output_bytes / 1e6,
            self.total_param_bytes / 1e6,
        )
        counts = f"""\
Total params: {self.total_params:,}
Trainable params: {self.trainable_params:,}
Non-trainable params: {self.total_params - self.trainable_params:,}"""
        if self.top.outputs is None:
            return "\n".join([rule, lines[0], rule, *lines[1:], rule, counts, rule])
        memory = f"""\
Input size (MB): {sizes[0]:.2f}
Forward/backward pass size (MB): {sizes[1]:.2f}
Params size (MB): {sizes[2]:.2f}
Estimated Total Size (MB): {sum(sizes):.2f}"""
        work = f"Total mult-adds: {self.total_mult_adds:,}"
        parts = [rule, lines[0], rule, *lines[1:], rule, counts, work, rule, memory]
        return "\n".join([*parts, rule])

    __repr__ = __str__


def _pair(size: Any) -> Any:
    return list(size) if isinstance(size, tuple) else size


def _shape(x: Any) -> list[int] | None:
    """The shape of a tensor, or of the first one in a structure."""
    if isinstance(x, Tensor):
        return list(x.shape)
    parts = list(x.values()) if isinstance(x, dict) else x
    found = map(_shape, parts) if isinstance(parts, tuple | list) else ()
    return next((shape for shape in found if shape is not None), None)


def _bytes(x: Any) -> int:
    if isinstance(x, Tensor):
        return x.nbytes
    parts = list(x.values()) if isinstance(x, dict) else x
    return sum(map(_bytes, parts)) if isinstance(parts, tuple | list) else 0


def _work(module: Module, outputs: list[int] | None) -> int:
    """Multiplications and additions of a layer: its weight, once for each position."""
    if outputs is None:
        return 0
    kernel = hasattr(module, "kernel_size")
    positions = math.prod(outputs[2:]) if kernel and len(outputs) > 2 else 1
    batch = outputs[0] if len(outputs) > 1 else 1
    if not kernel and len(outputs) > 2:
        batch = math.prod(outputs[:-1])
    own = module.parameters(recurse=False)
    return sum(p.numel() for p in own if not is_lazy(p)) * positions * batch


def _described(module: Module, name: str, depth: int, counts: dict[int, int]) -> Layer:
    counts[depth] = counts.get(depth, 0) + 1
    own = sum(p.numel() for p in module.parameters(recurse=False) if not is_lazy(p))
    kind = type(module).__name__
    layer = Layer(name, kind, depth, counts[depth], module, own)
    layer.below = [
        _described(x, n, depth + 1, counts) for n, x in module.named_children()
    ]
    return layer


def summary(
    model: Module,
    input_size: Any = None,
    input_data: Any = None,
    *,
    depth: int = 3,
    col_names: Sequence[str] = ("output_size", "num_params"),
    dtypes: Sequence[Any] | None = None,
    device: Any = None,
    **options: Any,
) -> ModelStatistics:
    """A model as a table: its layers, the shapes of their results, their parameters.

    Args:
        model: the model; it runs once, in evaluation mode and without a derivative, if
            there is an input, and is then as before.
        input_size: the shape of its input, the batch included; or a list of shapes.
        input_data: in place of that, its input, or a tuple or dict of inputs.
        depth: how far down layers are listed; what is below counts for the last.
        col_names: of "input_size", "output_size", "num_params", "params_percent",
            "kernel_size", "mult_adds" and "trainable".
        dtypes: the types of inputs of given shapes; float by default.
        device: where these inputs shall lie.
        options: given to the model as they are.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        >>> print(torch.utils.summary(model, (2, 4)))
        =============================================
        Layer (type:depth-idx)  Output Shape  Param #
        =============================================
        Sequential              [2, 8]        --
        ├─Linear: 1-1           [2, 8]        40
        ├─ReLU: 1-2             [2, 8]        --
        =============================================
        Total params: 40
        ...
    """
    unknown = set(col_names) - set(_TITLES)
    if unknown:
        raise ArgumentError(
            f"summary: unknown columns {sorted(unknown)}. Take {', '.join(_TITLES)}."
        )
    inputs = _inputs(input_size, input_data, dtypes, device)
    top = _described(model, "", 0, {})
    if inputs is not None:
        _watch(model, top, inputs, options)
    return ModelStatistics(top, col_names, depth, _bytes(inputs))


def _inputs(size: Any, data: Any, kinds: Any, device: Any) -> Any:
    if data is not None:
        return data if isinstance(data, tuple | list | dict) else (data,)
    if size is None:
        return None
    several = bool(size) and isinstance(size[0], tuple | list)
    shapes = size if several else [size]
    kinds = kinds or [dtypes.get_default_dtype()] * len(shapes)
    pairs = zip(shapes, kinds, strict=True)
    return tuple(zeros(*s, dtype=kind, device=device) for s, kind in pairs)


def _watch(model: Module, top: Layer, inputs: Any, options: dict[str, Any]) -> None:
    """Run a model once, and note what its layers take and give."""
    lines = {id(layer.module): layer for layer in top.walk()}
    modes = {module: module.training for module in model.modules()}

    def note(module: Module, args: Any, named: Any, result: Any) -> None:
        layer = lines[id(module)]
        layer.inputs, layer.outputs = _shape((*args, named)), _shape(result)
        layer.own = sum(p.numel() for p in module.parameters(recurse=False))
        layer.mult_adds += _work(module, layer.outputs)
        layer.bytes_out += _bytes(result)

    hooks = [m.register_forward_hook(note, with_kwargs=True) for m in modes]
    try:
        model.eval()
        with no_grad():
            if isinstance(inputs, dict):
                model(**inputs, **options)
            else:
                model(*inputs, **options)
    finally:
        for hook in hooks:
            hook.remove()
        for module, mode in modes.items():
            module.training = mode
