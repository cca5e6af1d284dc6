"""The page of a service in a real browser: it follows the service, and says so when it cannot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from tests.support.browser import HOSTILE, SIZES, THEMES, grave_faults, open_watched
from tests.support.live import MadeUpService, made_up_exposure

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, Page

    Open = Callable[..., Page]

NETWORK = re.compile("Failed to load resource")  # Chromium's own words for what a page handles


@pytest.fixture
def service() -> Iterator[MadeUpService]:
    service = MadeUpService()
    service.start()
    yield service
    service.stop()


@pytest.fixture
def open_page(browser: Browser, service: MadeUpService) -> Iterator[Open]:
    """Open the page; afterwards nothing was complained about, and nobody else was asked."""
    troubles: list[str] = []
    contexts = []

    def open_(*, size: tuple[int, int] = SIZES[0], **options: Any) -> Page:
        page = open_watched(browser, service.address, troubles, size=size, **options)
        contexts.append(page.context)
        return page

    yield open_
    for context in contexts:
        context.close()
    own = f"{service.address}/"
    assert [one for one in troubles if not one.startswith(own) and not NETWORK.match(one)] == []


def has_text(page: Page, selector: str, text: str | re.Pattern[str]) -> None:
    """Wait until a part of the page says so."""
    sync_api.expect(page.locator(selector)).to_contain_text(text, timeout=20_000)


def ask_now(page: Page) -> None:
    """Have the page ask at once, as it does when somebody comes back to it."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def card(page: Page, name: str) -> str:
    return page.locator("#figures li", has_text=name).inner_text()


def test_the_page_shows_what_the_service_says(open_page: Open, service: MadeUpService) -> None:
    service.changes = {"gini": 0.605, "lists": 12_345}
    page = open_page()
    has_text(
        page, "#headline", "over 12,345 lists of the last 7 days is 0.605; the target is 0.600"
    )
    assert "on target" in card(page, "Gini")
    for name, value in (
        ("Coverage", "62.0\xa0%"),
        ("Relevance lost", "1.23\xa0%"),
        ("Latency", "9.70 ms"),
        ("Latency", "half take less than 2.10 ms"),
    ):
        assert value in card(page, name)
    has_text(page, "#lorenz .legend", "no control")
    has_text(page, "#gini .legend", "target")
    has_text(page, "#fresh", "Other replicas were heard of 0.4 seconds ago.")
    assert page.locator("#most li").count() == 20
    assert page.inner_text("#most li:first-child .name") == "Silent Harbour 0"
    assert page.inner_text("#least li:first-child .name") == "j0"
    rows = page.locator("#accounts tbody tr")
    assert rows.first.inner_text().split("\t")[:3] == [
        "Studio Aabove cap",
        "3.10\xa0%",
        "3.00\xa0%",
    ]
    assert "below floor" in rows.last.inner_text()
    has_text(page, "#notes", "Lists are counted as they are served.")


@pytest.mark.parametrize("size", SIZES)
def test_it_follows_the_service_and_nothing_jumps(
    open_page: Open, service: MadeUpService, size: tuple[int, int]
) -> None:
    service.changes = {"history": made_up_exposure(points=1000)["history"]}
    page = open_page(size=size)
    has_text(page, "#headline", "12,001 lists")
    curve = page.locator("#lorenz svg path")
    drawn = curve.evaluate_all("all => all.map((path) => path.getAttribute('d'))")
    page.evaluate("window.shift = 0")
    page.evaluate("window.marked = document.querySelector('#figures li')")
    has_text(page, "#headline", "12,002 lists")
    assert curve.evaluate_all("all => all.map((path) => path.getAttribute('d'))") != drawn
    assert page.evaluate("window.marked.isConnected")
    assert page.evaluate("window.shift") < 0.05
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("size", SIZES)
def test_everybody_can_use_the_live_page(
    open_page: Open, service: MadeUpService, size: tuple[int, int], theme: str
) -> None:
    page = open_page(size=size, color_scheme=theme)
    has_text(page, "#headline", "lists")
    assert grave_faults(page) == []
    service.token = "secret"
    ask_now(page)
    sync_api.expect(page.locator("#ask")).to_be_visible()
    assert grave_faults(page) == []


def test_every_control_is_reached_with_the_keyboard(open_page: Open) -> None:
    page = open_page()
    has_text(page, "#headline", "lists")
    reached = set()
    for _ in range(20):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.textContent")
        )
    assert {"theme", "Figures", "aim", "admin", "move"} <= reached


