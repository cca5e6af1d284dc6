"""Processes that serve the same stream: one after the other, and none writes to another's model."""

import fcntl
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.commands import run_python, start_limelight

import limelight as ll

K, N_USERS = 10, 300


@pytest.fixture(scope="module")
def stream():
    data = ll.marketplace(N_USERS, 60, 5000, seed=1).interactions
    found = ll.fit_to(data, gini=0.5, at=K, model=ll.Popularity(), serve="stream")
    return found.model


@pytest.fixture
def folder(stream, tmp_path):
    stream.fresh().save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def held(folder):
    """The lock of the folder, as a process has it that serves."""
    with (folder / "control.json").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def asking(folder, name, users):
    """Start a process that serves some users, and wait until it waits."""
    table = folder.with_name(f"{name}.csv")
    table.write_text("\n".join(["user_id", *map(str, users)]) + "\n")
    lists = folder.with_name(f"{name}.parquet")
    process = start_limelight(
        "recommend", folder, "-k", K, "--users", table, "--threads", 1, "-o", lists
    )
    said = []
    for line in process.stderr:
        said.append(line)
        if "this one waits until it is done" in line:
            return process, lists
    process.wait()
    pytest.fail(f"the process did not wait: {said}")


def listed(file):
    rows = pq.read_table(file).to_pandas().sort_values(["user_id", "rank"])
    return {user: tuple(items) for user, items in rows.groupby("user_id").item_id}


def test_two_at_once_wait_for_each_other_and_both_count(folder, held, stream):
    parts = {"first": range(150), "second": range(100, 250)}
    running = {name: asking(folder, name, users) for name, users in parts.items()}
    assert not folder.with_name("first.parquet").exists()
    fcntl.flock(held, fcntl.LOCK_UN)
    for process, _ in running.values():
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    made = {name: listed(lists) for name, (_, lists) in running.items()}
    assert [len(made[name]) for name in parts] == [150, 150]
    for user in range(100, 150):
        assert made["first"][user] == made["second"][user]
    after = ll.load(folder)
    assert after.reranker.served_ == stream.reranker.served_ + 250
    kept = {user: tuple(after.lists.ids[user]) for user in range(250)}
    assert kept == made["first"] | made["second"]
    assert (after.lists.ids[250:] == -1).all()


def test_who_waited_for_a_model_that_was_replaced_serves_with_the_new_one(folder, held, stream):
    process, lists = asking(folder, "late", range(20))
    stream.fresh().save(folder)
    fcntl.flock(held, fcntl.LOCK_UN)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    after = ll.load(folder)
    assert after.reranker.served_ == stream.reranker.served_ + 20
    assert {user: tuple(after.lists.ids[user]) for user in range(20)} == listed(lists)


def test_a_model_that_was_deleted_while_a_process_waited(folder, held):
    process, lists = asking(folder, "late", range(20))
    shutil.rmtree(folder)
    fcntl.flock(held, fcntl.LOCK_UN)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in errors
    assert "hint: " in errors
    assert not lists.exists()
    assert not folder.exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_who_waits_can_be_asked_to_end(folder, held, number, code):
    before = (folder / "control.safetensors").read_bytes()
    process, lists = asking(folder, "tired", range(20))
    process.send_signal(number)
    try:
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    assert not lists.exists()
    assert (folder / "control.safetensors").read_bytes() == before
    fcntl.flock(held, fcntl.LOCK_UN)


def test_who_only_reads_does_not_wait(folder, held, limelight):
    del held
    lists = folder.with_name("lists.parquet")
    ended = limelight("recommend", folder, "-k", K, "--no-update", "-o", lists)
    assert ended.code == 0
    assert "does not record these lists as served, because it was told not to" in ended.err
    assert len(listed(lists)) == N_USERS


AS_NOBODY = """
import os, sys
from limelight.jobs.recommend import recommend
# Nobody may read the modules that are imported late, so this is done once before.
recommend(sys.argv[1], sys.argv[2], k=10, update=False)
os.remove(sys.argv[2])
os.setuid(65534)
found = recommend(sys.argv[1], sys.argv[2], k=10, num_threads=1, note=print)
print(found["users"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become somebody else")
def test_a_folder_of_somebody_else_is_served_from_and_left_alone(stream):
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        place.chmod(0o755)
        (place / "out").mkdir(mode=0o777)
        (place / "out").chmod(0o777)
        stream.fresh().save(place / "model")
        before = {file.name: file.read_bytes() for file in (place / "model").iterdir()}
        ended = run_python(AS_NOBODY, place / "model", place / "out" / "lists.parquet")
        assert ended.stdout.splitlines() == [
            "The model does not record these lists as served, "
            "because its folder cannot be written.",
            "300",
        ], ended.stderr
        assert {file.name: file.read_bytes() for file in (place / "model").iterdir()} == before
