"""The page of an audit in a real browser: all that was asked for is there, as in its JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from tests.support.browser import HOSTILE, SIZES, THEMES, grave_faults, open_watched

from limelight.audit.audit import Audit, audit

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    Open = Callable[..., Page]

N_ITEMS, N_USERS, K, DAY = 120, 60, 10, 86_400
STUDIOS = ["Aurora", "Bright House", "Cobalt", "Dunmore & Sons", "Eastgate"]


def lists(evenness: float, seed: int, days: int = 4, n_items: int = N_ITEMS) -> pa.Table:
    """Draw lists of every user on every day; those with more evenness show more items."""
    random = np.random.default_rng(seed)
    appeal = -np.log(np.arange(1, n_items + 1)) * (1 - evenness)
    scores = appeal + random.gumbel(0, 1, (days * N_USERS, n_items))
    shown = np.argsort(-scores, axis=1)[:, :K]
    users = np.tile(np.arange(N_USERS), days)
    start = 1_704_067_200  # 2024-01-01
    return pa.table(
        {
            "user_id": np.repeat(users, K),
            "item_id": [f"i{item}" for item in shown.ravel()],
            "rank": np.tile(np.arange(1, K + 1), days * N_USERS),
            "shown_at": np.repeat(start + DAY * np.repeat(np.arange(days), N_USERS), K),
        }
    )


def films(n_items: int = N_ITEMS) -> pa.Table:
    ids = [f"i{item}" for item in range(n_items)]
    return pa.table({"item_id": ids, "title": [f"Film {item}" for item in range(n_items)]})


def studios(names: list[str] = STUDIOS, n_items: int = N_ITEMS) -> pa.Table:
    ids = films(n_items)["item_id"]
    return pa.table({"item_id": ids, "group": [names[i % len(names)] for i in range(n_items)]})


def merit() -> pa.Table:
    random = np.random.default_rng(5)
    users, items = random.integers(0, 40, 400), random.integers(0, 90, 400)
    return pa.table({"user_id": users, "item_id": [f"i{item}" for item in items]})


@pytest.fixture(scope="module")
def found() -> Audit:
    """An audit of everything at once."""
    return audit(
        lists(0.3, seed=1),
        against=lists(0.1, seed=2),
        catalogue=films(),
        groups=studios(),
        merit=merit(),
        timestamp="shown_at",
        every="day",
        gini=0.3,
        min_coverage=0.5,
        group_cap={"Aurora": 0.2},
        group_floor={"Eastgate": 0.05},
    )


@pytest.fixture
def open_audit(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the page of an audit; afterwards nothing was complained about or fetched."""
    troubles: list[str] = []
    contexts = []
    path = tmp_path / "audit.html"

    def open_(result: Audit, *, size: tuple[int, int] = SIZES[0], **options: Any) -> Page:
        result.report(path)
        page = open_watched(browser, path.as_uri(), troubles, size=size, **options)
        contexts.append(page.context)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [trouble for trouble in troubles if trouble != path.as_uri()] == []


def percent(share: float, digits: int = 2) -> str:
    return f"{100 * share:.{digits}f}\xa0%"


