"""Small stand-ins for the tables that the pages speak of."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.support.models import FIXED

import limelight as ll

USERS, ITEMS, PAIRS = 1500, 200, 40_000


@pytest.fixture(scope="session")
def tables():
    """Tables by the names that pages give them; all of them share users and items."""
    generator = np.random.default_rng(0)
    users, items = ll.marketplace(USERS, ITEMS, PAIRS, seed=1).interactions.matrix.nonzero()
    kept = generator.random(len(users)) < 0.8
    past, later = _pairs(users[kept], items[kept]), _pairs(users[~kept], items[~kept])
    candidates = _candidates(ll.read(past))
    lists = candidates.filter(np.asarray(candidates["rank"]) <= 20)
    groups = pa.table({"item_id": np.arange(ITEMS), "group": [f"g{i % 40}" for i in range(ITEMS)]})
    stars = generator.integers(6, 11, len(users))
    return {
        "ratings": pa.table({"userId": users, "movieId": items, "rating": stars / 2}),
        "letterboxd": _pairs(users, items).append_column("rating", [stars]),
        "items": pa.table(
            {"item_id": np.arange(ITEMS), "title": [f"Item {n}" for n in range(ITEMS)]}
        ),
        "films": pa.table(
            {
                "item_id": np.arange(ITEMS),
                "genres": [("Drama", "Drama|Crime", None)[n % 3] for n in range(ITEMS)],
                "year": 1950 + np.arange(ITEMS) % 70,
            }
        ),
        **dict.fromkeys(["studios", "sellers", "genres"], groups),
        **dict.fromkeys(["liked", "held_out", "purchases"], later),
        **dict.fromkeys(["today", "new"], past.slice(0, 2000)),
        **dict.fromkeys(
            ["plays", "new_plays"], past.append_column("plays", [1 + np.arange(len(past)) % 5])
        ),
        "candidates": candidates.drop_columns("rank"),
        **dict.fromkeys(["lists", "after"], lists),
        "before": lists.filter(np.asarray(lists["rank"]) <= 19),
        "log": lists.append_column("shown_at", [np.asarray(lists["user_id"]) * 3600 + 10**9]),
    }


@pytest.fixture
def stand_in(tables, tmp_path, monkeypatch):
    """Write what a page has a name for, if it is known, into the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def write(name):
        path = Path(name)
        if name == "run/":
            ll.split_users(ll.read(tables["ratings"]), validation=300, test=300).save("run/split")
        elif name.endswith("/"):
            path.mkdir()
            pq.write_table(tables[path.stem], path / "part-0.parquet")
        elif path.stem in tables:
            writer = pyarrow.csv.write_csv if path.suffix == ".csv" else pq.write_table
            writer(tables[path.stem], path)

    return write


def _pairs(users, items):
    return pa.table({"user_id": users, "item_id": items})


def _candidates(data):
    model = ll.IALS(factors=16, epochs=5, **FIXED).fit(data)
    ids, scores = model.recommend(users=np.arange(data.n_users), k=100)
    users, places = np.nonzero(ids >= 0)
    return pa.table(
        {
            "user_id": data.user_ids[users],
            "item_id": data.item_ids[ids[users, places]],
            "rank": places + 1,
            "score": scores[users, places],
        }
    )
