"""The exposure that prices follow fades, and a new process finds it in the window."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from limelight.serve.ledger.buckets import UNIT
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.targets.memory import WINDOWS, FadingExposure

pytestmark = pytest.mark.unit
ITEMS = np.arange(3, dtype=np.int32)


def count(ledger, item, time):
    ledger.count(np.array([item], dtype=np.int32), time=time)


def test_it_fades_by_the_bucket():
    ledger, faded = Ledger(3, window=48.0), FadingExposure()
    faded.follow(ledger)
    count(ledger, 0, 0.5)
    np.testing.assert_allclose(faded.of(ITEMS), [1, 0, 0])
    for time in (10.5, 100.5, 200.5):
        ledger.advance(time)
        faded.follow(ledger)
        left = exp(-(time - 0.5) / (48 * WINDOWS))
        np.testing.assert_allclose(faded.of(ITEMS), [left, 0, 0])
        assert faded.lists == pytest.approx(left)


def test_what_is_counted_in_the_open_bucket_counts_at_once():
    ledger, faded = Ledger(3, window=48.0), FadingExposure()
    count(ledger, 1, 0.5)
    faded.follow(ledger)
    count(ledger, 2, 0.6)
    count(ledger, 2, 0.7)
    np.testing.assert_allclose(faded.all(), [0, 1, 2])
    assert faded.lists == 3


def test_a_late_list_counts_when_it_comes():
    ledger, faded = Ledger(3, window=48.0), FadingExposure()
    ledger.advance(20.0)
    faded.follow(ledger)
    count(ledger, 1, 5.0)
    np.testing.assert_allclose(faded.all(), [0, 1, 0])


def test_a_new_one_finds_the_same_within_the_first_window():
    ledger, faded = Ledger(3, window=48.0), FadingExposure()
    generator = np.random.default_rng(0)
    for time in np.arange(0.0, 40.0, 0.3).tolist():
        ledger.advance(time)
        faded.follow(ledger)
        count(ledger, int(generator.integers(3)), time)
    faded.follow(ledger)
    restored = Ledger(3, window=48.0)
    restored.restore(ledger.state())
    new = FadingExposure()
    new.follow(restored)
    np.testing.assert_array_equal(new.all(), faded.all())
    assert new.lists == faded.lists


def test_another_catalogue_begins_anew():
    ledger, faded = Ledger(3, window=48.0), FadingExposure()
    count(ledger, 0, 0.5)
    ledger.advance(5.0)
    faded.follow(ledger)
    ledger.renumber(np.array([1, 0, -1], dtype=np.int32), 2)
    faded.follow(ledger)
    assert faded.all()[0] == 0
    assert faded.all()[1] > 0


def test_with_a_half_life_it_is_the_ledger():
    ledger, faded = Ledger(3, half_life=10.0), FadingExposure()
    for time in (1.0, 12.0, 30.0):
        count(ledger, 0, time)
        ledger.advance(time + 5)
        faded.follow(ledger)
        np.testing.assert_allclose(faded.all(), (ledger.totals[ITEMS] / UNIT))
        assert faded.lists == ledger.lists
