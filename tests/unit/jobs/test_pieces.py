"""Lists and figures of pieces are those of one machine, to the last bit."""

from dataclasses import astuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.errors import ConfigError, DataError
from limelight._base.executor import LocalExecutor
from limelight.jobs import evaluate, recommend
from limelight.jobs.service import Service, refuse_together
from limelight.metrics.accumulate import ListAccumulator, count, tally

PER_PIECE = 37


@pytest.fixture(scope="module")
def split():
    return ll.split_users(ll.marketplace(500, 80, 6000).interactions, validation=40, test=100)


MODELS = {
    "ials": lambda: ll.IALS(factors=8, epochs=3),
    "price": lambda: ll.ExADMM(factors=8, epochs=3, exposure_strength=1.0),
    "targets": lambda: ll.ExADMM(factors=8, epochs=3, exposure_weight=1e-3, solver="admm"),
    "popularity": ll.Popularity,
    "random": lambda: ll.Random(random_state=3),
}


@pytest.fixture(scope="module", params=[*MODELS, "prices"])
def model(request, split):
    if request.param != "prices":
        return MODELS[request.param]().fit(split.train)
    below = MODELS["ials"]().fit(split.train)
    market = ll.FrankWolfe(strength=0.3, steps=10, num_threads=1)
    return market.fit(below.ranking(split.validation.history), k=10).over(below)


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def written(path):
    files = sorted(path.glob("*.parquet"))
    return pa.concat_tables([pq.read_table(file) for file in files])


def on_one_machine(model, k, histories=None, user_ids=None):
    ids, scores = model.recommend(histories, k=k)
    users = model.user_ids if user_ids is None else user_ids
    rows, columns = np.nonzero(ids >= 0)
    return pa.table(
        {
            "user_id": np.asarray(users)[rows],
            "item_id": np.asarray(model.item_ids)[ids[rows, columns]],
            "rank": (columns + 1).astype(np.int32),
            "score": scores[rows, columns],
        }
    )


