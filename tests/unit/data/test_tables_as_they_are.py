"""Tables as people have them: other names, separators, compressions, dates and missing values."""

import bz2
import gzip
import uuid
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from tests.support.page_data import page_data

import limelight as ll
from limelight.data.read import ReadOptions
from limelight.data.sources import open_parts

ROWS = [("ann", "x", 5), ("bob", "y", 4), ("ann", "y", 3)]


def pairs(data):
    users = np.repeat(np.asarray(data.user_ids), np.diff(data.indptr))
    return set(zip(users.tolist(), np.asarray(data.item_ids)[data.indices].tolist(), strict=True))


EXPECTED = {(user, item) for user, item, _ in ROWS}


def write(path, text):
    content = text.encode()
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(content))
        case ".bz2":
            path.write_bytes(bz2.compress(content))
        case ".zst":
            with pa.output_stream(path, compression="zstd") as out:
                out.write(content)
        case ".zip":
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("inside/ratings.csv", content)
        case _:
            path.write_bytes(content)
    return path


def rows(separator, header="user,item,weight"):
    lines = (
        [header, *(",".join(map(str, row)) for row in ROWS)]
        if header
        else [",".join(map(str, row)) for row in ROWS]
    )
    return "\n".join(lines).replace(",", separator) + "\n"


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.bz2", "csv.zst", "csv.zip", "zip", "txt"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|", "::"])
def test_separators_and_compressions(tmp_path, ending, separator):
    data = ll.read(write(tmp_path / f"r.{ending}", rows(separator)), weight="weight")
    assert pairs(data) == EXPECTED
    assert sorted(data.weights) == [3, 4, 5]


def test_a_separator_is_never_cut_in_two(tmp_path, monkeypatch):
    from limelight.data import files

    lines = "user::item\n" + "".join(f"{n}::{n % 17}\n" for n in range(5000))
    for size in (29, 30, 31, 64, 97):
        monkeypatch.setattr(files, "_TEXT_BYTES", size)
        data = ll.read(write(tmp_path / "r.dat", lines))
        assert data.nnz == 5000
        assert data.n_items == 17


def test_a_separator_that_is_named(tmp_path):
    path = write(tmp_path / "r.csv", 'user;item\n"a,b";c\n')
    assert pairs(ll.read(path, separator=";")) == {("a,b", "c")}
    with pytest.raises(ll.ConfigError, match="unknown separator: '#'"):
        ll.read(path, separator="#")


def test_a_file_without_a_header(tmp_path):
    path = write(tmp_path / "ratings.dat", "1::1193::5::978300760\n1::661::3::978302109\n")
    with pytest.raises(ll.DataError, match="no user and item columns") as caught:
        ll.read(path)
    assert "columns='user,item,rating,timestamp'" in str(caught.value)
    names = ["user", "item", "rating", "timestamp"]
    data = ll.read(path, columns=names, rating="rating", min_rating=4, timestamp="timestamp")
    assert pairs(data) == {(1, 1193)}
    assert ll.read(path, columns="user, item, rating, timestamp").nnz == 2
    with pytest.raises(ll.ConfigError, match="columns must be different names"):
        ll.read(path, columns=["user", "user"])


def test_names_for_another_number_of_columns(tmp_path):
    path = write(tmp_path / "ratings.dat", "1::1193::5::978300760\n")
    with pytest.raises(ll.DataError, match="has 4 columns, but 3 were named") as caught:
        ll.read(path, columns="user,item,rating")
    assert "what separates them is '::'" in str(caught.value)
    path = write(tmp_path / "quoted.csv", 'ann,"a, b"\n')
    assert pairs(ll.read(path, columns="user,item")) == {("ann", "a, b")}


def test_a_zip_of_several_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "ml.zip", "w") as archive:
        archive.writestr("a.csv", "user,item\n1,2\n")
        archive.writestr("b.csv", "user,item\n1,2\n")
    with pytest.raises(ll.DataError, match=r"must hold one text file, and .* holds 2"):
        ll.read(tmp_path / "ml.zip")


