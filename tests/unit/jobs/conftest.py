import pytest
from tests.support.executors import Elsewhere


@pytest.fixture
def pieces():
    return Elsewhere()
