"""Tables from the bytes of the fuzzer: files as they come, and frames of any types."""

from __future__ import annotations

import datetime
import gzip
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import atheris
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# The first byte of an input chooses; a name that is there twice is compressed by us, not by chance.
KINDS = ("csv", "tsv", "csv.gz", "parquet", "csv.gz", "frame")
_COMPRESSED, _FRAME = 4, 5

_DAY = datetime.datetime(2024, 2, 29, 12)
_VALUES: tuple[tuple[Any, Sequence[Any]], ...] = (
    (pa.int64(), (1, 2, 3, 0, -1, 2**31, 2**63 - 1)),
    (pa.int8(), (1, 2, 3, 0, -1)),
    (pa.uint64(), (1, 2, 2**63, 2**64 - 1)),
    (pa.float64(), (1.0, 2.0, 0.5, 0.0, -1.0, float("nan"), float("inf"), 1e300, 2.0**53)),
    (pa.float32(), (1.0, 2.0, 0.5, 0.0, -1.0, float("nan"), float("inf"))),
    (pa.string(), ("a", "b", "1", "007", "", "\U0001f3ad", "nan", "a" * 40)),
    (pa.large_string(), ("a", "b", "1")),
    (pa.binary(), (b"a", b"\xff", b"")),
    (pa.dictionary(pa.int32(), pa.string()), ("a", "b", "c", "")),
    (pa.bool_(), (True, False)),
    (pa.timestamp("s"), (_DAY, datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))),
    (pa.timestamp("ns", "UTC"), (_DAY, datetime.datetime(1970, 1, 1))),
    (pa.date32(), (_DAY.date(), datetime.date(1, 1, 1), datetime.date(9999, 12, 31))),
    (pa.decimal128(20, 0), (Decimal(1), Decimal(2), Decimal(10) ** 19)),
    (pa.decimal128(10, 2), (Decimal("1.50"), Decimal("-2.25"))),
    (pa.list_(pa.int64()), ([1, 2], [], [3])),
    (pa.null(), (None,)),
    (pa.duration("s"), (datetime.timedelta(1),)),
)


def draw_source(data: bytes, folder: Path, names: Sequence[str]) -> Path | pa.Table:
    """Make a file of some bytes, or a frame with some of the named columns."""
    kind = data[0] % len(KINDS) if data else 0
    if kind == _FRAME:
        return draw_frame(atheris.FuzzedDataProvider(data[1:]), names)
    path = folder / f"table.{KINDS[kind]}"
    path.write_bytes(gzip.compress(data[1:], 0) if kind == _COMPRESSED else data[1:])
    return path


def draw_frame(draw: atheris.FuzzedDataProvider, names: Sequence[str]) -> pa.Table:
    """Make a frame of a few rows whose columns are of any type."""
    n_rows = draw.ConsumeIntInRange(0, 8)
    columns = {}
    for name in names:
        choice = draw.ConsumeIntInRange(0, len(_VALUES) + 4)
        if choice == len(_VALUES) + 4:
            continue
        # The types that ids and scores usually have come up more often than the others.
        type_, values = _VALUES[choice if choice < len(_VALUES) else (0, 3, 5, 6)[choice % 4]]
        chosen = [draw.ConsumeIntInRange(0, len(values)) for _ in range(n_rows)]
        column = [values[at] if at < len(values) else None for at in chosen]
        columns[name] = pa.array(column, type_)
    return pa.table(columns)
