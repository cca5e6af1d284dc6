"""Estimates from a few rows of a table: its size, and the memory that reading it takes."""

from __future__ import annotations

import gzip
import io
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import DataError
from limelight._base.memory import ARROW
from limelight.data.parquet import group_batches, open_parquet
from limelight.data.sources import DELIMITERS, ending_of, files_of, plain_errors

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from limelight.data.read import OpenTable

_PLACES = 16
"""From how many places of a table rows are taken."""
_ROWS, _BYTES = 1 << 12, 1 << 16
"""How much is taken there, of Parquet and of text."""
_NUMBER, _OBJECT = 16, 72
"""Bytes of an id that is a number, and of one that is a string, beside its characters."""
_CODED = 100
"""Further bytes of an id while a table gives it a number, row by row."""
_PAIR = 2 * (4 + 4)
"""Bytes of a pair of two numbers, first in file order and then in rows."""
_TIME = 2 * 8 + 2 * 8
_WEIGHT, _SORTED = 3 * 8, 3 * 8
"""Bytes of a weight while it is merged, and of the keys by which times and weights are sorted."""
_TEXT, _TEXT_SHARE = 40 << 20, 4
"""Bytes that parsing text takes at most; a short file takes so many times its size."""


@dataclass(frozen=True)
class TableSample:
    """Some rows of a table, and how many it has."""

    n_rows: float
    pieces: list[Any]
    """Neighbouring rows from several places, as Arrow tables."""

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
            # The rows between the pieces hold other values, as many a row as the pieces do.
            return float(len(counts) * self.n_rows / len(ids))
        # How many were not seen follows from those seen once and twice (Chao, 1984).
        once, twice = (float(np.count_nonzero(counts == times)) for times in (1, 2))
        return min(self.n_rows, len(counts) + once * (once - 1) / (2 * (twice + 1)))

    def is_grouped(self, column: str) -> bool:
        """Tell whether the rows of each value stand together."""
        for piece in self.pieces:
            values = piece[column]
            changes = pc.sum(pc.not_equal(values[1:], values[:-1])).as_py() or 0
            if changes >= pc.count_distinct(values).as_py():
                return False
        return True

    def rated(self, column: str | None, least: float | None) -> float:
        """Estimate how many rows have at least some number, or one above 0, in a column."""
        return self.n_rows if column is None else self.n_rows * self._share(column, least)

    def _share(self, column: str, least: float | None) -> float:
        try:
            numbers = self._values(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:  # the reader will say what is wrong with it
            return 1.0
        kept: NDArray[np.bool_] = numbers > 0 if least is None else numbers >= least
        return float(np.mean(kept)) if len(kept) else 1.0

    def _values(self, column: str) -> Any:
        # Not chunked_array, which imports pandas.
        return pa.concat_tables([piece.select([column]) for piece in self.pieces])[column]


def sample_table(source: str | os.PathLike[str], columns: Sequence[str]) -> TableSample:
    r"""Take a few rows of a file, or of a folder of parts.

    Parameters
    ----------
    source
        As for :func:`limelight.read`, but no frame.
    columns
        Which columns to take.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> found = sample_table(file, ["user"])
    >>> found.n_rows, found.distinct("user")
    (1000.0, 1.0)
    """
    files = files_of(Path(source))
    chosen = [files[at] for at in _spread(len(files))]
    n_rows, pieces = 0.0, []
    for file in chosen:
        with plain_errors(str(file)):
            found = _sample_file(file, columns, _PLACES // len(chosen))
        n_rows += found.n_rows
        pieces += found.pieces
    sizes = [file.stat().st_size for file in files]
    return TableSample(n_rows * sum(sizes) / sum(file.stat().st_size for file in chosen), pieces)


def _sample_file(path: Path, columns: Sequence[str], n_places: int) -> TableSample:
    if not path.is_file():
        # Opening a pipe would block until another process writes to it.
        message = f"not a file: {str(path)!r}"
        raise DataError(message, hint="check the path")
    ending = ending_of(path)
    if ending == ".parquet":
        return _sample_parquet(path, columns, n_places)
    return _sample_text(path, columns, DELIMITERS[ending.removesuffix(".gz")], n_places)


def _sample_parquet(path: Path, columns: Sequence[str], n_places: int) -> TableSample:
    with open_parquet(path) as file:
        pieces = []
        for group in _spread(file.metadata.num_row_groups, n_places):
            rows = group_batches(path, file, group, columns, _ROWS)
            pieces += [pa.Table.from_batches([batch]) for batch in itertools.islice(rows, 1)]
        return TableSample(float(file.metadata.num_rows), pieces)


def _sample_text(path: Path, columns: Sequence[str], delimiter: str, n_places: int) -> TableSample:
    n_bytes = path.stat().st_size
    with path.open("rb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as unpacked:
                texts = [unpacked.read(n_places * _BYTES)]
            n_bytes = n_bytes * len(texts[0]) // max(raw.tell(), 1)
        else:
            n_places = min(n_places, max(1, n_bytes // _BYTES))
            texts = [_read_lines(raw, n_bytes * place // n_places) for place in range(n_places)]
    header, _, texts[0] = texts[0].partition(b"\n")
    whole = [text[: text.rfind(b"\n") + 1] for text in texts]
    n_lines = sum(text.count(b"\n") for text in whole)
    pieces = [_parse(header + b"\n" + text, columns, delimiter) for text in whole if text]
    share = max(sum(map(len, whole)), 1)
    return TableSample(n_lines * (n_bytes - len(header) - 1) / share, pieces)


def _read_lines(file: io.BufferedReader, start: int) -> bytes:
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


def _spread(n: int, most: int = _PLACES) -> list[int]:
    """Choose numbers below n, evenly."""
    return sorted({n * place // most for place in range(most)}) if n else []


def sample_of(table: OpenTable) -> TableSample:
    """Take a few rows of the columns by which a table is counted."""
    names = table.names
    rated = [] if names.rating is None else [names.rating]
    return sample_table(_path(table), [names.user, names.item, *rated])


def reading_bytes(table: OpenTable) -> int:
    r"""Estimate the bytes that reading a table takes beside what the process holds.

    Parameters
    ----------
    table
        A file or a folder of parts, but no frame.

    Examples
    --------
    >>> import tempfile
    >>> from limelight.data.read import ReadOptions
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> 0 <= reading_bytes(ReadOptions().open(file)) - ARROW < 100_000
    True
    """
    found, names = sample_of(table), table.names
    n_rows = found.rated(names.rating, table.options.min_rating)
    is_weighted = names.weight is not None or table.options.half_life is not None
    per_row = _PAIR + (0 if names.timestamp is None else _TIME)
    per_row += _WEIGHT * is_weighted
    per_row += 0 if names.timestamp is None and not is_weighted else _SORTED
    text = _TEXT_SHARE * sum(file.stat().st_size for file in files_of(_path(table)))
    parsing = min(_TEXT, text) if table.parts[0].is_text else 0
    return ARROW + parsing + int(n_rows * per_row + found.coding_bytes(names.user, names.item))


def _path(table: OpenTable) -> Path:
    return Path(cast("str", table.source)).expanduser()
