"""Tables on disk and in memory: chosen columns in, id columns out.

Files are Parquet, CSV or TSV, the last two also gzipped; a folder is read as its parts in the
order of their names. Ids are text or integers. In a text file they count as integers only if
every one of them is written as an integer would be, so '007' stays text.
"""

from __future__ import annotations

import contextlib
import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from limelight._atomic import atomic_file
from limelight._errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

Source: TypeAlias = "str | os.PathLike[str] | Any"

DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK_BYTES = 16 << 20
_BATCH_ROWS = 1 << 19
_INTEGER = r"^(0|-?[1-9][0-9]{0,17})$"


def read_columns(
    source: Source,
    *,
    ids: Sequence[str] = (),
    numbers: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> pa.Table:
    """Read some columns of a table, whatever it is stored in.

    Rows are read batch by batch and ids are encoded at once, so memory holds four bytes per id
    and eight per number, and each distinct id once.

    Parameters
    ----------
    source
        A Parquet, CSV or TSV file (.csv.gz, .tsv.gz), a folder of such files, or a pandas,
        polars or pyarrow table.
    ids
        Columns of ids. They come back dictionary-encoded, with int64 or text values. A missing
        value is an error.
    numbers
        Columns of numbers. They come back as float64, a missing value as nan.
    optional
        Which of these columns may be absent; they are then absent in the result too.

    Returns
    -------
    A table with one chunk per column, in the order asked for.

    Raises
    ------
    DataError
        If the source cannot be read, has no rows, or lacks a column.

    Examples
    --------
    >>> lists = pa.table({"item_id": ["b", "a", "b"], "rank": [1, 2, 1]})
    >>> table = read_columns(lists, ids=["item_id"], numbers=["rank", "score"], optional=["score"])
    >>> table.column_names, table["rank"].to_pylist()
    (['item_id', 'rank'], [1.0, 2.0, 1.0])
    >>> table["item_id"].chunk(0).dictionary.to_pylist()
    ['b', 'a']
    """
    chunks: dict[str, list[pa.Array]] = {}
    rows, is_text = 0, False
    for part in _parts(source):
        is_text = is_text or _delimiter(part) is not None
        present = _present(_names(part), [*ids, *numbers], optional, part)
        for batch in _batches(part, present, ids):
            for name in batch.schema.names:
                convert = _encode if name in ids else _number
                chunks.setdefault(name, []).append(convert(batch[name], name, rows))
            rows += batch.num_rows
    if not rows:
        message = f"no rows in {describe(source)}"
        raise DataError(message, hint="check that this is the file you meant")
    for name, arrays in chunks.items():
        if sum(map(len, arrays)) != rows:
            message = f"some parts of {describe(source)} lack the column {name!r}"
            raise DataError(message, hint="write all parts with the same columns")
    wanted = [name for name in (*ids, *numbers) if name in chunks]
    columns = {
        name: _join_ids(chunks.pop(name), is_text=is_text)
        if name in ids
        else pa.chunked_array(chunks.pop(name)).combine_chunks()
        for name in wanted
    }
    return pa.table(columns)


def column_names(source: Source) -> list[str]:
    """List the columns of a table, of the first part where it has several.

    Examples
    --------
    >>> column_names(pa.table({"user_id": [1], "item_id": [2]}))
    ['user_id', 'item_id']
    """
    return _names(_parts(source)[0])


def write_ids(path: str | os.PathLike[str], column: str, ids: NDArray[Any]) -> None:
    """Write ids as a Parquet file of one column, whole or not at all.

    Parameters
    ----------
    path
        The file; an older one is replaced.
    column
        Name of the column.
    ids
        Integers, or text as an array of objects.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "items.parquet"
    >>> write_ids(file, "item_id", np.array(["007", "a"], dtype=object))
    >>> read_ids(file, "item_id")
    array(['007', 'a'], dtype=object)
    """
    table = pa.table({column: ids_to_arrow(ids)})
    with atomic_file(path) as temporary:
        pq.write_table(table, temporary)


def read_ids(path: str | os.PathLike[str], column: str) -> NDArray[Any]:
    """Read one id column of a Parquet file, in its order.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "users.parquet"
    >>> write_ids(file, "user_id", np.array([30, 10]))
    >>> read_ids(file, "user_id")
    array([30, 10])
    """
    path = Path(path)
    with _read_errors(path), pq.ParquetFile(_existing(path)) as file:
        present = _present(file.schema_arrow.names, [column], [], path)
        values = file.read(columns=present)[column].combine_chunks()
    return ids_from_arrow(_id_values(values, column, 0))


def ids_to_arrow(ids: NDArray[Any]) -> pa.Array:
    """Turn ids into an arrow array of integers or text.

    Examples
    --------
    >>> ids_to_arrow(np.array([3, 1], dtype=np.int32)).type
    DataType(int64)
    """
    values = np.asarray(ids)
    if np.issubdtype(values.dtype, np.integer):
        return _id_values(pa.array(values), "ids", 0)
    try:
        array = pa.array(values.tolist(), type=None if values.size else pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        message = f"ids must be all integers or all text: {error}"
        raise DataError(message, hint="make every id text, or every id an integer") from error
    return _id_values(array, "ids", 0)


def ids_from_arrow(values: pa.Array) -> NDArray[Any]:
    """Turn an arrow array of ids into int64, or text as objects.

    Examples
    --------
    >>> ids_from_arrow(pa.array(["a", "b"]))
    array(['a', 'b'], dtype=object)
    """
    array: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return array.copy() if pa.types.is_integer(values.type) else array.astype(object)


def describe(source: Source) -> str:
    """Name a source in an error message.

    Examples
    --------
    >>> describe("lists.parquet"), describe(pa.table({}))
    ("'lists.parquet'", 'the Table')
    """
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source))
    return f"the {type(source).__name__}"


