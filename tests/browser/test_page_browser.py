"""The report page in a real browser: it works from a file, alone, for everybody."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.browser import HOSTILE, SIZES, THEMES, grave_faults, open_watched
from tests.support.pages import made_up

import limelight as ll
from limelight.report.page import render

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]

OF_AUDITS = {"rules", "targets", "time", "time-groups", "merit"}
"""Sections and figures that only the pages of audits have."""


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a page, or that of a payload; afterwards nothing was complained about or fetched."""
    path = tmp_path / "report.html"
    troubles: list[str] = []
    contexts = []

    def open_(
        shown: dict[str, Any] | Path, *, size: tuple[int, int] = SIZES[0], **options: Any
    ) -> Page:
        text = render(shown) if isinstance(shown, dict) else shown.read_text(encoding="utf-8")
        path.write_text(text, encoding="utf-8")
        page = open_watched(browser, path.as_uri(), troubles, size=size, **options)
        contexts.append(page.context)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [trouble for trouble in troubles if trouble != path.as_uri()] == []


def text_of(page: Page, *selectors: str) -> list[str]:
    return [page.inner_text(selector) for selector in selectors]


def curve(page: Page) -> list[str]:
    """Return the paths of the Lorenz curves."""
    paths = page.locator("#lorenz svg path")
    return paths.evaluate_all("all => all.map((path) => path.getAttribute('d'))")


def column(page: Page, number: int) -> list[float]:
    cells = page.locator(f"#items tbody tr > :nth-child({number})").all_inner_texts()
    return [float(cell.replace("\u2212", "-").replace(",", "")) for cell in cells]


def shows(page: Page, label: str) -> None:
    """Wait until the page shows a point."""
    sync_api.expect(page.locator("#result strong")).to_have_text(label)


def spots(page: Page) -> list[dict[str, float]]:
    """Return where the marks of the trade-off stand, apart from the ring around the chosen one."""
    return page.locator("#front .chart svg path").evaluate_all(
        """all => all.map((path) => path.getBoundingClientRect())
             .filter(({ width, height }) => width > 6 && width < 19 && height > 6 && height < 19)
             .map(({ x, y, width, height }) => ({ x: x + width / 2, y: y + height / 2 }))"""
    )


def test_the_slider_redraws_curves_tables_and_lists(open_page: Open) -> None:
    page = open_page(made_up())
    parts = ("#lorenz figcaption", "#ranks figcaption", "#items tbody", "#groups tbody", "#after")
    before, path = text_of(page, *parts), curve(page)
    slider = page.get_by_role("slider", name="Exposure strength")
    assert slider.get_attribute("aria-valuetext") == "exADMM, strength 0.18, 4 of 5"
    slider.press("ArrowRight")
    shows(page, "exADMM, strength 1")
    assert slider.get_attribute("aria-valuetext") == "exADMM, strength 1, 5 of 5"
    after = text_of(page, *parts)
    assert all(old != new for old, new in zip(before, after, strict=True))
    assert curve(page) != path
    assert page.locator("#result").get_attribute("aria-live") == "polite"


def test_the_left_end_of_the_slider_is_the_base(open_page: Open) -> None:
    page = open_page(made_up(methods=2))
    page.get_by_role("slider").press("Home")
    shows(page, "iALS")
    assert page.locator("#figures .badge", has_text="base").count() == 5
    assert page.inner_text("#before ol").split("\n") == page.inner_text("#after ol").split("\n")
    page.get_by_label("Method").select_option("Re-ranking")
    page.get_by_role("slider").press("End")
    shows(page, "Re-ranking, strength 1")
    assert "Shown is the base: iALS, 20 epochs." in page.inner_text("#solver .lead")


def test_figures_stand_against_the_base(open_page: Open) -> None:
    payload = made_up()
    payload["points"][0]["figures"]["ndcg"] = [0.2, 0.19, 0.21]
    payload["points"][3]["figures"]["ndcg"] = [0.19, 0.181, 0.199]
    payload["points"][0]["figures"]["recall"] = [0.2, 0.19, 0.21]
    payload["points"][3]["figures"]["recall"] = [0.19, 0.18, 0.201]
    payload["points"][0]["figures"]["coverage"] = [0.25, None, None]
    payload["points"][3]["figures"]["coverage"] = [0.5, None, None]
    payload["intervals_note"] = "Intervals come from 1,000 resamples of users."
    page = open_page(payload)
    cards = page.locator("#figures li")
    accuracy, recall, coverage = (cards.nth(number).inner_text() for number in (0, 1, 3))
    for part in (
        "nDCG@20",
        "worse",
        "0.1900",
        "▼ \u22125.0\xa0%",
        "95\xa0% interval 0.1810 to 0.1990",
    ):
        assert part in accuracy
    assert "worse" not in recall  # the interval holds the base
    assert page.inner_text("#intervals") == payload["intervals_note"]
    assert "Grey bars are 95\xa0% intervals." in page.inner_text("#front .lead")
    for part in ("Coverage", "better", "50.0\xa0%", "▲ +25.0\xa0points"):
        assert part in coverage


