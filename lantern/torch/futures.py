"""Results that come later: ``torch.futures``, over those of Python's own."""

from collections.abc import Callable
from concurrent.futures import Future as _Later
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result that somebody sets, and others wait for.

    Args:
        devices: has no effect; as PyTorch has it.

    Example:
        >>> import lantern.torch as torch
        >>> later = torch.futures.Future()
        >>> doubled = later.then(lambda done: 2 * done.value())
        >>> later.set_result(21)
        >>> doubled.wait()
        42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._later: _Later[Any] = _Later()

    def done(self) -> bool:
        """Whether the result is there."""
        return self._later.done()

    def wait(self) -> Any:
        """The result, or its error, as soon as it is there."""
        return self._later.result()

    value = wait

    def set_result(self, result: Any) -> None:
        """Say what the result is; whoever waits goes on."""
        self._later.set_result(result)

    def set_exception(self, result: BaseException) -> None:
        """Say that there will be no result; who waits gets the error."""
        self._later.set_exception(result)

    def add_done_callback(self, callback: Callable[["Future[Any]"], None]) -> None:
        """Call a function with this object once the result is there."""
        self._later.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[["Future[Any]"], Any]) -> "Future[Any]":
        """What a function makes of the result, later."""
        following: Future[Any] = Future()

        def go_on(done: Future[Any]) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:
                following.set_exception(error)

        self.add_done_callback(go_on)
        return following


def collect_all(futures: list[Future[Any]]) -> Future[Any]:
    """One for a list of them, whose result is the list.

    Example:
        >>> import lantern.torch as torch
        >>> one = torch.futures.Future()
        >>> both = torch.futures.collect_all([one])
        >>> one.set_result(1)
        >>> both.wait()[0].value()
        1
    """
    whole: Future[Any] = Future()
    left = [len(futures)]

    def count(_: Future[Any]) -> None:
        left[0] -= 1
        if not left[0]:
            whole.set_result(futures)

    if not futures:
        whole.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return whole


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The results of all.

    Example:
        >>> import lantern.torch as torch
        >>> torch.futures.wait_all([])
        []
    """
    return [future.wait() for future in futures]
