"""Every registered rule, unchanged, on staged operands: there and back again.

The staged run is interpreted, and compared with the rule's own run on plain values.
"""

import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import lantern
from lantern.core.contribution import Contribution
from lantern.errors import MissingExtraError
from lantern.op import op, registry
from lantern.staging import stage

pytest.importorskip("mpmath", reason="the samples' file computes with it")
from tests.cases import CONSTANT, ELEMENTWISE, draw
from tests.every_op.test_every_op import CASES, numbers, operands

NOT_STAGED = {
    "expm": "scipy.linalg.expm is called by name, on the operand itself",
    "frechet": "scipy.linalg.expm_frechet is called by name",
    "solve_triangular": "SciPy's solver is called by name (in 16 cases of 24)",
    "put": "numpy.subtract.at writes to a buffer (in 2 cases of 7)",
    "to_device": "it needs a device",
    "part": "its operand is a tuple; nodes with several results have their own",
    "apart": "a vmap's own: its results are as many as the examples",
    "together": "a vmap's own: its operands are as many as the examples",
    "imag": "complex numbers are not staged; of complex arrays it is staged",
}


def bar_of(z):
    if not hasattr(z, "dtype"):
        return 0.8
    return np.float64(0.8) if not z.shape else np.cos(z) + 0.3


def contribution(x_bar, shape, is_thunk):
    if is_thunk(x_bar):
        x_bar = x_bar()
    return x_bar.dense(shape) if isinstance(x_bar, Contribution) else x_bar


def there_and_back(op, operands, bars, statics):
    """A rule's value, or values, and its contributions."""
    rule = op.rule(*operands, **statics)
    z = next(rule)
    several = isinstance(z, tuple)
    out = list(z) if several else [z]
    if op.kind == "constant":
        return out
    bars = [bar_of(x) for x in out] if bars is None else bars
    for x in operands:
        x_bar = rule.send(list(bars) if several else bars[0])
        thunk = callable(x_bar) and not hasattr(x_bar, "node")
        shape = getattr(x, "shape", ())
        out.append(contribution(x_bar, shape, lambda _, thunk=thunk: thunk))
    return out


def samples():
    for case in CASES:
        if not any(0 in shape for shape in case.shapes):
            yield case.name, operands(case), case.statics
    for name in ELEMENTWISE:
        yield name, numbers(name), {}
    for name, intervals in CONSTANT.items():
        rng = np.random.default_rng(0)
        yield name, tuple(draw(x, rng, None) for x in intervals), {}


SAMPLES = {}
for _name, _operands, _statics in samples():
    SAMPLES.setdefault(_name, []).append((_operands, _statics))


@pytest.mark.parametrize("name", [n for n in SAMPLES if n not in NOT_STAGED])
def test_rule_runs_on_staged_operands(name):
    op = registry[name]
    for xs, statics in SAMPLES[name]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = there_and_back(op, xs, None, statics)
            except MissingExtraError as error:
                pytest.skip(str(error))
            n = len(expected) - (0 if op.kind == "constant" else len(xs))
            bars = [bar_of(z) for z in expected[:n]]

            def both(*args, op=op, xs=xs, statics=statics):
                n = len(xs)
                return there_and_back(op, args[:n], args[n:], statics)

            found = stage(both, *xs, *bars)(*xs, *bars)
        for a, b in zip(expected, found, strict=True):
            if a is None or b is None:  # no contribution, or one that is zero
                assert not np.any(a if b is None else b)
            else:
                b = np.broadcast_to(b, np.shape(a))
                np.testing.assert_allclose(b, a, rtol=1e-12, atol=1e-14)


def rules_in_our_files(home):
    """What the files of a package register: not what an example in a docstring does."""
    found = set()
    for name, known in registry.items():
        file = Path(inspect.unwrap(known.rule).__code__.co_filename)
        if file.is_relative_to(home) and not file.is_relative_to(home / "torch"):
            found.add(name)
    return found


def test_every_rule_has_a_sample_or_a_reason():
    """Those of lantern.torch join the registry where a test has imported it."""
    ours = rules_in_our_files(Path(lantern.__file__).parent)
    assert ours >= {"sin", "matmul", "where", "cumsum"}
    assert ours - SAMPLES.keys() <= NOT_STAGED.keys()
    assert len(NOT_STAGED) <= 10


def test_a_rule_of_an_example_is_not_among_the_librarys():
    text = "@op\ndef of_an_example(x, /):\n    z_bar = yield x\n    yield z_bar"
    space = {"op": op, "__name__": "lantern.op"}
    exec(compile(text, "<doctest lantern.op.op[0]>", "exec"), space)
    try:
        assert "of_an_example" in registry
        assert "of_an_example" not in rules_in_our_files(Path(lantern.__file__).parent)
    finally:
        del registry["of_an_example"]
