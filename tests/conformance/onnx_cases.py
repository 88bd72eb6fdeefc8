"""ONNX's own cases: their values, and their derivatives beside differences.

What the script and the tests share.
"""

import warnings

import numpy as np
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.loader import load_model_tests

import lantern.onnx
import lantern.torch as torch

# Inputs that say what to compute, and are no numbers to be moved.
SETTINGS = {"Resize": (1, 2), "Upsample": (1,), "Dropout": (1, 2), "Range": (0, 1, 2)}
# Places beside a case's own, where no maximum is shared and nothing is at a corner;
# outwards, where those would leave the domain; and its own.
NOISES = (
    lambda x, rng: x + 0.02 * rng.uniform(-1, 1, x.shape),
    lambda x, rng: x * (1 + 0.02 * rng.uniform(0, 1, x.shape)),
    lambda x, rng: x,
)
STEPS = {
    np.float64: (lambda near, _: near(1e-6), lambda _, smooth: smooth(1e-2)),
    np.float32: (lambda _, smooth: smooth(1e-2),),
}
RTOL = {np.float64: 1e-4, np.float32: 1e-2}


def plain(z):
    """A result as the cases have it: arrays."""
    if isinstance(z, list):
        return [plain(part) for part in z]
    return z.detach().numpy() if isinstance(z, torch.Tensor) else z


class Loaded(BackendRep):
    """A model as the package's runner calls it."""

    def __init__(self, model):
        self.model = lantern.onnx.load(model, elements=1 << 28)

    def run(self, inputs, **options):
        with torch.no_grad():
            given = [np.asarray(x) if np.isscalar(x) else x for x in inputs]
            found = self.model(*given)
        return tuple(map(plain, found if isinstance(found, tuple) else (found,)))


class LanternBackend(Backend):
    """Lantern for the package's runner."""

    @classmethod
    def prepare(cls, model, device="CPU", **options):
        return Loaded(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def is_real(x):
    """Whether a derivative could go through an input or a result."""
    return isinstance(x, np.ndarray) and x.dtype in (np.float16, np.float32, np.float64)


def float_cases():
    """The cases of one operator, not written out as others, of floats to floats."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    for case in cases:
        inputs, outputs = case.data_sets[0]
        real = any(map(is_real, inputs)) and any(map(is_real, outputs))
        if real and "_expanded" not in case.name:
            yield case


class DerivativeError(AssertionError):
    """A derivative that the differences do not confirm."""


def check_derivative(case):
    """Compare a case's derivative with differences; what was found, in a word.

    Returns:
        "confirmed", or "zero" where nothing is tracked and nothing changes.
    """
    inputs, _ = case.data_sets[0]
    failure = None
    for kind in (np.float64, np.float32):
        for noise in NOISES:
            try:
                return _check(case, inputs, kind, noise)
            except DerivativeError:
                raise
            except Exception as error:
                # Outside of its domain, or an operator of float32 only.
                failure = failure or error
    raise failure


def _check(case, inputs, kind, noise):
    rng = np.random.default_rng(0)
    model = lantern.onnx.load(case.model)
    model = model.double() if kind is np.float64 else model
    fixed = SETTINGS.get(case.model.graph.node[0].op_type, ())
    moves = [i not in fixed and is_real(x) for i, x in enumerate(inputs)]
    given = [noise(x.astype(np.float64), rng).astype(kind) if free else x
             for x, free in zip(inputs, moves, strict=True)]  # fmt: skip
    bases = _values(model, given)
    finite = [np.isfinite(z) if is_real(z) else None for z in bases]
    seeds = [rng.normal(size=z.shape) * (m if m is not None else 1)
             for z, m in zip(bases, finite, strict=True)]  # fmt: skip

    def weighed(parts):
        found = _values(model, parts)
        pairs = [(z, s) for z, s in zip(found, seeds, strict=True) if is_real(z)]
        # What is infinite or nan in the middle is left out on all sides.
        return sum(float((z.astype(np.float64) * s)[s != 0].sum()) for z, s in pairs)

    tracked = [torch.tensor(np.asarray(x), requires_grad=True) if free else x
               for x, free in zip(given, moves, strict=True)]  # fmt: skip
    outputs = model(*tracked)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    total = sum(
        (z * torch.tensor(s.astype(z.detach().numpy().dtype))).sum()
        for z, s in zip(outputs, seeds, strict=True)
        if isinstance(z, torch.Tensor) and z.requires_grad
    )
    if isinstance(total, torch.Tensor):
        total.backward()
    for i, x in enumerate(given):
        if not moves[i] or not x.size:
            continue
        grad = tracked[i].grad
        grad = np.zeros_like(x) if grad is None else grad.numpy()
        for _ in range(2):
            along = rng.normal(size=x.shape)

            def moved(by, i=i, x=x, along=along):
                parts = list(given)
                parts[i] = np.asarray(x + by * along).astype(kind)
                return weighed(parts)

            _compare(case.name, i, kind, (grad * along), moved)
    return "confirmed" if isinstance(total, torch.Tensor) else "zero"


def _compare(name, i, kind, parts, moved):
    """Hold a derivative along a direction to differences, fine ones or smooth ones.

    The smooth ones are of fourth order, for what rounds to float32 on its way.
    """
    found = float(parts.sum())
    near = lambda h: (moved(h) - moved(-h)) / (2 * h)  # noqa: E731
    smooth = lambda h: (4 * near(h) - near(2 * h)) / 3  # noqa: E731
    words = []
    for wanted in STEPS[kind]:
        difference = wanted(near, smooth)
        size = float(np.abs(parts).sum()) + abs(difference)
        if abs(found - difference) <= RTOL[kind] * size + 1e-5:
            return
        words.append(f"{difference:.6g}")
    finite = np.isfinite(found) and "nan" not in words
    raise (DerivativeError if finite else ArithmeticError)(
        f"{name}, input {i}, {kind.__name__}: the derivative is {found:.6g}, "
        f"by differences {' or '.join(words)}"
    )


def _values(model, given):
    with torch.no_grad():
        found = model(*given)
    found = found if isinstance(found, tuple) else (found,)
    return [z if isinstance(z, np.ndarray) else np.asarray(plain(z)) for z in found]
