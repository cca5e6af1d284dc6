"""``limelight frontier``: fronts of splits, and mistakes."""

from __future__ import annotations

WRONG_USE = 2
SMALL = ("--factors", 4, "--epochs", 8, "--points", 3, "--at", 5)


def test_a_front_of_a_split(limelight, files, tmp_path) -> None:
    flags = ("--method", "exadmm", "--method", "best-response", *SMALL, "-o", tmp_path / "front")
    ended = limelight("frontier", files / "split", *flags)
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert lines[0].startswith("The best of 6 points is ")
    assert lines[1].startswith("It costs ")
    title = "Frontier of exadmm and best-response, lists of 5; exposure over 200 users' lists"
    table = lines.index(title)
    assert [line.split()[:2] for line in lines[table + 2 : table + 5]] == [
        ["exadmm", "0"],
        ["exadmm-1", "0.1"],
        ["exadmm-2", "10"],
    ]
    assert ended.err == f"written to {tmp_path / 'front'}\n"
    assert (tmp_path / "front" / "frontier.parquet").is_file()
    again = limelight("frontier", files / "split", *flags)
    assert again.out == ended.out


def test_mistakes(limelight, files, tmp_path) -> None:
    ended = limelight("frontier", files / "split", "--method", "fairrec")
    assert ended.code == WRONG_USE
    assert "fairrec" in ended.err
    ended = limelight("frontier", files / "split", "--min-user", 5)
    assert ended.code == WRONG_USE
    assert "a split folder is already filtered, it does not take: --min-user" in ended.err
    flags = (*SMALL, "--method", "exadmm", "-o", tmp_path / "front")
    assert limelight("frontier", files / "split", *flags).code == 0
    ended = limelight("frontier", files / "split", *flags, "--seed", 1)
    assert ended.code == WRONG_USE
    assert "the folder holds another run, with --seed 0 instead of 1" in ended.err
