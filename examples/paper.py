"""The figures of the Lantern paper as running code, on the public API.

Each section differentiates the paper's example, 2x + x³, in another way and must find
2 + 3x². Read from the top: a section changes one thing in a section before it. (Figures
1-4, 6 and 9-11 are these programs' mathematics; 14-17: see `paper_staging.py`.)

References:
    F. Wang, D. Zheng, J. Decker, X. Wu, G. Essertel, T. Rompf: Demystifying
    Differentiable Programming: Shift/Reset the Penultimate Backpropagator.
    Proc. ACM Program. Lang. 3, ICFP, Article 96, 2019. doi:10.1145/3341700
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import lantern
from lantern.cps import Prompt, reset, shift

Function = Callable[..., Any]


def f(x: Any) -> Any:
    """Compute 2x + x³, the paper's running example."""
    return 2 * x + x * x * x


class Number:
    """A number, to be differentiated: a section says what `plus` and `times` do."""

    def __init__(self, primal: Any) -> None:
        self.primal = primal  # the value itself

    def lift(self, value: Any) -> Any:
        """Return the value as a number of this kind."""
        return value if type(value) is type(self) else type(self)(value)

    def operate(self, rule: Function, that: Any) -> Any:
        """Follow the rule; how this is done is what most sections are about."""
        return rule(that)

    def __add__(self, that: Any) -> Any:
        return self.operate(self.plus, self.lift(that))

    def __mul__(self, that: Any) -> Any:
        return self.operate(self.times, self.lift(that))

    __radd__, __rmul__ = __add__, __mul__


# Figure 5. Forward mode. A tangent travels with the value: how fast the value changes
# when x does. An operator computes both, so a single run of f gives f(x) and f'(x).


class Dual(Number):
    """A value and its tangent."""

    def __init__(self, primal: float, tangent: float = 0.0) -> None:
        self.primal, self.tangent = primal, tangent

    def plus(self, that: Any) -> Any:
        return Dual(self.primal + that.primal, self.tangent + that.tangent)

    def times(self, that: Any) -> Any:
        tangent = self.tangent * that.primal + self.primal * that.tangent
        return Dual(self.primal * that.primal, tangent)


def forward(f: Function, x: float) -> float:
    """Return the derivative of f at x, by dual numbers."""
    return f(Dual(x, 1.0)).tangent


def library_forward(f: Function, x: Any) -> Any:
    """Return the derivative of f at x, by the forward mode of the library."""
    return lantern.jvp(f, (x,), (1.0,))[1]


# Section 2.4. Perturbation confusion. The inner derivative below, of y ↦ x + y, is 1
# whatever x may be. But x has a tangent too, that of the outer derivative, and the
# duals above cannot tell whose tangent is whose: they find 2. In the library every
# derivative being taken has a prompt of its own, and to the inner one x is a constant.


def nested(derivative: Function, x: Any) -> Any:
    """Return the derivative of x ↦ x · d(x + y)/dy, which is that of x ↦ x · 1."""
    return derivative(lambda x: x * derivative(lambda y: x + y, 1.0), x)


# Figure 7. Reverse mode in continuation-passing style. Cotangents (how fast the result
# changes when a value does) come in the opposite order: the first value's is the last.
# So let a rule take `k`, the rest of the program. It hands its value to k; when k
# returns, the rest is over and has settled that value's cotangent; now the rule can
# settle its operands'. The program runs there and back again.


class Explicit(Number):
    """A value and its cotangent; an operator asks what comes next."""

    cotangent = 0.0  # until somebody, on the way back, adds to it

    def plus(self, that: Any, k: Function) -> None:
        z = self.lift(self.primal + that.primal)
        k(z)
        self.cotangent += z.cotangent
        that.cotangent += z.cotangent

    def times(self, that: Any, k: Function) -> None:
        z = self.lift(self.primal * that.primal)
        k(z)
        self.cotangent += z.cotangent * that.primal
        that.cotangent += z.cotangent * self.primal

    def operate(self, rule: Function, that: Any) -> Any:
        return partial(rule, that)  # a function of k


def f_explicit(x: Any) -> Any:
    """Compute 2x + x³ with every continuation written out."""
    return lambda k: (2 * x)(lambda a: (x * x)(lambda b: (b * x)(lambda c: (a + c)(k))))


def seed(result: Any) -> None:
    """Turn around: the result changes just as fast as the result."""
    result.cotangent = 1.0


def reverse_explicit(f: Function, x: float) -> float:
    """Return the derivative of f at x, where f(x) takes the last continuation."""
    z = Explicit(x)
    f(z)(seed)
    return z.cotangent


# Figure 8. Reverse mode with shift and reset. `shift` captures k, the rest of the
# program up to the enclosing `reset`, and calls the rule with it. So the rules above
# serve as they are, nobody writes continuations down, and f is plain Python again.


class Shifted(Explicit):
    """A value and its cotangent; an operator captures what comes next."""

    prompt: Prompt | None = None  # up to which reset? None: up to the nearest

    def operate(self, rule: Function, that: Any) -> Any:
        return shift(partial(rule, that), prompt=self.prompt)


def reverse(f: Function, x: Any, kind: Any = Shifted) -> Any:
    """Return the derivative of f at x, by running f under a reset."""
    z = kind(x)
    reset(lambda: seed(f(z)), prompt=kind.prompt)
    return z.cotangent


# Figure 8 once more, with generators: `yield z` says `k(z)`. It gives z to the rest of
# the program and goes on when that is over. The library's own rules are generators too.


