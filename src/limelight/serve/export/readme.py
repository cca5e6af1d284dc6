"""The text beside exported files: what they are, and a few lines that use them."""

from __future__ import annotations

from typing import Any

from limelight._base.text import percent

_FILES = {
    "export.json": "what everything is, how to search, and what the index was measured to find",
    "items.parquet": "item_id, in the order of the numbers of items",
    "users.parquet": "user_id, in the order of the numbers of users",
    "prices.parquet": "item_id, price: what is added to the relevance of an item",
    "item_factors.npy": "one row an item",
    "user_factors.npy": "one row a user",
    "prices.npy": "the same prices, one row a set, one column an item",
    "query_transform.npy": "what turns a user into a query of the index",
}
_OPEN = """\
import json

import numpy as np
import pyarrow.parquet as pq
"""
_PARQUET = """
items, users = (pq.read_table(f"{name}.parquet").combine_chunks() for name in ("items", "users"))
V, U = (np.stack(table["factors"].to_numpy()) for table in (items, users))
user = 0  # a row of users.parquet
found = np.arange(len(V))
"""
_NPY = """
items, users = (pq.read_table(f"{name}.parquet") for name in ("items", "users"))
V, U = np.load("item_factors.npy"), np.load("user_factors.npy")
user = 0  # a row of users.parquet
found = np.arange(len(V))
"""
_INDEX = """
about = json.load(open("export.json"))["index"]
items, users = (pq.read_table(f"{name}.parquet") for name in ("items", "users"))
V, U = np.load("item_factors.npy"), np.load("user_factors.npy")
user = 0  # a row of users.parquet
asked = np.append(U[user], 1) if about["has_price_dimension"] else U[user]
query = (asked @ np.load("query_transform.npy")).astype(np.float32)
"""
_SEARCH = {
    "voyager": """\
index = voyager.Index.load("index.voyager")
found, _ = index.query(query, k=about["fetch"], query_ef=about["ef"])
found = found.astype(int)
""",
    "faiss": """\
index = faiss.read_index("index.faiss")
index.hnsw.efSearch = about["ef"]
found = index.search(query[None], about["fetch"])[1][0]
""",
}
_VALUES = """\
values = V[found] @ U[user]
"""
_LAW = """\
law = json.load(open("export.json"))["control"]["law"]
found = found[np.argsort(-values, kind="stable")]  # ranks are of scores
levels = np.sort(values)[::-1].astype(float)
if law["scale"] == "log":
    levels = np.log(np.maximum(levels, law["floor"]))
head, ranks = np.full(len(levels), levels[:20].mean()), np.log(np.arange(len(levels)) + 2)
power = law["constant"] + law["score"] * levels + law["head"] * head + law["rank"] * ranks
features = {"score": levels, "head": head, "rank": ranks, "gap": levels - head}
for feature, knots, heights in law["curves"]:
    power += np.interp(features[feature], knots, heights)
if "log_factor" in items.column_names:
    power += items["log_factor"].to_numpy()[found]
values = np.exp(np.clip(power, -80, 80))
"""
_PRICES = {
    "parquet": """\
prices = pq.read_table("prices.parquet"{which})["price"].to_numpy()
values = values + prices[found]
""",
    "npy": """\
values = values + np.load("prices.npy")[{which}][found]
""",
}
_END = """\
print([items["item_id"][int(i)].as_py() for i in found[np.argsort(-values, kind="stable")[:20]]])
"""


def readme(record: dict[str, Any]) -> str:
    """Write the text of an export.

    Parameters
    ----------
    record
        What its JSON says.

    Examples
    --------
    >>> model = {"name": "IALS", "users": 2, "items": 3, "factors": 8}
    >>> text = readme({"to": "npy", "model": model, "control": None, "index": None})
    >>> text.splitlines()[0]
    '# IALS for 2 users and 3 items'
    """
    model, index = record["model"], record["index"]
    lines = [
        f"# {model['name']} for {model['users']:,} users and {model['items']:,} items",
        "",
        "Written by `limelight export`. Nothing here needs limelight.",
        "",
        *(f"- `{name}`: {text}" for name, text in files_of(record).items()),
    ]
    if index is not None:
        lines.append(f"- `{index['file']}`: an index of {index['library']}, of the items as points")
        lines += [
            "",
            f"Of the best {index['k']} items of {index['queries']:,} users, a search with ef "
            f"{index['ef']} that fetches {index['fetch']} found {percent(index['recall'], 2)} of "
            "what an exact search finds.",
        ]
    lines += [
        "",
        "The best 20 items of a user. Fetch as many more as her history has, and leave these out.",
        "",
        "```python",
        example(record).rstrip(),
        "```",
        "",
    ]
    return "\n".join(lines)


def files_of(record: dict[str, Any]) -> dict[str, str]:
    """Return what the files of an export are, by name."""
    names = ["export.json", "items.parquet", "users.parquet"]
    names += [] if record["control"] is None else ["prices.parquet"]
    found = {name: _FILES[name] for name in names}
    if record["to"] == "parquet":
        for name in ("items.parquet", "users.parquet"):
            found[name] += ", with factors"
    else:
        arrays = ["item_factors.npy", "user_factors.npy"]
        arrays += [] if record["control"] is None else ["prices.npy"]
        arrays += [] if record["index"] is None else ["query_transform.npy"]
        found |= {name: _FILES[name] for name in arrays}
    control = record["control"] or {}
    if "draw" in control:
        found["prices.parquet"] = f"set, {found['prices.parquet']}, by set"
        found["users.parquet"] += ", with the set of prices of each"
    return found


def example(record: dict[str, Any]) -> str:
    """Return a script that lists the best items of a user, by the files alone."""
    to, control = record["to"], record["control"]
    text = _OPEN + f"import {to}\n" * (to in _SEARCH)
    text += {"parquet": _PARQUET, "npy": _NPY}.get(to, _INDEX) + _SEARCH.get(to, "") + _VALUES
    if control is not None:
        several = "draw" in control
        number = 'users["set"][user].as_py()'
        text += _LAW if control["law"] is not None else ""
        if to == "parquet":
            which = f', filters=[("set", "=", {number})]' if several else ""
        else:
            which = number if several else "0"
        text += _PRICES["parquet" if to == "parquet" else "npy"].format(which=which)
    return text + _END
