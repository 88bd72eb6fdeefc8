"""A module's parameters and buffers in another type, or on another device."""

from collections.abc import Callable
from typing import Any

from lantern.eager.grad_mode import no_grad
from lantern.errors import ArgumentError
from lantern.torch.functions.creation import empty_like
from lantern.torch.nn.members import Containing
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.tensor import Tensor

__all__ = ["Movable"]


class Movable(Containing):
    """What a module has to be moved with."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Replace what all parameters and buffers hold by a function of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for x in self._parameters.values():
            if x is not None:
                with no_grad():
                    grad, x.data = x.grad, fn(x)
                    if grad is not None:
                        grad.data = fn(grad)
        for name, x in self._buffers.items():
            if x is not None:
                self._buffers[name] = fn(x)
        return self

    def to(self, *args: Any, **options: Any) -> Any:
        """Move all parameters and buffers, or give those of floating point a type."""
        probe = [x.dtype for x in args if isinstance(x, Tensor)]
        kinds = [x for x in args if isinstance(x, dtypes.dtype)] + probe
        kind = options.pop("dtype", kinds[0] if kinds else None)
        if kind is not None and not (kind.is_floating_point or kind.is_complex):
            raise ArgumentError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got "
                f"desired dtype={kind}"
            )
        places = [x for x in args if isinstance(x, str | int | dtypes.device)]
        place = options.pop("device", places[0] if places else None)

        def moved(x: Tensor) -> Tensor:
            floating = x.dtype.is_floating_point or x.dtype.is_complex
            return x.to(dtype=kind if floating else None, device=place)

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
