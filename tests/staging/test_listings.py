"""The listings of the Lantern paper's section 4, printed from staged programs.

``text`` is what is printed; beside it stands what the paper prints, which differs in
names, in the order of factors, and in what its optimiser has folded.
"""

import textwrap
from typing import NamedTuple

import pytest

from lantern.errors import OptionError
from lantern.staging import IF, TREE, WHILE, show_adjoint, show_ir, stage


class Node(NamedTuple):
    left: object
    right: object
    value: float


def square(x):
    return x * x


def conditional(x):
    return IF(x > 0.0, lambda: -1.0 * x * x, lambda: x * x)


def halving(x):
    return WHILE(x, lambda t: t > 1.0, lambda t: t * 0.5)


def product(x, tree):
    return TREE(x, tree, lambda left, right, t: left * right * t.value)


LEAF = Node(None, None, 3.0)
CPS = {
    "4.1": (
        square,
        (1.0,),
        """
        def square(in) = {
          d0 = ref 0
          v1 = in * in; d1 = ref 0
          d1 := 1.0
          d0 += ! d1 * in
          d0 += ! d1 * in
          ! d0
        }
        """,
    ),
    "4.2": (
        conditional,
        (1.0,),
        """
        def conditional(in) = {
          d0 = ref 0
          v1 = in > 0.0
          k1 = (x2, d2) => {
            d2 := 1.0
          }
          if (v1) {
            v3 = -1.0 * in; d3 = ref 0
            v4 = v3 * in; d4 = ref 0
            k1(v4, d4)
            d3 += ! d4 * in
            d0 += ! d4 * v3
            d0 += ! d3 * -1.0
          } else {
            v5 = in * in; d5 = ref 0
            k1(v5, d5)
            d0 += ! d5 * in
            d0 += ! d5 * in
          }
          ! d0
        }
        """,
    ),
    "4.3": (
        halving,
        (1.0,),
        """
        def halving(in) = {
          d0 = ref 0
          def loop1 = (x1, d1) => {
            v2 = x1 > 1.0
            if (v2) {
              v3 = x1 * 0.5; d3 = ref 0
              loop1(v3, d3)
              d1 += ! d3 * 0.5
            } else {
              d1 := 1.0
            }
          }
          loop1(in, d0)
          ! d0
        }
        """,
    ),
    "4.4": (
        product,
        (1.0, LEAF),
        """
        def product(in, tree) = {
          d0 = ref 0
          def f1 = (x1, x2, d2, k0) => {
            v3 = x1.isEmpty
            k1 = (x4, d4) => {
              k0(x4, d4)
            }
            if (v3) {
              k1(x2, d2)
            } else {
              v5 = x1.left
              v6 = x1.right
              k2 = (x7, d7) => {
                k3 = (x8, d8) => {
                  v9 = x7 * x8; d9 = ref 0
                  v10 = x1.value
                  v11 = v9 * v10; d11 = ref 0
                  k1(v11, d11)
                  d9 += ! d11 * v10
                  d7 += ! d9 * x8
                  d8 += ! d9 * x7
                }
                f1(v6, x2, d2, k3)
              }
              f1(v5, x2, d2, k2)
            }
          }
          k4 = (x12, d12) => {
            d12 := 1.0
          }
          f1(tree, in, d0, k4)
          ! d0
        }
        """,
    ),
}
BLOCKS = """
def halving(%0: float) -> float
  %2 = loop %1 = %0
      %3 = greater %1 1.0
      while %3
    do
      %4 = multiply %1 0.5
      -> %4
  return %2
"""
ADJOINT = """
def grad_of_halving(%0: float) -> float
  %2 = loop %1 = %0
      %3 = greater %1 1.0
      while %3
    do
      %4 = multiply %1 0.5
      -> %4
  %6 = back %2 [] %5 = 1.0
      %7 = multiply %5 0.5
      -> %7
  %8 = sure %6
  return %8
"""


@pytest.mark.parametrize("section", CPS)
def test_listing_in_continuation_passing_style(section):
    f, args, text = CPS[section]
    trees = [i for i, x in enumerate(args) if x is LEAF]
    assert show_ir(f, *args, style="cps", trees=trees) == textwrap.dedent(text).strip()


def test_blocks():
    assert show_ir(halving, 1.0) == BLOCKS.strip()
    assert show_adjoint(halving, 1.0) == ADJOINT.strip()


def test_a_listing_is_shown_as_it_is():
    text = show_ir(stage(square, 1.0))
    assert repr(text) == str(text)


def test_unknown_style():
    with pytest.raises(OptionError, match="there is no style"):
        show_ir(square, 1.0, style="graph")
