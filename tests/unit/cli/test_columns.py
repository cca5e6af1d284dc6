"""Names of columns on the command line, and files of the shapes in which data sets come."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.page_data import page_data


@pytest.fixture
def typed(limelight):
    """Run a command as it is typed; it has no spaces within words."""
    return lambda *texts: limelight(*" ".join(texts).split())


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lists = {"member": [1, 1, 2, 2], "sku": ["a", "b", "a", "c"], "position": [1, 2, 1, 2]}
    pq.write_table(pa.table(lists), "lists.parquet")
    pq.write_table(pa.table(lists | {"points": [4.0, 3.0, 2.0, 1.0]}), "scores.parquet")
    items = {"sku": ["a", "b", "c", "d"], "shop": ["x", "y", None, "y"], "label": list("ABCD")}
    pq.write_table(pa.table(items), "items.parquet")
    other = {"item": ["a", "b", "c", "d"], "studio": ["x", "y", "x", "y"]}
    pq.write_table(pa.table(other), "other.parquet")


def test_audit_with_names_for_all_tables(tables, typed):
    ended = typed(
        "audit lists.parquet --user member --item sku --catalogue items.parquet",
        "--groups items.parquet --group shop",
    )
    assert ended.code == 0, ended.err
    assert "4 items" in ended.out
    assert "(no group)" in ended.out


def test_audit_with_names_for_one_table(tables, typed):
    flags = "audit lists.parquet --user member --item sku --groups other.parquet"
    ended = typed(flags, "--groups-group", "studio")
    assert ended.code == 0, ended.err
    ended = typed(flags, "--group", "shop")
    assert ended.code == 1
    assert "column not found in other.parquet: 'shop'" in ended.err


def test_rerank_with_names(tables, typed):
    names = "--user member --item sku --score points --of items.parquet --of-group shop"
    flags = "rerank scores.parquet --max-relevance-loss 50% -k 1 -o out.parquet"
    ended = typed(flags, names)
    assert ended.code == 0, ended.err
    ended = typed(flags)
    assert ended.code == 1
    assert "name it with --score '...'" in ended.err


def test_a_column_of_ratings_is_mentioned(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    table = {"user": [1, 1, 2], "item": [1, 2, 1], "rating": [1, 5, 4]}
    pq.write_table(pa.table(table), "ratings.parquet")
    from limelight.cli.flags.reading import Reading

    Reading().table(tmp_path / "ratings.parquet")
    assert "such as 4 of 5 stars: --rating rating --min-rating 4" in capfd.readouterr().err
    Reading(rating="rating").table(tmp_path / "ratings.parquet")
    assert "--min-rating" not in capfd.readouterr().err


def test_a_file_without_a_header(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ratings.dat").write_text("1::10::5::978300760\n2::10::4::978300761\n")
    ended = typed("data", "describe", "ratings.dat")
    assert ended.code == 1
    assert "--columns 'user,item,rating,timestamp'" in ended.err
    ended = typed("data", "describe", "ratings.dat", "--columns", "user,item,rating,timestamp")
    assert ended.code == 0, ended.err


def test_names_are_for_one_machine(tables, typed):
    ended = typed("rerank scores.parquet --user member --gini 0.5 --executor ray -o out")
    assert ended.code != 0
    assert "it does not take: --user" in ended.err


LIKES = [(user, item) for user in range(40) for item in range(12) if (3 * user + item) % 4]
STUDIOS = ["x", None, "y", "z", "y", None, "x", "y", "z", "x", "x", "y"]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A shop whose tables have other names, and a model of it."""
    monkeypatch.chdir(tmp_path)
    buyers, codes = zip(*LIKES, strict=True)
    skus = [f"sku-{code}" for code in range(12)]
    pq.write_table(pa.table({"buyer": buyers, "code": [skus[c] for c in codes]}), "orders.parquet")
    goods = {"code": skus, "owner": STUDIOS, "label": [f"Lamp {n}" for n in range(12)]}
    pq.write_table(pa.table(goods), "goods.parquet")
    (tmp_path / "sold_out.csv").write_text("code\nsku-1\nsku-2\n")
    (tmp_path / "sold_out.txt").write_text("1\n2\n")
    (tmp_path / "today.csv").write_text("buyer;city\n" + "".join(f"{n};Rome\n" for n in range(36)))
    (tmp_path / "log.csv").write_text(
        "buyer;asked\n" + "".join(f"{n % 40};{1 + n % 28:02}/02/2024\n" for n in range(60))
    )
    return tmp_path


FIT = "fit orders.parquet --user buyer --item code --factors 4 --epochs 2 -o model"


