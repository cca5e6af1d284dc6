import pytest


@pytest.fixture(autouse=True)
def _quick(small_peak):
    """Let no benchmark here measure a machine."""
