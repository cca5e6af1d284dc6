"""The commands in pieces: the flags, and the same files as on one machine."""

import json

import pyarrow.parquet as pq
import pytest

import limelight as ll
from limelight._base.executor import LocalExecutor
from limelight.cli import frame, main


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A split, and a model of it."""
    folder = tmp_path_factory.mktemp("files")
    split = ll.split_users(ll.marketplace(400, 60, 5000).interactions, validation=20, test=60)
    split.save(folder / "split")
    ll.ExADMM(factors=8, epochs=3, exposure_strength=0.5).fit(split.train).save(folder / "model")
    return folder


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command whose cluster is this process; return its code, its JSON and its errors."""

    class Here(LocalExecutor):
        parallel = True

        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("limelight.cluster.ray.executor.RayExecutor", Here)

    def run(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return end.value.code or 0, json.loads(out) if out.startswith("{") else out, err

    return run


def test_recommend(run, files, tmp_path):
    code, one, _ = run("recommend", files / "model", "-k", 5, "-o", tmp_path / "one", "--json")
    assert code == 0
    code, many, _ = run(
        "recommend",
        files / "model",
        "-k",
        5,
        "-o",
        tmp_path / "many",
        "--executor",
        "ray",
        "--json",
    )
    assert code == 0
    assert {**many, "output": "", "seconds": 0} == {**one, "output": "", "seconds": 0}
    assert pq.read_table(tmp_path / "many").equals(pq.read_table(tmp_path / "one"))
    assert not list(tmp_path.glob("*.checkpoint"))


def test_recommend_to_unseen_users(run, files, tmp_path):
    rows = ["user_id,item_id", *(f"n{user},{user % 7}" for user in range(30))]
    (tmp_path / "new.csv").write_text("\n".join(rows))
    asked = ("recommend", files / "model", "-k", 5, "--history", tmp_path / "new.csv", "--json")
    _, one, _ = run(*asked, "-o", tmp_path / "one")
    code, many, _ = run(*asked, "-o", tmp_path / "many", "--executor", "ray")
    assert code == 0
    assert {**many, "output": "", "seconds": 0} == {**one, "output": "", "seconds": 0}


def test_evaluate(run, files):
    asked = ("evaluate", files / "model", files / "split", "-k", 5, "--json")
    code, many, _ = run(*asked, "--executor", "ray", "--workers", 2)
    assert code == 0
    assert many == run(*asked)[1]


def test_audit(run, files, tmp_path):
    run("recommend", files / "model", "-k", 5, "-o", tmp_path / "lists")
    asked = ("audit", tmp_path / "lists", "--catalogue", files / "model/items.parquet", "--json")
    code, many, _ = run(*asked, "--executor", "ray", "--report", tmp_path / "page.html")
    one = run(*asked)[1]
    assert code == 0
    assert (tmp_path / "page.html").exists()
    is_bound = [name.endswith(("_low", "_high")) for name in one]
    for name, bound in zip(one, is_bound, strict=True):
        assert many[name] == (pytest.approx(one[name], rel=1e-9) if bound else one[name])
    code, _, err = run(*asked, "--executor", "ray", "--against", tmp_path / "lists")
    assert code == 2
    assert "one list for each user: --against" in err


def test_rerank(run, files, tmp_path):
    asked = ("rerank", files / "model", "--gini", 0.3, "-k", 5, "--json")
    code, many, _ = run(
        *asked, "-o", tmp_path / "many", "--executor", "ray", "--report", tmp_path / "page.html"
    )
    assert code == 0
    assert many["gini@5"] == pytest.approx(0.3, abs=0.003)
    assert pq.read_table(tmp_path / "many").num_rows == 5 * many["users"]
    one = run(*asked, "-o", tmp_path / "one")[1]
    assert many["gini@5_before"] == one["gini@5_before"]
    assert many["relevance_loss"] == pytest.approx(one["relevance_loss"], abs=0.005)
    assert not list(tmp_path.glob("*.checkpoint"))


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["-o", "lists.csv"], "writes a folder of parts: lists.csv"),
        (["-o", "lists", "--held-out", "x.csv"], "does not take --held-out: x.csv"),
        (["-o", "lists", "--method", "fairrec"], "lets users take turns, item by item"),
    ],
)
def test_rerank_flags_that_do_not_fit(run, files, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("rerank", files / "model", "--gini", 0.3, "--executor", "ray", *flags)
    assert code == 2
    assert said in err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--workers", 2], "--workers is for a cluster: 2"),
        (["--address", "auto"], "--address is for a cluster: auto"),
        (["--executor", "ray"], "writes a folder of parts: no -o was given"),
        (["--executor", "ray", "-o", "lists.csv"], "writes a folder of parts: lists.csv"),
        (["--executor", "ray", "--user-id", 1, "-o", "lists"], "for all users, not for some: 1"),
    ],
)
def test_flags_that_do_not_fit(run, files, flags, said):
    code, _, err = run("recommend", files / "model", *flags)
    assert code == 2
    assert said in err


def test_where_work_is_done():
    assert not frame.ExecutorFlags().check()
    assert frame.ExecutorFlags(frame.Where.ray).check()


def test_a_missing_extra(monkeypatch, files, tmp_path, capsys):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SystemExit) as end:
        main(
            ["recommend", str(files / "model"), "--executor", "ray", "-o", str(tmp_path / "lists")]
        )
    assert end.value.code == 2
    assert "pip install 'limelight[ray]'" in capsys.readouterr().err
