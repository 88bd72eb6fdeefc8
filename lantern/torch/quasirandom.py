"""Points that fill a cube more evenly than draws do."""

from typing import Any

import numpy as np

from lantern.errors import MissingExtraError, OptionError
from lantern.torch.methods.sampling import rng
from lantern.torch.tensor.dtypes import as_numpy_dtype, get_default_dtype
from lantern.torch.tensor.tensor import fresh

__all__ = ["SobolEngine"]


class SobolEngine:
    """Sobol's sequence, which SciPy computes.

    Args:
        dimension: the number of coordinates, at most 21,201.
        scramble: whether points are scrambled at random, evenly still.
        seed: of the scrambling.

    References:
        Joe, Kuo (2008), "Constructing Sobol sequences with better two-dimensional
        projections"; Owen (1998), "Scrambling Sobol' and Niederreiter-Xing points".

    Example:
        >>> import lantern.torch as torch
        >>> torch.quasirandom.SobolEngine(2).draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(
        self, dimension: int, scramble: bool = False, seed: int | None = None
    ) -> None:
        if not 1 <= dimension <= self.MAXDIM:
            raise OptionError(
                f"Supported range of dimensionality for SobolEngine is "
                f"[1, {self.MAXDIM}]"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self.num_generated = 0
        self._points = self._start()

    def _start(self) -> Any:
        try:
            from scipy.stats.qmc import Sobol
        except ImportError:
            raise MissingExtraError(
                "SobolEngine: SciPy is not installed. Install it with pip install "
                "scipy."
            ) from None
        drawn = rng() if self.seed is None else np.random.default_rng(self.seed)
        options = {"scramble": self.scramble, "bits": self.MAXBIT}
        return Sobol(self.dimension, rng=drawn if self.scramble else None, **options)

    def draw(self, n: int = 1, out: Any = None, dtype: Any = None) -> Any:
        """The next points, in rows."""
        import warnings

        with warnings.catch_warnings():  # of numbers that are no powers of 2
            warnings.simplefilter("ignore")
            points = self._points.random(n)
        self.num_generated += n
        kind = as_numpy_dtype(get_default_dtype() if dtype is None else dtype)
        found = fresh(points.astype(kind))
        if out is None:
            return found
        return out.resize_(found.shape).copy_(found)

    def draw_base2(self, m: int, out: Any = None, dtype: Any = None) -> Any:
        """The next 2 ** m points; all so far must come to a power of 2."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise OptionError(
                f"The balance properties of Sobol' points require n to be a power of "
                f"2. {self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, "
                f"please use 'SobolEngine.draw()' instead."
            )
        return self.draw(2**m, out=out, dtype=dtype)

    def reset(self) -> Any:
        """Begin again."""
        self._points.reset()
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Any:
        """Leave points out."""
        self._points.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        shown += ["scramble=True"] * self.scramble
        shown += [f"seed={self.seed}"] * (self.seed is not None)
        return f"{type(self).__name__}({', '.join(shown)})"
