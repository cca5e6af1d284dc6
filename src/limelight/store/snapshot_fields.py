"""The fields of a snapshot, each of them checked before work goes on from it.

A checkpoint may have been damaged, or edited, or be of another program that has the same format.
Whatever does not look as it was written is refused, so that no work starts from it.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.text import short

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike, NDArray

T = TypeVar("T")


class Refused:
    """What is wrong with a checkpoint itself: it stays, for whoever owns it."""


class DamagedCheckpointError(Refused, DataError):
    """A checkpoint that is not as it was written."""


class OtherCheckpointError(Refused, ConfigError):
    """A checkpoint of other work."""


def refuse_damaged(what: str) -> NoReturn:
    """Refuse a checkpoint that is not as it was written.

    Examples
    --------
    >>> refuse_damaged("has no epoch")
    Traceback (most recent call last):
    limelight.store.snapshot_fields.DamagedCheckpointError: the checkpoint has no epoch
    ...
    """
    message = f"the checkpoint {what}"
    raise DamagedCheckpointError(message, hint="delete it to start from the beginning")


def stored_count(record: Mapping[str, Any], name: str) -> int:
    """Return a number of a record that counts something.

    Examples
    --------
    >>> stored_count({"epoch": 3.0}, "epoch")
    3
    """
    value = stored_number(record, name)
    if value != int(value) or value < 0:
        refuse_damaged(f"has no {name} of this work: {short(record[name])}")
    return int(value)


def stored_number(record: Mapping[str, Any], name: str, *, finite: bool = True) -> float:
    """Return a number of a record; infinite ones only where they are allowed."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        refuse_damaged(f"has no {name} of this work: {short(value)}")
    if finite and not math.isfinite(value):
        refuse_damaged(f"has no finite {name}: {value}")
    return float(value)


def stored_trace(record: Mapping[str, Any], kind: type[T]) -> list[T]:
    """Return the trace of a fit: records of a dataclass of numbers, their epochs rising."""
    found = record.get("trace")
    names = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(found, list):
        refuse_damaged(f"has no trace: {short(found)}")
    for one in found:
        if not isinstance(one, dict) or one.keys() != names:
            refuse_damaged(f"has another kind of trace: {short(one)}")
        for name in one:
            stored_number(one, name, finite=False)
    epochs = [stored_count(one, "epoch") for one in found]
    if epochs != sorted(set(epochs)):
        refuse_damaged(f"has epochs out of order: {short(epochs)}")
    return [kind(**one) for one in found]


def stored_array(
    arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], dtype: DTypeLike
) -> NDArray[Any]:
    """Return an array of a shape and a type, all of whose numbers are finite."""
    found = arrays.get(name)
    if found is None or found.shape != shape or found.dtype != np.dtype(dtype):
        refuse_damaged(f"has no {name} of this work")
    if not np.isfinite(found).all():
        refuse_damaged("holds numbers that are not finite")
    return found
