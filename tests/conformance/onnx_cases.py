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
STEPS = {np.float64: (1e-6, 2e-4), np.float32: (4e-3, 3e-2)}


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
            except Exception as error:
                # What computes in float32 only, or not beside the point, has others.
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
    seeds = [rng.normal(size=x.shape) for x in _values(model, given)]

    def weighed(parts):
        found = _values(model, parts)
        pairs = [(z, s) for z, s in zip(found, seeds, strict=True) if is_real(z)]
        return sum(float((z.astype(np.float64) * s).sum()) for z, s in pairs)

    tracked = [torch.tensor(x, requires_grad=True) if free else x
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
    step, rtol = STEPS[kind]
    for i, x in enumerate(given):
        if not moves[i] or not x.size:
            continue
        grad = tracked[i].grad
        grad = np.zeros_like(x) if grad is None else grad.numpy()
        for _ in range(2):
            along = rng.normal(size=x.shape)
            ends = []
            for sign in (1, -1):
                moved = list(given)
                moved[i] = (x + sign * step * along).astype(kind)
                ends.append(weighed(moved))
            found, wanted = (
                float((grad * along).sum()),
                (ends[0] - ends[1]) / (2 * step),
            )
            size = float(np.abs(grad * along).sum()) + abs(wanted)
            if not abs(found - wanted) <= rtol * size + rtol:
                raise DerivativeError(
                    f"{case.name}, input {i}, {kind.__name__}: the derivative is "
                    f"{found:.6g}, by differences {wanted:.6g}"
                )
    return "confirmed" if isinstance(total, torch.Tensor) else "zero"


def _values(model, given):
    with torch.no_grad():
        found = model(*given)
    found = found if isinstance(found, tuple) else (found,)
    return [z if isinstance(z, np.ndarray) else np.asarray(plain(z)) for z in found]
