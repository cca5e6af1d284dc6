"""A glance at a table: about how many rows, how many ids, before anything is read."""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from limelight.data.sources import DELIMITERS, ending_of, files_of, plain_errors

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import NDArray

_LOOKS = 16
"""How many places of a table are looked at."""
_ROWS, _BYTES = 1 << 14, 1 << 18
"""How much is looked at there, of Parquet and of text."""
_OBJECT = 64
"""What Python takes for a short string, beside its characters."""
_APART, _IN_RUNS = 0.9, 1.5


@dataclass(frozen=True)
class Glance:
    """What is known of a table."""

    n_rows: float
    looks: list[Any]
    """Some rows from here and there, as Arrow tables."""

    def id_bytes(self, column: str) -> float:
        """Estimate what the distinct ids of a column take."""
        ids = self._values(column)
        texts = ids.cast(pa.large_string())
        is_number = pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")).as_py()
        length = pc.mean(pc.binary_length(texts)).as_py() or 0.0
        return self.distinct(column) * (16.0 if is_number else 8.0 + _OBJECT + length)

    def distinct(self, column: str) -> float:
        """Estimate how many distinct values a column has."""
        ids = self._values(column)
        if not len(ids):
            return 0.0
        counts = ids.value_counts().field("counts").to_numpy()
        in_looks = sum(pc.count_distinct(look[column]).as_py() for look in self.looks)
        n_found, n_seen = len(counts), len(ids)
        if n_found > _APART * in_looks and n_seen > _IN_RUNS * n_found:
            # The rows of an id stand together: elsewhere there are others, as many.
            return n_found * self.n_rows / n_seen
        # How many were not seen follows from those seen once and twice (Chao, 1984).
        once, twice = np.count_nonzero(counts == 1), np.count_nonzero(counts == 2)
        return min(self.n_rows, n_found + once * (once - 1) / (2.0 * (twice + 1)))

    def share(self, column: str, least: float | None) -> float:
        """Tell about which share of the rows has at least some number, or one above 0."""
        try:
            numbers = self._values(column).cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowException:  # the reader will say what is wrong with it
            return 1.0
        kept: NDArray[np.bool_] = numbers > 0 if least is None else numbers >= least
        return float(np.mean(kept)) if len(kept) else 1.0

    def _values(self, column: str) -> Any:
        return pa.chunked_array([pa.chunked_array(look[column]) for look in self.looks])


def glance(source: str | os.PathLike[str], columns: Sequence[str]) -> Glance:
    """Look at a few rows of a file, or of a folder of parts.

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
    >>> _ = file.write_text("user,item\\n" + "7,8\\n" * 1000)
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
    ending = ending_of(path)
    if ending == ".parquet":
        return _look_at_parquet(path, columns, n_looks)
    return _look_at_text(path, columns, DELIMITERS[ending.removesuffix(".gz")], n_looks)


def _look_at_parquet(path: Path, columns: Sequence[str], n_looks: int) -> Glance:
    lean = {"pre_buffer": False, "buffer_size": _BYTES}
    with pa.parquet.ParquetFile(path, **lean) as file:
        looks = []
        for group in _spread(file.metadata.num_row_groups, n_looks):
            rows = file.iter_batches(
                _ROWS, row_groups=[group], columns=list(columns), use_threads=False
            )
            looks += [batch for batch in [next(rows, None)] if batch is not None]
        return Glance(float(file.metadata.num_rows), looks)


def _look_at_text(path: Path, columns: Sequence[str], delimiter: str, n_looks: int) -> Glance:
    n_bytes = path.stat().st_size
    with path.open("rb") as raw:
        if path.suffix.lower() == ".gz":
            with gzip.open(raw) as unpacked:
                pieces = [unpacked.read(n_looks * _BYTES)]
            n_bytes = n_bytes * len(pieces[0]) // max(raw.tell(), 1)
        else:
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
        file.readline()
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
