"""The cases of the contract, as ``python -m tests.contract`` runs them.

The families B and G have tests of their own here (``test_fault_injection.py``, and the
walks over NumPy); D takes as long as all others.
"""

import pytest

from tests.contract.__main__ import run_family


@pytest.mark.parametrize("letter", "ACEFHIJKLMN")
def test_no_case_is_lost(letter):
    results = run_family(letter)
    assert len(results) > 7
    assert [(name, problem) for name, _, problem in results if problem] == []
