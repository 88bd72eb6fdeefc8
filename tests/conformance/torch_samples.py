"""PyTorch's samples under both: converted, compared, counted."""

from collections import Counter

import numpy as np

# Where our tensors lie.
PLACE = ["cpu"]


def converted(x):
    """An argument of PyTorch's as Lantern's."""
    import torch as theirs

    import lantern.torch as ours

    if isinstance(x, theirs.Tensor):
        if x.layout != theirs.strided or x.is_quantized:
            raise NotImplementedError("sparse")
        kind = getattr(ours, str(x.dtype).partition(".")[2])
        plain = x.detach().resolve_conj().resolve_neg()
        plain = plain.float() if x.dtype == theirs.bfloat16 else plain
        z = ours.from_numpy(np.array(plain.numpy(), copy=True)).to(kind).to(PLACE[0])
        return z.requires_grad_() if x.requires_grad else z
    if isinstance(x, theirs.dtype | theirs.layout | theirs.memory_format):
        return getattr(ours, str(x).partition(".")[2])
    if isinstance(x, theirs.device):
        return ours.device(PLACE[0])
    if isinstance(x, theirs.Size):
        return ours.Size(x)
    if isinstance(x, tuple | list):
        return type(x)(converted(part) for part in x)
    if isinstance(x, dict):
        return {name: converted(part) for name, part in x.items()}
    if isinstance(x, theirs.nn.Module):
        args, options = getattr(x, "made_with", ((), {}))
        make = getattr(ours.nn, type(x).__name__)
        return make(*converted(args), **converted(options))
    if isinstance(x, str) and x == "cpu":
        return PLACE[0]
    if callable(x) and getattr(x, "__name__", "") in dir(theirs.nn.functional):
        return getattr(ours.nn.functional, x.__name__)
    return x


def copied(x):
    """An argument of PyTorch's, so that writing to it does no harm."""
    import torch as theirs

    if isinstance(x, theirs.Tensor):
        return x.detach().clone().requires_grad_(x.requires_grad)
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(copied(part) for part in x)
    if isinstance(x, dict):
        return {name: copied(part) for name, part in x.items()}
    return x


def tensors(z):
    """The tensors among arguments or results, in order."""
    if hasattr(z, "requires_grad_") and hasattr(z, "grad_fn"):
        return [z]
    if isinstance(z, tuple | list):
        return [y for part in z for y in tensors(part)]
    if isinstance(z, dict):
        return [y for part in z.values() for y in tensors(part)]
    return []


class DifferenceError(Exception):
    """What differs, in one line."""


def number_of(x):
    """A tensor's elements, in PyTorch or here, as NumPy's."""
    x = x.detach()
    x = x.float() if str(x.dtype) == "torch.bfloat16" else x  # NumPy has none
    return x.resolve_conj().resolve_neg().numpy(force=True)


def compare(mine, other, what, random=False, close=1e-6):
    """Raise DifferenceError unless two results agree."""
    import torch as theirs

    import lantern.torch as ours

    if isinstance(other, theirs.Tensor):
        if not isinstance(mine, ours.Tensor):
            raise DifferenceError(
                f"{what}: a tensor expected, got {type(mine).__name__}"
            )
        if mine.device.type != PLACE[0]:
            raise DifferenceError(f"{what}: on {mine.device}, not on {PLACE[0]}")
        if str(mine.dtype) != str(other.dtype):
            raise DifferenceError(
                f"{what}: type {mine.dtype}, PyTorch has {other.dtype}"
            )
        if tuple(mine.shape) != tuple(other.shape):
            raise DifferenceError(
                f"{what}: shape {tuple(mine.shape)}, PyTorch has {tuple(other.shape)}"
            )
        if not random:
            a, b = number_of(mine), number_of(other)
            if not np.allclose(a, b, close, close / 10, equal_nan=True):
                raise DifferenceError(f"{what}: values differ")
    elif isinstance(other, tuple | list):
        if not isinstance(mine, tuple | list) or len(mine) != len(other):
            raise DifferenceError(f"{what}: {len(other)} results expected")
        for a, b in zip(mine, other, strict=True):
            compare(a, b, what, random, close)
    elif isinstance(other, float | complex):
        if not random and not np.allclose(mine, other, close, equal_nan=True):
            raise DifferenceError(f"{what}: {mine!r}, PyTorch has {other!r}")
    elif isinstance(other, bool | int | str) and mine != other and not random:
        raise DifferenceError(f"{what}: {mine!r}, PyTorch has {other!r}")


def same(x, y):
    """Whether two results of PyTorch's are equal, nan for nan."""
    pairs = zip(tensors(x), tensors(y), strict=True)
    return all(
        np.array_equal(number_of(a), number_of(b), equal_nan=a.dtype.is_floating_point)
        for a, b in pairs
    )


def gradients(torch, arguments, results):
    """The gradients of a weighted sum of the results; None where there is none."""
    inputs = [x for x in tensors(arguments) if x.requires_grad]
    outputs = [z for z in tensors(results) if z.requires_grad]
    if not inputs or not outputs:
        return None
    weights = []
    for n, z in enumerate(outputs):
        w = np.cos(np.arange(z.numel()) + n).reshape(tuple(z.shape))
        kind = getattr(torch, str(z.dtype).partition(".")[2])
        weights.append(torch.from_numpy(np.array(w)).to(kind).to(z.device))
    found = torch.autograd.grad(outputs, inputs, weights, allow_unused=True)
    return [
        torch.zeros_like(x) if g is None else g
        for x, g in zip(inputs, found, strict=True)
    ]


def lookup(place, name):
    """What a dotted name means here, or None."""
    for part in name.split("."):
        # Without __getattr__: it finds what only modules of Python have.
        place = (
            vars(place).get(part) if part[:2] == "__" else getattr(place, part, None)
        )
        if place is None:
            return None
    return place


def refuses(action, expected, case):
    """Raise DifferenceError unless an action raises an error of a class."""
    try:
        action()
    except Exception as error:
        if isinstance(error, expected):
            return
        raise DifferenceError(
            f"error: {type(error).__name__} ({error}), PyTorch raises "
            f"{expected.__name__}"
        ) from None
    raise DifferenceError(
        f"error: none, PyTorch raises {expected.__name__}: {case.error_regex}"
    )


class Outcome:
    """What came of a record: absent, passes or differs."""

    def __init__(self, name, variant=""):
        self.name, self.variant = name, variant
        self.counts, self.differences = Counter(), Counter()

    def attempt(self, what, action):
        """Count whether something goes as in PyTorch."""
        self.counts[what] += 1
        try:
            action()
            self.counts[f"{what} passed"] += 1
        except Exception as error:
            text = str(error).partition("\n")[0]
            if not isinstance(error, DifferenceError):
                text = f"{what}: {type(error).__name__}: {text}"
            self.differences[text[:160]] += 1

    @property
    def status(self):
        """One word."""
        told = ": MissingRuleError: "  # a name that says on each call that it is none
        passed = any(what.endswith(" passed") for what in self.counts)
        if not passed and all(told in text for text in self.differences):
            return "absent"
        return "differs" if self.differences else "passes"