def _parts(source: Source) -> list[Source]:
    """List the files of a folder; anything else is its own only part."""
    if not isinstance(source, str | os.PathLike):
        return [source]
    path = _existing(Path(source))
    if not path.is_dir():
        return [path]
    # Writers leave markers such as _SUCCESS and .crc files beside the parts.
    files = sorted(file for file in path.iterdir() if file.name[0] not in "._" and file.is_file())
    parts = [file for file in files if _is_parquet(file) or _delimiter(file)]
    if not parts:
        message = f"no Parquet, CSV or TSV file in folder {os.fspath(path)!r}"
        raise DataError(message, hint="pass the folder that holds the parts themselves")
    return list(parts)


def _existing(path: Path) -> Path:
    if not path.exists():
        message = f"file not found: {os.fspath(path)!r}"
        raise DataError(message, hint=f"check the path; the folder here is {Path.cwd()}")
    return path


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in {".parquet", ".pq"}


def _delimiter(source: Source) -> str | None:
    """Give the delimiter of a text file, nothing for any other source."""
    if not isinstance(source, Path):
        return None
    name = source.name.lower().removesuffix(".gz")
    return DELIMITERS.get(Path(name).suffix)


def _names(part: Source) -> list[str]:
    """List the columns of one part."""
    if not isinstance(part, Path):
        return list(_frame(part).columns)
    with _read_errors(part):
        if _delimiter(part):
            with _open_text(part) as stream:
                options = pa.csv.ParseOptions(delimiter=_delimiter(part))
                return list(pa.csv.open_csv(stream, parse_options=options).schema.names)
        if _is_parquet(part):
            return list(pq.read_schema(part).names)
    message = f"unknown kind of file: {os.fspath(part)!r}"
    raise DataError(message, hint="the name must end in .parquet, .csv, .tsv, .csv.gz or .tsv.gz")


