"""Blocks that are decorators as well, as PyTorch's libraries write them."""

from collections.abc import Callable
from typing import Any

from lantern.eager.bodies import inside
from lantern.errors import ArgumentError, MissingRuleError

__all__ = ["context_decorator"]


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose body runs in a block.

    Args:
        ctx: the block, or what makes one.
        func: the function; also a generator function.

    Example:
        >>> from contextlib import nullcontext
        >>> context_decorator(nullcontext, abs)(-1)
        1
    """
    if not isinstance(ctx, type) and callable(ctx) and hasattr(ctx, "__enter__"):
        raise ArgumentError(
            f"context_decorator: {ctx} is a block and makes blocks: say lambda: ctx"
        )
    return inside(ctx if callable(ctx) else lambda: ctx, func)


class _DecoratorContextManager:
    """A block that can stand in front of a function; ``clone`` makes a new one."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        return inside(self.clone, orig_func)

    def __enter__(self) -> Any:
        raise MissingRuleError(f"{type(self).__name__} does not say how it begins.")

    def __exit__(self, *exception: Any) -> Any:
        """What subclasses do at the end."""

    def clone(self) -> Any:
        """Another one like it."""
        return self.__class__()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A block that can stand in front of a function without brackets."""

    def __new__(cls, orig_func: Any = None) -> Any:
        """The block; or the function in it."""
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
