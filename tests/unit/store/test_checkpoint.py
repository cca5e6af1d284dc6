"""Checkpoints: whole or not at all, of this run and no other, and left alone by strangers."""

import json
import os
import shutil
import signal

import numpy as np
import pytest

import limelight as ll
from limelight._base.signals import Terminated, finishing, terminate
from limelight.cli.output import in_flags
from limelight.store.checkpoint import Checkpoint, Snapshot, checkpointing, until_done
from limelight.store.snapshot_fields import refuse_damaged

ABOUT = {"kind": "a fit", "data": "abc", "factors": 8}


def test_what_was_saved_comes_back(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", every=0)
    assert checkpoint.load(ABOUT) is None
    arrays = {"U": np.arange(6, dtype=np.float32).reshape(2, 3), "s": np.array([np.pi])}
    checkpoint.save({"epoch": 2}, arrays)
    checkpoint.save({"epoch": 3, "gap": float("inf")}, arrays)
    found = Checkpoint(tmp_path / "c").load(ABOUT)
    assert found.record == {"epoch": 3, "gap": float("inf")}
    for name, values in arrays.items():
        np.testing.assert_array_equal(found.arrays[name], values)
        assert found.arrays[name].dtype == values.dtype
    checkpoint.remove()
    assert not any(tmp_path.iterdir())


def test_another_run_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.load(ABOUT)
    checkpoint.save({}, {})
    with pytest.raises(ll.ConfigError, match="factors 8 instead of 16") as error:
        checkpoint.load(ABOUT | {"factors": 16})
    assert "delete the checkpoint" in error.value.hint
    assert "leave --resume out" in in_flags(error.value.hint)


def test_work_of_another_kind_is_refused(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.load(ABOUT)
    checkpoint.save({}, {})
    with pytest.raises(ll.ConfigError, match=r"is of a fit, not of ranked lists") as error:
        checkpoint.load(ABOUT | {"kind": "ranked lists"})
    assert "choose another output, or delete" in error.value.hint
    with pytest.raises(KeyError):
        checkpoint.load({"data": "abc"})


def test_a_refused_checkpoint_stays(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.load(ABOUT)
    checkpoint.save({"epoch": 1}, {})
    for about in ({"factors": 16}, {"kind": "ranked lists"}):
        with pytest.raises(ll.ConfigError), until_done(checkpoint):
            checkpoint.load(ABOUT | about)
    with pytest.raises(ll.DataError), until_done(checkpoint):
        refuse_damaged("has no epoch")
    assert checkpoint.load(ABOUT).record == {"epoch": 1}
    with pytest.raises(ll.SolveError), until_done(checkpoint):
        raise ll.SolveError("diverged")
    assert not checkpoint.exists


def test_another_version_is_refused(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.load(ABOUT)
    checkpoint.save({}, {})
    monkeypatch.setattr("limelight.store.checkpoint.package_version", lambda: "99")
    with pytest.raises(ll.ConfigError, match="limelight"):
        checkpoint.load(ABOUT)


def test_what_is_no_checkpoint_is_not_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").touch()
    with pytest.raises(ll.DataError, match="will not replace"):
        Checkpoint(tmp_path / "photos")


@pytest.mark.parametrize("text", ["", "[]", '{"about": 1, "record": {}}', '{"record": {}}'])
def test_a_damaged_checkpoint_is_named(tmp_path, text):
    checkpoint = Checkpoint(tmp_path / "c")
    checkpoint.load(ABOUT)
    checkpoint.save({}, {})
    (tmp_path / "c" / "checkpoint.json").write_text(text)
    with pytest.raises(ll.DataError, match="cannot read the checkpoint"):
        checkpoint.load(ABOUT)


def test_saves_are_as_far_apart_as_asked(tmp_path):
    assert Checkpoint(tmp_path / "c", every=0).is_due()
    assert not Checkpoint(tmp_path / "c", every=60).is_due()


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]
)
def test_a_signal_waits_for_the_end_of_the_work(number, kind):
    before = signal.signal(signal.SIGTERM, terminate)
    done = []
    try:
        with pytest.raises(kind), finishing() as is_asked:
            assert not is_asked()
            os.kill(os.getpid(), number)
            done.append(is_asked())
        assert done == [True]
        assert signal.getsignal(signal.SIGTERM) is terminate
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_signal_that_ends_a_part_ends_the_whole():
    done = []
    with pytest.raises(KeyboardInterrupt), finishing():
        with finishing():
            os.kill(os.getpid(), signal.SIGINT)
        done.append("the part is not complete")
    assert done == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_signal_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt), finishing():
        os.kill(os.getpid(), signal.SIGINT)
        done.append(1)
        os.kill(os.getpid(), signal.SIGINT)
        done.append(2)
    assert done == [1]


def test_work_is_saved_before_a_signal_ends_it(tmp_path):
    checkpoint = Checkpoint(tmp_path / "c", every=1000)
    checkpoint.load(ABOUT)
    with pytest.raises(KeyboardInterrupt) as end, checkpointing(checkpoint) as keep:
        assert not keep(Snapshot, {"epoch": 1}, {})
        os.kill(os.getpid(), signal.SIGINT)
        assert keep(Snapshot, {"epoch": 2}, {})
    assert checkpoint.load(ABOUT).record == {"epoch": 2}
    assert "the same call goes on" in end.value.__notes__[0]


def test_without_a_checkpoint_nothing_waits():
    done = []
    with pytest.raises(KeyboardInterrupt), checkpointing(None) as keep:
        assert not keep(Snapshot, {}, {})
        os.kill(os.getpid(), signal.SIGINT)
        done.append(1)
    assert done == []


def stop_after(epochs):
    """Interrupt a fit in the callback of an epoch, as Ctrl-C would."""

    def callback(epoch, record):
        del record
        if epoch == epochs:
            os.kill(os.getpid(), signal.SIGINT)

    return callback


@pytest.fixture(scope="module")
def data():
    return ll.marketplace(400, 80, 5000, seed=3).interactions


def unfitted():
    return ll.ExADMM(factors=6, epochs=6, exposure_strength=0.3, solver="admm", trace_every=1)


MODELS = {
    "ials": ll.IALS(factors=6, epochs=9, trace_every=2),
    "cg": ll.IALS(factors=6, epochs=9, row_solver="cg"),
    "exact": ll.ExADMM(factors=6, epochs=9, exposure_strength=0.3),
    "admm": ll.ExADMM(factors=6, epochs=9, exposure_strength=0.3, solver="admm", trace_every=4),
    "rate": ll.ExADMM(factors=6, epochs=9, exposure_weight=1e-6, learning_rate=0.01, penalty=1e-4),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("epoch", [1, 4, 8])
def test_a_fit_goes_on_to_the_same_bits(name, epoch, data, tmp_path):
    model = MODELS[name]
    whole = type(model)(**model.get_params()).fit(data, show_progress=False)
    again = type(model)(**model.get_params())
    place = tmp_path / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        again.fit(data, checkpoint=place, callback=stop_after(epoch), show_progress=False)
    assert json.loads((place / "checkpoint.json").read_text())["record"]["epoch"] == epoch
    again.fit(data, checkpoint=place, show_progress=False)
    for array in whole.learned.arrays:
        np.testing.assert_array_equal(again.learned.arrays[array], whole.learned.arrays[array])
    assert again.status_ == whole.status_
    traces = [[(r.epoch, r.objective, r.residual_U) for r in m.trace_] for m in (whole, again)]
    assert traces[0] == traces[1]


def test_a_fit_of_targets_or_other_starts_is_another_one(data, tmp_path):
    place = tmp_path / "fit.checkpoint"
    model = ll.ExADMM(factors=6, epochs=9, exposure_strength=0.3)
    rng = np.random.default_rng(0)
    init = rng.normal(size=(data.n_users, 6)), rng.normal(size=(data.n_items, 6))
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, checkpoint=place, callback=stop_after(2), init=init)
    with pytest.raises(ll.ConfigError, match="init"):
        model.fit(data, checkpoint=place)
    with pytest.raises(ll.ConfigError, match="targets"):
        wanted = ll.ExposureTargets(targets=np.ones(data.n_items))
        model.fit(data, checkpoint=place, init=init, exposure=wanted)
    other = ll.marketplace(400, 80, 5001, seed=4).interactions
    with pytest.raises(ll.ConfigError, match="data"):
        model.fit(other, checkpoint=place, init=init)


def test_threads_may_differ(data, tmp_path):
    place = tmp_path / "fit.checkpoint"
    whole = ll.ExADMM(factors=6, epochs=6, exposure_strength=0.1, num_threads=2).fit(data)
    model = ll.ExADMM(factors=6, epochs=6, exposure_strength=0.1, num_threads=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, checkpoint=place, callback=stop_after(3))
    model = ll.ExADMM(factors=6, epochs=6, exposure_strength=0.1, num_threads=2)
    np.testing.assert_array_equal(
        model.fit(data, checkpoint=place).user_factors, whole.user_factors
    )


def test_a_checkpoint_of_other_sizes_or_numbers_is_refused(data, tmp_path):
    from limelight.store.arrays import load_arrays, save_arrays

    place = tmp_path / "fit.checkpoint"
    model = ll.IALS(factors=6, epochs=6)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, checkpoint=place, callback=stop_after(3))
    file = place / "checkpoint.safetensors"
    arrays = load_arrays(file)
    save_arrays(file, arrays | {"U": arrays["U"][:-1]})
    with pytest.raises(ll.DataError, match="no U of this work"):
        model.fit(data, checkpoint=place)
    save_arrays(file, arrays | {"V": np.full_like(arrays["V"], np.nan)})
    with pytest.raises(ll.DataError, match="not finite"):
        model.fit(data, checkpoint=place)


