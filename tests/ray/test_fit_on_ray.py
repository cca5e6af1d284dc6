"""``limelight fit --executor ray`` on a real cluster: to the end, and stopped and resumed."""

import json
import signal

import numpy as np
from tests.support.commands import run_limelight, start_limelight, wait_for

import limelight as ll

MODEL = ("--factors", 8, "--epochs", 14, "--tolerance", 0)
FLAGS = (*MODEL, "--workers", 2, "--shards", 5, "--deterministic", "--json")


def test_a_fit_and_one_that_is_interrupted_and_resumed(files, tmp_path, nodes):
    fit = ["fit", files / "split", "--executor", "ray", "--address", nodes.address, *FLAGS]
    done = run_limelight(*fit, "--resume", "-o", tmp_path / "whole")
    assert done.returncode == 0, done.stderr
    assert "There is nothing to resume" in done.stderr
    assert "a machine holds about" in done.stderr
    record = json.loads(done.stdout)
    assert record["users"] == 150
    assert [one["worker"] for one in record["workers"]] == [0, 1]
    whole = ll.load(tmp_path / "whole")
    alone = ll.ExADMM(factors=8, epochs=14, tolerance=0.0)
    alone.fit(ll.Split.load(files / "split").train)
    assert np.abs(whole.user_factors - alone.user_factors).max() < 1e-4

    cut = [*fit, "--checkpoint-every", "0", "-o", tmp_path / "cut"]
    with start_limelight(*cut) as process:
        wait_for(tmp_path / "cut.cluster" / "manifest.json", process)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert "--resume" in err
    assert not (tmp_path / "cut").exists()
    # With another number of workers, to the same bits.
    done = run_limelight(*cut, "--resume", "--workers", "3")
    assert done.returncode == 0, done.stderr
    for name, array in whole.learned.arrays.items():
        np.testing.assert_array_equal(ll.load(tmp_path / "cut").learned.arrays[name], array)