def test_hostile_titles_are_shown_as_texts(open_page: Open, service: MadeUpService) -> None:
    items = [{"id": n, "title": text, "exposure": 1.0} for n, text in enumerate(HOSTILE)]
    service.changes = {
        "most": items,
        "least": [{"id": text, "exposure": 0.0} for text in HOSTILE],
        "accounts": [{"group": text, "share": 0.1, "cap": 0.05} for text in HOSTILE],
        "notes": HOSTILE,
    }
    page = open_page(size=SIZES[1])
    has_text(page, "#headline", "lists")
    names = page.locator("#most li > .name").all_inner_texts()
    assert names[:3] == HOSTILE[:3]
    assert names[-1] == "5"
    assert page.evaluate("window.hit") is None
    assert page.locator("script, img, b").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_a_service_that_stops_and_comes_back(open_page: Open, service: MadeUpService) -> None:
    page = open_page()
    has_text(page, "#headline", "12,001 lists")
    service.stop()
    ask_now(page)
    has_text(page, "#trouble", "The service does not answer. The figures are of ")
    assert page.locator("#lorenz").is_visible()
    service.start()
    sync_api.expect(page.locator("#again")).to_be_hidden(timeout=20_000)
    assert page.inner_text("#trouble") == ""
    service.status = 503
    ask_now(page)
    has_text(page, "#trouble", "too many requests wait (come back later)")
    service.status = 200
    page.get_by_role("button", name="Try now").click()
    sync_api.expect(page.locator("#again")).to_be_hidden()


def test_it_asks_for_a_token_and_keeps_it_for_the_tab(
    open_page: Open, service: MadeUpService
) -> None:
    service.token = "secret"
    page = open_page()
    field = page.get_by_label("Token", exact=True)
    sync_api.expect(field).to_be_focused()
    has_text(page, "#ask-says", "The service asks for a token.")
    for wrong, said in (("wrong", "does not take this token"), ("no täken", "no spaces")):
        field.fill(wrong)
        field.press("Enter")
        has_text(page, "#ask-says", said)
    assert service.asked == 0
    field.fill("secret")
    field.press("Enter")
    has_text(page, "#headline", "lists")
    assert not page.locator("#ask").is_visible()
    assert page.evaluate("Object.values(sessionStorage)") == ["secret"]
    assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
    page.reload()
    has_text(page, "#headline", "lists")
    assert "secret" not in page.content()


def test_the_target_is_moved_by_who_has_the_admin_token(
    open_page: Open, service: MadeUpService
) -> None:
    page = open_page()
    has_text(page, "#cost", "that cost about 2.00 % of nDCG. Relevance lost now: 1.23 %.")
    aim = page.get_by_role("slider", name="Target of the Gini")
    assert aim.get_attribute("aria-valuetext") == "0.600"
    for _ in range(60):
        aim.press("ArrowLeft")
    has_text(page, "#cost", "Gini 0.300")
    has_text(page, "#cost", "about 8.00 %")
    aim.press("ArrowLeft")
    has_text(page, "#cost", "is not known")
    aim.press("ArrowRight")
    page.get_by_label("Admin token").fill("wrong")
    page.get_by_role("button", name="Move the target").click()
    has_text(page, "#moved", "The target was not moved: this call needs the admin token")
    assert service.moved == []
    assert aim.get_attribute("aria-valuetext") == "0.300"
    page.get_by_label("Admin token").fill(service.admin)
    page.get_by_role("button", name="Move the target").click()
    has_text(page, "#moved", "The target is 0.300 from now on.")
    has_text(page, "#headline", "the target is 0.300")
    assert service.moved == [{"gini": 0.3}]
    assert not page.locator("#admin").is_visible()


def test_what_is_not_known_is_left_out_or_said(open_page: Open, service: MadeUpService) -> None:
    unknown = ("gini", "gini_floor", "relevance_loss", "target", "latency_ms", "front")
    empty = ("lorenz", "accounts", "most", "least", "history", "notes")
    service.changes = {
        **dict.fromkeys((*unknown, "gini_plain", "stale_seconds", "lorenz_plain")),
        **{key: [] for key in empty},
        "lists": 0,
    }
    page = open_page()
    has_text(page, "#headline", "Nothing was shown in the last 7 days.")
    assert page.locator("main section:visible").count() == 1
    assert "\u2013" in card(page, "Relevance lost")
    plain = dict.fromkeys(("front", "lorenz_plain", "gini_plain"))
    service.changes = plain | {"target": {"min_coverage": 0.5, "group_cap": 0.03}}
    ask_now(page)
    has_text(page, "#headline", "12,002 lists")
    has_text(page, "#cost", "What it would cost is not known.")
    has_text(page, "#target .lead", "No target of the Gini is set. Also asked for: coverage")
    assert page.locator("#lorenz .legend li").count() == 2


def test_a_page_that_nobody_looks_at_asks_nothing(open_page: Open, service: MadeUpService) -> None:
    page = open_page()
    has_text(page, "#headline", "12,001 lists")
    look = """(hidden) => {
      Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    page.evaluate(look, True)
    asked = service.asked
    page.wait_for_timeout(2500)
    assert service.asked == asked
    page.evaluate(look, False)
    has_text(page, "#headline", f"{12_000 + asked + 1:,} lists")


def test_the_theme_of_the_charts_follows_the_button(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    has_text(page, "#headline", "lists")
    text = page.locator("#gini svg text").first
    dark = text.get_attribute("fill")
    page.get_by_role("button", name="Light theme").click()
    assert text.get_attribute("fill") != dark
