"""Functions of whole numbers: the value of real ones, or an error; nothing else.

The law: what a function makes of whole numbers is what it makes of the same numbers
in double precision, cut off if it is of a whole type; or it refuses them. It needs no
peer.
"""

import inspect

import numpy as np
import pytest

import lantern.torch as torch

F = torch.nn.functional

# As in PyTorch, differences and sums of bytes wrap around before they become real, and
# means of whole numbers are cut off.
WRAP = frozenset(
    "cumulative_trapezoid local_response_norm pairwise_distance trapezoid trapz "
    "triplet_margin_loss triplet_margin_with_distance_loss".split()
)
# Draws, memory as it was found, and what asks for types.
NO_LAW = (
    "rand bernoulli multinomial normal poisson empty dropout gumbel rrelu bitwise view "
    "result_type can_cast typename histc finfo iinfo set_ save load seed compile vmap "
    "manual is_ jit from_ as_ tensor"
).split()
ROW = np.arange(1, 10)
SQUARE = np.array([[3, 1, 2], [0, 4, 9], [5, 7, 8]])
IMAGES = np.arange(72).reshape(1, 2, 6, 6)
ARGUMENTS = {
    "of a row": (ROW,),
    "of a matrix": (SQUARE,),
    "along an axis": (SQUARE, 0),
    "of two rows": (ROW, ROW[::-1].copy()),
    "of two matrices": (SQUARE, SQUARE.T.copy()),
    "of images": (IMAGES, 2),
    "by a share": (SQUARE, 0.25),
}


def functions(module):
    """The public functions of a module that a law holds for."""
    for name, function in sorted(vars(module).items()):
        plain = callable(function) and not inspect.isclass(function)
        lawless = name in WRAP or any(word in name for word in NO_LAW)
        if plain and name[0] != "_" and not lawless:
            yield name, function


def results(function, arguments, kind):
    """The tensors among a function's results, of arguments in a type."""
    z = function(
        *(
            torch.tensor(x.astype(kind)) if isinstance(x, np.ndarray) else x
            for x in arguments
        )
    )
    parts = z if isinstance(z, tuple | list) else [z]
    return [x.detach().numpy() for x in parts if isinstance(x, torch.Tensor)]


def holds(found, exact):
    """Whether a result is the exact one; in a whole type, cut off or wrapped."""
    if exact.dtype.kind not in "f" or found.dtype.kind == "c":
        return True
    if found.dtype.kind in "iu" and np.isfinite(exact).all():
        return np.array_equal(found, exact.astype(np.int64).astype(found.dtype))
    return np.allclose(found, exact, rtol=2e-3, atol=1e-4, equal_nan=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["int64", "uint8"])
@pytest.mark.parametrize("form", ARGUMENTS)
@pytest.mark.parametrize("module", [torch, F, torch.special], ids=lambda m: m.__name__)
def test_are_real_ones_cut_off_or_refused(module, form, kind):
    arguments, tried = ARGUMENTS[form], 0
    for name, function in functions(module):
        try:
            exact = results(function, arguments, "float64")
            found = results(function, arguments, kind)
        except Exception:  # refused, which other tests look at
            continue
        tried += 1
        for a, b in zip(found, exact, strict=True):
            assert holds(a, b), f"{name}: {a.ravel()[:4]} for {b.ravel()[:4]}"
    assert tried > 2


@pytest.mark.parametrize(
    "source",
    [
        "i // 0", "i % 0", "7 // zero", "torch.fmod(i, 0)", "torch.remainder(i, zero)",
        "torch.div(i, 0, rounding_mode='floor')", "i.clone().remainder_(0)",
        "torch.div(i, zero, rounding_mode='trunc')", "i.clone().floor_divide_(0)",
    ],
)  # fmt: skip
def test_are_not_divided_by_zero(source):
    i, zero = torch.tensor([7, -7]), torch.tensor([0, 1])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        eval(source, {"torch": torch, "i": i, "zero": zero})


@pytest.mark.parametrize("kind", ["uint8", "int8", "int64"])
def test_filling_with_a_number_below_0_counts_from_the_end(kind):
    dtype = getattr(torch, kind)
    expected = [255, 255] if kind == "uint8" else [-1, -1]
    assert torch.zeros(2, dtype=dtype).fill_(-1).tolist() == expected
    assert torch.full((2,), -1, dtype=dtype).tolist() == expected
    with pytest.raises(RuntimeError, match="without overflow"):
        torch.zeros(2, dtype=dtype).fill_(10**30)


def test_a_limit_that_no_unsigned_number_has_is_refused():
    x = torch.tensor([0, 1, 2], dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="hardtanh on an unsigned type"):
        F.hardtanh(x)
    assert F.hardtanh(x, 0, 1).tolist() == [0, 1, 1]
