"""``limelight fit --executor ray``: what it refuses, what it says before, what it makes."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import limelight as ll
from limelight.cli import main
from limelight.cli.fit_cluster import MANY, Watch, sizes
from limelight.cli.options import Reading

RAY = ["--executor", "ray"]


@pytest.fixture
def run(capsys):
    def command(*arguments):
        with pytest.raises(SystemExit) as end:
            main([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return command


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
def test_what_is_refused(run, files, tmp_path, flags, message):
    if "--address" in flags:
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")
    code, out, err = run("fit", files / "split", *flags, "-o", tmp_path / "model")
    assert code in {1, 2}
    assert out == ""
    assert message in err
    assert "hint: " in err
    assert list(tmp_path.iterdir()) == []


def test_without_ray_it_says_what_to_install(run, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = run("fit", files / "split", *RAY, "-o", tmp_path / "model")
    assert code in {1, 2}
    assert "pip install 'limelight[ray]'" in err
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_fits_nothing_and_needs_no_ray(run, files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    flags = [*RAY, "--dry-run", "--workers", 4, "--factors", 12, "-o", tmp_path / "model"]
    code, out, _ = run("fit", files / "split", *flags)
    assert code == 0
    assert "4 machines, 16 shards" in out
    code, out, _ = run("fit", files / "split", *flags, "--json")
    assert code == 0
    record = json.loads(out)
    assert (record["users"], record["machines"], record["factors"]) == (150, 4, 12)
    assert list(tmp_path.iterdir()) == []


def test_very_many_rows_are_guessed(files, monkeypatch):
    source, reading = files / "ratings.csv", Reading()
    counted = sizes(source, reading)
    assert counted["n_interactions"] < MANY
    monkeypatch.setattr("limelight.cli.fit_cluster.MANY", 100)
    guessed = sizes(source, reading)
    assert set(guessed) == {"n_users", "n_items", "n_interactions"}
    assert guessed["n_users"] == pytest.approx(counted["n_users"], rel=0.3)


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


@pytest.mark.slow
class TestOnRay:
    """Commands in processes of their own, each with a cluster of this machine."""

    FIT = ("--factors", "8", "--epochs", "6", "--workers", "2", "--shards", "5", "--deterministic")

    @pytest.fixture(autouse=True)
    def _ray(self):
        pytest.importorskip("ray", reason="Ray is not installed: pip install 'limelight[ray]'")

    @staticmethod
    def command(*arguments):
        return [sys.executable, "-m", "limelight", *map(str, arguments)]

    def test_a_fit_and_one_that_is_interrupted_and_resumed(self, files, tmp_path):
        fit = self.command("fit", files / "split", *RAY, *self.FIT, "--json")
        done = subprocess.run(
            [*fit, "-o", tmp_path / "whole"], capture_output=True, text=True, check=True
        )
        record = json.loads(done.stdout)
        assert record["users"] == 150
        assert [one["worker"] for one in record["workers"]] == [0, 1]
        assert "a machine holds about" in done.stderr
        alone = ll.ExADMM(factors=8, epochs=6).fit(ll.Split.load(files / "split").train)
        found = ll.load(tmp_path / "whole")
        assert np.abs(found.user_factors - alone.user_factors).max() < 1e-4

        many = [*fit, "--checkpoint-every", "0", "--epochs", "14", "-o", str(tmp_path / "cut")]
        process = subprocess.Popen(many, stderr=subprocess.PIPE, text=True)
        manifest = tmp_path / "cut.cluster" / "manifest.json"
        while not manifest.exists():
            assert process.poll() is None
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 143, err
        assert "--resume" in err
        assert not (tmp_path / "cut").exists()
        # With another number of workers, to the same bits.
        subprocess.run([*many, "--resume", "--workers", "3"], check=True, capture_output=True)
        fresh = [*fit, "--epochs", "14", "-o", str(tmp_path / "same"), "--resume"]
        done = subprocess.run(fresh, check=True, capture_output=True, text=True)
        assert "There is nothing to resume" in done.stderr
        for name, array in ll.load(tmp_path / "same").learned.arrays.items():
            np.testing.assert_array_equal(ll.load(tmp_path / "cut").learned.arrays[name], array)