def test_it_says_of_how_many_lists_the_figures_of_a_point_are(open_page: Open) -> None:
    payload = made_up()
    assert not open_page(payload).locator("#over").is_visible()
    for number, point in enumerate(payload["points"]):
        point["over"] = f"{number} users' lists and 120 items"
    page = open_page(payload)
    over = page.locator("#over")
    assert over.inner_text() == "Exposure is measured over 3 users' lists and 120 items."
    page.get_by_role("slider").press("ArrowRight")
    shows(page, "exADMM, strength 1")
    assert over.inner_text() == "Exposure is measured over 4 users' lists and 120 items."


def test_the_sentence_of_the_headline_is_said_once(open_page: Open) -> None:
    payload = made_up()
    page = open_page(payload)
    assert payload["points"][3]["sentence"] not in page.inner_text("#figures")
    page.get_by_role("slider").press("ArrowRight")
    shows(page, "exADMM, strength 1")
    assert payload["points"][4]["sentence"] in page.inner_text("#figures .lead")


def test_numbers_are_rounded_as_python_does(open_page: Open) -> None:
    payload = made_up()
    for share in (0.3315, 0.0005, 0.0625, 0.1875, 0.99951):
        payload["points"][3]["figures"]["coverage"] = [share, None, None]
        card = open_page(payload).locator("#figures li").nth(3)
        assert card.locator(".value").inner_text() == f"{100 * share:.1f}\xa0%"


def test_a_point_is_chosen_with_the_mouse(open_page: Open) -> None:
    page = open_page(made_up())
    page.locator("#front .chart").scroll_into_view_if_needed()
    left = min(spots(page), key=lambda spot: spot["x"])
    page.mouse.move(left["x"], left["y"])
    tip = page.locator("#front .tip")
    sync_api.expect(tip).to_contain_text("exposure_strength")
    sync_api.expect(tip).to_contain_text("95 % interval 0.1068 to 0.1148")
    page.mouse.click(left["x"], left["y"])
    shows(page, "exADMM, strength 1")
    assert page.get_by_role("radio", name="exADMM, strength 1", exact=True).is_checked()


def test_a_point_is_chosen_with_the_keyboard(open_page: Open) -> None:
    page = open_page(made_up())
    page.get_by_role("radio", checked=True).press("ArrowUp")
    shows(page, "exADMM, strength 0.032")
    assert "strength 0.032" in (page.locator("#front .chart").get_attribute("aria-label") or "")


def test_every_control_is_reached_with_the_keyboard(open_page: Open) -> None:
    page = open_page(made_up(methods=2))
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
    for wanted in ("theme", "method", "strength", "point-3", "Next", "Change", "user"):
        assert wanted in reached


def test_items_are_sorted_searched_and_turned_over(open_page: Open) -> None:
    page = open_page(made_up(items=20_000, steps=1))
    rows = page.locator("#items tbody tr")
    assert rows.count() == 20
    change = page.locator("#items th", has_text="Change")
    assert change.get_attribute("aria-sort") == "descending"
    assert column(page, 6) == sorted(column(page, 6), reverse=True)
    change.get_by_role("button").press("Enter")
    assert change.get_attribute("aria-sort") == "ascending"
    assert column(page, 6) == sorted(column(page, 6))
    page.locator("#items").get_by_role("button", name="Item", exact=True).click()
    assert change.get_attribute("aria-sort") is None
    page.locator("#items").get_by_role("button", name="Next").click()
    assert page.inner_text("#items [role=status]") == "21 to 40 of 20,000"
    page.get_by_label("Search items").fill("SILENT harbour 19840")
    assert page.inner_text("#items [role=status]") == "1 to 1 of 1"
    assert "Silent Harbour 19840" in rows.first.inner_text()
    page.get_by_label("Search items").fill("nothing like it")
    assert page.inner_text("#items [role=status]") == "Nothing found"


