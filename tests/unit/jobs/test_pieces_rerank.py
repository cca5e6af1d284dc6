"""Re-ranking over shards: the target is met, and it costs about what it costs on one machine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight._base.executor import LocalExecutor
from limelight.jobs.rerank import rerank
from limelight.jobs.rerank_shards import Shards
from limelight.store.checkpoint import Checkpoint


@pytest.fixture(scope="module")
def model():
    data = ll.marketplace(1500, 120, 25_000).interactions
    return ll.IALS(factors=8, epochs=4).fit(data)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def made(pieces, source, tmp_path, **given):
    given = {"k": 10, "per_shard": 400, **given}
    checkpoint = Checkpoint(tmp_path / "kept")
    return rerank(source, tmp_path / "lists", executor=pieces, checkpoint=checkpoint, **given)


@pytest.mark.parametrize("target", [0.55, 0.3])
def test_the_target_is_met_at_about_the_loss_of_one_machine(
    pieces, model, folder, tmp_path, target
):
    found = made(pieces, folder, tmp_path, gini=target)
    once = ll.rerank(model, k=10, gini=target)
    assert found.metrics["gini@10"] == pytest.approx(target, abs=0.003)
    assert found.relevance_loss <= once.relevance_loss + 0.004
    # Variants may lose about the same; which one is chosen depends on the users looked at.
    assert all(one.method.startswith("best-response (") for one in (found, once))
    assert "thorough" not in found.method
    assert found.lengths == once.lengths
    assert found.catalogue_given is once.catalogue_given is True
    for name, value in once.metrics.items():
        if name.endswith("_before"):
            assert found.metrics[name] == value
    audited = ll.audit(tmp_path / "lists", catalogue=model.item_ids)
    assert audited.metrics["gini@10"] == found.metrics["gini@10"]
    assert audited.users == 1500


def test_one_shard_is_one_machine(pieces, model, folder, tmp_path):
    found = made(pieces, folder, tmp_path, gini=0.4, per_shard=5000)
    once = ll.rerank(model, k=10, gini=0.4)
    assert found.relevance_loss == pytest.approx(once.relevance_loss, abs=0.002)


def test_prices_are_those_of_one_machine(pieces, tmp_path):
    model = ll.IALS(factors=4, epochs=2).fit(ll.marketplace(200, 40, 3000).interactions)
    model.save(tmp_path / "model")
    found = made(pieces, tmp_path / "model", tmp_path, gini=0.3, method="prices", per_shard=120)
    once = ll.rerank(model, k=10, gini=0.3, method="prices")
    assert found.strength == pytest.approx(once.strength)
    assert found.relevance_loss == pytest.approx(once.relevance_loss, rel=1e-3)
    assert found.metrics["gini@10"] == pytest.approx(once.metrics["gini@10"], abs=1e-3)


def test_welfare_is_about_that_of_one_machine(pieces, model, folder, tmp_path):
    """At one strength: what lists are worth, relevance and the welfare of exposure together."""
    from limelight.jobs.rerank import _control, _origin, _stage
    from limelight.recommend.candidates import candidates_of
    from limelight.rerank.market.market import Market
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.relevance import BY_RANK
    from limelight.rerank.welfare import as_welfare

    strength, welfare = 0.5, as_welfare("log")
    with Pool(candidates_of(model.ranking()), BY_RANK) as pool:
        market = Market(pool, 10, welfare, threads=1, seed=0)
        market.ledger.open()
        own = market.ledger.relevance()
        for _ in range(3):
            market.sweep(strength)
        share = market.survey.total / pool.n_items * pool.n_users

        def worth(exposure, relevance):
            grid = np.linspace(0, 1, 200)[1:]
            x = exposure / share
            gains = welfare.marginal(x[:, None] * grid).mean(axis=1) * x
            return relevance * pool.n_users + strength * market.survey.unit * share * gains.sum()

        wanted = worth(market.ledger.exposure, market.ledger.relevance())
        plain = worth(market.ledger.exposure_of(pool.own_places(10)), own)
    shards = Shards(tmp_path, len(model.item_ids), 10, BY_RANK, 1 << 30, 1)
    facts = _stage(pieces, shards, _origin(pieces, folder, None, 300, 1))
    control, _, _ = _control(pieces, shards, facts, None, "best-response", 0)
    measure = control.try_at(strength).measure
    found = worth(control.sums.exposure, (1 - measure.loss) * own)
    assert found - plain > 0.97 * (wanted - plain) > 0


def test_a_folder_of_candidates(pieces, model, tmp_path):
    ids, scores = model.recommend(k=60)
    items, source = np.asarray(model.item_ids), tmp_path / "candidates"
    source.mkdir()
    for number, rows in enumerate(np.array_split(np.random.default_rng(0).permutation(1500), 3)):
        table = {
            "user_id": np.repeat(np.asarray(model.user_ids)[rows], 60),
            "item_id": items[ids[rows].ravel()],
            "score": scores[rows].ravel(),
        }
        pq.write_table(pa.table(table), source / f"{number}.parquet")
    found = made(pieces, source, tmp_path, min_coverage=0.9)
    once = ll.rerank(source, k=10, min_coverage=0.9)
    assert found.metrics["coverage@10"] >= 0.9
    assert found.relevance_loss == pytest.approx(once.relevance_loss, abs=0.005)
    lists = pq.read_table(tmp_path / "lists")
    assert len(lists) == 15_000
    assert sorted(found.item_ids) == sorted(once.item_ids)
    assert found.to_dict()["notes"] == once.to_dict()["notes"]
    assert "No catalogue was given" in str(found)


def test_the_cut_is_part_of_the_question_and_workers_are_not(pieces, folder, tmp_path):
    first = made(pieces, folder, tmp_path / "a", gini=0.4)
    second = made(LocalExecutor(), folder, tmp_path / "b", gini=0.4)
    assert first.metrics == second.metrics
    assert pq.read_table(tmp_path / "a/lists").equals(pq.read_table(tmp_path / "b/lists"))


def test_work_goes_on_where_it_was_interrupted(pieces, folder, tmp_path):
    whole = made(pieces, folder, tmp_path / "whole", gini=0.4)

    class Interrupted(LocalExecutor):
        left = 40

        def map(self, work, pieces, total=None):
            for piece in pieces:
                self.left -= 1
                if self.left < 0:
                    raise KeyboardInterrupt
                yield work(piece)

    with pytest.raises(KeyboardInterrupt) as end:
        made(Interrupted(), folder, tmp_path, gini=0.4)
    assert "--resume" in end.value.__notes__[0]
    stood = set((tmp_path / "kept").glob("shard-*"))
    times = {file: file.stat().st_mtime_ns for file in stood}
    found = made(pieces, folder, tmp_path, gini=0.4)
    assert {file: file.stat().st_mtime_ns for file in stood} == times
    assert found.metrics == whole.metrics
    assert pq.read_table(tmp_path / "lists").equals(pq.read_table(tmp_path / "whole/lists"))


@pytest.mark.parametrize("method", ["online", "fairrec", "allocate"])
def test_methods_that_go_one_by_one_are_refused(pieces, folder, tmp_path, method):
    with pytest.raises(ConfigError, match=f"{method} .* so it cannot be done in pieces"):
        made(pieces, folder, tmp_path, gini=0.4, method=method)


def test_a_user_in_two_files_is_refused(pieces, tmp_path):
    source = tmp_path / "candidates"
    source.mkdir()
    for name in "ab":
        table = {"user_id": [7, 8], "item_id": [f"{name}1", f"{name}2"], "score": [0.5, 0.25]}
        pq.write_table(pa.table(table), source / f"{name}.parquet")
    with pytest.raises(DataError, match="more than one file: 2 of them"):
        made(pieces, source, tmp_path, gini=0.4, k=1)


def test_lists_longer_than_candidates_are_refused(pieces, folder, tmp_path):
    with pytest.raises(DataError, match="k is larger than the candidates of any user: 121"):
        made(pieces, folder, tmp_path, gini=0.4, k=121)


def test_a_pool_of_a_shard_is_that_of_its_candidates(tmp_path, model):
    from limelight.recommend.candidates import candidates_of
    from limelight.rerank.market.pool import Pool
    from limelight.rerank.relevance import BY_RANK

    candidates = candidates_of(model.ranking(users=np.arange(30)), 40)
    shards = Shards(tmp_path, candidates.n_items, 5, BY_RANK, 1 << 30, 1)
    shards.keep(3, candidates)
    with shards.pool(3) as found, Pool(candidates, BY_RANK) as wanted:
        assert found.fingerprint() == wanted.fingerprint()