def test_a_file_that_is_no_zip(tmp_path):
    (tmp_path / "r.zip").write_bytes(b"user,item\n1,2\n")
    with pytest.raises(ll.DataError, match=r"cannot read .*r\.zip"):
        ll.read(tmp_path / "r.zip")


def test_days_before_months(tmp_path):
    path = write(tmp_path / "r.csv", "user,item,when\n1,2,31/01/2024\n1,3,01/02/2024\n")
    with pytest.raises(ll.DataError, match="time_format="):
        ll.read(path, timestamp="when")
    data = ll.read(path, timestamp="when", time_format="%d/%m/%Y")
    assert data.times.tolist() == [1706659200.0, 1706745600.0]
    with pytest.raises(ll.DataError, match="row 1: a timestamp must be written as '%m/%d/%Y'"):
        ll.read(path, timestamp="when", time_format="%m/%d/%Y")


@pytest.mark.parametrize(
    ("when", "hint"),
    [
        ("31/01/2024", "written: time_format='%d/%m/%Y'"),
        ("31/01/2024 05:30", "written: time_format='%d/%m/%Y %H:%M'"),
        ("31.01.2024", "written: time_format='%d.%m.%Y'"),
        ("01/31/2024 05:30:59", "written: time_format='%m/%d/%Y %H:%M:%S'"),
        ("01/02/2024", "written: time_format='%d/%m/%Y', or time_format='%m/%d/%Y'"),
        ("yesterday", "written: time_format='%d/%m/%Y'"),
    ],
)
def test_the_hint_has_the_format_of_the_time(tmp_path, when, hint):
    path = write(tmp_path / "r.csv", f"user,item,when\n1,2,{when}\n")
    with pytest.raises(ll.DataError) as refused:
        ll.read(path, timestamp="when")
    assert str(refused.value.hint).endswith(hint)
    if ":30" in when:
        with pytest.raises(ll.DataError) as refused:
            ll.read(path, timestamp="when", time_format="%d/%m/%Y")
        assert str(refused.value.hint).endswith(hint)


@pytest.mark.parametrize("bad", [None, float("nan"), -1.0])
def test_ratings_that_are_missing(bad):
    table = pa.table({"user": [1, 1, 2], "item": [1, 2, 1], "rating": [5.0, bad, 4.0]})
    with pytest.raises(ll.DataError, match="rating_missing='drop'"):
        ll.read(table, rating="rating")
    with pytest.warns(ll.LimelightWarning, match="left out 1 row without a rating"):
        data = ll.read(table, rating="rating", rating_missing="drop")
    assert pairs(data) == {(1, 1), (2, 1)}
    assert pairs(ll.read(table, rating="rating", min_rating=5)) == {(1, 1)}


def test_ratings_that_are_missing_in_text(tmp_path):
    path = write(tmp_path / "r.csv", "user,item,rating\n1,1,5\n1,2,\n2,1,NaN\n")
    assert pairs(ll.read(path, rating="rating", min_rating=1)) == {(1, 1)}


@pytest.mark.parametrize("word", ["NULL", "null", "None", "NA", "n/a", "nan", "\\N", " ", ""])
def test_words_for_a_missing_rating(tmp_path, word):
    path = write(tmp_path / "r.csv", f"user,item,rating\n1,1,5\n1,2,{word}\n")
    with pytest.raises(ll.DataError) as refused:
        ll.read(path, rating="rating")
    assert "rating_missing='drop'" in str(refused.value.hint)
    with pytest.warns(ll.LimelightWarning, match="left out 1 row without a rating"):
        assert pairs(ll.read(path, rating="rating", rating_missing="drop")) == {(1, 1)}


