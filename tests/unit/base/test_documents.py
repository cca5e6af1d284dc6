"""A table is one value, whoever reads it."""

from limelight._base.documents import Table, cut_middle

TABLE = Table(("who", "what", "how much"), [("a|b", None, 1234), ("c", True, 0.123456)], left=2)


def test_alignment() -> None:
    rows = [("", "users"), ("train", "12,000"), ("test", "")]
    assert Table((), rows).text("  ") == "          users\n  train  12,000\n  test"


def test_columns_to_the_left_and_to_the_right() -> None:
    assert TABLE.lines() == [
        "who  what  how much",
        "a|b           1,234",
        "c    True    0.1235",
    ]


def test_programs_get_unrounded_numbers() -> None:
    assert TABLE.csv() == "who,what,how much\na|b,,1234\nc,True,0.123456\n"


def test_a_bar_in_a_cell_does_not_end_it_in_markdown() -> None:
    assert TABLE.markdown().splitlines()[2] == r"| a\|b |  | 1,234 |"


def test_the_middle_of_many_rows_is_left_out() -> None:
    rows, gap = cut_middle(range(1025), "groups")
    assert (len(rows), rows[9], rows[10]) == (20, 9, 1015)
    assert gap == ["  (1,005 groups in between are left out)"]
