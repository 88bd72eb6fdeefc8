"""How tensors print, where libraries look for it."""

from typing import Any

from lantern.torch.tensor.printing import OPTIONS

__all__ = ["PRINT_OPTS"]


class _Options:
    """The options of printing by their names."""

    def __getattr__(self, name: str) -> Any:
        try:
            return OPTIONS[name]
        except KeyError:
            raise AttributeError(
                f"there is no such option of printing: {name}"
            ) from None

    def __setattr__(self, name: str, value: Any) -> None:
        OPTIONS[name] = value


PRINT_OPTS = _Options()


def _tensor_str(self: Any, indent: int) -> str:
    """The elements of a tensor as they print, without its name."""
    text = repr(self.detach()).removeprefix("tensor(")
    return text[: text.rindex("]") + 1] if "]" in text else text.rstrip(")")
