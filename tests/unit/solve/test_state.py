"""A snapshot holds all of a state, whatever fields it has."""

from dataclasses import dataclass, fields

import numpy as np
import pytest

from limelight._base.errors import DataError
from limelight.solve.state import Shift, State, TraceRecord, from_snapshot, to_snapshot

TRACE = [TraceRecord(3, 0.5, *np.arange(7.0).tolist())]


@dataclass
class LongerState(State):
    """A state as it may be one day."""

    momentum: np.ndarray | None = None
    later: Shift | None = None
    rate: float = 0.5
    rounds: int = 0


def first():
    return LongerState(*(np.zeros((n, 2), np.float32) for n in (4, 3)), np.zeros(2), np.zeros(2))


def test_every_field_comes_back_and_so_do_fields_that_are_new():
    generator = np.random.default_rng(0)
    state = LongerState(
        U=generator.normal(size=(4, 2)).astype(np.float32),
        V=generator.normal(size=(3, 2)).astype(np.float32),
        s=generator.normal(size=2),
        w=generator.normal(size=2),
        epoch=3,
        objective=4.5,
        change=0.75,
        curvature=np.ones(4, np.float32),
        penalty=2.5,
        caution=3.0,
        smallest_gap=0.25,
        gramian_U=np.eye(2),
        pending=Shift(np.ones(4, np.float32), np.full(2, 7, np.float32)),
        momentum=np.eye(2) / 2,
        later=Shift(np.zeros(4, np.float32), np.full(2, 8, np.float32)),
        rate=0.125,
        rounds=9,
    )
    usual = first()
    for field in fields(state):
        value, default = (repr(getattr(one, field.name)) for one in (state, usual))
        assert value != default, f"{field.name} is not tried out"
    again = first()
    trace, seconds = from_snapshot(to_snapshot(state, TRACE, 1.5), again)
    assert (trace, seconds) == (TRACE, 1.5)
    for field in fields(state):
        expected, found = getattr(state, field.name), getattr(again, field.name)
        assert type(found) is type(expected)
        both = [(found, expected)]
        if isinstance(expected, Shift):
            both = zip(found, expected, strict=True)
        for one, other in both:
            np.testing.assert_array_equal(one, other)


def test_what_is_not_there_yet_is_not_there_afterwards():
    again = first()
    again.curvature = np.ones(4, np.float32)
    from_snapshot(to_snapshot(first(), [], 0.0), again)
    assert again.curvature is None
    assert again.pending is None


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("U", None, "no U of this work"),
        ("V", np.zeros((9, 2), np.float32), "no V of this work"),
        ("s", np.zeros(2, np.float32), "no s of this work"),
        ("w", np.full(2, np.nan), "not finite"),
    ],
)
def test_arrays_of_something_else_are_refused(name, array, message):
    stored = to_snapshot(first(), [], 0.0)
    stored.arrays[name] = array
    with pytest.raises(DataError, match=message):
        from_snapshot(stored, first())
