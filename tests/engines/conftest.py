import pytest

from lantern import engines


@pytest.fixture
def two_threads():
    engines.set_threads(2)
    yield
    engines.set_threads(0)
