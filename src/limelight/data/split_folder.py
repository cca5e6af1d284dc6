"""A split on disk, in the published layout: five tables of ``uid,sid`` and a list of items.

A uid is a user's place in the shuffle: training users first, then validation, then test. Rows
stand as the published scripts write them: users by id, each user's items in file order. Beside the
published files, two Parquet files keep the ids, so that ids of any kind come back. Where pairs have
weights, the tables have a column of them, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from limelight._base.errors import DataError
from limelight._base.files import atomic_folder
from limelight.data.columns import join, scan
from limelight.data.files import plain_errors
from limelight.data.held_out import held_out_of
from limelight.data.ids import IdColumn, distinct_ids, ids_from_arrow, ids_to_arrow, integers_of
from limelight.data.interactions import Interactions
from limelight.data.rows import by_pair, group, row_numbers, walk
from limelight.data.sources import open_parts

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from limelight.data.held_out import HeldOut
    from limelight.data.interactions import Ids
    from limelight.data.split import Split

TABLES = ("train.csv", "validation_tr.csv", "validation_te.csv", "test_tr.csv", "test_te.csv")
ITEMS, OUR_USERS, OUR_ITEMS = "unique_sid.txt", "users.parquet", "items.parquet"
FILES = (*TABLES, ITEMS, OUR_USERS, OUR_ITEMS)
_DROPPED = "dropped_interactions", "dropped_items"
_SHARED = "shared_users"  # a note that a user may stand in several parts
_MANY_USERS, _USERS_A_ROW = 1 << 20, 10  # more uids than these, in so few rows, are a mistake


def write_split(folder: str | os.PathLike[str], split: Split) -> None:
    """Write a split beside its place, then move it there, so that it is never seen incomplete.

    See :meth:`limelight.data.split.Split.save` for the layout and for an example.
    """
    with atomic_folder(Path(folder).expanduser(), replace_if=_is_split) as partial:
        _write_tables(partial, split)
        _write_ids(partial, split)


def _is_split(folder: Path) -> bool:
    """Tell whether a folder holds a split of ours and nothing else, so that it may be replaced."""
    if {file.name for file in folder.iterdir()} != set(FILES):
        return False
    try:
        metadata = pa.parquet.read_schema(folder / OUR_ITEMS).metadata or {}
    except (OSError, pa.ArrowException):
        return False
    return all(name.encode() in metadata for name in _DROPPED)


def _write_tables(folder: Path, split: Split) -> None:
    train = split.train
    matrices: list[tuple[Any, NDArray[np.int32] | None, Ids]] = [
        (train.matrix, train.order, train.user_ids)
    ]
    for part in (split.validation, split.test):
        matrices.append((part.history, part.history_order, part.user_ids))
        matrices.append((part.weighted_targets, part.targets_order, part.user_ids))
    n_held_out = train.n_users + split.validation.n_users
    first_uids = 0, train.n_users, train.n_users, n_held_out, n_held_out
    options = pa.csv.WriteOptions(include_header=False, quoting_style="none")
    for name, first, (matrix, order, ids) in zip(TABLES, first_uids, matrices, strict=True):
        by_id = np.argsort(ids, kind="stable")
        indptr = np.asarray(matrix.indptr, dtype=np.int64)
        starts, items = walk(indptr, matrix.indices, order, by_id)
        columns = {"uid": first + by_id[row_numbers(starts)], "sid": items}
        if train.weights is not None:
            columns["weight"] = walk(indptr, matrix.data, order, by_id)[1]
        with (folder / name).open("wb") as file:
            file.write(",".join(columns).encode() + b"\n")  # Arrow would put the names in quotes
            pa.csv.write_csv(pa.table(columns), file, options)


def _write_ids(folder: Path, split: Split) -> None:
    lines = [str(item) for item in split.train.item_ids]
    broken = next((line for line in lines if "\n" in line or "\r" in line), None)
    if broken is not None:
        message = f"an item id with a line break cannot stand in {ITEMS}: {broken!r}"
        raise DataError(message, hint="replace the line breaks in the ids")
    with (folder / ITEMS).open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    users = [part.user_ids for part in (split.train, split.validation, split.test)]
    names = np.repeat(["train", "validation", "test"], [len(ids) for ids in users])
    columns = {"user_id": ids_to_arrow(np.concatenate(users)), "part": names.tolist()}
    notes = {_SHARED: "1"} if split.has_shared_users else None
    pa.parquet.write_table(pa.table(columns, metadata=notes), folder / OUR_USERS)
    dropped = {name: str(getattr(split, name)) for name in _DROPPED}
    items = pa.table({"item_id": ids_to_arrow(split.train.item_ids)}, metadata=dropped)
    pa.parquet.write_table(items, folder / OUR_ITEMS)


def read_split(
    folder: str | os.PathLike[str],
) -> tuple[Interactions, HeldOut, HeldOut, *tuple[int, ...]]:
    """Read the fields of a split and check that its tables fit together.

    See :meth:`limelight.data.split.Split.load` for what is read, and for an example.
    """
    path = Path(folder).expanduser()
    missing = [name for name in TABLES if not (path / name).is_file()]
    if not (path / ITEMS).is_file() and not (path / OUR_ITEMS).is_file():
        missing.append(ITEMS)
    if missing:
        message = f"not a split folder, it lacks {', '.join(missing)}: {path}"
        raise DataError(message, hint="write one with split_users(...).save(folder)")
    item_ids, dropped = _read_items(path)
    _refuse_repeated(item_ids, "item", path)
    tables = [_read_table(path / name, len(item_ids)) for name in TABLES]
    train, *held_out = _read_users(path, tables)
    ids = [users.ids for users in (train, *held_out)]
    for together in ids if _may_share_users(path) else [np.concatenate(ids)]:
        _refuse_repeated(together, "user", path)
    pairs, weights = (train.rows(tables[0]), tables[0].sid), tables[0].weight
    rows = group(*pairs, len(train.uids), len(item_ids))
    if weights is not None:
        [weights] = by_pair(*pairs, len(item_ids), (weights, np.add))
    data = Interactions(
        rows.indptr,
        rows.indices,
        train.ids,
        item_ids,
        rows.order,
        rows.duplicates,
        weights=weights,
    )
    validation, test = (
        _join(users, tables[i], tables[i + 1], len(item_ids))
        for users, i in zip(held_out, (1, 3), strict=True)
    )
    return data, validation, test, *dropped


def _may_share_users(path: Path) -> bool:
    file = path / OUR_USERS
    if not file.is_file():
        return False
    with plain_errors(str(file)):
        return _SHARED.encode() in (pa.parquet.read_schema(file).metadata or {})


def _refuse_repeated(ids: Ids, what: str, path: Path) -> None:
    seen: set[Any] = set()
    for name in ids.tolist():
        if name in seen:
            message = f"the split {path} has the {what} id twice: {name!r}"
            raise DataError(message, hint="write the split again")
        seen.add(name)


class _Table(NamedTuple):
    file: Path
    uid: NDArray[np.int64]
    sid: NDArray[np.int64]
    weight: NDArray[np.float32] | None = None


def _read_table(file: Path, n_items: int) -> _Table:
    types = {"uid": pa.int64(), "sid": pa.int64(), "weight": pa.float32()}
    options = pa.csv.ConvertOptions(column_types=types)
    with plain_errors(str(file)):
        table = pa.csv.read_csv(file, convert_options=options)
    if table.column_names not in (["uid", "sid"], list(types)):
        message = f"{file} must have the columns uid,sid, not: {','.join(table.column_names)}"
        raise DataError(message, hint="check that the folder is a split")
    for name, bound in (("uid", 2**31), ("sid", n_items)):
        numbers = table[name].to_numpy()  # a missing number makes this a float array with NaN
        bad = np.flatnonzero(~((numbers >= 0) & (numbers < bound)))
        if bad.size:
            value = numbers[bad[0]]
            message = f"{file}, row {bad[0] + 1}: {name} outside 0..{bound - 1}, got: {value}"
            raise DataError(message, hint=f"{ITEMS} has a line for each sid; uids count from 0")
    weight = table["weight"].to_numpy() if "weight" in table.column_names else None
    if weight is not None and not (np.isfinite(weight) & (weight > 0)).all():
        row = int(np.argmin(np.isfinite(weight) & (weight > 0)))
        message = f"{file}, row {row + 1}: a weight must be finite and above 0, got: {weight[row]}"
        raise DataError(message, hint="write the split again")
    return _Table(file, table["uid"].to_numpy(), table["sid"].to_numpy(), weight)


class _Users(NamedTuple):
    """The users of one part: the uid of each row, ascending, and its id."""

    uids: NDArray[np.int64]
    ids: Ids

    def rows(self, table: _Table) -> NDArray[np.int64]:
        """Find the row of each uid of a table."""
        rows = np.searchsorted(self.uids, table.uid)
        strangers = np.flatnonzero(~np.isin(table.uid, self.uids))
        if strangers.size:
            row = int(strangers[0])
            message = f"{table.file}, row {row + 1}: uid is not of this part: {table.uid[row]}"
            raise DataError(message, hint=f"{OUR_USERS} says which users belong to which part")
        return rows


def _read_users(path: Path, tables: list[_Table]) -> list[_Users]:
    """Say which uids belong to which part: as our file has it, else as the tables use them."""
    train, *held_out = tables
    if not len(train.uid):
        message = f"no rows in {train.file}"
        raise DataError(message, hint="a split needs training users")
    used = [np.unique(train.uid)]
    used += [np.unique(np.concatenate([held_out[i].uid, held_out[i + 1].uid])) for i in (0, 2)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = np.intersect1d(used[i], used[j])
        if both.size:
            names = ("train", "validation", "test")
            message = f"uid {both[0]} is in two parts of {path}: {names[i]} and {names[j]}"
            raise DataError(message, hint="each user belongs to one part")
    if (path / OUR_USERS).is_file():
        return _our_users(path / OUR_USERS)
    # Row numbers of the training matrix are uids, also where a uid has no row.
    n_users = int(used[0][-1]) + 1
    if n_users > max(_MANY_USERS, _USERS_A_ROW * len(train.uid)):
        message = f"{train.file} has {len(used[0]):,} users, but a uid of {n_users - 1:,}"
        raise DataError(message, hint="uids count from 0; number the users anew")
    used[0] = np.arange(n_users)
    return [_Users(uids, uids) for uids in used]


def _our_users(file: Path) -> list[_Users]:
    names = IdColumn("part")
    if _may_share_users(file.parent):
        users_of = IdColumn("user_id")
        [numbers, codes] = join(scan(open_parts(file), [users_of, names]))
        ids = ids_from_arrow(users_of.ids())[numbers]
    else:
        ids = distinct_ids(file, "user_id")
        [codes] = join(scan(open_parts(file), [names]))
    part = np.asarray(names.ids().to_pylist(), dtype=object)[codes]
    users = [np.flatnonzero(part == name) for name in ("train", "validation", "test")]
    if sum(map(len, users)) != len(ids) or np.any(np.diff(np.concatenate(users)) < 0):
        message = f"{file} must list training, then validation, then test users"
        raise DataError(message, hint="write the split again")
    return [_Users(uids, ids[uids]) for uids in users]


def _join(users: _Users, history: _Table, targets: _Table, n_items: int) -> HeldOut:
    rows = np.concatenate([users.rows(history), users.rows(targets)])
    items = np.concatenate([history.sid, targets.sid])
    is_target = np.arange(len(rows)) >= len(history.uid)
    key = rows * n_items + items
    both = np.intersect1d(key[~is_target], key[is_target])
    if both.size:
        row, sid = divmod(int(both[0]), n_items)
        pair = f"{users.uids[row]},{sid}"
        message = f"a pair is both in {history.file.name} and in {targets.file}: {pair}"
        raise DataError(message, hint="targets must not be part of the history")
    weights = [table.weight for table in (history, targets) if table.weight is not None]
    together = np.concatenate(weights) if len(weights) == 2 else None
    return held_out_of(rows, items, is_target, users.ids, n_items, together)


def _read_items(path: Path) -> tuple[Ids, tuple[int, ...]]:
    """Read the item ids, and how much was dropped for want of a training user."""
    if (path / OUR_ITEMS).is_file():
        with plain_errors(str(path / OUR_ITEMS)):
            notes = pa.parquet.read_schema(path / OUR_ITEMS).metadata or {}
            dropped = tuple(int(notes.get(name.encode(), 0)) for name in _DROPPED)
        return distinct_ids(path / OUR_ITEMS, "item_id"), dropped
    with plain_errors(str(path / ITEMS)):
        text = (path / ITEMS).read_text(encoding="utf-8")
    lines = text.removesuffix("\n").split("\n") if text else []  # splitlines knows more breaks
    strings = pa.array(lines, pa.large_string())
    integers = integers_of(strings)
    return ids_from_arrow(strings if integers is None else integers), (0, 0)
