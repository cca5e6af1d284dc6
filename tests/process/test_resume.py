"""Real processes, real signals: what was asked to end can be taken up again, to the same bits."""

import errno
import json
import signal
import sys
import time

import numpy as np
import pytest
from tests.support.commands import start, start_limelight, wait_for

import limelight as ll
from limelight.store.arrays import load_arrays

FIT = (
    *("--epochs", "400", "--tolerance", "0", "--factors", "32", "--seed", "3", "--threads", "1"),
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    market = ll.marketplace(1500, 300, 40_000, seed=1).interactions
    ll.split_users(market, validation=100, test=100).save(folder / "split")
    return folder / "split"


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_fit_that_was_asked_to_end_goes_on(data, tmp_path, limelight, number, code, word):
    model, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    process = start_limelight("fit", data, "-o", model, *FIT, "--checkpoint-every", "0")
    wait_for(checkpoint, process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == code, errors
    assert word in errors
    assert "--resume goes on from here" in errors
    assert "Traceback" not in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.checkpoint"]
    other = limelight("fit", data, "-o", model, *FIT, "--regularization", "0.5", "--resume")
    assert other.code == 2
    assert "regularization" in other.err
    assert limelight("fit", data, "-o", model, *FIT, "--resume").code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert limelight("fit", data, "-o", tmp_path / "whole", *FIT).code == 0
    found, expected = (
        load_arrays(tmp_path / name / "factors.safetensors") for name in ("model", "whole")
    )
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_fit_that_was_ended_while_it_tuned_goes_on(data, tmp_path, limelight, number):
    model, kept = tmp_path / "model", tmp_path / "model.checkpoint"
    tune = ("fit", data, "--tune", "--trials", "40", "--threads", "1", "--seed", "3")
    process = start_limelight(*tune, "-o", model)
    wait_for(kept / "tuning" / "state" / "round-0-3.safetensors", process)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (130 if number == signal.SIGINT else -number), errors
    assert ("--resume goes on from here" in errors) == (number == signal.SIGINT)
    ended = limelight(*tune, "--resume", "-o", model)
    assert ended.code == 0
    assert "nothing to resume" not in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    assert limelight(*tune, "-o", tmp_path / "whole").code == 0
    found, expected = (
        load_arrays(tmp_path / name / "factors.safetensors") for name in ("model", "whole")
    )
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_without_resume_a_fit_starts_anew(data, tmp_path, limelight):
    quick = ("--epochs", "3", "--factors", "8", "--checkpoint-every", "0")
    (tmp_path / "model.checkpoint").mkdir()
    (tmp_path / "model.checkpoint" / "checkpoint.json").write_text("damaged")
    assert limelight("fit", data, "-o", tmp_path / "model", *quick, "--resume").code == 1
    assert limelight("fit", data, "-o", tmp_path / "model", *quick).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_nothing_to_resume_is_said(data, tmp_path, limelight):
    ended = limelight("fit", data, "-o", tmp_path / "model", "--epochs", 2, "--resume")
    assert ended.code == 0
    assert "nothing to resume" in ended.err


def test_a_target_goes_on_too(data, tmp_path, limelight):
    model, checkpoint = tmp_path / "model", tmp_path / "model.checkpoint"
    flags = ("--gini", "0.5", *FIT)
    process = start_limelight("fit", data, "-o", model, *flags, "--checkpoint-every", "0")
    wait_for(checkpoint, process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    assert limelight("fit", data, "-o", model, *flags, "--resume").code == 0
    assert limelight("fit", data, "-o", tmp_path / "whole", *flags).code == 0
    found, expected = (
        load_arrays(tmp_path / name / "factors.safetensors") for name in ("model", "whole")
    )
    np.testing.assert_array_equal(found["user_factors"], expected["user_factors"])


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A model of users who fill several batches."""
    folder = tmp_path_factory.mktemp("many")
    data = ll.marketplace(30_000, 200, 150_000, seed=2).interactions
    ll.IALS(factors=8, epochs=2).fit(data).save(folder / "model")
    return folder / "model"


@pytest.mark.parametrize("name", ["lists.parquet", "lists.csv", "lists"])
def test_lists_go_on_after_a_kill(many, tmp_path, limelight, monkeypatch, name):
    from limelight.store import lists as list_parts

    output = tmp_path / name
    kept = list_parts.ListParts.keep

    def keep_two(parts, ids, scores):
        if len(parts._files) == 2:
            raise KeyboardInterrupt
        return kept(parts, ids, scores)

    with monkeypatch.context() as patch:
        patch.setattr(list_parts.ListParts, "keep", keep_two)
        ended = limelight("recommend", many, "-o", output, "--checkpoint-every", 0)
    assert ended.code == 130
    assert "--resume" in ended.err
    checkpoint = tmp_path / f"{name}.checkpoint"
    assert len(list(checkpoint.glob("part-*"))) == 2
    other = limelight("recommend", many, "-o", output, "-k", 7, "--resume")
    assert "k 20 instead of 7" in other.err
    summary = limelight("recommend", many, "-o", output, "--resume").out
    assert [path.name for path in tmp_path.iterdir()] == [name]
    (tmp_path / "whole").mkdir()
    whole = limelight("recommend", many, "-o", tmp_path / "whole" / name).out
    assert summary.split("Gini")[1].split("\n")[0] == whole.split("Gini")[1].split("\n")[0]
    files = [output, tmp_path / "whole" / name]
    if output.is_dir():
        files = [file for folder in files for file in sorted(folder.iterdir())]
    one, other = (file.read_bytes() for file in files)
    assert one == other


def test_damaged_lists_are_named(many, tmp_path, limelight, monkeypatch):
    from limelight.store import lists as list_parts
    from limelight.store.arrays import save_arrays

    monkeypatch.setattr(list_parts.ListParts, "stored", list_parts.ListParts.stored)
    kept = list_parts.ListParts.keep
    monkeypatch.setattr(
        list_parts.ListParts, "keep", lambda parts, *lists: kept(parts, *lists) or len(parts._files)
    )
    limelight("recommend", many, "-o", tmp_path / "lists.parquet", "--checkpoint-every", 0)
    monkeypatch.undo()
    part = tmp_path / "lists.parquet.checkpoint" / "part-00000.safetensors"
    if part.exists():
        save_arrays(part, {"ids": np.zeros((2, 3))})
        ended = limelight("recommend", many, "-o", tmp_path / "lists.parquet", "--resume")
        assert ended.code == 1
        assert "damaged lists" in ended.err


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    folder = tmp_path_factory.mktemp("few")
    data = ll.marketplace(3000, 200, 30_000, seed=2).interactions
    ll.IALS(factors=8, epochs=2).fit(data).save(folder / "model")
    return folder / "model"


def test_a_search_that_was_asked_to_end_goes_on(few, tmp_path, limelight):
    lists, checkpoint = tmp_path / "lists", tmp_path / "lists.checkpoint"
    flags = ("--gini", "0.3", "-k", "10")
    process = start_limelight("rerank", few, "-o", lists, *flags)
    wait_for(checkpoint / "turn-00000.safetensors", process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 143, errors
    assert limelight("rerank", few, "-o", lists, *flags, "--resume").code == 0
    assert limelight("rerank", few, "-o", tmp_path / "whole", *flags).code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lists", "whole"]
    one, other = (tmp_path / name / "part-00000.parquet" for name in ("lists", "whole"))
    assert one.read_bytes() == other.read_bytes()


def test_a_front_that_was_asked_to_end_goes_on(data, tmp_path, limelight):
    front = tmp_path / "front"
    flags = ("--points", "3", "--factors", "8", "--epochs", "200", "--method", "best-response")
    flags += ("--tolerance", "0")
    process = start_limelight("frontier", data, "-o", front, *flags)
    wait_for(front / "state", process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert limelight("frontier", data, "-o", front, *flags, "--resume").code == 0
    assert not (front / "state" / "fit.checkpoint").exists()
    ended = limelight("frontier", data, *flags, "--resume")
    assert ended.code == 2
    assert "--resume needs the folder" in ended.err


def test_a_front_in_python_goes_on_after_a_kill(tmp_path):
    data = ll.marketplace(3000, 300, 90_000).interactions
    split = ll.split_users(data, validation=300, test=300)
    split.save(tmp_path / "split")
    methods = ("exadmm", "best-response")
    call = {"methods": methods, "points": 6, "factors": 16, "epochs": 80, "at": 10}
    call["tolerance"] = 0.0
    folder, state = tmp_path / "front", tmp_path / "front" / "state" / "notebook.json"
    code = (
        "import sys, limelight as ll;"
        f"ll.frontier(ll.Split.load(sys.argv[1]), folder=sys.argv[2], **{call})"
    )

    def results():
        return json.loads(state.read_text())["results"] if state.exists() else {}

    for least in (2, 4):
        with start([sys.executable, "-c", code, tmp_path / "split", folder]) as process:
            while len(results()) < least and process.poll() is None:
                time.sleep(0.002)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert not (folder / "frontier.json").exists()
    stored = results()
    found = ll.frontier(ll.Split.load(tmp_path / "split"), folder=folder, **call)
    one, other = (
        front.to_table().drop_columns(("seconds", "wall_seconds")).to_pydict()
        for front in (found, ll.frontier(split, **call))
    )
    assert one == other
    assert found.points[0].seconds == stored["plain-0"]["seconds"], "it was not fitted again"


def test_a_checkpoint_of_another_command_is_refused_and_stays(data, many, tmp_path, limelight):
    output, kept = tmp_path / "out", tmp_path / "out.checkpoint"
    process = start_limelight("recommend", many, "-o", output, "--checkpoint-every", "0")
    wait_for(kept / "part-00000.safetensors", process)
    process.kill()
    process.communicate(timeout=60)
    assert kept.is_dir()
    for command in (("fit", data, *FIT), ("fit", data, "--tune", "--trials", "4")):
        ended = limelight(*command, "-o", output, "--resume")
        assert ended.code == 2
        assert "is of ranked lists, not of a fit" in ended.err
        assert "leave --resume out" in ended.err
        assert kept.is_dir()


def test_a_checkpoint_that_cannot_be_removed_is_a_note(data, tmp_path, limelight, monkeypatch):
    def fails(checkpoint):
        if checkpoint.exists:
            raise OSError(errno.EIO, "")

    from limelight.store.checkpoint import Checkpoint

    monkeypatch.setattr(Checkpoint, "remove", fails)
    quick = ("--epochs", "2", "--factors", "4", "--checkpoint-every", "0", "--no-measure")
    ended = limelight("fit", data, "-o", tmp_path / "model", *quick)
    assert ended.code == 0
    assert "is done, but what was left over could not be tidied: Input/output" in ended.err
    assert (tmp_path / "model" / "config.json").exists()
    assert (tmp_path / "model.checkpoint").exists()