def without(record, name):
    return {key: value for key, value in record.items() if key != name}


DAMAGE = {
    "epoch": lambda r: without(r, "epoch"),
    "epoch below 0": lambda r: r | {"epoch": -1},
    "a half epoch": lambda r: r | {"epoch": 1.5},
    "too many epochs": lambda r: r | {"epoch": 7},
    "epoch in words": lambda r: r | {"epoch": "3"},
    "penalty": lambda r: r | {"penalty": None},
    "seconds": lambda r: r | {"seconds": float("inf")},
    "objective": lambda r: r | {"objective": float("nan")},
    "no trace": lambda r: without(r, "trace"),
    "a trace of words": lambda r: r | {"trace": ["epoch"]},
    "a trace of other numbers": lambda r: r | {"trace": [{"epoch": 1, "ndcg": 0.5}]},
    "a trace out of order": lambda r: r | {"trace": r["trace"][::-1]},
    "a trace of later epochs": lambda r: r | {"epoch": 1},
}


@pytest.fixture(scope="module")
def interrupted(data, tmp_path_factory):
    """Return the checkpoint of a fit that was interrupted after three epochs."""
    place = tmp_path_factory.mktemp("interrupted") / "fit.checkpoint"
    with pytest.raises(KeyboardInterrupt):
        unfitted().fit(data, checkpoint=place, callback=stop_after(3))
    return place


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_every_number_of_a_checkpoint_is_checked(damage, data, interrupted, tmp_path):
    place = shutil.copytree(interrupted, tmp_path / "c")
    stored = json.loads((place / "checkpoint.json").read_text())
    stored["record"] = damage(stored["record"])
    (place / "checkpoint.json").write_text(json.dumps(stored))
    with pytest.raises(ll.DataError, match="the checkpoint has") as error:
        unfitted().fit(data, checkpoint=place)
    assert "delete it to start from the beginning" in error.value.hint
    assert place.is_dir()


def test_every_array_of_a_checkpoint_is_checked(data, interrupted, tmp_path):
    from limelight.store.arrays import load_arrays, save_arrays

    place = shutil.copytree(interrupted, tmp_path / "c")
    file = place / "checkpoint.safetensors"
    arrays = load_arrays(file)
    assert {"U", "V", "s", "w", "gramian_U", "curvature"} <= arrays.keys()
    for name, array in arrays.items():
        for other in (array[:-1], array.astype(np.float16), np.full_like(array, np.nan)):
            save_arrays(file, arrays | {name: other})
            with pytest.raises(ll.DataError, match="the checkpoint"):
                unfitted().fit(data, checkpoint=place)
    save_arrays(file, arrays | {"pending_steps": arrays["curvature"]})
    with pytest.raises(ll.DataError, match="no pending_h"):
        unfitted().fit(data, checkpoint=place)
