"""``limelight plot``: the figures that a run has, in the format that was asked for."""

import pytest

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from limelight.cli import main

    folder = tmp_path_factory.mktemp("demo") / "run"
    size = ["--users", "300", "--items", "60", "--interactions", "4000", "--factors", "8"]
    with pytest.raises(SystemExit):
        main(["demo", "-o", str(folder), *size, "--json"])
    return folder


def test_every_figure_in_every_format(limelight, run, tmp_path):
    flags = [part for kind in STARTS for part in ("--as", kind)]
    ended = limelight("plot", run, "-o", tmp_path / "figures", *flags)
    assert ended.code == 0
    names = {"front", "lorenz", "exposure", "groups", "convergence"}
    written = list((tmp_path / "figures").iterdir())
    assert {file.name for file in written} == {f"{n}.{kind}" for n in names for kind in STARTS}
    for file in written:
        assert file.read_bytes().startswith(STARTS[file.suffix[1:]])


def test_one_figure_beside_the_run(limelight, run):
    assert limelight("plot", run, "--only", "lorenz").code == 0
    assert [file.name for file in (run / "figures").iterdir()] == ["lorenz.png"]


def test_a_front_without_groups(limelight, run, tmp_path):
    flags = ("--points", 3, "--factors", 4, "--epochs", 3, "--method", "best-response")
    limelight("frontier", run / "split", "-o", tmp_path / "front", *flags)
    ended = limelight("plot", tmp_path / "front", "--only", "groups")
    assert ended.code == 2
    assert "it has front, lorenz, exposure, convergence" in ended.err
    more = ("--only", "groups", "--groups", run / "providers.parquet", "-o", tmp_path / "more")
    assert limelight("plot", tmp_path / "front", *more).code == 0


def test_wrong_use(limelight, run, files, tmp_path):
    assert "nothing to show" in limelight("plot", files / "model").err
    (tmp_path / "file").touch()
    assert "not a folder" in limelight("plot", run, "-o", tmp_path / "file").err
    assert limelight("plot", run, "--as", "gif").code == 2