def test_fit_names_the_columns_of_all_its_tables(shop, typed):
    (shop / "shares.csv").write_text("owner,share\nx,0.5\ny,0.3\nz,0.2\n")
    target = "--groups goods.parquet --group owner --group-shares shares.csv --at 3 --nearest"
    ended = typed(FIT, target)
    assert ended.code == 0, ended.err
    target = "--gini 0.5 --of goods.parquet --of-group owner --for today.csv --at 3 --nearest"
    ended = typed(FIT, target)
    assert ended.code == 0, ended.err
    ended = typed(FIT.replace("fit", "fit --item-features goods.parquet", 1))
    assert ended.code == 0, ended.err


def test_fit_looks_at_groups_before_it_reads(shop, typed):
    ended = typed(FIT, "--gini 0.5 --of goods.parquet")
    assert ended.code == 1
    assert "reading" not in ended.err
    assert "name it with --of-group '...'; the columns are: code, owner, label" in ended.err


def test_frontier_names_the_users_of_its_population(shop, typed):
    flags = "frontier orders.parquet --item code --factors 4 --epochs 2 --points 3 --at 3"
    ended = typed(flags, "--user buyer --method exadmm --for today.csv --for-user buyer")
    assert ended.code == 0, ended.err
    assert "36 users' lists" in ended.out


def test_recommend_names_the_columns_of_its_lists_of_ids(shop, typed):
    assert typed(FIT).code == 0
    ended = typed("recommend model -k 12 --users today.csv --user buyer")
    assert ended.code == 0, ended.err
    assert {line.split(",")[0] for line in ended.out.split()[1:]} == {str(n) for n in range(36)}
    flags = "recommend model -k 12 --user-id 3 --keep-seen"
    for named in ("--item code", "--exclude-item code"):
        ended = typed(flags, "--exclude", "sold_out.csv", named)
        assert ended.code == 0, ended.err
        assert '"sku-1"' not in ended.out
        assert '"sku-0"' in ended.out
    ended = typed(flags, "--exclude", "sold_out.txt")
    assert ended.code == 1
    assert "if there is no header, name the columns: --exclude-columns 'item'" in ended.err


def test_recommend_has_no_use_for_names_without_tables(shop, typed):
    assert typed(FIT).code == 0
    ended = typed("recommend model --user buyer")
    assert ended.code == 2
    assert "nothing takes: --user" in ended.err


def test_report_and_plot_name_groups_and_titles(shop, typed):
    front = "frontier orders.parquet --user buyer --item code --factors 4 --epochs 2 --points 3"
    ended = typed(front, "--at 3 --method exadmm -o run")
    assert ended.code == 0, ended.err
    names = "--groups goods.parquet --item code --group owner"
    flags = "report run -o page.html --catalogue goods.parquet --title label"
    ended = typed(flags, names)
    assert ended.code == 0, ended.err
    assert "Lamp 3" in str(page_data(shop / "page.html"))
    ended = typed("plot run --only groups", names)
    assert ended.code == 0, ended.err
    ended = typed("report run --title label")
    assert ended.code == 2
    assert "--title is about a table that was not given: --catalogue" in ended.err


def test_replay_names_the_columns_of_its_log(shop, typed):
    assert typed(FIT).code == 0
    flags = "replay model log.csv --gini 0.9 --window 7d -k 3 --user buyer --timestamp asked"
    ended = typed(flags)
    assert ended.code == 1
    assert "--time-format '%d/%m/%Y'" in ended.err
    groups = "--groups goods.parquet --groups-item code --group owner --group-cap 90%"
    ended = typed(flags, "--time-format", "%d/%m/%Y", groups)
    assert ended.code == 0, ended.err
    assert "from 2024-02-01" in ended.out


def test_serve_names_the_columns_of_its_tables(shop, typed):
    from limelight.cli import serve
    from limelight.cli.flags.columns import TableColumns
    from limelight.serve.http.opening import load_arm
    from limelight.serve.http.settings import ServeSettings
    from limelight.serve.requests import Request

    assert typed(FIT).code == 0
    given = {"item": "code", "group": "owner", "catalogue_title": "label"}
    tables = {"groups": ("item", "group"), "catalogue": ("item", "title"), "never_show": ("item",)}
    named = TableColumns(given, (), tables).tables(
        groups="goods.parquet", catalogue="goods.parquet", never_show="sold_out.csv"
    )
    settings = serve._settings(
        {"model": "model"},
        serve.HeldTarget(),
        serve.LedgerFlags(),
        serve.ListenFlags(),
        split=None,
        k=3,
        candidates=None,
        tables=named,
    )
    found = load_arm(ServeSettings.from_json(settings.to_json()), "model")
    assert found.titles[0] == "Lamp 0"
    [answer] = found.engine.answer([Request(user=99, k=12)])
    assert "sku-1" not in answer.items
    assert "sku-0" in answer.items


def test_a_separator_is_that_of_the_main_table(tables, typed, tmp_path):
    (tmp_path / "lists.csv").write_text("user;item;rank\n1;a;1\n2;b;1\n")
    (tmp_path / "groups.csv").write_text("item,group\na,x\nb,y\n")
    flags = "audit lists.csv --separator ; --groups groups.csv"
    assert typed(flags).code == 0


