"""``ll.rerank``: targets met, from files, frames, candidates and models."""

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
import pytest
from tests.support.models import FIXED

import limelight as ll
from limelight._base.errors import ConfigError, DataError, SolveError
from limelight.data import read_candidates
from limelight.recommend import candidates as making
from limelight.rerank.market import pool
from limelight.rerank.rerank import method_names

K = 10


@pytest.fixture(scope="module")
def model():
    data = ll.marketplace(1200, 150, 24_000).interactions
    return ll.IALS(factors=16, epochs=8, **FIXED).fit(data)


@pytest.fixture(scope="module")
def table(model):
    ids, scores = model.recommend(k=80)
    rows, columns = np.nonzero(ids >= 0)
    return pa.table(
        {
            "user_id": model.user_ids[rows],
            "item_id": model.item_ids[ids[rows, columns]],
            "score": scores[rows, columns],
        }
    )


@pytest.mark.parametrize("method", ["auto", "best-response", "online", "prices", "fairrec"])
def test_a_gini_is_met(table, method):
    result = ll.rerank(table, K, gini=0.3, method=method)
    assert result.metrics[f"gini@{K}"] == pytest.approx(0.3, abs=0.01)
    assert result.metrics[f"gini@{K}_before"] > 0.4
    audit = ll.audit(result.to_table(), catalogue=result.item_ids.tolist())
    assert audit.metrics[f"gini@{K}"] == pytest.approx(result.metrics[f"gini@{K}"], abs=1e-12)


def test_guarantees_meet_a_gini_with_the_least_that_does(table):
    method = "allocate"
    result = ll.rerank(table, K, gini=0.35, method=method)
    assert result.metrics[f"gini@{K}"] <= 0.352
    assert result.strength == int(result.strength)
    stronger = ll.rerank(table, K, gini=0.3, method=method)
    assert stronger.strength >= result.strength
    assert stronger.relevance_loss >= result.relevance_loss


@pytest.mark.parametrize("gini", [0.3, 0.35, 0.4])
def test_the_note_of_an_allocation_is_of_its_own_guarantee(table, gini):
    result = ll.rerank(table, K, gini=gini, method="allocate")
    shown = np.bincount(result.lists.ids.ravel(), minlength=len(result.item_ids))
    short = int((shown < result.strength).sum())
    expected = f"{short:,} items stand in fewer than {int(result.strength):,} lists."
    assert result.notes[0] == expected


@pytest.mark.parametrize("method", method_names())
def test_a_loss_is_not_exceeded(table, method):
    result = ll.rerank(table, K, max_relevance_loss=0.05, method=method)
    assert result.relevance_loss <= 0.0505
    assert result.metrics[f"gini@{K}"] < result.metrics[f"gini@{K}_before"]


def test_a_coverage_is_met():
    wide = ll.IALS(factors=16, epochs=8).fit(ll.marketplace(300, 400, 9000).interactions)
    result = ll.rerank(wide.ranking(), K, min_coverage=0.95)
    assert result.metrics[f"coverage@{K}_before"] < 0.9
    assert result.metrics[f"coverage@{K}"] >= 0.945


def test_without_a_catalogue_it_says_whose_items_count(table, model, tmp_path):
    table = table.filter(pa.compute.not_equal(table["item_id"], table["item_id"][0]))
    pq.write_table(table.slice(0, 5), tmp_path / "seen.parquet")
    for source in (table, read_candidates(table)):
        result = ll.rerank(source, K, gini=0.35, history=tmp_path / "seen.parquet")
        [note] = result.to_dict()["notes"]
        assert note.startswith("No catalogue was given: exposure is over the 149 items that are ")
        assert note in str(result).splitlines()
        assert result.exhibit().notes == (note,)
        assert (result.to_dict()["catalogue_given"], result.to_dict()["items"]) == (False, 149)
    whole = ll.rerank(table, K, gini=0.35, catalogue=model.item_ids.tolist())
    for result in (whole, ll.rerank(model, K, gini=0.35)):
        assert result.to_dict()["catalogue_given"] is True
        assert result.to_dict()["notes"] == []
        over = ": over 1,200 users' lists and 150 items, the Gini"
        assert over in str(result).splitlines()[0]


def test_a_target_that_holds_already_changes_nothing(table):
    result = ll.rerank(table, K, gini=0.99)
    assert result.strength == 0
    assert result.relevance_loss == 0
    assert result.overlap == 1


def test_a_target_out_of_reach_says_what_is_possible():
    few = pa.table({"user_id": [1, 2, 3], "item_id": ["a", "a", "a"], "score": [1.0, 1, 1]})
    with pytest.raises(SolveError, match=r"out of reach: a Gini index of 0.1; .* of 0.667"):
        ll.rerank(few, 1, gini=0.1, catalogue=["a", "b", "c"])


