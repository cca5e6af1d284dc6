"""A glance at a table: about how many rows, how many ids, before anything is read.

How much memory reading takes, before it takes it.
"""

from __future__ import annotations

import gzip
import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import DataError
from limelight._base.memory import ARROW
from limelight.data.parquet import group_batches, open_parquet
from limelight.data.read import choose_columns
from limelight.data.sources import DELIMITERS, ending_of, files_of, open_parts, plain_errors

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray


_LOOKS = 16
"""How many places of a table are looked at."""
_ROWS, _BYTES = 1 << 12, 1 << 16
"""How much is looked at there, of Parquet and of text."""
_NUMBER, _OBJECT = 16, 72
"""What an id takes that is a number, or a string, beside its characters."""
_CODED = 100
"""What it takes more where it is looked up to become a number, row by row."""


@dataclass(frozen=True)
class Glance:
    """What is known of a table."""

    n_rows: float
    looks: list[Any]
    """Some rows from here and there, as Arrow tables."""

    def id_bytes(self, column: str) -> float:
        """Estimate what the distinct ids of a column take in the end."""
        texts = self._values(column).cast(pa.large_string())
        is_number = pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")).as_py()
        length = pc.mean(pc.binary_length(texts)).as_py() or 0.0
        return self.distinct(column) * (_NUMBER if is_number else _OBJECT + length)

    def coding_bytes(self, *columns: str) -> float:
        """Estimate what the distinct ids of some columns take while they become numbers."""
        return sum(self.id_bytes(name) + _CODED * self.distinct(name) for name in columns)

    def distinct(self, column: str) -> float:
        """Estimate how many distinct values a column has."""
        ids = self._values(column)
        if not len(ids):
            return 0.0
        counts = ids.value_counts().field("counts").to_numpy()
        if self.is_grouped(column):
            # Elsewhere there are others, as many.
            return float(len(counts) * self.n_rows / len(ids))
        # How many were not seen follows from those seen once and twice (Chao, 1984).
        once, twice = (float(np.count_nonzero(counts == times)) for times in (1, 2))
        return min(self.n_rows, len(counts) + once * (once - 1) / (2 * (twice + 1)))

    def is_grouped(self, column: str) -> bool:
        """Tell whether the rows of each value stand together."""
        for look in self.looks:
            values = look[column]
            changes = pc.sum(pc.not_equal(values[1:], values[:-1])).as_py() or 0
            if changes >= pc.count_distinct(values).as_py():
                return False
        return True

    def share(self, column: str, least: float | None) -> float:
        """Tell about which share of the rows has at least some number, or one above 0."""
        try:
            numbers = self._values(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:  # the reader will say what is wrong with it
            return 1.0
        kept: NDArray[np.bool_] = numbers > 0 if least is None else numbers >= least
        return float(np.mean(kept)) if len(kept) else 1.0

    def _values(self, column: str) -> Any:
        # Not chunked_array, which imports pandas.
        return pa.concat_tables([look.select([column]) for look in self.looks])[column]


def glance(source: str | os.PathLike[str], columns: Sequence[str]) -> Glance:
    r"""Look at a few rows of a file, or of a folder of parts.

    Parameters
    ----------
    source
        As for :func:`limelight.read`, but no frame.
    columns
        Which columns to look at.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> found = glance(file, ["user"])
    >>> found.n_rows, found.distinct("user")
    (1000.0, 1.0)
    """
    files = files_of(Path(source))
    chosen = [files[at] for at in _spread(len(files))]
    n_rows, looks = 0.0, []
    for file in chosen:
        with plain_errors(str(file)):
            found = _look(file, columns, _LOOKS // len(chosen))
        n_rows += found.n_rows
        looks += found.looks
    sizes = [file.stat().st_size for file in files]
    return Glance(n_rows * sum(sizes) / sum(file.stat().st_size for file in chosen), looks)


def _look(path: Path, columns: Sequence[str], n_looks: int) -> Glance:
    if not path.is_file():
        # A pipe would wait for somebody to write to it.
        message = f"not a file: {str(path)!r}"
        raise DataError(message, hint="check the path")
    ending = ending_of(path)
    if ending == ".parquet":
        return _look_at_parquet(path, columns, n_looks)
    return _look_at_text(path, columns, DELIMITERS[ending.removesuffix(".gz")], n_looks)


def _look_at_parquet(path: Path, columns: Sequence[str], n_looks: int) -> Glance:
    with open_parquet(path) as file:
        looks = []
        for group in _spread(file.metadata.num_row_groups, n_looks):
            rows = group_batches(path, file, group, columns, _ROWS)
            looks += [pa.Table.from_batches([batch]) for batch in itertools.islice(rows, 1)]
        return Glance(float(file.metadata.num_rows), looks)


def _look_at_text(path: Path, columns: Sequence[str], delimiter: str, n_looks: int) -> Glance:
    n_bytes = path.stat().st_size
    with path.open("rb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as unpacked:
                pieces = [unpacked.read(n_looks * _BYTES)]
            n_bytes = n_bytes * len(pieces[0]) // max(raw.tell(), 1)
        else:
            n_looks = min(n_looks, max(1, n_bytes // _BYTES))
            pieces = [_piece(raw, n_bytes * look // n_looks) for look in range(n_looks)]
    header, _, pieces[0] = pieces[0].partition(b"\n")
    whole = [piece[: piece.rfind(b"\n") + 1] for piece in pieces]
    n_lines = sum(piece.count(b"\n") for piece in whole)
    looks = [_parse(header + b"\n" + piece, columns, delimiter) for piece in whole if piece]
    return Glance(n_lines * (n_bytes - len(header) - 1) / max(sum(map(len, whole)), 1), looks)


def _piece(file: io.BufferedReader, start: int) -> bytes:
    """Read some text from the next line on."""
    file.seek(start)
    if start:
        file.readline(_BYTES)
    return file.read(_BYTES)


def _parse(text: bytes, columns: Sequence[str], delimiter: str) -> Any:
    return pa.csv.read_csv(
        io.BytesIO(text),
        read_options=pa.csv.ReadOptions(use_threads=False),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter),
        convert_options=pa.csv.ConvertOptions(
            include_columns=list(columns), column_types=dict.fromkeys(columns, pa.string())
        ),
    )


def _spread(n: int, most: int = _LOOKS) -> list[int]:
    """Choose numbers below n, evenly."""
    return sorted({n * look // most for look in range(most)}) if n else []


_PAIR = 2 * (4 + 4)
"""Pairs as they came, and once more as rows; each is two numbers."""
_TIME = 2 * 8
_TEXT, _TEXT_SHARE = 40 << 20, 4
"""What parsing text takes: so much, or of a short file so many times its size."""


def reading_bytes(
    source: str | os.PathLike[str],
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    timestamp: str | None = None,
    min_rating: float | None = None,
) -> int:
    r"""Estimate the bytes that :func:`limelight.read` takes beside what the process holds.

    Parameters
    ----------
    source, user, item, rating, timestamp, min_rating
        As for :func:`limelight.read`, but no frame.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> 0 <= reading_bytes(file) - ARROW < 100_000
    True
    """
    path = Path(source).expanduser()
    first = open_parts(path)[0]
    user, item = choose_columns(first, user, item)
    found = glance(path, [user, item, *([] if rating is None else [rating])])
    n_rows = found.n_rows
    if rating is not None:
        n_rows *= found.share(rating, min_rating)
    per_row = _PAIR + (0 if timestamp is None else _TIME)
    text = _TEXT_SHARE * sum(file.stat().st_size for file in files_of(path))
    parsing = min(_TEXT, text) if first.is_text else 0
    return ARROW + parsing + int(n_rows * per_row + found.coding_bytes(user, item))
