"""Distributions: how all take their parameters, and what follows from what.

A distribution of SciPy's takes x, its own parameters, and then ``loc`` and ``scale``,
each by position or by name; so do these. All are arrays, broadcast.
"""

import math
from typing import Any

from lantern.core.dispatch import from_lists
from lantern.errors import ArgumentError
from lantern.rules import selection
from lantern.rules.exponential import exp, log, log1p

__all__ = ["Continuous", "Discrete", "Distribution"]


class Distribution:
    """A family of distributions.

    Attributes:
        parameters: the names of its own parameters, in their order.
    """

    parameters: tuple[str, ...] = ()
    common: tuple[str, ...] = ("loc", "scale")

    def read(self, args: Any, named: Any) -> list[Any]:
        """The parameters in order, with the defaults of loc and scale.

        Raises:
            ArgumentError: for a parameter that is missing, unknown or given twice.
        """
        names, where = (*self.parameters, *self.common), type(self).__name__
        given = dict(zip(names, args, strict=False))
        unknown = [*args[len(names) :], *(named.keys() - set(names))]
        twice = sorted(given.keys() & named.keys())
        values = {"loc": 0.0, "scale": 1.0} | given | named
        missing = [name for name in names if name not in values]
        if unknown or twice or missing:
            raise ArgumentError(
                f"{where}: expected x, {', '.join(names)}; missing {missing}, given "
                f"twice {twice}, unknown {unknown}. Name the parameters."
            )
        return [values[name] for name in names]


class Continuous(Distribution):
    """A family of continuous distributions, that of ``loc + scale * z``.

    Attributes:
        support: the interval of z.
    """

    support = (-math.inf, math.inf)

    def log_density(self, z: Any, *parameters: Any) -> Any:
        """The logarithm of the density of z, inside the support."""
        raise NotImplementedError

    def below(self, z: Any, *parameters: Any) -> Any:
        """The probability of less than z, inside the support."""
        raise NotImplementedError

    def log_below(self, z: Any, *parameters: Any) -> Any:
        """The logarithm of the probability of less than z, inside the support."""
        return log(self.below(z, *parameters))

    def log_above(self, z: Any, *parameters: Any) -> Any:
        """The logarithm of the probability of more than z, inside the support."""
        return log1p(-self.below(z, *parameters))

    def above(self, z: Any, *parameters: Any) -> Any:
        """The probability of more than z, inside the support."""
        return 1 - self.below(z, *parameters)

    def _standard(self, x: Any, args: Any, named: Any) -> tuple[Any, Any, Any]:
        *parameters, loc, scale = self.read(args, named)
        return (from_lists(x) - loc) / scale, parameters, scale

    def _bounded(self, f: Any, x: Any, args: Any, named: Any, ends: Any) -> Any:
        """A function of z inside the support, and its values beyond both ends."""
        z, parameters, _ = self._standard(x, args, named)
        low, high = self.support
        if low == -math.inf and high == math.inf:
            return f(z, *parameters)
        before, behind = z <= low, z >= high
        middle = low + 0.5 if high == math.inf else (low + high) / 2
        value = f(selection.where(before | behind, middle, z), *parameters)
        return selection.where(before, ends[0], selection.where(behind, ends[1], value))

    def logpdf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The logarithm of the density at x; -inf outside the support.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        z, parameters, scale = self._standard(x, args, named)
        low, high = self.support
        if low == -math.inf:
            return self.log_density(z, *parameters) - log(scale)
        outside = (z < low) | (z > high)
        middle = low + 0.5 if high == math.inf else (low + high) / 2
        inside = self.log_density(selection.where(outside, middle, z), *parameters)
        return selection.where(outside, -math.inf, inside - log(scale))

    def pdf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The density at x.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        return exp(self.logpdf(x, *args, **named))

    def cdf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The probability of less than x.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        return self._bounded(self.below, x, args, named, (0.0, 1.0))

    def sf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The probability of more than x.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        return self._bounded(self.above, x, args, named, (1.0, 0.0))

    def logcdf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The logarithm of the probability of less than x.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        return self._bounded(self.log_below, x, args, named, (-math.inf, 0.0))

    def logsf(self, x: Any, /, *args: Any, **named: Any) -> Any:
        """The logarithm of the probability of more than x.

        Shapes:
            x, parameters: (...), broadcast; result: (...)
        """
        return self._bounded(self.log_above, x, args, named, (0.0, -math.inf))


class Discrete(Distribution):
    """A family of distributions of whole numbers, from 0 to ``last``."""

    common = ("loc",)

    def log_mass(self, k: Any, *parameters: Any) -> Any:
        """The logarithm of the probability of a whole number k that is possible."""
        raise NotImplementedError

    def below(self, k: Any, *parameters: Any) -> Any:
        """The probability of at most k, for a whole number k that is possible."""
        raise NotImplementedError

    def last(self, *parameters: Any) -> Any:
        """The largest number that is possible."""
        return math.inf

    def _read(self, k: Any, args: Any, named: Any) -> tuple[Any, Any]:
        *parameters, loc = self.read(args, named)[: len(self.parameters) + 1]
        return from_lists(k) - loc, parameters

    def logpmf(self, k: Any, /, *args: Any, **named: Any) -> Any:
        """The logarithm of the probability of k; -inf for what is impossible.

        Shapes:
            k, parameters: (...), broadcast; result: (...)
        """
        k, parameters = self._read(k, args, named)
        whole = selection.floor(k)
        possible = (k >= 0) & (k <= self.last(*parameters)) & (k == whole)
        inside = self.log_mass(selection.where(possible, whole, 0.0), *parameters)
        return selection.where(possible, inside, -math.inf)

    def pmf(self, k: Any, /, *args: Any, **named: Any) -> Any:
        """The probability of k.

        Shapes:
            k, parameters: (...), broadcast; result: (...)
        """
        return exp(self.logpmf(k, *args, **named))

    def cdf(self, k: Any, /, *args: Any, **named: Any) -> Any:
        """The probability of at most k.

        Shapes:
            k, parameters: (...), broadcast; result: (...)
        """
        k, parameters = self._read(k, args, named)
        before, behind = k < 0, k >= self.last(*parameters)
        inside = selection.where(before | behind, 0.0, selection.floor(k))
        value = self.below(inside, *parameters)
        return selection.where(before, 0.0, selection.where(behind, 1.0, value))