def test_a_rating_in_words_is_a_mistake_always(tmp_path):
    path = write(tmp_path / "r.csv", "user,item,rating\n1,1,5\n1,2,five\n")
    for more in ({}, {"rating_missing": "drop"}):
        with pytest.raises(ll.DataError, match=r"row 2: .*got: 'five'") as refused:
            ll.read(path, rating="rating", **more)
        assert refused.value.hint == "correct or drop such rows"


def test_an_infinite_rating_is_a_mistake_always():
    table = pa.table({"user": [1], "item": [1], "rating": [float("inf")]})
    with pytest.raises(ll.DataError, match="got: inf"):
        ll.read(table, rating="rating", min_rating=1)


def test_unknown_ways_with_missing_ratings():
    with pytest.raises(ll.ConfigError, match="unknown rating_missing: 'ignore'"):
        ll.read({"user": [1], "item": [1]}, rating_missing="ignore")


def test_floats_that_are_whole():
    data = ll.read(pd.DataFrame({"user": [1.0, 2.0], "item": [7.0, 7.0]}))
    assert data.user_ids.tolist() == [1, 2]
    with pytest.raises(ll.DataError, match="row 1: an id that is a number must be whole"):
        ll.read(pd.DataFrame({"user": [1e300], "item": [7.0]}))


def test_uuids():
    ids = [uuid.UUID(int=n) for n in (2, 1)]
    array = pa.array([one.bytes for one in ids], pa.uuid())
    data = ll.read(pa.table({"user": array, "item": [1, 1]}))
    assert data.user_ids.tolist() == sorted(map(str, ids))


def test_dicts():
    assert pairs(ll.read({"user": ["a"], "item": ["b"]})) == {("a", "b")}
    with pytest.raises(ll.DataError, match="cannot read a table from a dict"):
        ll.read({"user": ["a"], "item": ["b", "c"]})


def test_a_matrix_is_told_where_it_belongs():
    with pytest.raises(
        ll.DataError, match=r"(?s)a sparse matrix has no ids.*from_matrix\(matrix\)"
    ):
        ll.read(scipy.sparse.csr_matrix(np.eye(2)))


def test_two_columns_of_a_name():
    frame = pd.DataFrame([[1, 2, 3]], columns=["user", "item", "item"])
    with pytest.raises(ll.DataError, match="the frame has 2 columns named 'item'"):
        ll.read(frame)


LISTS = pa.table({"member": [1, 1, 2], "sku": ["a", "b", "a"], "position": [1, 2, 1]})


def test_lists_groups_and_catalogue_with_other_names(tmp_path):
    lists = ll.TableSource(LISTS, user="member", item="sku")
    items = pa.table({"sku": ["a", "b", "c"], "shop": ["x", None, ""], "label": ["A", "B", "C"]})
    pq.write_table(items, tmp_path / "items.parquet")
    table = ll.TableSource(tmp_path / "items.parquet", item="sku", group="shop", title="label")
    found = ll.audit(lists, catalogue=table, groups=table)
    assert found["coverage@2"] == pytest.approx(2 / 3)
    assert [group.group for group in found.groups] == ["x"]
    found.report(tmp_path / "page.html", catalogue=table)
    assert page_data(tmp_path / "page.html")["items"]["label"] == ["A", "B", "C"]


def test_names_that_are_not_there():
    with pytest.raises(ll.DataError, match="column not found in the frame: 'skew'"):
        ll.audit(ll.TableSource(LISTS, user="member", item="skew"))
    with pytest.raises(ll.ConfigError, match="item must be the name of a column"):
        ll.TableSource(LISTS, item=3)
    with pytest.raises(ll.ConfigError, match="cannot be the source of another"):
        ll.TableSource(ll.TableSource(LISTS))


def test_usual_names_of_groups():
    table = pa.table({"item": ["a"], "provider": ["x"], "seller": ["y"]})
    with pytest.raises(ll.DataError, match=r"the group column is not clear .*: provider, seller"):
        ll.read_groups(table, pa.array(["a"]))
    found = ll.read_groups(ll.TableSource(table, group="seller"), pa.array(["a"]))
    assert found.group_ids == ["y"]


