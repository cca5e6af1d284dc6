"""``limelight fit --executor ray``: what it refuses, what it says before, what it makes."""

import json
import re
import sys

import pytest

import limelight as ll
from limelight.cli.fit import cluster as fit_cluster
from limelight.cli.fit.cluster import MANY, Watch, counted, estimated
from limelight.cli.flags.reading import Reading

RAY = ["--executor", "ray"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([*RAY, "--model", "popularity"], "only ials and exadmm are fitted on a cluster"),
        ([*RAY, "--gini", "0.5"], "a target is met on one machine"),
        ([*RAY, "--report", "page.html"], "a report is made on one machine"),
        ([*RAY, "--row-solver", "cg"], "needs --row-solver 'cholesky'"),
        ([*RAY, "--workers", "0"], "--workers must be at least 1: 0"),
        ([*RAY, "--workers", "5", "--shards", "4"], "--shards must be at least 5: 4"),
        ([*RAY, "--shards", "65537"], "--shards must be at most 65,536: 65537"),
        ([*RAY, "--checkpoint-every", "-1"], "--checkpoint-every"),
        ([*RAY, "--address", "127.0.0.1:1"], "cannot connect to a Ray cluster at '127.0.0.1:1'"),
        ([*RAY, "--address", "ray://x:1"], "the driver must be on a machine of the cluster"),
        (["--workers", "3"], "--workers is for a cluster"),
        (["--shards", "3"], "--shards is for a cluster"),
        (["--deterministic"], "--deterministic is for a cluster"),
        (["--dry-run"], "--dry-run is for a cluster"),
    ],
)
def test_what_is_refused(limelight, files, tmp_path, flags, message):
    if "--address" in flags:
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    code, out, err = limelight("fit", files / "split", *flags, "-o", tmp_path / "model")
    assert code in {1, 2}
    assert out == ""
    assert message in err
    assert "hint: " in err
    assert list(tmp_path.iterdir()) == []


def test_without_ray_it_says_what_to_install(limelight, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = limelight("fit", files / "split", *RAY, "-o", tmp_path / "model")
    assert code in {1, 2}
    assert "pip install 'limelight[ray]'" in err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_fits_nothing_and_needs_no_ray(limelight, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    flags = [*RAY, "--dry-run", "--workers", 4, "--factors", 12, "-o", tmp_path / "model"]
    code, out, _ = limelight("fit", files / "split", *flags)
    assert code == 0
    assert "4 machines, 16 shards" in out
    code, out, _ = limelight("fit", files / "split", *flags, "--json")
    assert code == 0
    record = json.loads(out)
    assert (record["users"], record["machines"], record["factors"]) == (150, 4, 12)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source", ["ratings.csv", "split"])
def test_a_few_rows_tell_about_how_many_there_are(files, source):
    found, expected = (count(files / source, Reading()) for count in (estimated, counted))
    assert found["n_users"] == pytest.approx(expected["n_users"], rel=0.3)
    assert found["n_items"] == pytest.approx(expected["n_items"], rel=0.3)
    # Rows that repeat a pair are counted once when all are read.
    assert expected["n_interactions"] <= found["n_interactions"] <= 4000


def test_a_dry_run_does_not_read_very_many_rows(files, monkeypatch):
    source, reading = files / "ratings.csv", Reading()
    assert counted(source, reading)["n_interactions"] < MANY
    monkeypatch.setattr(fit_cluster, "MANY", 100)
    assert counted(source, reading) == estimated(source, reading)


def test_the_driver_reads_no_table_and_measures_no_speed(limelight, files, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")

    def refuse(*_):
        pytest.fail("this is for a dry run alone")

    monkeypatch.setattr(Reading, "interactions", refuse)
    monkeypatch.setattr(fit_cluster, "this_machine", refuse)
    flags = [*RAY, "--address", "127.0.0.1:1", "-o", tmp_path / "model"]
    ended = limelight("fit", files / "ratings.csv", *flags)
    assert re.match(
        r"a machine holds about \S+ [kM]B and sends about \S+ k?B an epoch\n", ended.err
    )
    assert "cannot connect" in ended.err


def test_a_split_folder_takes_no_flags_of_reading(limelight, files, tmp_path):
    flags = [*RAY, "--user", "userId", "-o", tmp_path / "model"]
    ended = limelight("fit", files / "split", *flags)
    assert "a split folder is already filtered, it does not take: --user" in ended.err


def test_the_bar_does_not_go_back_when_epochs_are_done_again(capsys):
    news = {"phases": {"add": 1.0}, "traffic": {"exchange_rows": 3_000_000}}
    with Watch(ll.IALS(factors=8, epochs=4), workers=2) as watch:
        for rank, epoch in [(0, 1), (1, 1), (0, 2)]:
            watch(rank, epoch, news)
        watch(1, 1, {"lost": "killed"})
        for rank in (0, 1):
            watch(rank, 2, news)
    assert "worker 1 was lost (killed): going on from epoch 1" in capsys.readouterr().err
    assert watch.table().splitlines()[0].split() == ["worker", "add", "s", "exchange_rows", "MB"]
    assert [one["worker"] for one in watch.record()["workers"]] == [0, 1]
