"""Functions that ``torch`` has of ``torch.special``, imported when they are called."""

from typing import Any

from lantern.torch.tables import documented, takes
from lantern.torch.tensor.tensor import Tensor


def mvlgamma(input: Tensor, p: int) -> Any:
    """The logarithm of the multivariate gamma function of dimension p.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([2.0, 3.0])
        >>> torch.mvlgamma(x, 2)
        tensor([0.4516, 1.5502])
    """
    from lantern.torch.special import multigammaln

    return multigammaln(input, p)


def polygamma(n: Any, input: Any) -> Any:
    """The n-th derivative of ``digamma``; as a method, the tensor comes first.

    Example:
        >>> import lantern.torch as torch
        >>> torch.polygamma(1, torch.tensor([1.0, 2.0]))
        tensor([1.6449, 0.6449])
    """
    from lantern.torch import special

    if isinstance(n, Tensor):
        n, input = input, n
    return special.polygamma(n, input)


def _special(name: str, target: str, shown: str = "input") -> Any:
    def operate(*args: Any, **options: Any) -> Any:
        from lantern.torch import special

        return getattr(special, target)(*args, **options)

    operate.__name__ = operate.__qualname__ = name
    return takes(operate, shown)


functions: dict[str, Any] = {
    "mvlgamma": mvlgamma,
    "polygamma": polygamma,
    "i0": documented(
        _special("i0", "i0"),
        """The modified Bessel function of the first kind, of order 0.

        >>> x = torch.tensor([0.0, 1.0])
        >>> torch.i0(x)
        tensor([1.0000, 1.2661])
        """,
    ),
    "igamma": documented(
        _special("igamma", "gammainc", "input, other"),
        """The regularised lower incomplete gamma function, as ``special.gammainc``.

        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.igamma(x, torch.tensor([1.0, 1.0]))
        tensor([0.6321, 0.2642])
        """,
    ),
    "igammac": documented(
        _special("igammac", "gammaincc", "input, other"),
        """The regularised upper incomplete gamma function, as ``special.gammaincc``.

        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.igammac(x, torch.tensor([1.0, 1.0]))
        tensor([0.3679, 0.7358])
        """,
    ),
}
