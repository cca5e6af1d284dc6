"""The data of a page: true to the exhibit, small, and safe whatever titles hold."""

import base64
import gzip
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from tests.support.page_data import page_data

import limelight as ll
from limelight.data.groups import Groups
from limelight.report import shown_items as choice
from limelight.report.exhibit import (
    ExampleUsers,
    Exhibit,
    ExhibitPoint,
    ShownLists,
    build_exhibit,
)
from limelight.report.page import render, write_page
from limelight.report.payload import payload, sentence
from limelight.report.titles import read_titles, require_titles, with_titles_and_groups

HOSTILE = "</script><script>alert('x')</script>" + '"' * 5 + "\u202e" + "{{payload}}" + "x" * 10_000


def an_exhibit(n_items=50, n_points=3, **changes):
    rng = np.random.default_rng(0)
    lists = [
        np.argsort(rng.random((4, n_items)), axis=1)[:, :5].astype(np.int32)
        for _ in range(n_points)
    ]
    points = tuple(
        ExhibitPoint(
            "plain" if not n else "exADMM",
            f"point {n}",
            {
                "ndcg@5": 0.2 - 0.01 * n,
                "ndcg@5_low": 0.1,
                "gini@5": 0.9 - 0.1 * n,
                "coverage@5": 0.5,
            },
            float(n),
            {"factors": 64, "l2": 0.003},
            shown=ShownLists(rng.exponential(size=n_items) ** 2, lists[n], {"epoch": [1.0, 2.0]}),
        )
        for n in range(n_points)
    )
    history = tuple(np.arange(3, dtype=np.int32) for _ in range(4))
    given = {
        "kind": "frontier", "title": "A front", "k": 5, "points": points,
        "item_ids": np.arange(n_items), "chosen": 1,
        "examples": ExampleUsers(np.array(["a", "b", "c", "d"], dtype=object), history, history),
    }  # fmt: skip
    return Exhibit(**(given | changes))


def test_figures_are_not_rounded():
    found = payload(an_exhibit())
    assert found["points"][1]["figures"]["ndcg"] == [0.19, 0.1, None]
    assert [metric["key"] for metric in found["metrics"]] == ["ndcg", "gini", "coverage"]


def test_curves_are_those_of_the_whole_catalogue():
    exhibit = an_exhibit(n_items=500)
    found = payload(exhibit)["points"][0]
    exposure = exhibit.points[0].shown.exposure
    x, share = np.array(payload(exhibit)["lorenz_x"]), np.array(found["lorenz"])
    area = np.trapezoid(share, x) if hasattr(np, "trapezoid") else np.trapz(share, x)
    assert 1 - 2 * area == pytest.approx(ll.gini(exposure), abs=0.003)
    largest = exposure.max() / exposure.mean()
    assert found["by_rank"][0] == pytest.approx(largest, rel=1e-3)
    assert np.mean(found["exposure"]) == pytest.approx(1, rel=1e-3)


def test_shares_of_groups_add_up():
    members = Groups(np.arange(50), np.arange(50) % 2, np.ones(50), ["x", HOSTILE], 0)
    found = payload(an_exhibit(groups=members))
    for point in found["points"]:
        assert sum(point["groups"]) == pytest.approx(1, abs=1e-3)
    assert sorted(found["groups"]["items"]) == [25, 25]
    assert max(map(len, found["groups"]["label"])) == 300
    assert set(found["items"]["group"]) == set(found["groups"]["label"])


def test_of_many_items_the_page_holds_some_and_says_so(monkeypatch):
    monkeypatch.setattr(choice, "MOST_GROUPS", 2)
    members = Groups(np.arange(200), np.arange(200) % 5, np.ones(200), list("abcde"), 0)
    exhibit = an_exhibit(n_items=200, n_points=1, groups=members, chosen=0)
    found = payload(exhibit, 40)
    assert len(found["items"]["id"]) == 40
    assert "40 of 200 items" in found["items_note"]
    assert "2 of 5 groups" in found["groups_note"]
    shown = {item for row in found["points"][0]["lists"] for item in row}
    assert min(shown) >= 0
    ids = found["items"]["id"]
    expected = exhibit.points[0].shown.lists[0].tolist()
    assert [int(ids[item]) for item in found["points"][0]["lists"][0]] == expected


