"""Every test here leaves no delimiter behind; ``world`` runs a test in all of them."""

import pytest

from lantern.cps.prompt import innermost
from tests.cps.worlds import WORLDS


@pytest.fixture(params=WORLDS, ids=lambda world: world.name)
def world(request):
    return request.param


@pytest.fixture(autouse=True)
def _leaves_no_delimiter():
    assert innermost.get() is None
    yield
    assert innermost.get() is None