def test_texts_are_sorted_and_searched_as_people_do(open_page: Open) -> None:
    payload = made_up(items=30)
    payload["items"]["label"][:4] = ["a 10", "Á 9", "A 1", "Crème brûlée"]
    page = open_page(payload)
    page.locator("#items").get_by_role("button", name="Item", exact=True).click()
    first = page.locator("#items tbody th .name").all_inner_texts()
    assert [name for name in first if not name.startswith("i")][:3] == ["A 1", "Á 9", "a 10"]
    page.get_by_label("Search items").fill("CREME BRULEE")
    assert page.inner_text("#items [role=status]") == "1 to 1 of 1"


def test_gains_are_counted_over_the_whole_catalogue(open_page: Open) -> None:
    payload = made_up()
    payload["points"][3]["counts"] = {"gained": 5000, "lost": 4000, "new": 12, "items": 9999}
    said = open_page(payload).inner_text("#items .lead")
    wanted = "Of 9,999 items, 5,000 gain exposure and 4,000 lose; 12 that were in no list"
    assert said.startswith(wanted)


@pytest.mark.parametrize("media", ["screen", "print"])
def test_a_group_leaves_room_for_the_title(open_page: Open, media: str) -> None:
    payload = made_up()
    payload["items"]["label"] = [f"A title of some length, number {n} " * 3 for n in range(120)]
    payload["items"]["group"] = ["A group with a very long name " * 5] * 120
    page = open_page(payload)
    page.emulate_media(media=media)
    page.locator("#before li").first.wait_for()  # the page is laid out anew
    parts = page.locator("#before li:not(:has(.hit)) > .name").evaluate_all(
        "all => all.map((one) => one.offsetWidth / one.parentElement.offsetWidth)"
    )
    assert parts
    assert min(parts) >= 0.6


def test_a_short_title_is_whole_beside_a_long_group(open_page: Open) -> None:
    payload = made_up()
    payload["items"]["group"] = ["A group with a very long name " * 5] * 120
    titles = open_page(payload).locator("#after li > .name")
    assert titles.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")


def test_names_that_nobody_can_see_count_as_none(open_page: Open) -> None:
    payload = made_up()
    payload["items"]["label"][:2] = ["\u200b\u202e", " \u2060\t"]
    payload["items"]["group"][:2] = ["\u200b", "\u202e"]
    payload["groups"]["label"][0] = "\u200b"
    payload["users"][0]["label"] = "\u200d"
    for point in payload["points"]:
        point["lists"] = [[0, 1, 2]] * 3
    page = open_page(payload)
    assert page.locator("#after li > .name").all_inner_texts()[:2] == ["i0", "i1"]
    assert page.locator("#after li small").count() == 1
    assert "(no name)" in page.inner_text("#groups tbody")
    assert page.locator("#user option").first.inner_text() == "(no name)"


def test_lists_say_what_is_new_moved_gone_and_liked(open_page: Open) -> None:
    payload = made_up(users=2, k=3)
    for point in payload["points"]:
        point["lists"] = [[0, 1, 2], [7, 8, 9]]
    payload["points"][payload["chosen"]]["lists"][0] = [2, 0, 5]
    payload["users"][0]["liked"] = [5, 1]
    page = open_page(payload)

    def badges(selector: str) -> list[list[str]]:
        rows = page.locator(f"{selector} li").all()
        return [row.locator(".badge").all_inner_texts() for row in rows]

    assert badges("#before") == [[], ["♥ liked", "leaves"], []]
    assert badges("#after") == [["▲ 2"], ["▼ 1"], ["♥ liked", "new"]]
    page.get_by_label("User", exact=True).select_option("u1")
    assert badges("#after") == [[], [], []]
    assert "u1 at exADMM, strength 0.18: nothing new in a list of 3" in page.inner_text(
        "#user-summary"
    )


