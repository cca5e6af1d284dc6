"""Estimates from a few rows of a table: its size, and the memory that reading it takes."""

from __future__ import annotations

import io
import itertools
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from limelight._base.errors import DataError
from limelight._base.memory import ARROW
from limelight.data.files import ParquetFile, TextFile, plain_errors
from limelight.data.files.parquet import group_batches, open_parquet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from limelight.data.read import OpenTable
    from limelight.data.sources import Part

_PLACES = 16
"""From how many places of a table rows are taken."""
_ROWS, _BYTES = 1 << 12, 1 << 16
"""How much is taken there, of Parquet and of text."""
_UNPACKED = 1 << 12
"""How much compressed text is unpacked at a time."""
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


def sample_table(parts: Sequence[Part], columns: Sequence[str]) -> TableSample:
    r"""Take a few rows of a file, or of a folder of parts.

    Parameters
    ----------
    parts
        The files, as :func:`limelight.data.sources.open_parts` lists them.
    columns
        Which columns to take.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from limelight.data.sources import open_parts
    >>> file = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = file.write_text("user,item\n" + "7,8\n" * 1000)
    >>> found = sample_table(open_parts(file), ["user"])
    >>> found.n_rows, found.distinct("user")
    (1000.0, 1.0)
    """
    files = [part for part in parts if isinstance(part, TextFile | ParquetFile)]
    chosen = [files[at] for at in _spread(len(files))]
    n_rows, pieces = 0.0, []
    for file in chosen:
        with plain_errors(file.label):
            found = _sample_file(file, columns, _PLACES // len(chosen))
        n_rows += found.n_rows
        pieces += found.pieces
    share = _bytes_of(files) / _bytes_of(chosen)
    return TableSample(n_rows * share, pieces)


def _bytes_of(files: Sequence[TextFile | ParquetFile]) -> int:
    return sum(file.path.stat().st_size for file in files)


def _sample_file(
    file: TextFile | ParquetFile, columns: Sequence[str], n_places: int
) -> TableSample:
    if not file.path.is_file():
        # Opening a pipe would block until another process writes to it.
        message = f"not a file: {file.label!r}"
        raise DataError(message, hint="check the path")
    if isinstance(file, ParquetFile):
        return _sample_parquet(file.path, columns, n_places)
    return _sample_text(file, columns, n_places)


def _sample_parquet(path: Path, columns: Sequence[str], n_places: int) -> TableSample:
    with open_parquet(path) as file:
        pieces = []
        for group in _spread(file.metadata.num_row_groups, n_places):
            rows = group_batches(path, file, group, columns, _ROWS)
            pieces += [pa.Table.from_batches([batch]) for batch in itertools.islice(rows, 1)]
        return TableSample(float(file.metadata.num_rows), pieces)


def _sample_text(file: TextFile, columns: Sequence[str], n_places: int) -> TableSample:
    n_bytes = file.path.stat().st_size
    if file.is_compressed:
        text, n_bytes = _unpack(file, n_places * _BYTES)
        texts = [text]
    else:
        n_places = min(n_places, max(1, n_bytes // _BYTES))
        with file.path.open("rb") as raw:
            texts = [_read_lines(raw, n_bytes * place // n_places) for place in range(n_places)]
    header = b""
    if file.text.columns is None:
        header, _, texts[0] = texts[0].partition(b"\n")
        header += b"\n"
    whole = [text[: text.rfind(b"\n") + 1] for text in texts]
    n_lines = sum(text.count(b"\n") for text in whole)
    pieces = [_parse(file, header + text, columns) for text in whole if text]
    share = max(sum(map(len, whole)), 1)
    return TableSample(n_lines * (n_bytes - len(header)) / share, pieces)


def _unpack(file: TextFile, most: int) -> tuple[bytes, int]:
    """Read the beginning of a compressed text, and estimate how long all of it is."""
    if file.path.suffix.lower() == ".zip":
        with zipfile.ZipFile(file.path) as archive, file.open() as stream:
            return bytes(stream.read(most)), max(found.file_size for found in archive.infolist())
    pieces: list[bytes] = []
    length, fetched = 0, 0
    known = 0, 0  # so much text came from so many bytes of the file
    with (
        pa.OSFile(str(file.path)) as raw,
        pa.CompressedInputStream(raw, file.compression) as stream,
    ):
        while length < most and (piece := bytes(stream.read(_UNPACKED))):
            # The stream fetches more only when all that it had fetched is used up.
            if raw.tell() != fetched:
                known, fetched = (length, fetched), raw.tell()
            pieces.append(piece)
            length += len(piece)
    text = b"".join(pieces)
    if length < most:
        return text, length
    n_text, n_packed = known if known[1] else (length, fetched)
    return text, file.path.stat().st_size * n_text // n_packed


def _read_lines(file: io.BufferedReader, start: int) -> bytes:
    """Read some text from the next line on."""
    file.seek(start)
    if start:
        file.readline(_BYTES)
    return file.read(_BYTES)


def _parse(file: TextFile, text: bytes, columns: Sequence[str]) -> Any:
    given = file.text.columns
    return pa.csv.read_csv(
        io.BytesIO(text.replace(file.separator.encode(), file.delimiter.encode())),
        read_options=pa.csv.ReadOptions(
            use_threads=False, column_names=None if given is None else list(given)
        ),
        parse_options=pa.csv.ParseOptions(delimiter=file.delimiter),
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
    return sample_table(table.parts, [names.user, names.item, *rated])


def reading_bytes(table: OpenTable) -> int:
    r"""Estimate the bytes that reading a table takes beside what the process holds.

    Parameters
    ----------
    table
        A file or a folder of parts, but no frame.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
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
    text = [part for part in table.parts if isinstance(part, TextFile)]
    parsing = min(_TEXT, _TEXT_SHARE * _bytes_of(text))
    return ARROW + parsing + int(n_rows * per_row + found.coding_bytes(names.user, names.item))
