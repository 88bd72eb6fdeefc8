"""What is said of faults that nobody can notice is said of code that is there."""

import pytest

from tests.mutants.changes import mutants
from tests.mutants.harmless import HARMLESS, fits


@pytest.mark.parametrize("path", HARMLESS)
def test_each_harmless_change_is_one_of_a_line_that_there_is(path):
    for entry in HARMLESS[path]:
        assert any(fits(mutant, *entry) for mutant in mutants(path)), entry