def test_sources_agree(table, model, tmp_path):
    pq.write_table(table, tmp_path / "candidates.parquet")
    expected = ll.rerank(table, K, gini=0.3)
    from_file = ll.rerank(tmp_path / "candidates.parquet", K, gini=0.3)
    with read_candidates(table) as candidates:
        from_candidates = ll.rerank(candidates, K, gini=0.3)
    for found in (from_file, from_candidates):
        np.testing.assert_array_equal(found.lists.ids, expected.lists.ids)
    from_model = ll.rerank(model.ranking(), K, gini=0.3)
    assert from_model.metrics[f"gini@{K}"] == pytest.approx(0.3, abs=0.01)


def test_memory_does_not_change_the_lists(table, monkeypatch):
    expected = ll.rerank(table, K, gini=0.3, method="best-response")
    monkeypatch.setattr(pool, "_PAIRS", 1 << 14)
    monkeypatch.setattr(making, "_PAIRS", 1 << 14)
    in_blocks = ll.rerank(table, K, gini=0.3, method="best-response")
    on_disk = ll.rerank(table, K, gini=0.3, method="best-response", memory=1 << 20)
    np.testing.assert_array_equal(on_disk.lists.ids, in_blocks.lists.ids)
    assert on_disk.metrics[f"gini@{K}"] == pytest.approx(expected.metrics[f"gini@{K}"], abs=0.005)


def test_history_is_never_shown(table):
    taken = table.slice(0, 400).select(["user_id", "item_id"])
    result = ll.rerank(table, K, gini=0.3, history=taken)
    shown = set(
        zip(*result.to_table().select(["user_id", "item_id"]).to_pydict().values(), strict=True)
    )
    assert not shown & set(zip(*taken.to_pydict().values(), strict=True))


def test_held_out_pairs_calibrate(table):
    liked = table.slice(0, 3000).select(["user_id", "item_id"])
    plain, calibrated = (ll.rerank(table, K, gini=0.3, held_out=h) for h in (None, liked))
    assert not np.array_equal(plain.lists.ids, calibrated.lists.ids)
    assert calibrated.metrics[f"gini@{K}"] == pytest.approx(0.3, abs=0.01)


def test_same_seed_same_lists(table):
    one, two = (ll.rerank(table, K, gini=0.3, num_threads=n).lists for n in (1, 2))
    np.testing.assert_array_equal(one.ids, two.ids)


def test_scores_that_say_nothing_can_still_be_shared(table):
    flat = table.set_column(2, "score", pa.array(np.zeros(len(table))))
    result = ll.rerank(flat, K, gini=0.3, relevance="score")
    assert result.metrics[f"gini@{K}"] <= 0.302


def test_what_changed_adds_up(table):
    result = ll.rerank(table, K, gini=0.3)
    gained, lost = result.changes(top=1000)
    assert all(change.after > change.before for change in gained)
    assert all(change.after < change.before for change in lost)
    assert sum(c.after - c.before for c in gained + lost) == pytest.approx(0, abs=1e-9)
    record = result.to_dict()
    assert record["items_gained"] + record["items_lost"] <= record["items"]
    assert 0 <= record["relevance_loss_median_user"] <= record["relevance_loss_worst_tenth"]
    assert "gained most" in result.explain()
    ids = result.item_ids.tolist()
    groups = pa.table({"item_id": [*ids, -1], "group": [*["x", "y"] * 75, "of other items"]})
    changes = result.group_changes(groups)
    assert {change.id for change in changes} == {"x", "y"}
    assert sum(c.before for c in changes) == pytest.approx(1)
    assert sum(c.after for c in changes) == pytest.approx(1)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({}, ConfigError, "give one target, not 0: none was given"),
        ({"gini": 0.3, "min_coverage": 0.5}, ConfigError, "give one target, not 2"),
        ({"gini": 1.3}, ConfigError, "gini must be from 0 to 1: 1.3"),
        ({"gini": float("nan")}, ConfigError, "gini must be a finite number"),
        ({"gini": 0.3, "method": "magic"}, ConfigError, "method is not a known choice: 'magic'"),
        ({"gini": 0.3, "k": 81}, DataError, "k is larger than the candidates of any user: 81"),
        ({"gini": 0.3, "k": 0}, ConfigError, "k must be at least 1: 0"),
        (
            {"gini": 0.3, "history": pa.table({"user_id": ["x"], "item_id": ["y"]})},
            DataError,
            "no pair of the history has a user and an item of the candidates",
        ),
        (
            {"gini": 0.3, "relevance": "score", "held_out": pa.table({"user": [1], "item": [1]})},
            ConfigError,
            "exclude each other",
        ),
    ],
)
def test_wrong_use_is_refused(table, settings, error, message):
    with pytest.raises(error, match=message):
        ll.rerank(table, **settings)
    with read_candidates(table) as candidates, pytest.raises(ConfigError, match="has its own"):
        ll.rerank(candidates, gini=0.3, catalogue=[1, 2])