def _batches(part: Source, columns: Sequence[str], ids: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Read columns of one part, batch by batch."""
    if not isinstance(part, Path):
        yield from _select(part, columns).to_batches(max_chunksize=_BATCH_ROWS)
        return
    with _read_errors(part):
        if _delimiter(part):
            yield from _text_batches(part, columns, ids)
        else:
            with pq.ParquetFile(part) as file:
                yield from file.iter_batches(batch_size=_BATCH_ROWS, columns=columns)


def _frame(frame: Any) -> nw.DataFrame[Any]:
    try:
        return nw.from_native(frame, eager_only=True)
    except (TypeError, ValueError, nw.exceptions.NarwhalsError) as error:
        reason = str(error).partition("\n")[0]
        message = f"cannot read a table from {describe(frame)}: {reason}"
        hint = "pass a path or a pandas, polars or pyarrow table; collect a lazy one first"
        raise DataError(message, hint=hint) from error


def _select(frame: Any, columns: Sequence[str]) -> pa.Table:
    """Take columns out of a table of any library; leave its index and other columns alone."""
    try:
        return _frame(frame).select(columns).to_arrow().select(columns)
    except (TypeError, ValueError) as error:
        message = f"cannot read the columns {', '.join(columns)} of {describe(frame)}: {error}"
        raise DataError(message, hint="ids are integers or text, not a mixture") from error


def _open_text(path: Path) -> Any:
    return pa.input_stream(path, compression="gzip" if path.suffix.lower() == ".gz" else None)


def _text_batches(
    path: Path, columns: Sequence[str], ids: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Read CSV or TSV; ids as text, because a parser would turn '007' into 7."""
    convert = pa.csv.ConvertOptions(
        include_columns=columns,
        column_types={c: pa.large_string() if c in ids else pa.float64() for c in columns},
        null_values=[""],  # only an empty field is missing: "NA" may well be an id
        strings_can_be_null=True,
    )
    with _open_text(path) as stream:
        yield from pa.csv.open_csv(
            stream,
            read_options=pa.csv.ReadOptions(block_size=_BLOCK_BYTES),
            parse_options=pa.csv.ParseOptions(delimiter=_delimiter(path)),
            convert_options=convert,
        )


@contextlib.contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Tell what the reader could not make sense of as our own error."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError) as error:
        message = f"cannot read {os.fspath(path)!r}: {error}"
        hint = "check that the file is complete and that its ending says what it is"
        raise DataError(message, hint=hint) from error


def _present(
    found: Sequence[str], wanted: Sequence[str], optional: Sequence[str], source: Source
) -> list[str]:
    """Return the wanted columns that are there, or say which one is not."""
    for name in wanted:
        if found.count(name) > 1:
            message = f"column {name!r} occurs {found.count(name)} times in {describe(source)}"
            raise DataError(message, hint="give each column its own name")
        if name not in found and name not in optional:
            message = f"column not found in {describe(source)}: {name!r}"
            lower = {column.lower(): column for column in found}
            close = difflib.get_close_matches(name.lower(), lower, n=1)
            guess = f"did you mean {lower[close[0]]!r}? " if close else ""
            raise DataError(message, hint=f"{guess}columns found: {', '.join(found)}")
    return [name for name in wanted if name in found]


def _id_values(values: pa.Array, name: str, first_row: int) -> pa.Array:
    """Return ids as int64 or text; a missing id or another type is an error."""
    if values.null_count:
        row = first_row + int(values.is_null().to_numpy(zero_copy_only=False).argmax()) + 1
        message = f"missing value in column {name!r}, row {row:,}"
        raise DataError(message, hint="drop the rows without an id")
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    try:
        if pa.types.is_integer(values.type):
            return values.cast(pa.int64())
        if str(values.type) in {"string", "large_string", "string_view"}:
            return values.cast(pa.large_string())
    except pa.ArrowInvalid as error:
        message = f"ids in column {name!r} do not fit into 64 bits: {error}"
        raise DataError(message, hint="store these ids as text") from error
    message = f"ids in column {name!r} must be integers or text, found {values.type}"
    raise DataError(message, hint="cast the column to integers or to text first")


def _encode(values: pa.Array, name: str, first_row: int) -> pa.DictionaryArray:
    return _id_values(values, name, first_row).dictionary_encode()


def _number(values: pa.Array, name: str, first_row: int) -> pa.Array:
    del first_row
    is_number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
    if not is_number and not pa.types.is_null(values.type):
        message = f"column {name!r} must hold numbers, found {values.type}"
        raise DataError(message, hint="cast the column to numbers first")
    return pc.fill_null(values.cast(pa.float64(), safe=False), float("nan"))


def _join_ids(chunks: Sequence[pa.DictionaryArray], *, is_text: bool) -> pa.DictionaryArray:
    """Give all chunks one dictionary of distinct ids."""
    if len({chunk.type for chunk in chunks}) > 1:
        chunks = [
            pa.DictionaryArray.from_arrays(c.indices, c.dictionary.cast(pa.large_string()))
            for c in chunks
        ]
    joined = pa.chunked_array(chunks).unify_dictionaries().combine_chunks()
    values = joined.dictionary
    if is_text and pc.all(pc.match_substring_regex(values, _INTEGER)).as_py():
        return pa.DictionaryArray.from_arrays(joined.indices, values.cast(pa.int64()))
    return joined