def test_days_before_months_in_an_audit(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},a,1,{day}\n" for n, day in enumerate(["31/01/2024", "01/03/2024"]))
    (tmp_path / "lists.csv").write_text(f"user,item,position,shown\n{rows}")
    flags = "audit lists.csv --timestamp shown --every month --time-format %d/%m/%Y"
    ended = typed(flags)
    assert ended.code == 0, ended.err
    assert "2024-03" in ended.out


def test_movielens_as_published(tmp_path, monkeypatch, typed):
    """Ratings and titles with :: and without headers; a title may have a colon, too."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(0)
    rows = (f"{u + 1}::{i + 1}::{draw.integers(1, 6)}::{978300760 + u}\n" for u, i in LIKES)
    (tmp_path / "ratings.dat").write_text("".join(rows))
    films = (f"{n + 1}::Star Wars: Episode {n} (1977)::Action|Sci-Fi\n" for n in range(12))
    (tmp_path / "movies.dat").write_text("".join(films))
    ended = typed("data", "describe", "ratings.dat")
    assert ended.code == 1
    assert "--columns 'user,item,rating,timestamp'" in ended.err
    names = "--columns user,item,rating,timestamp"
    ended = typed("fit ratings.dat", names, "--model", "popularity", "-o", "model")
    assert ended.code == 0, ended.err
    assert typed("recommend", "model", "-k", "3", "-o", "lists.csv").code == 0
    ended = typed("audit", "lists.csv", "--catalogue", "movies.dat")
    assert ended.code == 1
    assert "--catalogue-columns 'item,title,column3'" in ended.err
    flags = "--catalogue movies.dat --catalogue-columns item,title,column3 --report page.html"
    ended = typed("audit", "lists.csv", flags)
    assert ended.code == 0, ended.err
    assert "Star Wars: Episode 3 (1977)" in str(page_data(tmp_path / "page.html"))


@pytest.mark.parametrize(
    ("name", "header", "separator"),
    [
        ("lastfm.csv", "user;item;weight", ";"),
        ("user_artists.dat", "userID\tartistID\tweight", "\t"),
        ("books.csv", "User-ID;ISBN;plays", ";"),
    ],
)
def test_plays_as_published(tmp_path, monkeypatch, typed, name, header, separator):
    monkeypatch.chdir(tmp_path)
    rows = (f"{u}{separator}{i}{separator}{1 + u % 7}\n" for u, i in LIKES)
    (tmp_path / name).write_text(f"{header}\n" + "".join(rows))
    ended = typed("fit", name, "--model", "popularity", "-o", "model")
    assert ended.code == 0, ended.err
    weight = header.split(separator)[-1]
    assert f"every row counts 1. To weigh rows by it: --weight {weight}" in ended.err
    ended = typed("fit", name, "--model", "popularity", "--weight", weight, "-o", "model")
    assert ended.code == 0, ended.err
    assert "is not used" not in ended.err


def test_films_with_studios_that_are_not_known(tmp_path, monkeypatch, typed):
    """A table of items with many columns serves as catalogue, as groups and as providers."""
    monkeypatch.chdir(tmp_path)
    users, items = (np.array(column, np.int32) for column in zip(*LIKES, strict=True))
    ratings = pa.array(1 + users % 5, pa.int8())
    pq.write_table(pa.table({"user": users, "item": items, "rating": ratings}), "films.parquet")
    about = {"item": np.arange(12, dtype=np.int32), "title": [f"Film {n}" for n in range(12)]}
    about |= {"year": [1990.0] * 12, "genres": ["Drama"] * 12, "provider": STUDIOS}
    about |= {"companies": ["x|y"] * 12, "countries": ["IT"] * 12}
    pq.write_table(pa.table(about), "items.parquet")
    fit = "fit films.parquet --rating rating --min-rating 2 --factors 4 --epochs 2 --nearest"
    target = "--gini 0.5 --of items.parquet --at 3 -o model"
    ended = typed(fit, target)
    assert ended.code == 0, ended.err
    assert typed("recommend model -k 12 -o lists.parquet --keep-seen").code == 0
    tables = "--catalogue items.parquet --groups items.parquet"
    ended = typed("audit", "lists.parquet", tables)
    assert ended.code == 0, ended.err
    assert "(no group)" in ended.out
    rerank = "rerank lists.parquet --max-relevance-loss 20% --of items.parquet -k 3 -o out.parquet"
    ended = typed(rerank, tables)
    assert ended.code == 0, ended.err
    ended = typed("audit", "lists.parquet", tables, "--group", "studio")
    assert ended.code == 1
    assert "column not found in items.parquet: 'studio'" in ended.err
    assert "the columns are: item, title, year, genres, provider" in ended.err