def test_hostile_texts_are_shown_as_texts(open_page: Open) -> None:
    payload = made_up()
    payload["title"], payload["headline"] = HOSTILE[:2]
    for number, text in enumerate(HOSTILE):
        payload["items"]["label"][number] = text
    payload["items"]["group"][:2] = HOSTILE[:2]
    payload["groups"]["label"][:6] = HOSTILE
    payload["users"][0]["label"] = HOSTILE[1]
    payload["notes"] = HOSTILE
    payload["made"] = payload["data"] = [[text, text] for text in HOSTILE]
    for point, text in zip(payload["points"], HOSTILE, strict=False):
        point["label"], point["method"], point["settings"] = text, text, [[text, text]]
    for point in payload["points"]:
        point["lists"] = [[*range(6)]] * 3
    page = open_page(payload, size=SIZES[1])
    assert page.inner_text("h1") == HOSTILE[0]
    assert page.locator("#after li > .name").all_inner_texts()[:3] == HOSTILE[:3]
    assert page.locator("#after li > .name").last.inner_text() == "i5"
    page.locator("#front .chart").scroll_into_view_if_needed()
    for spot in spots(page):
        page.mouse.move(spot["x"], spot["y"])
        page.mouse.click(spot["x"], spot["y"])
    page.locator("#lorenz .chart").hover()
    sync_api.expect(page.locator("#lorenz .tip")).to_be_visible()
    assert page.evaluate("window.hit") is None
    assert page.locator("script, img, b").count() == 3
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    longest = page.locator("bdi").evaluate_all(
        "all => Math.max(...all.map((one) => one.title.length))"
    )
    assert longest <= 300


@pytest.mark.parametrize(
    ("missing", "sections"),
    [
        ({"base": None}, []),
        ({"groups": None}, ["groups"]),
        ({"users": []}, ["users"]),
        ({"data": [], "made": [], "notes": []}, ["data", "made", "notes"]),
        ({"trace": []}, ["solver", "objective", "residuals"]),
        ({"lorenz": None}, ["lorenz", "top"]),
        ({"lorenz": None, "by_rank": None}, ["spread", "lorenz", "top", "ranks"]),
        ({"exposure": None, "groups": None, "lists": []}, ["items", "groups", "users"]),
        ({"settings": []}, ["settings"]),
        ({"figures": {}}, ["figures", "front"]),
        ({"metrics": []}, ["figures", "front"]),
    ],
)
def test_what_is_not_known_is_left_out(
    open_page: Open, missing: dict[str, Any], sections: list[str]
) -> None:
    payload = made_up(methods=2)
    for key, value in missing.items():
        for holder in [payload, *payload["points"]]:
            if key in holder:
                holder[key] = value
    page = open_page(payload)
    hidden = page.locator("main :is(section, figure)[hidden]").evaluate_all(
        "all => all.map(e => e.id)"
    )
    assert set(hidden) - OF_AUDITS == set(sections)
    links = page.locator("#contents a").evaluate_all("all => all.map((a) => a.hash.slice(1))")
    assert not set(links) & set(sections)
    page.get_by_role("slider").press("Home")
    shows(page, "iALS" if missing != {"base": None} else "exADMM, strength 0.0056")


def traced(objective: list[float], **others: float) -> list[dict[str, float]]:
    return [{"epoch": n, "objective": one, **others} for n, one in enumerate(objective, start=1)]


def test_a_trace_that_hardly_changes_can_be_read(open_page: Open) -> None:
    payload = made_up()
    payload["points"][3]["trace"] = traced([236150.0, 236050.0, 236000.5, 236000.25])
    page = open_page(payload)
    chart = page.locator("#objective .chart")
    assert chart.get_attribute("aria-label") == "At the end: objective 236,000.2."
    ticks = [one for one in chart.locator("text").all_text_contents() if one.startswith("236,")]
    assert len(ticks) == len(set(ticks)) > 2
    assert not page.locator("#residuals").is_visible()


def test_a_series_has_one_colour_on_every_page(open_page: Open) -> None:
    colours = []
    for others in ({"residual_U": 1.0}, {"lagrangian": 2.0, "residual_V": 1.0, "residual_U": 0.5}):
        payload = made_up()
        payload["points"][3]["trace"] = traced([2.0, 1.0], **others)
        for point in (*payload["points"][:3], payload["points"][4]):
            point["trace"] = []
        page = open_page(payload)
        last = page.locator("#residuals .legend li", has_text="residual U").locator("path").first
        colours.append(last.evaluate("path => path.style.stroke"))
    assert colours[0] == colours[1]


def test_without_a_trace_there_is_no_section(open_page: Open) -> None:
    payload = made_up(methods=2)
    payload["points"][0]["trace"] = []
    page = open_page(payload)
    link = page.locator("#contents a", has_text="Solver")
    assert page.locator("#solver").is_visible()
    assert link.count() == 1
    page.get_by_role("slider").press("Home")
    shows(page, "iALS")
    assert not page.locator("#solver").is_visible()
    assert link.count() == 0


