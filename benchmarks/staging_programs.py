"""Ten programs that the compiler was not made with: plain Python of other kinds.

Rows and objects of the caller's, closures, branches that depend on the data, integers,
loops in loops, tagged trees, functions of the C library.
"""

from typing import Any


def horner(x: Any, coefficients: Any) -> Any:
    """A polynomial whose coefficients are a row of any length."""
    y = 0.0
    for c in coefficients:
        y = y * x + c
    return y


def logistic(x: Any, turns: int) -> Any:
    """A map that doubles back: which way it takes depends on the number."""
    for i in range(turns):
        x = 3.7 * x * (1.0 - x) if x < 0.9 else x * 0.3 + 0.001 * i
    return x


def bisection(a: Any) -> Any:
    """A root between two bounds, and two steps of Newton that carry the derivative."""
    import lantern

    low, high = 0.0, 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if lantern.stop_gradient(middle * middle * middle - a) > 0:
            high = middle
        else:
            low = middle
    for _ in range(2):
        low = low - (low * low * low - a) / (3 * low * low)
    return low


def option(s: Any) -> Any:
    """The price of an option after Black and Scholes."""
    import lantern

    k, t, r, v = 95.0, 0.5, 0.03, 0.2
    d = (lantern.log(s / k) + (r + v * v / 2) * t) / (v * t**0.5)

    def normal(z: Any) -> Any:
        return 0.5 * (1.0 + lantern.erf(z / 2**0.5))

    return s * normal(d) - k * lantern.exp(-r * t) * normal(d - v * t**0.5)


def quadrature(x: Any, n: int) -> Any:
    """An integral by Simpson's rule, of a function that closes over a number."""
    import lantern

    def f(t: Any) -> Any:
        return lantern.exp(-t * t * x) * lantern.cos(t)

    h = 2.0 / n
    total = f(0.0) + f(2.0)
    for i in range(1, n):
        total = total + (4 if i % 2 else 2) * f(i * h)
    return total * h / 3


def pendulum(angle: Any, turns: int) -> Any:
    """A pendulum, leap-frog."""
    import lantern

    speed, h = 0.0, 0.01
    for _ in range(turns):
        speed = speed - 0.5 * h * lantern.sin(angle)
        angle = angle + h * speed
        speed = speed - 0.5 * h * lantern.sin(angle)
    return angle


class Link:
    """One place in a chain."""

    def __init__(self, weight: float, rest: "Link | None") -> None:
        self.weight, self.rest = weight, rest


def chain(x: Any, link: Any) -> Any:
    """A walk along a chain of objects with attributes."""
    y = x
    return y if link is None else chain(y * link.weight, link.rest) + 0.001 * y


def formula(x: Any, t: Any) -> Any:
    """An interpreter: a tree of (kind, left, right, number)."""
    import lantern

    if t[0] == 0:
        return x
    if t[0] == 1:
        return t[3]
    if t[0] == 2:
        return formula(x, t[1]) + formula(x, t[2])
    if t[0] == 3:
        return formula(x, t[1]) * formula(x, t[2])
    return lantern.sin(formula(x, t[1]))


def kepler(e: Any, n: int) -> Any:
    """Kepler's equation for many anomalies: a loop that ends by itself in a loop."""
    import lantern

    total = 0.0
    for k in range(n):
        m = 0.06 * k
        u, step = m, 1.0
        while abs(step) > 1e-10:
            step = (u - e * lantern.sin(u) - m) / (1.0 - e * lantern.cos(u))
            u = u - step
        total = total + u
    return total


def fraction(x: Any, n: int) -> Any:
    """A continued fraction whose terms come from an integer sequence."""
    y, k = x, n
    while k > 0:
        term = (k * k + 3 * k) // 4 % 7 + 1
        y = term + x / (y + term)
        k -= 1
    return y


def links(count: int) -> Any:
    """A chain."""
    found = None
    for i in range(count):
        found = Link(1.0 + 0.01 * (i % 7 - 3), found)
    return found


def formulas(depth: int) -> Any:
    """A tree for the interpreter."""
    if depth == 0:
        return (0, None, None, 0.0)
    kind = (2, 3, 4)[depth % 3]
    right = formulas(depth - 1) if depth % 2 else (1, None, None, 0.5)
    return (kind, formulas(depth - 1), right, 0.0)


PROGRAMS: dict[Any, tuple[Any, ...]] = {
    horner: (0.9, [0.1 * (i % 9) for i in range(400)]),
    logistic: (0.3, 200),
    bisection: (7.0,),
    option: (100.0,),
    quadrature: (0.7, 200),
    pendulum: (1.0, 500),
    chain: (1.1, links(300)),
    formula: (0.7, formulas(12)),
    kepler: (0.3, 100),
    fraction: (1.5, 200),
}
