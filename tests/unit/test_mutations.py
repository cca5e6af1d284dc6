"""The changes that ``make mutants`` tries still fit the sources, and name tests that there are."""

import pytest
from tests.mutants.mutations import MUTATIONS
from tests.support.places import ROOT


@pytest.mark.parametrize("kind", MUTATIONS)
def test_every_change_fits_in_one_place(kind):
    for change in MUTATIONS[kind]:
        text = (ROOT / "src" / "limelight" / change.file).read_text(encoding="utf-8")
        assert text.count(change.before) == 1, change
        assert change.after != change.before
        for name in change.tests.split():
            assert (ROOT / "tests" / "unit" / name).exists(), change
