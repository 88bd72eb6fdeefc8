"""Sums of products, named by letters: products of pairs, in an order that costs little.

A call is planned once for its letters and shapes. What concerns one operand alone (a
letter that it has twice, or alone) is done first; then pairs are multiplied as matrix
products, so that the derivative of each is a product of the same kind.
"""

import math
from collections import Counter
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, NamedTuple

from lantern.core.namespace import namespace
from lantern.core.value import Rule, base, is_tracked
from lantern.engines import products as engine
from lantern.errors import MissingRuleError
from lantern.op import bilinear
from lantern.tensor.backend.numpy_namespace import array_namespace, numpy_namespace
from lantern.tensor.ops import reduction
from lantern.tensor.ops.matrix_forms import any_value, untracked
from lantern.tensor.ops.products import diagonal
from lantern.tensor.ops.shape import as_array, permute_dims, reshape

__all__ = ["einsum"]

_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

Shapes = tuple[tuple[int, ...], ...]


def einsum(*operands: Any, optimize: Any = False, **options: Any) -> Any:
    """The sum over products of elements, with a letter for each axis.

    Letters that the output lacks are summed over. Without ``->`` the output has the
    letters that occur once, in alphabetical order. An ellipsis stands for axes that
    broadcast. Operands may also come each with a list of integers for letters.

    Shapes:
        operands: as the letters say; result: as the letters behind ``->`` say

    Args:
        operands: the letters and the arrays; or each array and its list of integers,
            and at the end the output's.
        optimize: the order is always chosen to cost little, by opt_einsum if it is
            installed; a path from ``numpy.einsum_path`` is followed.
        options: others of ``numpy.einsum``, for plain arrays.

    Raises:
        MissingRuleError: for an option that has no rule.

    Example:
        >>> import numpy as np
        >>> einsum("ij,j->i", np.eye(2), np.array([3.0, 4.0]))
        array([3., 4.])
        >>> einsum("ii", np.eye(3))
        np.float64(3.0)

    References:
        Laue, Mitterreiter and Giesen (2020): the derivative of a product named by
        letters is such a product.
    """
    subscripts, arrays = _as_string(operands)
    if options:
        if any(map(is_tracked, arrays)):
            raise MissingRuleError(
                f"einsum: no rule with {', '.join(options)}. Leave these options out."
            )
        xp = array_namespace(*map(base, arrays))
        options |= {"optimize": optimize}
        return untracked(partial(xp.einsum, subscripts), *arrays, **options)
    shapes = tuple(tuple(x.shape) for x in arrays)
    plan = _plan(subscripts, shapes, _hashable(optimize))
    values = [_alone(x, *one) for x, one in zip(arrays, plan.alone, strict=True)]
    for i, j, terms in plan.pairs:
        x, y = values.pop(i), values.pop(j)
        values.append(_einsum(x, y, terms=terms))
    return permute_dims(values[0], plan.order) if plan.order else values[0]


def _as_string(operands: Any) -> tuple[str, list[Any]]:
    """The letters as one string, and the arrays."""
    if isinstance(operands[0], str):
        return operands[0].replace(" ", ""), _arrays(operands[1:])
    pairs = len(operands) // 2
    letters = _UPPER + _LOWER

    def spell(labels: Any) -> str:
        return "".join("..." if i is ... else letters[i] for i in labels)

    subscripts = ",".join(spell(labels) for labels in operands[1 : 2 * pairs : 2])
    if len(operands) % 2:
        subscripts += "->" + spell(operands[-1])
    return subscripts, _arrays(operands[: 2 * pairs : 2])


def _arrays(operands: Any) -> list[Any]:
    """The operands as arrays, numbers and lists as some of the others' library."""
    like = next((x for x in operands if hasattr(x, "shape")), None)
    return [as_array(x, like) for x in operands]


def _hashable(optimize: Any) -> Any:
    """A path of ``numpy.einsum_path`` as a tuple; a strategy by its name."""
    if isinstance(optimize, list | tuple) and optimize:
        if optimize[0] == "einsum_path":
            return tuple(tuple(step) for step in optimize[1:])
        return optimize[0]
    return optimize if isinstance(optimize, str) else "auto"


class _Alone(NamedTuple):
    """What is done to one operand by itself, in this order.

    Attributes:
        diagonals: pairs of axes of which the diagonal is taken, to the end.
        shape: without axes of length 1 that broadcast with longer ones, or None.
        summed: the axes that nothing else has.
    """

    diagonals: list[tuple[int, int]]
    shape: list[int] | None
    summed: tuple[int, ...]


class _Plan(NamedTuple):
    """What a call does.

    Attributes:
        alone: for each operand.
        pairs: which two values are multiplied, and their letters and the product's.
        order: of the axes of a single operand, or None.
    """

    alone: list[_Alone]
    pairs: list[tuple[int, int, tuple[str, str, str]]]
    order: list[int] | None


