"""Split by time: a model learns from what happened before, and should find what happened after."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight.data.filters import drop_unused, new_numbers
from limelight.data.held_out import HeldOut, held_out_of
from limelight.data.interactions import Interactions
from limelight.data.rows import row_numbers, row_starts
from limelight.data.split import Split
from limelight.data.times import decay, duration, moment, shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float64
    from limelight.data.times import Duration


def split_time(
    data: Interactions,
    *,
    validation: float = 0.1,
    test: float = 0.1,
    at: Any = None,
    half_life: Duration | None = None,
) -> Split:
    """Train on what happened before a time, and hold out what happened after it.

    The users of a held-out part are those who did something in its time. Their history is all that
    they did before it, and what they did then, with items of the training, are the targets. So a
    user of the test may have been learnt from. Who did nothing before is left out and counted.

    Parameters
    ----------
    data : Interactions
        Read with ``timestamp=``. A repeated pair has the time of its first row, and in every part
        the weight of the rows that came before it ends.
    validation, test
        The latest share of the pairs is for the test, the share before it for validation; 0 for no
        validation.
    at
        When the test begins, instead of `test`: a date such as ``"2021-01-01"``, or seconds.
    half_life
        Multiply weights by 2^(-age / half_life), as :func:`limelight.read` does, but with ages
        counted from the end of what a model may know: where validation or test begins. Data that
        was read with ``half_life=`` is refused, because its weights have fallen already.

    Returns
    -------
    Split
        ``train``, ``validation`` and ``test``, as of :func:`limelight.split_users`.

    Examples
    --------
    >>> import numpy as np
    >>> import pyarrow as pa
    >>> import limelight as ll
    >>> draw = np.random.default_rng(0)
    >>> columns = {"user": draw.integers(50, size=900), "item": draw.integers(30, size=900)}
    >>> data = ll.read(pa.table({**columns, "day": np.arange(900)}), timestamp="day")
    >>> split = ll.split_time(data, validation=0.1, test=0.2)
    >>> split.train.n_users, split.test
    (50, HeldOut(... users, ... interactions of history, ... targets))
    """
    times = _times_of(data)
    if half_life is not None and data.is_aged:
        message = f"the weights have fallen with age when they were read: half_life={half_life!r}"
        raise ConfigError(message, hint="leave half_life to split_time alone, or to read")
    first_of_test, first_of_validation = _cuts(times, validation, test, at)
    before = times < first_of_validation
    weights = _weights(data, half_life, first_of_validation, first_of_validation)
    train = drop_unused(_some_pairs(data, before, weights))
    numbers = new_numbers(np.bincount(data.indices[before], minlength=data.n_items) > 0)
    parts = [
        _hold_out(data, numbers, first, last, half_life)
        for first, last in (
            (first_of_validation, first_of_test),
            (first_of_test, np.inf),
        )
    ]
    return Split(
        train,
        parts[0][0],
        parts[1][0],
        dropped_interactions=int((numbers[data.indices] < 0).sum()),
        dropped_items=data.n_items - train.n_items,
        users_without_history=parts[0][1] + parts[1][1],
    )


def _times_of(data: Interactions) -> Float64:
    if not isinstance(data, Interactions) or data.times is None:
        message = (
            f"a split by time needs interactions with times, got none in: {type(data).__name__}"
        )
        raise DataError(message, hint="read the column of times: timestamp='...'")
    if not data.nnz:
        message = "there are no interactions to split: 0 users"
        raise DataError(message, hint="check the data and the filters")
    return data.times


def _cuts(times: Float64, validation: float, test: float, at: Any) -> tuple[float, float]:
    """Return when test and validation begin."""
    for name, share in (("validation", validation), ("test", test)):
        if isinstance(share, bool) or not 0 <= share < 1:
            message = f"{name} must be a share of the interactions, from 0 to below 1: {share!r}"
            raise ConfigError(message, hint="for example 0.1")
    ordered = np.sort(times)
    first_of_test = ordered[int(len(times) * (1 - test))] if at is None and test else np.inf
    if at is not None:
        first_of_test = moment(at)
        if first_of_test > ordered[-1]:
            message = f"the test would be empty: it begins at {shown(first_of_test)}, and the"
            message = f"{message} last pair is from {shown(ordered[-1])}"
            raise DataError(message, hint="choose an earlier time")
    before = int(np.searchsorted(ordered, first_of_test))
    held_out = round(len(times) * validation)
    first_of_validation = ordered[max(0, before - held_out)] if held_out else first_of_test
    if not ordered[0] < first_of_validation:
        begin = shown(first_of_validation)
        message = f"no pair is left before validation and test, which begin at {begin}"
        raise ConfigError(message, hint="lower validation or test, or choose a later time")
    return float(first_of_test), float(first_of_validation)


def _some_pairs(
    data: Interactions, kept: NDArray[np.bool_], weights: NDArray[np.float32] | None
) -> Interactions:
    """Keep some of the pairs, with these weights, and all users and items."""
    rows = row_numbers(data.indptr)
    indptr = row_starts(np.bincount(rows[kept], minlength=data.n_users))
    order = None
    if data.order is not None:
        # Where each entry stands among those of its row that are kept, in the order of the file.
        places = np.cumsum(kept) - 1 - indptr[rows]
        at = data.indptr[rows] + data.order
        order = places[at][kept[at]].astype(np.int32)
    return replace(
        data,
        indptr=indptr,
        indices=data.indices[kept],
        order=order,
        weights=None if weights is None else weights[kept],
        times=_times_of(data)[kept],
        repeats=None,
    )


def _hold_out(
    data: Interactions,
    numbers: NDArray[np.int32],
    first: float,
    last: float,
    half_life: Duration | None,
) -> tuple[HeldOut, int]:
    """Take the users who did something from one time on; tell how many did nothing before."""
    times, rows = _times_of(data), row_numbers(data.indptr)
    known = (numbers[data.indices] >= 0) & (times < last)
    is_target = known & (times >= first)
    has_targets = np.bincount(rows[is_target], minlength=data.n_users) > 0
    has_history = np.bincount(rows[known & ~is_target], minlength=data.n_users) > 0
    users = has_targets & has_history
    chosen = known & users[rows]
    weights = _weights(data, half_life, first, np.where(is_target, last, first))
    # In the order of time, as a user's rows stand in other splits.
    entries = np.flatnonzero(chosen)
    entries = entries[np.argsort(times[entries], kind="stable")]
    part = held_out_of(
        new_numbers(users)[rows[entries]],
        numbers[data.indices[entries]],
        is_target[entries],
        data.user_ids[users],
        int(numbers.max()) + 1,
        None if weights is None else weights[entries],
    )
    return part, int((has_targets & ~has_history).sum())


def _weights(
    data: Interactions, half_life: Duration | None, now: float, until: Float64 | float
) -> NDArray[np.float32] | None:
    """Return what pairs weigh by the rows that came before some time, at their age now.

    Of a pair that came once, that is its weight, whenever it came.
    """
    if data.weights is None and half_life is None:
        return None
    times, repeats = _times_of(data), data.repeats
    if now == np.inf:  # nothing is held out, so the newest row has no age
        now = max(float(one.max(initial=0)) for one in (times, *(repeats[1:2] if repeats else ())))
    weights = _aged(times, data.weights, half_life, now)
    if repeats is not None:
        each = _aged(repeats.times, repeats.weights, half_life, now)
        each[repeats.times >= np.broadcast_to(until, times.shape)[repeats.entries]] = 0
        # What comes only later keeps its weight: the pair is in no part that ends before it.
        sums = np.bincount(repeats.entries, each, minlength=data.nnz)
        weights = np.where(sums > 0, sums, weights)
    return np.maximum(weights, np.finfo(np.float32).tiny).astype(np.float32)


def _aged(
    times: Float64, weights: NDArray[Any] | None, half_life: Duration | None, now: float
) -> Float64:
    """Multiply weights by what age leaves of them; what is to come does not count more."""
    own = np.ones(len(times)) if weights is None else weights.astype(np.float64)
    if half_life is None:
        return own
    return own * np.minimum(decay(times, duration(half_life), now), 1.0)
