"""The same expression under PyTorch and under its face here, and how they compare."""

import warnings

import numpy as np
import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")


def plain(z):
    """A result of either side as plain values with their types."""
    if isinstance(z, ours.Tensor | theirs.Tensor):
        z = z.detach()
        return str(z.dtype), tuple(z.shape), z.numpy()
    if isinstance(z, dict):
        return {k: plain(v) for k, v in z.items()}
    if isinstance(z, tuple | list):
        return [plain(part) for part in z]
    return z if isinstance(z, bool | int | float | str | type(None)) else str(z)


def assert_same(mine, other, rtol=1e-4, atol=5e-6):
    """Assert that two plain results agree in value, type and shape."""
    if isinstance(other, list):
        assert isinstance(mine, list)
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            assert_same(a, b, rtol, atol)
    elif isinstance(other, dict):
        assert mine.keys() == other.keys()
        for key in other:
            assert_same(mine[key], other[key], rtol, atol)
    elif isinstance(other, tuple):
        assert mine[:2] == other[:2]
        np.testing.assert_allclose(mine[2], other[2], rtol=rtol, atol=atol)
    else:
        assert (
            mine == pytest.approx(other, rel=rtol)
            if type(other) is float
            else mine == other
        )


def inputs(torch, dtype="float32"):
    """Some tensors of either side: p positive, i and k integers, m a mask."""
    random = np.random.default_rng(7)
    arrays = {
        "a": random.normal(size=(3, 4)),
        "b": random.normal(size=(3, 4)),
        "v": random.normal(size=4),
        "s": np.array(1.5),
        "p": random.uniform(0.2, 0.8, (3, 4)),
        "q": random.normal(size=(4, 4)),
        "c": random.normal(size=(2, 3, 4)),
    }
    kind = getattr(torch, dtype)
    tracked = {
        name: torch.tensor(x.astype(dtype), dtype=kind, requires_grad=True)
        for name, x in arrays.items()
    }
    return tracked | {
        "i": torch.tensor(random.integers(0, 3, (3, 4))),
        "k": torch.tensor([2, 0, 1]),
        "m": torch.tensor(random.random((3, 4)) < 0.5),
        "torch": torch,
    }


def floats(z, torch):
    """The tracked tensors in a result."""
    if isinstance(z, torch.Tensor):
        return [z] if z.requires_grad else []
    if isinstance(z, tuple | list):
        return [y for part in z for y in floats(part, torch)]
    return []


def outcome(source, torch):
    """Results and gradients of an expression, or the class and text of its error."""
    names = inputs(torch)
    try:
        z = eval(source, dict(names))
    except Exception as error:
        return {"error": type(error), "text": str(error)}
    gradients = []
    outputs = floats(z, torch)
    if outputs:
        for n, y in enumerate(outputs):
            weights = np.cos(np.arange(y.numel()) + n).reshape(tuple(y.shape))
            weights = torch.tensor(weights.astype(str(y.dtype).split(".")[1]))
            y.backward(weights, retain_graph=True)
        gradients = [
            names[n].grad for n in "abvspqc" if isinstance(names[n], torch.Tensor)
        ]
    tracked = [y.requires_grad for y in floats(z, torch)]
    return {"value": plain(z), "gradients": plain(gradients), "tracked": tracked}


def assert_equivalent(source, **close):
    """Assert that an expression has one outcome under both."""
    mine, other = outcome(source, ours), outcome(source, theirs)
    if "error" in other:
        assert "error" in mine, (
            f"PyTorch raises {other['error'].__name__}: {other['text']}"
        )
        assert issubclass(mine["error"], other["error"]), mine
        return
    assert "error" not in mine, f"{mine.get('error')}: {mine.get('text')}"
    assert_same(mine["value"], other["value"], **close)
    assert mine["tracked"] == other["tracked"]
    assert_same(mine["gradients"], other["gradients"], **close)


KINDS = (
    RuntimeError, TypeError, ValueError, AttributeError, KeyError, IndexError,
    AssertionError, NotImplementedError,
)  # fmt: skip
# Of what PyTorch warns, and no one here need: unstable layers, and cycles of memory.
NOT_OURS = ("Lazy", "Using backward() with create_graph")


def scenario_outcome(scenario, torch):
    """What a function of the library returns and warns of, or its error's classes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = plain(scenario(torch))
        except Exception as error:
            found = {c.__name__ for c in KINDS if isinstance(error, c)}
    texts = [str(w.message)[:60] for w in caught if w.category is UserWarning]
    return found, [text for text in texts if not text.startswith(NOT_OURS)]


def assert_same_scenario(scenario):
    """Assert that a function of the library has one outcome under both."""
    mine, my_warnings = scenario_outcome(scenario, ours)
    other, other_warnings = scenario_outcome(scenario, theirs)
    if isinstance(other, set):
        assert isinstance(mine, set), f"PyTorch raises one of {other}"
        assert other <= mine
    else:
        assert_same(mine, other)
    assert my_warnings == other_warnings
