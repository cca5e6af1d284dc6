"""Features of items, from tables and matrices."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy import sparse

from limelight._base.errors import DataError
from limelight.data.features import MOST, Encoding, read_item_features

FILMS = pa.table(
    {
        "item_id": np.arange(8),
        "genres": ["a|b", "a", "a | b", "b", None, "", None, "rare"],
        "tags": [["x"], ["x", "y", "x"], ["x"], [], None, None, ["y"], ["y"]],
        "year": [1990.0, 1991, 1992, 1993, 1994, None, None, np.nan],
    }
)


def by_name(found):
    """Return the features of every column by its name."""
    at, dense, parts = 1, found.matrix.toarray(), {}
    for column in found.encoding.columns:
        parts[column.name] = dense[:, at : at + column.width]
        at += column.width
    assert at == dense.shape[1] == 1 + found.encoding.width
    assert (dense[:, 0] == 1).all()
    return parts


def test_words_lists_and_numbers():
    parts = by_name(read_item_features(FILMS))
    indicators = [[1, 1], [1, 0], [1, 1], [0, 1], [0, 0], [0, 0], [0, 0], [0, 0]]
    missing = [0, 0, 0, 0, 1, 1, 1, 0]
    np.testing.assert_array_equal(parts["genres"], np.c_[indicators, missing])
    tags = [[1, 0], [1, 1], [1, 0], [0, 0], [0, 0], [0, 0], [0, 1], [0, 1]]
    np.testing.assert_array_equal(parts["tags"], np.c_[tags, [0, 0, 0, 1, 1, 1, 0, 0]])
    years = parts["year"]
    np.testing.assert_allclose(years[:5, 0], np.arange(-2, 3) / np.sqrt(2))
    np.testing.assert_array_equal(years[:, -1], [0, 0, 0, 0, 0, 1, 1, 1])
    assert not years[5:, :-1].any()
    assert (years[:5, 1:-1].sum(axis=1) == 1).all()  # one bin each


def test_a_text_file_is_read_like_a_frame(tmp_path):
    plain = FILMS.drop_columns(["tags"])
    pa.csv.write_csv(plain, tmp_path / "films.csv")
    text = read_item_features(tmp_path / "films.csv")
    frame = read_item_features(
        plain.set_column(2, "year", pa.array(FILMS["year"].to_pandas().tolist(), from_pandas=True))
    )
    np.testing.assert_array_equal(text.ids, frame.ids)
    np.testing.assert_allclose(text.matrix.toarray(), frame.matrix.toarray())


def test_dictionaries_and_truths_are_words():
    table = pa.table(
        {
            "item": [f"i{n}" for n in range(6)],
            "kind": pa.array(["a", "b"] * 3).dictionary_encode(),
            "new": [True, False] * 3,
        }
    )
    found = read_item_features(table)
    assert [column.words for column in found.encoding.columns] == [("a", "b"), ("false", "true")]
    assert found.ids[0] == "i0"


def test_later_items_are_read_as_the_first_were():
    first = read_item_features(FILMS)
    encoding = Encoding.of(first.encoding.record())
    assert encoding == first.encoding
    again = read_item_features(
        FILMS.select(["year", "tags", "genres", "item_id"]), encoding=encoding
    )
    np.testing.assert_array_equal(again.matrix.toarray(), first.matrix.toarray())
    new = pa.table({"item_id": [99], "genres": ["unheard of"], "tags": [["y"]], "year": [1890]})
    parts = by_name(read_item_features(new, encoding=encoding))
    assert not parts["genres"].any()
    np.testing.assert_array_equal(parts["tags"], [[0, 1, 0]])
    assert parts["year"][0, 1] == 1


def test_a_matrix_is_taken_as_it_is():
    F = np.arange(6.0).reshape(3, 2)
    for given in (F, sparse.csr_matrix(F), sparse.coo_array(F)):
        found = read_item_features(given, np.arange(3))
        np.testing.assert_array_equal(found.matrix.toarray(), np.c_[np.ones(3), F])
        assert str(found.encoding) == "2 numbers"


def test_of_too_many_words_the_rarest_are_left_out():
    words = [f"w{n % 1500}" for n in range(4500)] + [f"v{n % 1000}" for n in range(9000)]
    table = pa.table({"item": np.arange(len(words)), "word": words})
    found = read_item_features(table)
    assert found.encoding.width == 1000 < MOST


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (np.eye(4), "a row for each of 3 items: \\(4, 4\\)"),
        (np.ones(3), "a row for each of 3 items: \\(3,\\)"),
        (np.array([[1.0], [np.nan], [0.0]]), "must be finite: nan"),
        (np.array([["a"], ["b"], ["c"]]), "must be numbers"),
        (np.ones((3, 0)), "there are no item features"),
        (sparse.csr_matrix((3, MOST + 1)), "more than 2,048 item features"),
        (pa.table({"item_id": [1, 1], "a": [1, 2]}), "2 rows, but 1 different item\n"),
        (pa.table({"item_id": [1, 2]}), "no features beside 'item_id'"),
        (pa.table({"item_id": [1, 2], "a": ["x", "y"]}), "there are no item features"),
        (pa.table({"b": [1, 2], "a": [1, 2]}), "column not found in the frame: 'item_id'"),
        (pa.table({"item_id": [1, 2], "a": [1.0, np.inf]}), "column 'a': a feature must be finite"),
        (pa.table({"item_id": [1], "a": [[{"b": 1}]]}), "column 'a': a list of another kind"),
        (pa.table({"item_id": [1], "a": [{"b": 1}]}), "column 'a': a feature of another kind"),
        (pa.table({"item_id": pa.array([], pa.int64()), "a": pa.array([], pa.int64())}), "no rows"),
        ("missing.parquet", "no such file"),
        (7, "cannot read a table"),
    ],
)
def test_bad_features(given, match):
    with pytest.raises(DataError, match=match) as error:
        read_item_features(given, np.arange(3))
    assert error.value.hint


def test_features_of_another_kind_than_before():
    table = pa.table({"item_id": np.arange(6), "a": np.arange(6), "b": ["x"] * 6})
    encoding = read_item_features(table).encoding
    with pytest.raises(DataError, match="the model knows numbers here"):
        read_item_features(table.set_column(1, "a", table["b"]), encoding=encoding)
    with pytest.raises(DataError, match="column not found in the frame: 'a'"):
        read_item_features(table.drop_columns(["a"]), encoding=encoding)
    of_matrix = read_item_features(np.eye(3), np.arange(3)).encoding
    with pytest.raises(DataError, match="by a matrix of 3 numbers, not by a table"):
        read_item_features(table, encoding=of_matrix)
    with pytest.raises(DataError, match="knows items by other features: 3 numbers, not 2 numbers"):
        read_item_features(np.ones((3, 2)), np.arange(3), encoding=of_matrix)
    with pytest.raises(DataError, match="does not say which items"):
        read_item_features(np.eye(3))


@pytest.mark.parametrize(
    "record", [{}, {"columns": [1], "width": 2}, {"columns": [], "width": "x"}]
)
def test_a_description_that_nobody_wrote(record):
    with pytest.raises(DataError, match="described in an unknown way"):
        Encoding.of(record)