def test_candidates_with_other_names():
    table = pa.table({"member": [1, 1], "sku": ["a", "b"], "points": [1.0, 2.0]})
    source = ll.TableSource(table, user="member", item="sku", score="points")
    with ll.read_candidates(source) as candidates:
        assert candidates.n_items == 2


def test_pairs_of_merit_with_other_names():
    lists = ll.TableSource(LISTS, user="member", item="sku")
    liked = ll.TableSource(pa.table({"who": [1], "what": ["a"]}), user="who", item="what")
    assert "merit_gini@2" in ll.audit(lists, merit=liked).metrics


def test_parts_are_opened_as_the_first_is_written(tmp_path):
    for n in range(2):
        write(tmp_path / f"part-{n}.csv.bz2", f"user;item\n{n};1\n")
    assert len(open_parts(tmp_path)) == 2
    assert ll.read(tmp_path).n_users == 2


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        (["UserID", "MovieID"], ("UserID", "MovieID")),
        (["User-ID", "ISBN", "Book-Rating"], ("User-ID", "ISBN")),
        (["userID", "artistID", "weight"], ("userID", "artistID")),
        (["visitorid", "event", "itemid"], ("visitorid", "itemid")),
        (["customer_id", "product", "sku"], ("customer_id", "sku")),
        (["user_id", "parent_asin"], ("user_id", "parent_asin")),
        (["reviewerID", "asin"], ("reviewerID", "asin")),
        (["item", "sku", "user"], ("user", "item")),
        (["user_id:token", "track_id:token"], ("user_id:token", "track_id:token")),
    ],
)
def test_names_of_published_tables(columns, found):
    table = pa.table({name: [n] for n, name in enumerate(columns)})
    opened = ReadOptions().open(table)
    assert (opened.names.user, opened.names.item) == found


def test_names_that_may_mean_two_things():
    table = pa.table({"user": [1], "trackid": [2], "artistid": [3]})
    with pytest.raises(ll.DataError, match=r"the item column is not clear .*: trackid, artistid"):
        ll.read(table)


def test_hints_say_how_tables_are_named_in_python(tmp_path):
    items = pa.table({"code": ["a"], "owner": ["x"]})
    lists = pa.table({"user": [1], "item": ["a"], "rank": [1]})
    with pytest.raises(ll.DataError, match=r"ll.TableSource\(\.\.\., item='\.\.\.'\)"):
        ll.audit(lists, groups=items)
    path = write(tmp_path / "lists.csv", "1,10,1\n1,11,2\n")
    with pytest.raises(ll.DataError, match=r"ll.TableSource\(\.\.\., columns='user,item,rank'\)"):
        ll.audit(path)
    assert ll.audit(ll.TableSource(path, columns="user,item,rank")).users == 1
    with pytest.raises(ll.DataError, match="columns='user,item,score'"):
        ll.read_candidates(path)


def test_a_file_with_more_columns_than_usual_and_no_header(tmp_path):
    path = write(tmp_path / "r.csv", "1,2,3,4,5\n")
    with pytest.raises(ll.DataError, match="columns='user,item,rating,timestamp,column5'"):
        ll.read(path)
    assert ll.read(path, columns="user,item,rating,timestamp,column5").nnz == 1


def test_lists_with_days_before_months():
    days = ["31/01/2024", "01/02/2024"]
    lists = {"user": [1, 1], "item": ["a", "b"], "rank": [1, 1], "day": days}
    found = ll.audit(ll.TableSource(lists, time_format="%d/%m/%Y"), timestamp="day", every="month")
    assert [str(period.start)[:7] for period in found.periods] == ["2024-01", "2024-02"]


@pytest.mark.parametrize("make", [ll.IALS, ll.ExADMM, ll.BestResponse, ll.FairRec])
def test_no_seed_is_the_usual_one(make):
    assert make(random_state=None).get_params() == make().get_params()
