"""Ids of all ranks numbered in ascending order, without any rank that holds all of them.

Each rank sorts the ids that it met and sends each stretch of them to the rank that is in charge of
it. That one merges what it gets and answers with numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from limelight._base.errors import DataError
from limelight.cluster.collectives import (
    all_agree,
    all_gather_objects,
    all_to_all_objects,
    gather,
    raise_together,
)
from limelight.data.columns import Chunk
from limelight.data.ids import IdColumn, bytes_of_ids, ids_of_bytes, places
from limelight.data.interactions import LARGEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight._base.arrays import Int32, Int64
    from limelight.cluster.collectives import Communicator

_SAMPLES = 8
"""Ids that each rank names for each rank, to find stretches of about equal length."""


class Numbering(NamedTuple):
    """What ids are called from now on."""

    numbers: Int32
    """The number of each code of this rank."""
    n_ids: int
    """How many ids there are on all ranks."""
    stretch: Any
    """The ids that this rank is in charge of, ascending, as an Arrow array."""


def number_ids(column: IdColumn, comm: Communicator) -> Numbering:
    """Number the ids that all ranks met in ascending order.

    1. The ranks agree, by samples, on stretches of the order of all ids, one for each rank.
    2. Each rank sends the ids that it met to the ranks in charge of their stretches.
    3. A rank merges what it gets: an id that several ranks met becomes one. Its ids are numbered
       from the count of all ids in earlier stretches up.
    4. It answers each rank with the numbers of what that rank sent, in the order in which it came.
    """
    ids = _same_type(column, comm)
    codes = column.ascending_codes(ids)
    ids = ids.take(pa.array(codes))
    ends = [0, *(_place(ids, end) for end in _ends(ids, comm)), len(ids)]
    stretches = all_to_all_objects(comm, [_pack(ids[start:end]) for start, end in pairwise(ends)])
    merged = IdColumn(column.name)
    met = [merged.convert(Chunk(_unpack(packed, ids.type), "")) for packed in stretches]
    mine = merged.as_met()
    order = merged.ascending_codes(mine)
    lengths = comm.all_gather(np.array([len(order)]))
    n_ids = _checked_sum(lengths, column.name)
    at = np.int32(lengths[: comm.rank].sum()) + places(order)
    answers = all_to_all_objects(comm, [at[of_rank] for of_rank in met])
    # Answers come stretch by stretch, and so in the ascending order in which the ids were sent.
    numbers = np.empty(len(ids), np.int32)
    numbers[codes] = np.concatenate(answers)
    return Numbering(numbers, n_ids, mine.take(pa.array(order)))


def collect_ids(stretch: Any, comm: Communicator) -> Any:
    """Give the first rank all ids in ascending order; the others get None."""
    found = gather(comm, _pack(stretch))
    return found and pa.concat_arrays([_unpack(packed, stretch.type) for packed in found])


def _same_type(column: IdColumn, comm: Communicator) -> Any:
    """List the ids of this rank; text becomes integers if it does so on all ranks."""
    with raise_together(comm):
        ids = column.ids()
    if all_agree(comm, pa.types.is_integer(ids.type)):
        return ids
    return column.as_met()


def _ends(ids: Any, comm: Communicator) -> list[Any]:
    """Agree on where the stretches of all ranks but the last end."""
    n_samples = min(len(ids), _SAMPLES * comm.size)
    at = np.linspace(0, len(ids) - 1, n_samples).astype(np.int64)
    samples = all_gather_objects(comm, _pack(ids.take(pa.array(at))))
    named = sorted(name for packed in samples for name in _unpack(packed, ids.type).to_pylist())
    return [named[len(named) * rank // comm.size] for rank in range(1, comm.size)]


def _place(ids: Any, wanted: Any) -> int:
    return bisect_left(range(len(ids)), wanted, key=lambda place: ids[place].as_py())


def _pack(ids: Any) -> tuple[Int64, Any]:
    """Turn ids into arrays that own no more than they need."""
    offsets, content = bytes_of_ids(ids)
    return offsets - offsets[0], content[offsets[0] : offsets[-1]]


def _unpack(packed: Sequence[Any], type_: Any) -> Any:
    offsets, content = packed
    return ids_of_bytes(offsets, content, type_)


def _checked_sum(lengths: Int64, name: str) -> int:
    n_ids = int(lengths.sum())
    if n_ids > LARGEST:
        message = f"column {name!r} has more than {LARGEST:,} different ids: {n_ids:,}"
        raise DataError(message, hint="read less: a part of the rows, or those with higher ratings")
    return n_ids