@lru_cache(maxsize=1024)
def _plan(subscripts: str, shapes: Shapes, strategy: Any) -> _Plan:
    _validate(subscripts, shapes)
    terms, output = _letters(subscripts, shapes)
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, n in zip(term, shape, strict=True):
            if sizes.setdefault(letter, n) == 1:
                sizes[letter] = n
    kept = [
        "".join(c for c, n in zip(t, s, strict=True) if n == sizes[c])
        for t, s in zip(terms, shapes, strict=True)
    ]
    seen = Counter("".join("".join(set(term)) for term in kept) + output)
    alone, left = [], []
    for term, shape in zip(terms, shapes, strict=True):
        one, rest = _plan_alone(term, shape, sizes, seen)
        alone.append(one)
        left.append(rest)
    if len(left) == 1:
        order = [left[0].index(c) for c in output]
        return _Plan(alone, [], order if order != sorted(order) else None)
    path = _path(left, output, sizes, strategy)
    return _Plan(alone, _plan_pairs(left, output, path), None)


def _validate(subscripts: str, shapes: Shapes) -> None:
    """Let NumPy raise its own errors, on arrays without contents."""
    xp = numpy_namespace
    xp.einsum(subscripts, *(xp.zeros((1,) * len(shape)) for shape in shapes))
    terms, _ = _letters(subscripts, shapes)
    lengths: dict[str, set[int]] = {}
    fits = True
    for term, shape in zip(terms, shapes, strict=True):
        own: dict[str, int] = {}
        for c, n in zip(term, shape, strict=True):
            fits = fits and own.setdefault(c, n) == n
            lengths.setdefault(c, set()).add(n)
    if not fits or any(len(found - {1}) > 1 for found in lengths.values()):
        xp.einsum(subscripts, *(xp.broadcast_to(0.0, shape) for shape in shapes))


def _letters(subscripts: str, shapes: Shapes) -> tuple[list[str], str]:
    """Each operand's letters and the output's; ``...`` has letters of its own."""
    inputs, arrow, output = subscripts.partition("->")
    terms = inputs.split(",")
    free = [c for c in _symbols() if c not in subscripts]
    dots, longest = [], 0
    for term, shape in zip(terms, shapes, strict=True):
        n = len(shape) - len(term.replace("...", "")) if "..." in term else 0
        dots.append(n)
        longest = max(longest, n)
    ellipsis = "".join(free[:longest])
    terms = [
        t.replace("...", ellipsis[longest - n :])
        for t, n in zip(terms, dots, strict=True)
    ]
    if arrow:
        return terms, output.replace("...", ellipsis)
    count = Counter(inputs.replace(",", "").replace(".", ""))
    return terms, ellipsis + "".join(sorted(c for c, n in count.items() if n == 1))


def _symbols() -> list[str]:
    """Letters enough for any call."""
    return [*_LOWER, *_UPPER, *map(chr, range(192, 320))]


def _plan_alone(
    term: str, shape: tuple[int, ...], sizes: dict[str, int], seen: Counter[str]
) -> tuple[_Alone, str]:
    """What an operand needs by itself, and the letters that it has then."""
    labels, lengths = list(term), list(shape)
    diagonals = []
    for c in dict.fromkeys(term):
        while labels.count(c) > 1:
            i = labels.index(c)
            j = labels.index(c, i + 1)
            diagonals.append((i, j))
            n = lengths[i]
            labels = [*labels[:i], *labels[i + 1 : j], *labels[j + 1 :], c]
            lengths = [*lengths[:i], *lengths[i + 1 : j], *lengths[j + 1 :], n]
    kept = [c for c, n in zip(labels, lengths, strict=True) if n == sizes[c]]
    squeezed = [sizes[c] for c in kept] if len(kept) < len(labels) else None
    summed = tuple(i for i, c in enumerate(kept) if seen[c] == 1)
    rest = "".join(c for c in kept if seen[c] > 1)
    return _Alone(diagonals, squeezed, summed), rest


def _alone(x: Any, diagonals: Any, shape: Any, summed: tuple[int, ...]) -> Any:
    """One operand, made ready."""
    for i, j in diagonals:
        x = diagonal(x, 0, i, j)
    if shape is not None:
        x = reshape(x, shape)
    return reduction.sum(x, axis=summed) if summed else x