def test_lists_of_known_users(pieces, model, folder, tmp_path):
    output = tmp_path / "lists"
    found = recommend(folder, output, k=7, executor=pieces, per_piece=PER_PIECE)
    assert written(output).equals(on_one_machine(model, 7))
    once = ListAccumulator(len(model.item_ids), 7)
    once.update(model.recommend(k=7)[0])
    assert found == {"k": 7, **once.result()}
    assert len(list(output.iterdir())) == -(-len(model.user_ids) // PER_PIECE)
    assert recommend(folder, tmp_path / "one.parquet", k=7) == found
    assert pq.read_table(tmp_path / "one.parquet").equals(written(output))
    assert not list(tmp_path.glob("*.checkpoint"))


def test_lists_of_some_items(pieces, model, folder, tmp_path):
    some = {"allow": model.item_ids[:40].tolist(), "exclude": model.item_ids[3:5].tolist()}
    for name, executor in (("lists", pieces), ("one", None)):
        output = tmp_path / name
        recommend(folder, output, k=7, executor=executor, per_piece=PER_PIECE, **some)
        shown = written(output).column("item_id").to_numpy()
        ids = model.recommend(k=7, **some).ids
        np.testing.assert_array_equal(shown, model.item_ids[ids[ids >= 0]])


def test_users_without_history_in_pieces(pieces, tmp_path):
    data = ll.marketplace(100, 50, 1000).interactions.matrix.tolil()
    data[[3, 60]] = 0
    model = ll.IALS(factors=4, epochs=2).fit(data.tocsr())
    model.save(tmp_path / "model")
    with pytest.warns(ll.LimelightWarning, match="1 of 37 users has no history"):
        recommend(tmp_path / "model", tmp_path / "l", k=5, executor=pieces, per_piece=PER_PIECE)
    with pytest.warns(ll.LimelightWarning, match="2 of 100 users have no history"):
        assert written(tmp_path / "l").equals(on_one_machine(model, 5))


def test_lists_of_unseen_users(pieces, model, split, folder, tmp_path):
    if isinstance(model, ll.Random):
        return  # refused: it goes by row numbers
    history, ids = split.test.history, split.test.user_ids
    for name, executor in (("lists", pieces), ("one", None)):
        recommend(
            folder,
            tmp_path / name,
            k=7,
            histories=history,
            executor=executor,
            per_piece=PER_PIECE,
        )
    numbers = np.arange(len(ids))
    more = {"user_ids": numbers} if getattr(model, "by_user", False) else {}
    found, _ = model.recommend(history, k=7, **more)
    table = written(tmp_path / "lists")
    assert table["user_id"].to_numpy().tolist() == np.repeat(numbers, 7).tolist()
    shown = np.asarray(model.item_ids)[found].ravel()
    assert table["item_id"].to_numpy().tolist() == shown.tolist()
    assert written(tmp_path / "one").equals(table)


def test_figures_on_held_out_users(pieces, model, split, folder):
    wanted = dict(ll.evaluate(model, split.test, k=(3, 10)))
    assert dict(evaluate(folder, split, k=(3, 10))) == wanted
    if isinstance(model, ll.Random):
        return  # refused: it goes by row numbers
    found = evaluate(folder, split, k=(3, 10), executor=pieces, per_piece=PER_PIECE)
    assert dict(found) == wanted


@pytest.mark.parametrize("kind", [ll.BestResponse, ll.FairRec, ll.Online])
def test_models_that_serve_together_are_one_piece(split, tmp_path, kind):
    model = kind().over(MODELS["popularity"]().fit(split.train))
    model.save(tmp_path / "model")
    assert dict(evaluate(tmp_path / "model", split, k=5)) == dict(
        ll.evaluate(ll.load(tmp_path / "model"), split.test, k=5)
    )
    before = ll.load(tmp_path / "model")  # a stream goes on from its last user
    recommend(tmp_path / "model", tmp_path / "lists", k=5)
    assert written(tmp_path / "lists").equals(on_one_machine(before, 5))


def test_finished_parts_are_kept_and_counted(pieces, split, tmp_path, monkeypatch):
    model = MODELS["ials"]().fit(split.train)
    model.save(tmp_path / "model")
    kept = tmp_path / "kept"

    class Interrupted(LocalExecutor):
        parallel = True

        def map(self, work, pieces, total=None):
            for number, piece in enumerate(pieces):
                if number == 2:
                    raise KeyboardInterrupt
                yield work(piece)

    output = tmp_path / "lists"
    asked = {"k": 5, "checkpoint": kept, "per_piece": PER_PIECE}
    with pytest.raises(KeyboardInterrupt) as end:
        recommend(tmp_path / "model", output, executor=Interrupted(), **asked)
    assert "--resume" in end.value.__notes__[0]
    first = kept / "part-00000.parquet"
    before = first.stat().st_mtime_ns
    for other in (asked | {"k": 6}, asked | {"per_piece": 50}):
        with pytest.raises(ConfigError, match="of another run, with"):
            recommend(tmp_path / "model", output, executor=pieces, **other)
    made = []
    monkeypatch.setattr(
        Service,
        "lists",
        lambda *args, lists=Service.lists: made.append(args[2].number) or lists(*args),
    )
    found = recommend(tmp_path / "model", output, executor=pieces, **asked)
    assert made == list(range(2, 10))
    assert (output / "part-00000.parquet").stat().st_mtime_ns == before
    assert written(output).equals(on_one_machine(model, 5))
    once = ListAccumulator(len(model.item_ids), 5)
    once.update(model.recommend(k=5)[0])
    assert found == {"k": 5, **once.result()}
    assert not kept.exists()


def test_a_model_without_histories_says_so(pieces, split, tmp_path):
    MODELS["ials"]().fit(split.train).save(tmp_path / "model", history=False)
    for executor in (pieces, None):
        with pytest.raises(DataError, match="saved without histories"):
            recommend(tmp_path / "model", tmp_path / "lists", k=5, executor=executor)


def test_chosen_users_and_single_files_are_not_for_pieces(pieces, split, tmp_path):
    MODELS["popularity"]().fit(split.train).save(tmp_path / "model")
    for name, users in (("lists", [split.train.user_ids[3]]), ("lists.csv", None)):
        with pytest.raises(ConfigError, match="a folder of parts for all users"):
            recommend(tmp_path / "model", tmp_path / name, users=users, executor=pieces)
    with pytest.raises(ConfigError, match="histories and users were both given"):
        recommend(tmp_path / "model", tmp_path / "lists", users=[1], histories=split.test.history)
    wanted = split.train.user_ids[[7, 3]]
    recommend(tmp_path / "model", tmp_path / "lists", k=2, users=wanted)
    assert written(tmp_path / "lists")["user_id"].to_pylist() == np.repeat(wanted, 2).tolist()


def test_users_who_depend_on_each_other_are_refused(split):
    joint = ll.ExADMM(factors=8, epochs=1, exposure_strength=1.0, fold_in="joint").fit(split.train)
    refuse_together(joint, unseen=False)
    with pytest.raises(ConfigError, match="folded in together"):
        refuse_together(joint, unseen=True)
    with pytest.raises(ConfigError, match="by row number"):
        refuse_together(ll.Random().fit(split.train), unseen=True)
    for reranker in (ll.BestResponse(), ll.FairRec(), ll.Online()):
        with pytest.raises(ConfigError, match="for all users together"):
            refuse_together(reranker.over(joint), unseen=False)


def test_counts_of_parts_add_up_to_the_bits_of_the_whole():
    draw = np.random.default_rng(5)
    items, ranks = draw.integers(0, 9, 4000, dtype=np.int32), draw.integers(1, 40, 4000)
    whole = tally(items, ranks, 9)
    for cuts in ([1], [7, 1900], np.sort(draw.integers(0, 4000, 30))):
        parts = [
            count(*part, 9)
            for part in zip(np.split(items, cuts), np.split(ranks, cuts), strict=True)
        ]
        total = parts[0]
        for part in parts[1:]:
            total = total.plus(part)
        for ours, theirs in zip(astuple(total.tally()), astuple(whole), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    plain = np.bincount(items, 1 / np.log2(ranks + 1.0), 9)
    np.testing.assert_allclose(whole.weighted, plain, rtol=1e-13)


def test_what_is_no_executor_and_no_part_is_refused(split, tmp_path):
    ll.Popularity().fit(split.train).save(tmp_path / "model")
    with pytest.raises(ConfigError, match="not an executor: 'ray'"):
        recommend(tmp_path / "model", tmp_path / "lists.csv", executor="ray")
    with pytest.raises(ConfigError, match="not an executor: 'ray'"):
        ll.audit({"user_id": [1], "item_id": [2], "rank": [1]}, executor="ray")
    with pytest.raises(ConfigError, match="part is not a known choice: 'train'"):
        evaluate(tmp_path / "model", split, "train")
