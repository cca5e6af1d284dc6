"""A model for other stacks: factors, prices and an index, as files that need no limelight."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from limelight._base.errors import ConfigError
from limelight._base.files import atomic_folder, refuse_stranger
from limelight._base.machine import package_version
from limelight._base.settings import check_choice, check_integer, check_number
from limelight._native import resolve_threads
from limelight.data.ids import ids_to_arrow
from limelight.models.exadmm import ExADMM
from limelight.models.factor_model import FactorModel
from limelight.serve.export.index import BACKENDS, Wanted, make_index
from limelight.serve.export.prices import prices_of
from limelight.serve.export.readme import readme
from limelight.store.json import read_json
from limelight.store.model_folder import is_model_folder

if TYPE_CHECKING:
    import os

    from limelight._base.arrays import Float32
    from limelight.models.recommender import Recommender
    from limelight.serve.export.index import MadeIndex
    from limelight.serve.export.prices import ItemPrices

ExportFormat = Literal["parquet", "npy", "voyager", "faiss"]
RECORD, README = "export.json", "README.md"
ITEMS, USERS, PRICES = "items.parquet", "users.parquet", "prices.parquet"
ITEM_FACTORS, USER_FACTORS, PRICE_SETS = "item_factors.npy", "user_factors.npy", "prices.npy"
TRANSFORM = "query_transform.npy"
_KIND, _VERSION = "limelight export", 1
_FOLD_IN = (
    "u = solve(A, b) with A = sum of w v v' over her items + unobserved_weight * V'V + l * I, "
    "b = sum of w v over her items - price, w the weights of her items (1 without), V all item "
    "factors, l = regularization * (sum of w + unobserved_weight * len(V)) ** "
    "regularization_exponent"
)


@dataclass(frozen=True, kw_only=True)
class IndexOptions:
    """What is asked of an index of nearest neighbours.

    Examples
    --------
    >>> IndexOptions(recall=0.95).k
    20
    """

    k: int = 20
    """Length of the lists that it is measured by."""
    recall: float = 0.99
    """What share of the exact lists a search must find."""
    queries: int = 1000
    """For how many users, at most, that is measured."""

    def __post_init__(self) -> None:
        """Refuse what cannot be measured."""
        check_integer("k", self.k, least=1)
        check_integer("queries", self.queries, least=1)
        check_number("recall", self.recall, above=0)
        if self.recall > 1:
            message = f"recall must be at most 1: {self.recall:g}"
            raise ConfigError(message, hint="0.99 finds 99 of 100 items of the exact lists")


def export_model(
    model: Recommender,
    folder: str | os.PathLike[str],
    *,
    to: ExportFormat = "parquet",
    index: IndexOptions | None = None,
    plain: bool = False,
    show_progress: bool | None = None,
) -> dict[str, Any]:
    """Write what other programs need to serve a model's lists, whole or not at all.

    The folder has the ids of items and users, their factors and, of a model that is controlled by
    prices, these. Its ``export.json`` says what is what, and how to search; ``README.md`` has an
    example. An older export is replaced, anything else is left alone.

    Parameters
    ----------
    model
        A fitted model with factors: ``IALS`` or ``ExADMM``, also as ``Prices`` or ``GroupPrices``
        control it.
    folder
        Where the files shall appear.
    to
        ``parquet`` has factors as columns of tables, ``npy`` as arrays. ``voyager`` and ``faiss``
        add an index to the arrays, whose recall is measured against an exact search.
    index
        What is asked of the index.
    plain
        Leave the control of a model out.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.

    Returns
    -------
    dict
        What ``export.json`` says.

    Examples
    --------
    >>> import tempfile
    >>> import limelight as ll
    >>> model = ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 100, 4000).interactions)
    >>> path = tempfile.mkdtemp() + "/export"
    >>> export_model(model, path, to="npy")["model"]["items"]
    100
    >>> np.load(path + "/item_factors.npy").shape
    (100, 8)
    """
    check_choice("to", to, list(get_args(ExportFormat)))
    started = time.perf_counter()
    target, own = Path(folder), factors_of(model)
    refuse_stranger(target, holds_export)
    prices = None if plain else prices_of(model)
    threads = resolve_threads(own.config.num_threads)
    made = None
    if to in BACKENDS:
        backend, asked = BACKENDS[to](threads), index or IndexOptions()
        wanted = _wanted(own, prices, asked, threads)
        made = make_index(
            backend, wanted, own.user_factors, recall=asked.recall, show_progress=show_progress
        )
    record = _record(own, prices, to, made, is_controlled=model.reranker is not None)
    with atomic_folder(target, replace_if=holds_export) as place:
        _write_tables(place, own, prices, with_factors=to == "parquet")
        if to != "parquet":
            _write_arrays(place, own, prices)
        if made is not None:
            made.backend.save(place / made.backend.file)
            np.save(place / TRANSFORM, made.distances.transform)
        record["seconds"] = time.perf_counter() - started
        text = json.dumps(record, indent=2, ensure_ascii=False)
        (place / RECORD).write_text(f"{text}\n", encoding="utf-8")
        (place / README).write_text(readme(record), encoding="utf-8")
    return record


def factors_of(model: Recommender) -> FactorModel:
    """Return the factors behind a recommender, or say why it has none."""
    own = model.model
    if not isinstance(own, FactorModel):
        message = f"{type(own).__name__} has no factors of users and items to export"
        hint = "export IALS or ExADMM; `limelight recommend` writes the lists of any model"
        raise ConfigError(message, hint=hint)
    return own


def holds_export(folder: Path) -> bool:
    """Tell a folder that an export wrote from others.

    Examples
    --------
    >>> holds_export(Path("."))
    False
    """
    try:
        found = read_json(folder / RECORD)
    except (OSError, ValueError):
        return False
    is_export = isinstance(found, dict) and found.get("format") == _KIND
    return is_export and not is_model_folder(folder)


def refuse_within_model(output: Path, model: Path) -> None:
    """Refuse to write into the folder of a model, which is its own and checked as a whole."""
    if output.resolve().is_relative_to(model.resolve()):
        message = f"an export does not go into a model folder: {str(output)!r}"
        raise ConfigError(message, hint="choose a folder beside it, such as -o export/")


def _wanted(
    own: FactorModel, prices: ItemPrices | None, asked: IndexOptions, threads: int
) -> Wanted:
    """Choose users to measure by, evenly among those of whom something is known."""
    known = np.flatnonzero(own.user_factors.any(axis=1))
    if not len(known):
        message = f"no user has factors to measure an index by: {own!r}"
        raise ConfigError(message, hint="export --to npy, and search exactly")
    chosen = known[:: -(-len(known) // asked.queries)]
    draws = np.zeros(len(chosen), dtype=np.int32)
    if prices is not None:
        draws = prices.draw(own.user_ids[chosen])
    return Wanted(
        own.item_factors,
        np.ascontiguousarray(own.user_factors[chosen]),
        prices,
        draws,
        k=min(asked.k, len(own.item_ids)),
        threads=threads,
    )


def _record(
    own: FactorModel,
    prices: ItemPrices | None,
    to: str,
    made: MadeIndex | None,
    *,
    is_controlled: bool,
) -> dict[str, Any]:
    return {
        "format": _KIND,
        "version": _VERSION,
        "limelight": package_version(),
        "to": to,
        "model": {
            "name": type(own).__name__,
            "users": len(own.user_ids),
            "items": len(own.item_ids),
            "factors": own.item_factors.shape[1],
            "data": own.learned.fingerprint,
        },
        "score": "the product of a user's factors and an item's",
        "control": None if prices is None else prices.record(),
        "control_left_out": is_controlled and prices is None,
        "fold_in": _fold_in(own),
        "index": None if made is None else _index_record(made, prices),
    }


def _fold_in(own: FactorModel) -> dict[str, Any] | None:
    """Say how users get factors whom the training has not seen; None if not alone."""
    price = None
    if isinstance(own, ExADMM):
        if own.config.fold_in != "price":
            return None
        price = own.price_.tolist()
    numbers = own.numbers
    return {
        "formula": _FOLD_IN,
        "unobserved_weight": numbers.unobserved_weight,
        "regularization": numbers.regularization,
        "regularization_exponent": own.config.regularization_exponent,
        "price": price,
    }


def _index_record(made: MadeIndex, prices: ItemPrices | None) -> dict[str, Any]:
    has_price = prices is not None and prices.is_linear
    user = "a user's factors, then a 1," if has_price else "a user's factors"
    return {
        "library": made.backend.distribution,
        "library_version": made.backend.version,
        "file": made.backend.file,
        "space": made.backend.space,
        "dimensions": made.distances.items.shape[1],
        "items": "numbered as the rows of items.parquet, from 0",
        "query": f"{user} times query_transform.npy",
        "has_price_dimension": has_price,
        **made.record,
    }


def _write_tables(
    place: Path, own: FactorModel, prices: ItemPrices | None, *, with_factors: bool
) -> None:
    items: dict[str, Any] = {"item_id": ids_to_arrow(own.item_ids)}
    users: dict[str, Any] = {"user_id": ids_to_arrow(own.user_ids)}
    if prices is not None:
        if prices.log_factors:
            factors = np.zeros(len(own.item_ids), dtype=np.float32)
            factors[: len(prices.log_factors)] = prices.log_factors[: len(factors)]
            items["log_factor"] = factors
        if prices.draw_sets is not None:
            users["set"] = prices.draw(own.user_ids)
        _write_prices(place / PRICES, items["item_id"], prices)
    if with_factors:
        items["factors"] = _vectors(own.item_factors)
        users["factors"] = _vectors(own.user_factors)
    pq.write_table(pa.table(items), place / ITEMS)
    pq.write_table(pa.table(users), place / USERS)


def _vectors(factors: Float32) -> pa.Array:
    flat = pa.array(np.ascontiguousarray(factors, dtype=np.float32).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, factors.shape[1])


def _write_prices(path: Path, item_ids: pa.Array, prices: ItemPrices) -> None:
    """Write a row for each item; where there are several sets, for each item of each set."""
    fields = [("item_id", item_ids.type), ("price", pa.float32())]
    several = prices.draw_sets is not None
    schema = pa.schema([*([("set", pa.int32())] if several else []), *fields])
    with pq.ParquetWriter(path, schema) as writer:
        for number, one in enumerate(prices.sets):
            columns = [item_ids, pa.array(one, pa.float32())]
            if several:
                columns.insert(0, pa.array(np.full(len(one), number, dtype=np.int32)))
            writer.write_table(pa.table(columns, schema=schema))


def _write_arrays(place: Path, own: FactorModel, prices: ItemPrices | None) -> None:
    np.save(place / ITEM_FACTORS, np.asarray(own.item_factors, dtype=np.float32))
    np.save(place / USER_FACTORS, np.asarray(own.user_factors, dtype=np.float32))
    if prices is not None:
        np.save(place / PRICE_SETS, np.asarray(prices.sets, dtype=np.float32))