class Yielding(Shifted):
    """A value and its cotangent; an operator yields to what comes next."""

    def plus(self, that: Any) -> Iterator[Any]:
        z = self.lift(self.primal + that.primal)
        yield z
        self.cotangent += z.cotangent
        that.cotangent += z.cotangent

    def times(self, that: Any) -> Iterator[Any]:
        z = self.lift(self.primal * that.primal)
        yield z
        self.cotangent += z.cotangent * that.primal
        that.cotangent += z.cotangent * self.primal


# Figure 12. The tape. All that ever waits for k is the code below it. A suspended
# generator is that code, closed over its variables: collect these closures in a list,
# play the list from its end, and no continuation is needed. This is how the library
# runs its rules. (The paper's tape is global; here each call has its own.)


class Taped(Yielding):
    """A value, its cotangent, and the list of what is to be done on the way back."""

    def __init__(self, primal: float, tape: list[Callable[[], None]]) -> None:
        self.primal, self.tape = primal, tape

    def lift(self, value: Any) -> Any:
        return value if type(value) is Taped else Taped(value, self.tape)

    def operate(self, rule: Function, that: Any) -> Any:
        z = next(suspended := rule(that))
        self.tape.append(partial(next, suspended, None))
        return z


def reverse_taped(f: Function, x: float) -> float:
    """Return the derivative of f at x, by a list of closures."""
    z = Taped(x, tape=[])
    seed(f(z))
    for go_on in reversed(z.tape):
        go_on()
    return z.cotangent


# Section 3.6. No mutation. The continuation returns an immutable map from numbers (by
# identity) to their cotangents; a rule returns it with its operands' shares added.


class Pure(Shifted):
    """A value, and nothing that changes."""

    def plus(self, that: Any, k: Function) -> Any:
        known = k(z := self.lift(self.primal + that.primal))
        z_bar = known.get(z, 0.0)
        return add(add(known, self, z_bar), that, z_bar)

    def times(self, that: Any, k: Function) -> Any:
        known = k(z := self.lift(self.primal * that.primal))
        z_bar = known.get(z, 0.0)
        return add(add(known, self, z_bar * that.primal), that, z_bar * self.primal)


def add(known: Mapping[Pure, float], number: Pure, share: float) -> Any:
    """Return the map in which the number has that share more."""
    return MappingProxyType({**known, number: known.get(number, 0.0) + share})


def reverse_pure(f: Function, x: float) -> float:
    """Return the derivative of f at x; nothing is changed on the way."""
    z = Pure(x)
    return reset(lambda: add({}, f(z), 1.0)).get(z, 0.0)


# Figure 13. The second derivative: two levels of continuations, for numbers in numbers.
# Whatever the inner level computes, there and back, it computes with outer numbers, and
# these capture the rest up to a second reset, around it all. Prompts name the resets.


class Inner(Shifted):
    """A number whose value and cotangent are Outer numbers."""

    prompt = Prompt("first derivative")


class Outer(Shifted):
    """A number that sees the whole inner derivative as one program."""

    prompt = Prompt("second derivative")


def reverse_twice(f: Function, x: float) -> float:
    """Return the derivative, at x, of the derivative of f."""
    return reverse(partial(reverse, f, kind=Inner), x, kind=Outer)


POINTS = [i / 8 for i in range(-80, 81)]  # f and its derivatives are exact here
DERIVATIVES: dict[str, Function] = {
    "2 + 3x²": lambda x: 2 + 3 * x * x,
    "6x": lambda x: 6 * x,
    "1": lambda _: 1,
    "2, wrong": lambda _: 2,
}
ROWS: list[tuple[str, str, str, Function]] = [
    ("Figure 5", "dual numbers", "2 + 3x²", partial(forward, f)),
    ("", "lantern.jvp", "2 + 3x²", partial(library_forward, f)),
    ("Section 2.4", "dual numbers, nested", "2, wrong", partial(nested, forward)),
    ("", "lantern.jvp, nested", "1", partial(nested, library_forward)),
    ("", "lantern.grad, nested", "1", partial(nested, lambda f, x: lantern.grad(f)(x))),
    ("Figure 7", "explicit CPS", "2 + 3x²", partial(reverse_explicit, f_explicit)),
    ("Figure 8", "shift and reset", "2 + 3x²", partial(reverse, f)),
    ("", "with generators", "2 + 3x²", partial(reverse, f, kind=Yielding)),
    ("Figure 12", "a tape of closures", "2 + 3x²", partial(reverse_taped, f)),
    ("Section 3.6", "no mutation", "2 + 3x²", partial(reverse_pure, f)),
    ("", "lantern.grad", "2 + 3x²", lantern.grad(f)),
    ("Figure 13", "two levels of continuations", "6x", partial(reverse_twice, f)),
    ("", "lantern.grad, twice", "6x", lantern.grad(lantern.grad(f))),
]


def main() -> int:
    """Print the table; return 0 if every row is right."""
    argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1]).parse_args()
    rights = []
    print(f"{'paper':<12} {'differentiated by':<28} {'gives':<8} {'at 3':>5}")
    for where, what, gives, derivative in ROWS:
        rights.append(all(derivative(x) == DERIVATIVES[gives](x) for x in POINTS))
        row = f"{where:<12} {what:<28} {gives:<8} {derivative(3.0):>5g}"
        print(row, "✓" if rights[-1] else "✗", sep="  ")
    return 0 if all(rights) else 1


if __name__ == "__main__":
    if hasattr(sys.stdout, "reconfigure"):  # a terminal or a file, not an editor
        sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main())