def test_a_page_for_twenty_thousand_items_is_below_three_megabytes(tmp_path):
    titles = tuple(f"The film number {n} of all films" for n in range(20_000))
    exhibit = an_exhibit(n_items=20_000, n_points=24, titles=titles)
    write_page(exhibit, tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 3e6


def test_a_page_of_long_titles_gets_shorter_tables(tmp_path):
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz    "))
    titles = tuple("".join(letters[row]) for row in rng.integers(30, size=(20_000, 300)))
    write_page(an_exhibit(n_items=20_000, n_points=3, titles=titles), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 3e6
    found = page_data(tmp_path / "page.html")
    assert "of 20,000 items" in found["items_note"]


def test_gains_and_losses_are_counted_over_all_items():
    exhibit = an_exhibit(n_items=200)
    before, after = (exhibit.points[n].shown.exposure for n in (0, 1))
    found = payload(exhibit, 40)["points"][1]["counts"]
    change = after / after.mean() - before / before.mean()
    assert found["items"] == 200
    assert found["gained"] == np.sum(change > 0.005)
    assert payload(an_exhibit(base=None))["points"][1]["counts"] is None


def test_lists_without_exposure_are_left_out():
    exhibit = an_exhibit(
        points=(ExhibitPoint("a", "a", {"gini@5": 0.5}, shown=ShownLists(np.zeros(50))),), chosen=0
    )
    point = payload(exhibit)["points"][0]
    assert point["lorenz"] is None
    assert point["exposure"] is None
    assert point["lists"] == []


def test_numbers_that_are_none_become_null():
    trace = {"epoch": [1.0], "objective": [float("nan")]}
    point = ExhibitPoint("a", "a", {"gini@5": float("nan")}, shown=ShownLists(trace=trace))
    found = payload(an_exhibit(points=(point,), chosen=0))["points"][0]
    assert found["figures"]["gini"] == [None, None, None]
    assert found["trace"] == [{"epoch": 1.0, "objective": None}]


def unpack(page):
    start = page.index('id="payload"')
    packed = page[page.index(">", start) + 1 : page.index("</script>", start)]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_hostile_words_cannot_leave_their_place():
    exhibit = an_exhibit(
        title=HOSTILE, titles=(HOSTILE,) * 50, made={HOSTILE: HOSTILE}, notes=(HOSTILE,)
    )
    clean, hostile = render(payload(an_exhibit())), render(payload(exhibit))
    assert hostile.count("<script") == clean.count("<script")
    assert "alert('x')" not in hostile
    assert unpack(hostile)["title"] == HOSTILE
    assert len(unpack(hostile)["items"]["label"][0]) == 300


def test_a_broken_character_does_not_stop_the_page():
    assert unpack(render(payload(an_exhibit(titles=("\ud800",) * 50))))["items"]["label"][0] == "?"


def test_the_same_exhibit_gives_the_same_bytes():
    assert render(payload(an_exhibit())) == render(payload(an_exhibit()))


def test_sentences_tell_what_is_known():
    exhibit = an_exhibit()
    plain, fair = exhibit.points[:2]
    assert sentence(exhibit, plain).startswith("Point 0: Gini@5 of exposure 0.900")
    assert "from 0.900 to 0.800" in sentence(exhibit, fair)
    assert "nDCG@5 falls by 5.0\xa0%" in sentence(exhibit, fair)
    worse = an_exhibit(points=(fair, plain), chosen=1)
    assert "Gini@5 of exposure over 50 items rises" in sentence(worse, plain)
    assert "nDCG@5 rises by 5.3\xa0%" in sentence(worse, plain)
    lone = an_exhibit(points=(ExhibitPoint("a", "a", {}),), chosen=0, base=None)
    assert sentence(lone, lone.points[0]) == "A."
    lost = ExhibitPoint("b", "b", {"relevance@5": 0.98})
    lists = an_exhibit(points=(ExhibitPoint("a", "a", {"relevance@5": 1.0}), lost))
    assert sentence(lists, lost) == "With b, the relevance of the lists falls by 2.0\xa0%."


def test_a_page_says_of_how_many_lists_it_is():
    points = tuple(
        ExhibitPoint("a", "a point", {"users": users, "gini@5": gini})
        for users, gini in ((90, 0.9), (90, 0.8), (300, 0.6))
    )
    exhibit = an_exhibit(points=points)
    assert "over 90 users' lists and 50 items falls from" in sentence(exhibit, points[1])
    few, many = (f"over {n} users' lists and 50 items" for n in (90, 300))
    assert f"from 0.900 {few} to 0.600 {many}" in sentence(exhibit, points[2])
    assert [one["over"] for one in payload(exhibit)["points"]][1:] == [
        "90 users' lists and 50 items",
        "300 users' lists and 50 items",
    ]


def test_points_of_different_sizes_get_a_note():
    points = [ExhibitPoint("a", f"of {n}", {"users": n, "gini@5": 0.9}) for n in (90, 95, 300)]
    made = build_exhibit("frontier", "A front", 5, points, item_ids=np.arange(50), notes=("Mine.",))
    assert made.notes[0] == "Mine."
    assert made.notes[1].startswith("Numbers of lists differ: 90 (of 90), 300 (of 300).")
    alike = build_exhibit("frontier", "A front", 5, points[:2], item_ids=np.arange(50))
    assert alike.notes == ()


def test_an_audit_against_lists_of_another_size_says_so_once():
    lists = pa.table({"user_id": [1, 2, 3], "item_id": ["a", "b", "a"], "rank": [1, 1, 1]})
    found = payload(ll.audit(lists, against=lists[:1], catalogue=["a", "b"]).exhibit())
    assert "from 0.5000 to 0.1667" in found["headline"]
    said = " ".join(found["findings"]["summary"])
    assert said.count("there was 1 list before and there are 3 now") == 1
    assert len(found["notes"]) == 1


def test_titles_and_groups_can_be_added():
    films = pa.table({"item_id": ["0", "1", "99"], "name": ["Zero", None, "Not ours"]})
    groups = pa.table({"item_id": [0, 1], "group": ["x", "y"]})
    found = with_titles_and_groups(an_exhibit(), groups, films)
    assert found.titles[:3] == ("Zero", "", "")
    assert found.groups.group_ids == ["x", "y"]
    labels = payload(found)["items"]["label"]
    assert labels[:2] == ["Zero", "1"]


def test_a_catalogue_without_titles_leaves_the_ids():
    table = pa.table({"item_id": [0, 1]})
    assert with_titles_and_groups(an_exhibit(), catalogue=table).titles is None
    with pytest.raises(ll.DataError, match="neither 'title' nor 'name'"):
        require_titles(table)


def test_titles_of_a_wrong_kind_are_refused():
    table = pa.table({"item_id": [0], "title": [[1, 2]]})
    with pytest.raises(ll.DataError, match="a title is a text"):
        read_titles(table, pa.array([0]))


def test_half_of_the_exposure_is_held_by_so_many_items():
    point = payload(an_exhibit())["points"][0]
    multiples = np.sort(an_exhibit().points[0].shown.exposure)[::-1]
    held = np.cumsum(multiples) / multiples.sum()
    assert held[point["half_held_by"] - 1] >= 0.5
    assert point["half_held_by"] == 1 or held[point["half_held_by"] - 2] < 0.5


def test_a_coverage_that_stays_is_no_headline():
    exhibit = an_exhibit()
    base, fair = exhibit.points[:2]
    same = replace(fair, figures={**fair.figures, "coverage@5": base.figures["coverage@5"]})
    assert "instead of" not in sentence(replace(exhibit, points=(base, same)), same)
