"""bfloat16, as a type that tensors have: the table of functions beside PyTorch's."""

import subprocess
import sys

import numpy as np
import pytest

import lantern.torch as ours
from tests.torch.compared import floats, theirs
from tests.torch.compared import inputs as in_single
from tests.torch.test_functions import SOURCES

pytest.importorskip("ml_dtypes", reason="where the type comes from")

STEP = 2.0**-7


def inputs(torch):
    """The tensors of the table, in bfloat16."""
    return {
        name: x.detach().to(torch.bfloat16).requires_grad_()
        if isinstance(x, torch.Tensor) and x.is_floating_point()
        else x
        for name, x in in_single(torch).items()
    }


def told(z, torch):
    """Types, shapes and values, of tensors and what holds them."""
    if isinstance(z, torch.Tensor):
        wide = z.detach().float() if z.is_floating_point() else z.detach()
        return [str(z.dtype), tuple(z.shape), wide.numpy()]
    if isinstance(z, tuple | list):
        return [told(part, torch) for part in z]
    return z if isinstance(z, bool | int | float | str) else str(z)


def outcome(source, torch):
    """The results and gradients of an expression, or that it is an error."""
    names = inputs(torch)
    try:
        z = eval(source, dict(names))
    except Exception as error:
        return error
    found = []
    for n, y in enumerate(floats(z, torch)):
        weights = np.cos(np.arange(y.numel()) + n).reshape(tuple(y.shape)) + 1.5
        weights = torch.tensor(weights.astype(np.float32)).to(y.dtype)
        y.backward(weights, retain_graph=True)
    found = [names[n].grad for n in "abvspqc"]
    return [told(z, torch), told(found, torch)]


def assert_near(mine, other):
    """Types and shapes alike, values but for some of bfloat16's last places."""
    if isinstance(other, list):
        assert isinstance(mine, list)
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            assert_near(a, b)
    elif isinstance(other, np.ndarray):
        scale = np.abs(other[np.isfinite(other)]).max(initial=0.5) if other.size else 1
        np.testing.assert_allclose(mine, other, 4 * STEP, 2 * STEP * scale)
    elif isinstance(other, float):
        assert mine == pytest.approx(other, rel=4 * STEP)
    else:
        assert mine == other


@pytest.mark.parametrize("source", SOURCES)
def test_an_expression_means_the_same(source):
    other = outcome(source, theirs)
    if isinstance(other, Exception):
        pytest.skip(f"PyTorch refuses it: {type(other).__name__}")
    mine = outcome(source, ours)
    if isinstance(mine, Exception):
        raise mine
    assert_near(mine, other)


KINDS = "bfloat16 float16 float32 float64 int8 uint8 int64 bool complex64".split()


@pytest.mark.parametrize("kind", KINDS)
def test_types_meet_as_in_pytorch(kind):
    # PyTorch 2.14 has a type for the sum with one complex number, and no sum.
    for form in ((2,), ()) if kind != "complex64" else ((2,),):
        mine, other = (
            torch.ones(2, dtype=torch.bfloat16)
            + torch.ones(form, dtype=getattr(torch, kind))
            for torch in (ours, theirs)
        )
        assert str(mine.dtype) == str(other.dtype)
    mine, other = (
        torch.promote_types(torch.bfloat16, getattr(torch, kind))
        for torch in (ours, theirs)
    )
    assert str(mine) == str(other)


def losses(torch, name):
    """Some steps of a small model in bfloat16."""
    layers = torch.nn
    model = layers.Sequential(
        layers.Linear(4, 8), layers.LayerNorm(8), layers.GELU(), layers.Linear(8, 3)
    )
    with torch.no_grad():
        for i, p in enumerate(model.parameters()):
            values = np.cos(np.arange(p.numel()) + i).reshape(tuple(p.shape)) / 2
            p.copy_(torch.tensor(values))
    model = model.to(torch.bfloat16)
    optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.05)
    x = torch.tensor(np.sin(np.arange(20)).reshape(5, 4)).bfloat16()
    y = torch.tensor([0, 1, 2, 1, 0])
    found = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = layers.functional.cross_entropy(model(x), y)
        loss.backward()
        layers.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    assert all(p.dtype == torch.bfloat16 for p in model.parameters())
    return found


OPTIMISERS = "SGD Adam AdamW Adagrad Adadelta Adamax NAdam RAdam ASGD Rprop".split()


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_gives_the_same_losses(name):
    np.testing.assert_allclose(losses(ours, name), losses(theirs, name), 2 * STEP)


def test_limits_are_pytorchs():
    mine, other = ours.finfo(ours.bfloat16), theirs.finfo(theirs.bfloat16)
    for name in "bits eps max min tiny smallest_normal resolution".split():
        assert getattr(mine, name) == getattr(other, name), name


def test_nothing_is_imported_before_it_is_used_and_its_absence_is_explained():
    code = (
        "import sys; import lantern.torch as torch;"
        "assert 'ml_dtypes' not in sys.modules;"
        "sys.modules['ml_dtypes'] = None; print(torch.bfloat16);"
        "torch.ones(1, dtype=torch.bfloat16)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "torch.bfloat16\n"
    assert "pip install lantern-ad[bf16]" in done.stderr


@pytest.mark.parametrize("kind", ["uint16", "uint32", "uint64"])
def test_wide_types_without_a_sign_meet_only_their_own(kind):
    x = ours.arange(3, dtype=getattr(ours, kind))
    assert (x + x).tolist() == [0, 2, 4]
    with pytest.raises(RuntimeError, match="uint16, uint32, uint64"):
        x + ours.arange(3)
