"""Functions whose body runs inside a block: also one that stops and goes on later.

A generator, a coroutine or an asynchronous generator is entered anew for every step, so
that its caller never runs inside the block.
"""

import inspect
import types
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

__all__ = ["inside"]


def inside(block: Callable[[], Any], function: Callable[..., Any]) -> Any:
    """The function, with its body in a block.

    Args:
        block: makes a new context manager.
        function: any callable; of a generator function, a coroutine function or an
            asynchronous generator function, one of its kind.
    """
    if inspect.isclass(function):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. "
            "You should only decorate functions or methods. To preserve the current "
            "behavior of class decoration, you can directly decorate the `__init__` "
            "method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )
    kinds: dict[Any, Any] = {
        inspect.isgeneratorfunction: _generator,
        inspect.iscoroutinefunction: _coroutine,
        inspect.isasyncgenfunction: _asynchronous,
    }
    for is_kind, wrapped in kinds.items():
        if is_kind(function):
            return wraps(function)(wrapped(block, function))

    @wraps(function)
    def within(*args: Any, **options: Any) -> Any:
        with block():
            return function(*args, **options)

    return within


@types.coroutine
def _steps(block: Callable[[], Any], body: Any) -> Any:
    """Resume a body step by step, each of them in a new block."""
    resume, value = body.send, None
    while True:
        try:
            with block():
                request = resume(value)
        except StopIteration as end:
            return end.value
        try:
            resume, value = body.send, (yield request)
        except GeneratorExit:
            with block():
                body.close()
            raise
        except BaseException as error:  # which the caller throws in
            resume, value = body.throw, error


def _generator(block: Any, function: Any) -> Any:
    def within(*args: Any, **options: Any) -> Any:
        return (yield from _steps(block, function(*args, **options)))

    return within


def _coroutine(block: Any, function: Any) -> Any:
    async def within(*args: Any, **options: Any) -> Any:
        return await _steps(block, function(*args, **options))

    return within


def _asynchronous(block: Any, function: Any) -> Any:
    async def within(*args: Any, **options: Any) -> Any:
        body = function(*args, **options)
        step = body.__anext__()
        while True:
            try:
                item = await _steps(block, step)
            except StopAsyncIteration:
                return
            try:
                step = body.asend((yield item))
            except GeneratorExit:
                await _steps(block, body.aclose())
                raise
            except BaseException as error:  # which the caller throws in
                step = body.athrow(error)

    return within
