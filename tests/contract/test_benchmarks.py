"""The benchmarks' own machinery: what fails is a row, and the rest still runs."""

import importlib
import types

import numpy as np
import pytest

from benchmarks import __main__ as command
from benchmarks import harness, table


class Present:
    """What a process would have answered."""

    def __init__(self, result: object) -> None:
        self.result = result


def test_a_benchmark_that_fails_is_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    row = table.Row("whole", "figure", 2.0, "×", table.Target(1))
    whole = types.SimpleNamespace(rows=lambda quick: [row])
    broken = types.SimpleNamespace(rows=lambda quick: [1 // 0])
    found = {"benchmarks.whole": whole, "benchmarks.broken": broken}
    monkeypatch.setattr(importlib, "import_module", found.__getitem__)
    rows, took = command._run(["broken", "whole"], quick=True)
    assert [r.figure for r in rows] == [command.FAILED, "figure"]
    assert "ZeroDivisionError" in rows[0].detail
    assert "broken" in took
    assert "whole" in took


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (None, "Peer is missing here"),
        (RuntimeError("Peer: no\ndevice"), "Peer: no device"),
        (np.ones(2), ""),
    ],
)
def test_why_a_peer_does_not_take_part(result: object, told: str) -> None:
    assert harness._why_not("Peer", Present(result)) == told


def test_results_that_differ_are_refused() -> None:
    results = {"Lantern": np.ones(2), "Peer": np.array([1.0, 1.1])}
    with pytest.raises(harness.DisagreementError, match="Peer and Lantern disagree"):
        harness.agree("chain", results, 1e-9)


def test_every_name_is_a_benchmark() -> None:
    for name in command.NAMES:
        assert callable(importlib.import_module(f"benchmarks.{name}").rows)