def test_the_base_lies_above_its_neighbours(open_page: Open) -> None:
    payload = made_up()
    payload["points"][1]["figures"] = payload["points"][0]["figures"]
    page = open_page(payload)
    page.locator("#front .chart").scroll_into_view_if_needed()
    right = max(spots(page), key=lambda spot: spot["x"])
    page.mouse.click(right["x"], right["y"])
    shows(page, "iALS")


def test_an_audit_of_one_system(open_page: Open) -> None:
    payload = made_up(users=1)
    payload |= {"kind": "audit", "base": None, "chosen": 0, "points": payload["points"][:1]}
    payload["items"] |= {"group": None, "interactions": None}
    page = open_page(payload)
    for section in ("#control", "#front", "#before", "#figures .lead"):
        assert not page.locator(section).is_visible()
    heads = page.locator("#items thead th").all_inner_texts()
    assert [head.split()[0] for head in heads] == ["Item", "Exposure"]
    assert page.inner_text("#after h3") == "Recommended"


def test_a_point_about_which_less_is_known_than_about_the_others(open_page: Open) -> None:
    payload = made_up()
    poor = {"lorenz": None, "by_rank": None, "exposure": None, "groups": None, "lists": []}
    payload["points"][1] |= poor | {"trace": [], "figures": {"ndcg": [0.1, None, None]}}
    payload["points"][0]["exposure"][3] = None
    page = open_page(payload)
    page.get_by_role("radio", name="exADMM, strength 0.0056").check()
    shows(page, "exADMM, strength 0.0056")
    assert page.inner_text("#lorenz figcaption") == "Not known for this point."
    assert "not known" in page.inner_text("#items .lead")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_everybody_can_use_it(open_page: Open, size: tuple[int, int], theme: str) -> None:
    page = open_page(made_up(methods=2), size=size, color_scheme=theme)
    assert grave_faults(page) == []


@pytest.mark.parametrize("size", SIZES)
def test_nothing_jumps_or_sticks_out(open_page: Open, size: tuple[int, int]) -> None:
    page = open_page(made_up(methods=2), size=size)
    slider = page.get_by_role("slider")
    for _ in range(3):
        slider.press("ArrowLeft")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    page.wait_for_timeout(300)
    assert page.evaluate("window.shift") < 0.05
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


def test_steps_by_script_move_nothing_on_a_phone(open_page: Open) -> None:
    payload = made_up(methods=2)
    for number, point in enumerate(payload["points"]):
        point["sentence"] = "A sentence that takes another number of lines. " * (1 + number % 4)
    page = open_page(payload, size=SIZES[1])
    for top in (0, 600):
        page.evaluate("top => scrollTo(0, top)", top)
        for step in (0, 1, 2, 3, 4, 0):
            page.locator("#strength").evaluate(
                """(slider, step) => {
                  slider.value = step;
                  slider.dispatchEvent(new Event("input"));
                }""",
                step,
            )
            page.wait_for_timeout(60)
    page.wait_for_timeout(200)
    assert page.evaluate("window.shift") < 0.05


def test_everything_is_inside_its_box_on_a_phone(open_page: Open) -> None:
    page = open_page(made_up(), size=SIZES[1])
    heads = page.locator("#front thead th")
    assert heads.evaluate_all("all => all.every((one) => one.scrollWidth <= one.clientWidth)")
    ends = page.locator(".ends span")
    assert [end.is_visible() for end in ends.all()] == [True, True]
    page.locator("#front .chart").evaluate("chart => chart.scrollIntoView({ block: 'center' })")
    chart = page.locator("#front .chart").bounding_box()
    assert chart
    for spot in spots(page):
        page.mouse.move(spot["x"], spot["y"])
        tip = page.locator("#front .tip")
        sync_api.expect(tip).to_be_visible()
        box = tip.bounding_box()
        assert box
        assert chart["x"] <= box["x"]
        assert box["x"] + box["width"] <= chart["x"] + chart["width"]
        assert chart["y"] <= box["y"]
        assert box["y"] + box["height"] <= chart["y"] + chart["height"]
        assert tip.evaluate("tip => tip.scrollWidth <= tip.clientWidth")