def cells(table: Locator) -> list[list[str]]:
    return [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_there_as_in_json(
    open_audit: Open, found: Audit, size: tuple[int, int]
) -> None:
    page = open_audit(found, size=size)
    record = found.to_dict()
    for section in ("targets", "figures", "time", "items", "groups", "merit", "users"):
        assert page.locator(f"#{section}").is_visible(), section
    cards = dict(
        zip(
            [name.split("\n")[0].strip() for name in page.locator(".cards h3").all_inner_texts()],
            page.locator(".cards .value").all_inner_texts(),
            strict=True,
        )
    )
    named = {name.split(" better")[0].split(" worse")[0]: value for name, value in cards.items()}
    assert named == {
        f"Gini@{K}": f"{record[f'gini@{K}']:.4f}",
        "Coverage": percent(record[f"coverage@{K}"], 1),
        "Top 1\xa0%": percent(record[f"top_share@{K}"], 1),
        "Merit Gini": f"{record[f'merit_gini@{K}']:.4f}",
        "To move": percent(record[f"merit_distance@{K}"], 1),
        "Merit order": f"{record[f'merit_spearman@{K}']:.4f}",
        "Without merit": percent(record[f"merit_none_share@{K}"], 1),
    }
    low, high = (100 * record[f"gini@{K}_change_{end}"] for end in ("low", "high"))
    said = f"change: 95\xa0% interval {low:+.1f} to {high:+.1f}\xa0points".replace("-", "\u2212")
    assert said in page.inner_text(".cards li:first-child")


@pytest.mark.parametrize("size", SIZES)
def test_periods_are_those_of_json(open_audit: Open, found: Audit, size: tuple[int, int]) -> None:
    page = open_audit(found, size=size)
    shown, periods = cells(page.locator("#time-rows")), found.to_dict()["periods"]
    assert len(periods) == 4
    for row, period in zip(shown, periods, strict=True):
        assert row == [
            period["start"],
            f"{period['lists']}",
            f"{period['gini']:.4f}",
            percent(period["coverage"]),
            f"{period['cumulative_gini']:.4f}",
            percent(period["cumulative_coverage"]),
            percent(period["top_share"]),
            f"{period['gini_floor']:.4f}",
        ]
    names = page.locator("#time-group-rows thead th").all_inner_texts()[1:]
    for row, period in zip(cells(page.locator("#time-group-rows")), periods, strict=True):
        assert row[1:] == [percent(period["groups"][name]) for name in names]
    assert page.locator("#time .chart svg").count() == 3
    label = page.locator("#time-gini .chart").get_attribute("aria-label") or ""
    assert f"each period {periods[-1]['gini']:.4f}" in label


@pytest.mark.parametrize("size", SIZES)
def test_groups_have_shares_ratios_and_bounds(
    open_audit: Open, found: Audit, size: tuple[int, int]
) -> None:
    page = open_audit(found, size=size)
    record = found.to_dict()
    changes = {change["name"]: change for change in record["group_changes"]}
    heads = [head.split()[0] for head in page.locator("#groups thead th").all_text_contents()]
    assert heads == [
        *("Group", "Items", "Before", "After", "Catalogue", "Ratio", "Floor", "Cap", "Missed"),
        "Change,",
    ]
    rows = {row[0]: row for row in cells(page.locator("#groups"))}
    for group in record["groups"]:
        before, after, catalogue, ratio, floor, cap = rows[group["group"]][2:8]
        assert before == percent(changes[group["group"]]["before"])
        assert after == percent(group["exposure_share"])
        assert catalogue == percent(group["catalogue_share"])
        assert float(ratio) == pytest.approx(group["ratio"], abs=0.006)
        assert floor == (percent(group["floor"]) if "floor" in group else "\u2013")
        assert cap == (percent(group["cap"]) if "cap" in group else "\u2013")
    first = page.locator("#groups tbody tr").first
    assert first.locator("th").inner_text() == record["targets"][2]["missed"][0]["group"]
    assert first.locator("strong.missed").is_visible()


@pytest.mark.parametrize("size", SIZES)
def test_targets_and_merit(open_audit: Open, found: Audit, size: tuple[int, int]) -> None:
    page = open_audit(found, size=size)
    gini, coverage, cap, floor = found.targets
    assert page.inner_text("h1 + .headline").startswith(
        f"2 of 4 targets are missed. Aurora has {percent(cap.found)} of the exposure, above"
    )
    assert page.inner_text("#targets .lead") == "Missed: 2 of 4 targets."
    assert cells(page.locator("#targets")) == [
        ["Gini at most", "0.3000", f"{gini.found:.4f}", "missed"],
        ["Coverage at least", percent(0.5), percent(coverage.found), "met"],
        ["Each group at most", "each its own", percent(cap.found), "missed"],
        ["Aurora", percent(0.2), percent(cap.found), "missed"],
        ["Each group at least", "each its own", percent(floor.found), "met"],
    ]
    assert found.merit is not None
    for side, items in (("over", found.merit.over_exposed), ("under", found.merit.under_exposed)):
        for row, item in zip(cells(page.locator(f"#merit-{side}")), items, strict=True):
            assert row[0].split("\n") == [item.title, item.item_id]
            assert row[1:3] == [percent(item.exposure_share), percent(item.merit_share)]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_everybody_can_use_it(
    open_audit: Open, found: Audit, size: tuple[int, int], theme: str
) -> None:
    page = open_audit(found, size=size, color_scheme=theme)
    assert grave_faults(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    assert page.evaluate("window.shift") < 0.05


def test_numbers_keep_their_distance_from_the_edge_of_a_phone(
    open_audit: Open, found: Audit
) -> None:
    page = open_audit(found, size=SIZES[1])
    # Tables that are wider than the phone are scrolled to their end.
    gaps = page.locator("main .scroll").evaluate_all(
        """all => all.filter((one) => one.offsetParent).map((one) => {
             one.scrollLeft = one.scrollWidth;
             const range = document.createRange();
             const ends = [...one.querySelectorAll("tr > :last-child")].map((cell) => {
               range.selectNodeContents(cell);
               return range.getBoundingClientRect().right;
             });
             return one.getBoundingClientRect().right - Math.max(...ends);
           })"""
    )
    assert len(gaps) >= 6
    assert min(gaps) >= 8


def test_what_nobody_asked_for_is_not_there(open_audit: Open) -> None:
    page = open_audit(audit(lists(0.3, seed=1, days=1).drop(["shown_at"]), catalogue=films()))
    for section in ("targets", "time", "merit", "groups"):
        assert not page.locator(f"#{section}").is_visible()
    assert page.inner_text(".headline").startswith("Half of the exposure goes to ")
    assert "the lowest that these lists could have" in page.inner_text("#summary")
    assert page.locator(".cards .changed").first.is_hidden()


def test_names_of_strangers_are_shown_as_text(open_audit: Open) -> None:
    names = [name for name in HOSTILE if name]
    result = audit(
        lists(0.3, seed=1),
        catalogue=films(),
        groups=studios(names),
        timestamp="shown_at",
        group_cap=0.1,
    )
    page = open_audit(result, size=SIZES[1])
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth") == SIZES[1][0]
    assert HOSTILE[0] in page.inner_text("#targets")


def test_a_page_of_many_items_is_small(tmp_path: Path) -> None:
    n_items = 20_000
    result = audit(
        lists(0.6, seed=1, days=6, n_items=n_items),
        against=lists(0.5, seed=2, days=6, n_items=n_items),
        catalogue=films(n_items),
        groups=studios([f"Studio {number}" for number in range(3000)], n_items),
        timestamp="shown_at",
        group_cap=0.001,
    )
    result.report(tmp_path / "audit.html")
    assert (tmp_path / "audit.html").stat().st_size < 3_000_000
