"""Sums of products named by letters: values, orders and errors as NumPy's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lantern
from lantern import MissingRuleError, grad, vjp
from tests.matrices import check, draw, refuse_imports, shape_of

# einsum: letters, and the shapes of the operands.
EINSUM = {
    "ij,jk->ik": "2,3 3,4",
    "ij,jk": "2,3 3,4",
    "ij,jk->": "2,3 3,4",
    "ba": "2,3",
    "ij->i": "2,3",
    "ii": "3,3",
    "ii->i": "3,3",
    "iji->j": "3,2,3",
    "iii": "2,2,2",
    "iijj->ij": "2,2,3,3",
    "ii,i->i": "3,3 3",
    "i,i,i->i": "3 3 3",
    "ij,ij,ij->": "2,3 2,3 2,3",
    "ij,jk,kl->il": "2,3 3,4 4,2",
    "ij,kl->": "2,3 2,2",
    "i,->i": "3 ()",
    "...ij,...jk->...ik": "2,2,3 3,4",
    "...i->...": "2,3",
    "i...->...": "2,3",
    "...,...": "2,1 3",
    "...ij,j...->i...": "4,2,3 3,4",
    "...a,a...b->...b": "2,3 3,1,4",
    "ij,ij->ij": "1,3 2,3",
    "ij,jk->ki": "2,1 3,4",
    "bhqd,bhkd->bhqk": "2,2,3,2 2,2,4,2",
    " i j , j k -> k i ": "2,3 3,4",
}


def einsum_operands(shapes):
    return [draw("real", *shape_of(s), seed=i) for i, s in enumerate(shapes.split())]


@pytest.mark.parametrize(("letters", "shapes"), EINSUM.items())
def test_einsum(letters, shapes):
    operands = einsum_operands(shapes)
    want = np.einsum(letters, *operands)
    got = lantern.einsum(letters, *operands)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    assert type(got) is type(want)
    check(lambda *x: lantern.einsum(letters, *x), *operands)
    tangents = [x + 1j for x in operands]
    check(lambda *x: lantern.einsum(letters, *x), *tangents, order=1)


@pytest.mark.parametrize(("letters", "shapes"), list(EINSUM.items())[:12])
def test_einsum_of_tracked_arrays_through_numpy(letters, shapes):
    operands = einsum_operands(shapes)
    want = np.einsum(letters, *operands)
    got, pullback = vjp(lambda *x: np.einsum(letters, *x), *operands)
    np.testing.assert_allclose(got, want, rtol=1e-12)
    expected = vjp(lambda *x: lantern.einsum(letters, *x), *operands)[1](want)
    for a, b in zip(pullback(want), expected, strict=True):
        np.testing.assert_array_equal(a, b)


INTERLEAVED = [
    ([0, 1], [1, 2], [0, 2]),
    ([0, 1], [1, 2]),
    ([27, 1], [1, 2]),
    ([..., 0, 1], [..., 1, 2], [..., 2, 0]),
]


@pytest.mark.parametrize("labels", INTERLEAVED, ids=str)
def test_einsum_with_integers_for_letters(labels):
    x, y = draw("real", 2, 3), draw("real", 3, 4)

    def f(x, y):
        return lantern.einsum(x, labels[0], y, labels[1], *labels[2:])

    np.testing.assert_allclose(f(x, y), np.einsum(x, labels[0], y, *labels[1:]))
    check(f, x, y)


@pytest.mark.parametrize("installed", [True, False], ids=["opt_einsum", "numpy"])
@pytest.mark.parametrize("optimize", [False, True, "greedy", "optimal", "path"])
def test_einsum_in_any_order(optimize, installed, monkeypatch):
    if installed:
        pytest.importorskip("opt_einsum", reason="opt_einsum is not installed")
    else:
        refuse_imports(monkeypatch, "lantern.tensor.ops.einsum")
    operands = einsum_operands("2,3 3,4 4,5 5")
    letters = "ij,jk,kl,l->i"
    if optimize == "path":
        optimize = ["einsum_path", (0, 2), (0, 1, 2)]
    want = np.einsum(letters, *operands)

    def f(*x):
        return lantern.einsum(letters, *x, optimize=optimize)

    lantern.tensor.ops.einsum._plan.cache_clear()
    np.testing.assert_allclose(f(*operands), want)
    check(f, *operands, order=1)
    lantern.tensor.ops.einsum._plan.cache_clear()


@pytest.mark.parametrize(
    ("letters", "shapes"),
    [
        ("ij,jk->il", "2,3 3,4"),
        ("ij,jk", "2,3 2,4"),
        ("ijk", "2,3"),
        ("i,i", "2"),
        ("ii", "1,3"),
        ("i->ii", "2"),
        ("...i->i", "2,3"),
        ("i$->i", "2"),
    ],
)
def test_einsum_refuses_what_numpy_refuses(letters, shapes):
    operands = einsum_operands(shapes)
    with pytest.raises(ValueError) as numpy_error:
        np.einsum(letters, *operands)
    with pytest.raises(ValueError) as error:
        lantern.einsum(letters, *operands)
    assert str(error.value) == str(numpy_error.value)


def test_einsum_has_no_rule_for_further_options():
    x = np.ones((2, 2))
    assert lantern.einsum("ii", x, dtype=complex).dtype == complex
    with pytest.raises(MissingRuleError, match="dtype"):
        grad(lambda x: lantern.einsum("ii", x, dtype=complex).real)(x)


@st.composite
def einsums(draw_from):
    sizes = {c: draw_from(st.integers(1, 3)) for c in "abcd"}
    dots, terms, shapes = (2, 3), [], []
    for _ in range(draw_from(st.integers(1, 4))):
        term = draw_from(st.lists(st.sampled_from("abcd"), max_size=3))
        shape = [1 if draw_from(st.integers(0, 9)) == 0 else sizes[c] for c in term]
        if len(set(term)) < len(term):
            shape = [sizes[c] for c in term]
        if draw_from(st.integers(0, 3)) == 0:
            at, n = draw_from(st.integers(0, len(term))), draw_from(st.integers(0, 2))
            term.insert(at, "...")
            shape[at:at] = dots[2 - n :]
        terms.append("".join(term))
        shapes.append(tuple(shape))
    letters = ",".join(terms)
    if draw_from(st.booleans()):
        used = sorted(set(letters) & set("abcd"))
        kept = draw_from(st.permutations(used)) if used else []
        output = list(kept[: draw_from(st.integers(0, len(kept)))])
        letters += "->" + "".join(["..."] * ("..." in letters) + output)
    return letters, shapes


@given(einsums())
@settings(max_examples=150, deadline=None)
def test_any_einsum(call):
    letters, shapes = call
    operands = [draw("real", *s, seed=i) for i, s in enumerate(shapes)]
    want = np.einsum(letters, *operands)
    np.testing.assert_allclose(lantern.einsum(letters, *operands), want, atol=1e-12)
    check(lambda *x: lantern.einsum(letters, *x), *operands, order=1)