def _path(terms: list[str], output: str, sizes: dict[str, int], strategy: Any) -> Any:
    """Which operands are multiplied in each step; the product goes to the end."""
    if len(terms) == 2:
        return [(0, 1)]
    if isinstance(strategy, tuple):
        return strategy
    subscripts = f"{','.join(terms)}->{output}"
    shapes = [tuple(sizes[c] for c in term) for term in terms]
    try:
        opt_einsum: Any = import_module("opt_einsum")
    except ImportError:
        xp = numpy_namespace
        chosen = "greedy" if strategy == "auto" else strategy
        arrays = [xp.broadcast_to(0.0, shape) for shape in shapes]
        return xp.einsum_path(subscripts, *arrays, optimize=chosen)[0][1:]
    return opt_einsum.contract_path(
        subscripts, *shapes, shapes=True, optimize=strategy
    )[0]


def _plan_pairs(terms: list[str], output: str, path: Any) -> Any:
    """The products of pairs along a path, and what is left at its end."""
    terms, pairs = list(terms), []
    steps = [*path, tuple(range(len(terms)))]  # whatever a path leaves over
    for step in steps:
        places = sorted(step)[: len(terms)]
        while len(places) > 1 and len(terms) > 1:
            j, i = places.pop(), places.pop()
            y, x = terms.pop(j), terms.pop(i)
            needed = {*output, *"".join(terms)}
            z = output if not terms else _product_letters(x, y, needed)
            pairs.append((j, i, (y, x, z)))
            terms.append(z)
            places.append(len(terms) - 1)
    return pairs


def _product_letters(x: str, y: str, needed: set[str]) -> str:
    """The letters of a product in the order in which it comes out."""
    shared = [c for c in x if c in y]
    rest = [c for c in x + y if c not in shared]
    return "".join(c for c in [*shared, *rest] if c in needed)


@bilinear
def _einsum(x: Any, y: Any, /, terms: tuple[str, str, str]) -> Rule:
    """The product of a pair; each letter is in two of the three terms at least.

    Shapes:
        x, y: as the first two terms say; result: as the third one says

    Rule:
        x_bar = z_bar times y, to x's letters; y_bar = x times z_bar, to y's letters
    """
    z_bar = yield _product(x, y, terms)
    of_x, of_y, of_z = terms
    yield lambda: _product(z_bar, y, (of_z, of_y, of_x))
    yield lambda: _product(x, z_bar, (of_x, of_z, of_y))


def _product(x: Any, y: Any, terms: tuple[str, str, str]) -> Any:
    """The product of a pair; of plain arrays, as a matrix product."""
    if any_value(x, y):
        return _einsum(x, y, terms=terms)
    how = _lowering(*terms)
    shared = math.prod([x.shape[i] for i in how.summed])
    if how.by_elements or (how.small and shared < 32):
        of_x, of_y, of_z = terms
        return namespace(x, y).einsum(f"{of_x},{of_y}->{of_z}", x, y)
    batch = tuple(x.shape[i] for i in how.batch)
    free_x = tuple(x.shape[i] for i in how.free_x)
    free_y = tuple(y.shape[i] for i in how.free_y)
    left = x.transpose(how.order_x).reshape(*batch, math.prod(free_x), shared)
    right = y.transpose(how.order_y).reshape(*batch, shared, math.prod(free_y))
    z = (
        engine.matmul(left, right)
        .reshape(batch + free_x + free_y)
        .transpose(how.order_z)
    )
    return z[()]


class _Lowering(NamedTuple):
    """How a pair becomes a matrix product.

    Attributes:
        by_elements: there is nothing to sum, or nothing but a batch of sums.
        small: one of the two is a batch of vectors: matrix products are for long ones.
        batch: the axes of x that all three have.
        summed: the axes of x that the product lacks.
        free_x: the axes of x that y lacks.
        free_y: the axes of y that x lacks.
        order_x: of x's axes: batch, free, summed.
        order_y: of y's axes: batch, summed, free.
        order_z: of the product's axes, which are batch, free_x, free_y.
    """

    by_elements: bool
    small: bool
    batch: list[int]
    summed: list[int]
    free_x: list[int]
    free_y: list[int]
    order_x: list[int]
    order_y: list[int]
    order_z: list[int]


@cache
def _lowering(x: str, y: str, z: str) -> _Lowering:
    batch = [c for c in z if c in x and c in y]
    summed = [c for c in x if c in y and c not in z]
    free_x = [c for c in z if c not in y]
    free_y = [c for c in z if c not in x]
    natural = [*batch, *free_x, *free_y]
    return _Lowering(
        not summed or bool(batch and not free_x and not free_y),
        bool(batch) and not (free_x and free_y),
        [x.index(c) for c in batch],
        [x.index(c) for c in summed],
        [x.index(c) for c in free_x],
        [y.index(c) for c in free_y],
        [x.index(c) for c in (*batch, *free_x, *summed)],
        [y.index(c) for c in (*batch, *summed, *free_y)],
        [natural.index(c) for c in z],
    )
