"""A fit in shards, from files to a model folder, on ranks that are threads."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.models import MODELS

import limelight as ll
from limelight import ConfigError, DataError, LimelightError, SolveError
from limelight.cluster.checkpoint import MANIFEST
from limelight.cluster.collectives import run_locally
from limelight.cluster.fit import CheckpointOptions, fit_shards

EVERY_EPOCH = CheckpointOptions(every=0)
SHARDS = 6


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """A folder of three Parquet files."""
    folder = tmp_path_factory.mktemp("data")
    data = ll.marketplace(400, 120, 7000, seed=3).interactions
    users = np.repeat(np.arange(data.n_users), np.diff(data.indptr))
    for number, rows in enumerate(
        np.array_split(np.random.default_rng(0).permutation(data.nnz), 3)
    ):
        columns = {"user_id": users[rows], "item_id": data.indices[rows]}
        pq.write_table(pa.table(columns), folder / f"{number}.parquet")
    return folder


class KilledError(Exception):
    """A rank is lost."""


def local(size, *, deterministic=True, kill=None, stop=None):
    """Run ranks as threads; kill one of them at an epoch, or stop all after one."""

    def runtime(program, *, on_commit, on_news):
        def work(comm):
            program_of_rank = type(program)(
                program.model, program.source, program.reading, program.work,
                program.about, program.every,
            )  # fmt: skip
            program_of_rank.prepare(comm)
            return program_of_rank.run(comm)

        def news(rank, epoch, told):
            on_news(rank, epoch, told)
            if (rank, epoch) == kill:
                raise KilledError
            return epoch == stop

        return run_locally(
            work, size, SHARDS, deterministic=deterministic, on_commit=on_commit, on_news=news
        )

    return runtime


def fit(model, source, path, runtime, kept=EVERY_EPOCH, **more):
    return fit_shards(model, source, path, runtime, n_shards=SHARDS, checkpoints=kept, **more)


def arrays(path):
    learned = ll.load(path).learned
    return {**learned.arrays, "indptr": learned.seen.indptr, "indices": learned.seen.indices}


@pytest.mark.parametrize("name", MODELS)
def test_the_folder_is_that_of_one_machine(parts, tmp_path, name):
    model = MODELS[name]
    told = []
    ending = fit(model, parts, tmp_path / "many", local(3), on_news=lambda *one: told.append(one))
    assert ending.is_complete
    assert sorted({epoch for _, epoch, _ in told}) == list(range(1, model.config.epochs + 1))
    data = ll.read(parts)
    alone = type(model)(**model.get_params()).fit(data, show_progress=False)
    found = ll.load(tmp_path / "many")
    assert found.get_params() == alone.get_params()
    assert found.learned.fingerprint == alone.learned.fingerprint
    assert (found.user_ids == alone.user_ids).all()
    assert found.status_ == alone.status_
    np.testing.assert_array_equal(found.learned.seen.indices, alone.learned.seen.indices)
    for key in ("user_factors", "item_factors", "mean_user"):
        one, other = found.learned.arrays[key], alone.learned.arrays[key]
        assert np.linalg.norm(one - other) < 1e-5 * np.linalg.norm(other)
    assert not (tmp_path / "many.cluster").exists()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_lost_rank_and_another_number_of_ranks(parts, tmp_path, name, size):
    model, path = MODELS[name], tmp_path / "model"
    fit(model, parts, tmp_path / "undisturbed", local(3))
    with pytest.raises(KilledError):
        fit(model, parts, path, local(3, kill=(2, 4)))
    assert (tmp_path / "model.cluster" / MANIFEST).exists()
    fit(model, parts, path, local(size), CheckpointOptions(every=0, resume=True))
    expected = arrays(tmp_path / "undisturbed")
    for key, found in arrays(path).items():
        np.testing.assert_array_equal(found, expected[key])


def test_a_fit_that_is_stopped_goes_on(parts, tmp_path):
    model, path = MODELS["exact"], tmp_path / "model"
    seldom = CheckpointOptions(every=1e6)
    ending = fit(model, parts, path, local(2, stop=3), seldom)
    assert not ending.is_complete
    assert not path.exists()
    assert len(list((tmp_path / "model.cluster").glob("epoch-*"))) == 1
    fit(model, parts, path, local(2), CheckpointOptions(resume=True))
    fit(model, parts, tmp_path / "undisturbed", local(2))
    expected = arrays(tmp_path / "undisturbed")
    for key, found in arrays(path).items():
        np.testing.assert_array_equal(found, expected[key])


@pytest.mark.parametrize("kind", [ll.IALS, ll.ExADMM])
def test_auto_comes_to_the_same_on_many_machines(parts, tmp_path, kind):
    alone = kind(tolerance=2e-3, num_threads=1).fit(ll.read(parts), show_progress=False)
    model, path = kind(tolerance=2e-3, num_threads=1), tmp_path / "model"
    with pytest.raises(KilledError):
        fit(model, parts, path, local(3, kill=(2, 2)))
    fit(model, parts, path, local(2), CheckpointOptions(every=0, resume=True))
    found = ll.load(path)
    assert found.chosen_ == alone.chosen_
    assert set(found.chosen_) == {"factors", "regularization", "unobserved_weight"}
    assert (found.status_, found.trace_[-1].epoch) == (alone.status_, alone.trace_[-1].epoch)
    assert found.status_.name == "CONVERGED"


def test_a_fit_that_had_converged_is_not_taken_further(parts, tmp_path):
    model, path = ll.IALS(factors=4, epochs=60, tolerance=0.05, num_threads=1), tmp_path / "model"
    assert fit(model, parts, tmp_path / "undisturbed", local(2)).status.name == "CONVERGED"
    last = ll.load(tmp_path / "undisturbed").trace_[-1].epoch
    with pytest.raises(KilledError):
        fit(model, parts, path, local(2, kill=(0, last)))
    fit(model, parts, path, local(2), CheckpointOptions(every=0, resume=True))
    assert ll.load(path).trace_[-1].epoch == last
    ending = fit(model, parts, path, local(2, stop=last), CheckpointOptions(every=0))
    assert not ending.is_complete
    fit(model, parts, path, local(2), CheckpointOptions(every=0, resume=True))
    assert ll.load(path).trace_[-1].epoch == last


def test_two_fits_at_the_same_place_do_not_mix(parts, tmp_path):
    path = tmp_path / "model"

    def begin_another(rank, epoch, told):
        if (rank, epoch) == (0, 3):
            with pytest.raises(KilledError):
                fit(MODELS["ials"], parts, path, local(2, kill=(0, 1)))

    seldom = CheckpointOptions(every=1e6)
    with pytest.raises(LimelightError, match="another fit works at the same place"):
        fit(MODELS["ials"], parts, path, local(2), seldom, on_news=begin_another)
    assert not path.exists()


def test_two_checkpoints_are_kept(parts, tmp_path):
    with pytest.raises(KilledError):
        fit(MODELS["ials"], parts, tmp_path / "model", local(2, kill=(0, 6)))
    assert len(list((tmp_path / "model.cluster").glob("epoch-*"))) <= 3


def test_another_fit_is_not_gone_on_with(parts, tmp_path):
    path = tmp_path / "model"
    with pytest.raises(KilledError):
        fit(MODELS["ials"], parts, path, local(2, kill=(0, 4)))
    other = ll.IALS(factors=12, epochs=6, regularization=0.1)
    with pytest.raises(ConfigError, match="of another run, with regularization"):
        fit(other, parts, path, local(2), CheckpointOptions(resume=True))


def test_what_limelight_did_not_write_is_left_alone(parts, tmp_path):
    stranger = tmp_path / "model.cluster"
    stranger.mkdir()
    (stranger / "thesis.txt").touch()
    with pytest.raises(DataError, match="will not replace"):
        fit(MODELS["ials"], parts, tmp_path / "model", local(2))
    assert (stranger / "thesis.txt").exists()


def test_descent_is_refused(parts, tmp_path):
    with pytest.raises(ConfigError, match="row_solver"):
        fit(ll.IALS(row_solver="cg"), parts, tmp_path / "model", local(2))


def test_an_error_of_a_rank_reaches_who_started_the_fit(tmp_path):
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"user_id": [1], "thing": [2]}), tmp_path / "data" / "a.parquet")
    with pytest.raises(DataError, match="item"):
        fit(MODELS["ials"], tmp_path / "data", tmp_path / "model", local(2))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize(("error", "stays"), [(LimelightError, True), (SolveError, False)])
def test_work_is_kept_only_if_it_can_be_resumed(parts, tmp_path, error, stays):
    def news(rank, epoch, told):
        if epoch == 3:
            message = "something happened"
            raise error(message, hint="do something")

    with pytest.raises(error):
        fit(MODELS["ials"], parts, tmp_path / "model", local(2), on_news=news)
    assert (tmp_path / "model.cluster").exists() == stays