def test_scores_below_zero_are_no_relevance(table):
    shifted = table.set_column(2, "score", pa.array(np.asarray(table["score"]) - 5.0))
    with pytest.raises(DataError, match="a user's best score is below 0"):
        ll.rerank(shifted, K, gini=0.3, relevance="score")
    assert ll.rerank(shifted, K, gini=0.3).metrics[f"gini@{K}"] == pytest.approx(0.3, abs=0.01)


def test_a_model_keeps_its_ids():
    data = ll.marketplace(300, 60, 5000).interactions
    names = np.array([f"user {u}" for u in range(300)])
    users = names[np.repeat(np.arange(300), np.diff(data.indptr))]
    frame = pa.table({"user_id": users, "item_id": data.indices + 500})
    model = ll.IALS(factors=8, epochs=5).fit(ll.read(frame))
    seen = pa.table({"user_id": model.user_ids[:1].tolist() * 3, "item_id": model.item_ids[:3]})
    result = ll.rerank(model, 5, gini=0.2, history=seen)
    shown = result.to_table()
    assert set(shown["user_id"].to_pylist()) <= set(model.user_ids)
    assert pa.compute.min(shown["item_id"]).as_py() >= 500
    hers = shown.filter(pa.compute.equal(shown["user_id"], model.user_ids[0]))["item_id"]
    assert not set(hers.to_pylist()) & set(model.item_ids[:3].tolist())
    with pytest.raises(ConfigError, match="history has ids, and a ranking knows users"):
        ll.rerank(model.ranking(), 5, gini=0.2, history=seen)


def test_candidates_stay_open(table):
    with read_candidates(table) as candidates:
        first = ll.rerank(candidates, K, gini=0.3)
        again = ll.rerank(candidates, K, gini=0.3, history=table.slice(0, 5).select([0, 1]))
    assert len(first.lists.ids) == len(again.lists.ids)


def test_full_coverage_costs_no_more_than_it_must():
    wide = ll.IALS(factors=16, epochs=8).fit(ll.marketplace(800, 60, 9000).interactions)
    result = ll.rerank(wide, K, min_coverage=1.0, method="best-response")
    assert result.metrics[f"coverage@{K}"] == 1
    half = ll.BestResponse(strength=result.strength / 2).rerank(wide.ranking(), K).ids
    assert result.strength == 0 or ll.coverage(ll.exposure(half, n_items=60)) < 1


def test_users_without_candidates_are_told_of(table):
    taken = table.filter(pa.compute.equal(table["user_id"], table["user_id"][0]))
    result = ll.rerank(table, K, gini=0.3, history=taken.select(["user_id", "item_id"]))
    record = result.to_dict()
    assert record["users_without_list"] == 1
    assert record["relevance_loss_worst_tenth"] < 0.9
    assert "a shorter list: " in str(result)


def test_equal_scores_are_equally_relevant():
    rows = [(u, j) for u in range(30) for j in range(12)]
    users, items = zip(*rows, strict=True)
    table = pa.table({"user_id": users, "item_id": items, "score": np.ones(360)})
    result = ll.rerank(table, 3, gini=0.2)
    assert result.relevance_loss == pytest.approx(0, abs=1e-6)


def nearly_tied(scores):
    """Return the same 30 of 60 items for many users, the popular ones more often."""
    draw, popular = np.random.default_rng(0), 1 / np.arange(1, 61)
    items = [draw.choice(60, 30, replace=False, p=popular / popular.sum()) for _ in range(120)]
    found = np.concatenate(items)
    table = {"user_id": np.repeat(np.arange(120), 30), "item_id": found, "score": scores(found)}
    return pa.table(table)


@pytest.mark.parametrize("method", ["auto", "online", "prices"])
@pytest.mark.parametrize(
    "scores",
    [
        lambda items: np.zeros(len(items)),
        lambda items: np.full(len(items), -1.0),
        lambda items: 1 - 1e-9 * items,
        lambda items: 1e6 - 0.01 * items,
        lambda items: 1e-38 * (61 - items),
        lambda items: 1e30 * (1 - items / 100),
    ],
    ids=["zero", "negative", "tied in 32 bits", "nearly tied", "next to 0", "very large"],
)
def test_a_gini_is_met_whatever_scores_tell_apart(scores, method):
    result = ll.rerank(nearly_tied(scores), 5, gini=0.3, method=method)
    assert result.metrics["gini@5"] <= 0.31
    assert not any("not met" in note for note in result.notes)


def test_scores_too_large_to_add_up_are_refused():
    with pytest.raises(DataError, match=r"finite number from -1e30 to 1e30, got: 9.*e\+37"):
        ll.rerank(nearly_tied(lambda items: 1e38 * (1 - items / 100)), 5, gini=0.3, method="prices")
