"""A module's parameters and buffers in another type, or on another device."""

from collections.abc import Callable
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import ArgumentError, EagerError
from lantern.torch.__future__ import (
    get_overwrite_module_params_on_conversion,
    get_swap_module_params_on_conversion,
)
from lantern.torch.functions.creation import empty_like
from lantern.torch.nn.members import Containing
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.layouts import memory_format
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Movable", "parse_to"]


def parse_to(*args: Any, **options: Any) -> tuple[Any, Any, bool, Any]:
    """What the arguments of ``to`` say: device, type, whether to wait, memory format.

    These are (device, dtype, non_blocking), or (dtype, non_blocking), or (tensor,
    non_blocking); any of them by name, and ``memory_format``.
    """
    names = ["device", "dtype", "non_blocking"]
    if "copy" in options:
        raise EagerError(".to() does not accept copy argument")
    if args and isinstance(args[0], dtypes.dtype):
        names = names[1:]
    elif args and isinstance(args[0], Tensor):
        options |= {"device": args[0].device, "dtype": args[0].dtype}
        names, args = names[2:], args[1:]
    given = dict(zip(names, args, strict=False))
    known = {*names, "device", "dtype", "memory_format"}
    if (
        len(args) > len(names)
        or given.keys() & options.keys()
        or options.keys() - known
    ):
        raise ArgumentError(f"to() got arguments that do not fit: {args}, {options}")
    found = {**dict.fromkeys([*known, "non_blocking"]), **options, **given}
    for name, kinds in _KINDS.items():
        if not isinstance(found[name], kinds) or isinstance(found[name], bool):
            raise ArgumentError(
                f"to(): {name} must be {kinds[0].__name__}, not {found[name]!r}"
            )
    return (
        found["device"],
        found["dtype"],
        bool(found["non_blocking"]),
        found["memory_format"],
    )


_KINDS = {
    "device": (dtypes.device, str, int, type(None)),
    "dtype": (dtypes.dtype, type(None)),
    "memory_format": (memory_format, type(None)),
}


class Movable(Containing):
    """What a module has to be moved with."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Replace what all parameters and buffers hold by a function of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        anew = get_overwrite_module_params_on_conversion()
        for name, x in self._parameters.items():
            if x is not None:
                with no_grad():
                    grad, data = x.grad, fn(x)
                    if anew and not get_swap_module_params_on_conversion():
                        x = self._parameters[name] = Parameter(data, x.requires_grad)
                        x.grad = grad if grad is None else fn(grad)
                        continue
                    x.data = data
                    if grad is not None:
                        grad.data = fn(grad)
        for name, x in self._buffers.items():
            if x is not None:
                self._buffers[name] = fn(x)
        return self

    def to(self, *args: Any, **options: Any) -> Any:
        """Move all parameters and buffers, or give those of floating point a type."""
        place, kind, _, form = parse_to(*args, **options)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise ArgumentError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype={kind}"
            )

        def moved(x: Tensor) -> Tensor:
            floating = x.dtype.is_floating_point or x.dtype.is_complex
            kept = None if form is None or x.dim() not in (4, 5) else form
            dtype = kind if floating else None
            return x.to(dtype=dtype, device=place, memory_format=kept)

        return self._apply(moved)

    def type(self, dst_type: Any) -> Any:
        """Give all parameters and buffers a type."""
        return self._apply(lambda x: x.type(dst_type))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Give all parameters and buffers new memory, whose values are not set."""
        return self._apply(lambda x: empty_like(x, device=device), recurse)

    def _floating(self, kind: dtypes.dtype) -> Any:
        return self._apply(lambda x: x.to(kind) if x.is_floating_point() else x)

    def float(self) -> Any:
        """In single precision."""
        return self._floating(dtypes.float32)

    def double(self) -> Any:
        """In double precision."""
        return self._floating(dtypes.float64)

    def half(self) -> Any:
        """In half precision."""
        return self._floating(dtypes.float16)

    def bfloat16(self) -> Any:
        """Raises: there are no tensors of that type."""
        return self._floating(dtypes.bfloat16)

    def compile(self, *args: Any, **options: Any) -> None:
        """Has no effect: nothing is compiled."""

    def cpu(self) -> Any:
        """In the host's memory."""
        return self._apply(lambda x: x.cpu())

    def cuda(self, device: Any = None) -> Any:
        """On a GPU."""
        return self._apply(lambda x: x.cuda(device))

    def share_memory(self) -> Any:
        """Move all parameters and buffers to memory that forked processes share."""
        return self._apply(lambda x: x.share_memory_())