def test_high_contrast_keeps_what_is_drawn_with_backgrounds(open_page: Open) -> None:
    page = open_page(made_up(methods=2), forced_colors="active")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for selector in (".strip", ".strip .now", ".strip .then"):
        style = "one => getComputedStyle(one).backgroundColor"
        assert page.locator(selector).first.evaluate(style) != paper
    bar = "one => getComputedStyle(one, '::after').backgroundColor"
    assert page.locator("#items .gain").first.evaluate(bar) != paper
    lines = page.locator("#front .chart svg path[stroke-width='2']")
    assert len(set(lines.evaluate_all("all => all.map((one) => one.getAttribute('stroke'))"))) > 2


def test_the_theme_follows_the_button_and_the_system(open_page: Open) -> None:
    page = open_page(made_up(), color_scheme="dark")

    def colours() -> list[str]:
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return [paper, page.locator("#lorenz svg text").first.get_attribute("fill") or ""]

    dark = colours()
    page.get_by_role("button", name="Light theme").click()
    light = colours()
    assert all(one != other for one, other in zip(dark, light, strict=True))
    page.get_by_role("button", name="Dark theme").click()
    assert colours() == dark


def test_paper_is_white_and_has_no_controls(open_page: Open) -> None:
    page = open_page(made_up(), color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.get_by_role("slider").is_visible()
    assert page.locator("#figures").is_visible()
    assert page.pdf()[:4] == b"%PDF"


def test_without_scripts_the_headline_is_there_once(open_page: Open) -> None:
    page = open_page(made_up(), java_script_enabled=False)
    assert page.inner_text("body").count(made_up()["headline"]) == 1
    assert "JavaScript" in page.inner_text("noscript")


def test_a_damaged_page_says_so(browser: Browser, tmp_path: Path) -> None:
    text = render(made_up())
    start = text.index(">", text.index('id="payload"')) + 1
    (tmp_path / "report.html").write_text(text[:start] + "AAAA" + text[start + 100 :])
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    trouble = page.locator("#trouble")
    sync_api.expect(trouble).to_contain_text("The figures could not be drawn")
    page.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_report_of_a_run(open_page: Open, demo_run: Path, size: tuple[int, int]) -> None:
    page = open_page(demo_run / "report.html", size=size)
    assert grave_faults(page) == []
    path, users_list = curve(page), page.inner_text("#after")
    page.select_option("#method", label="exADMM")
    slider = page.locator("#strength")
    sync_api.expect(slider).to_have_attribute("max", "3")
    slider.press("End")
    shows(page, "exADMM, strength 10")
    assert curve(page) != path
    assert page.inner_text("#after") != users_list
    page.locator("#front label").first.click()
    shows(page, "No control")
    first = page.locator("#items tbody tr").first.inner_text()
    page.locator("#items thead button").first.click()
    assert page.locator("#items tbody tr").first.inner_text() != first
    page.fill("#items input", "17")
    assert all("17" in row for row in page.locator("#items tbody tr").all_inner_texts())


def test_the_page_shows_the_figures_of_the_run(open_page: Open, demo_run: Path) -> None:
    found = json.loads((demo_run / "results.json").read_text())["target"]["test"]
    page = open_page(demo_run / "report.html")
    shown = page.locator("#figures .cards .value").all_inner_texts()
    ranges = page.locator("#figures .cards .range").all_inner_texts()
    assert shown == [
        f"{found['ndcg@20']:.4f}",
        f"{found['recall@20']:.4f}",
        f"{found['gini@20']:.4f}",
        f"{100 * found['coverage@20']:.1f}\xa0%",
        f"{100 * found['top_share@20']:.1f}\xa0%",
    ]
    low, high = (f"{found[f'ndcg@20_{bound}']:.4f}" for bound in ("low", "high"))
    assert ranges[0] == f"95\xa0% interval {low} to {high}"


def test_the_slider_of_a_search_has_every_strength_that_was_tried(
    open_page: Open, tmp_path: Path
) -> None:
    data = ll.marketplace(400, 80, 6000).interactions
    reranked = ll.rerank(ll.IALS(factors=8, epochs=4).fit(data), k=5, gini=0.3)
    fitted = ll.fit_to(data, gini=0.4, at=5, model=ll.ExADMM(factors=8, epochs=8))
    for name, result in (("rerank", reranked), ("fit", fitted)):
        points = result.to_dict()["points"]
        own_method = [one for one in points[1:] if one.get("method", "") in ("", result.method)]
        result.report(tmp_path / f"{name}.html")
        page = open_page(tmp_path / f"{name}.html")
        slider = page.locator("#strength")
        assert int(slider.get_attribute("max") or 0) == len(own_method) >= 3
