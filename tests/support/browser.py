"""What all pages are held to in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = [(1280, 900), (390, 844)]
THEMES = ["light", "dark"]
HOSTILE = [
    "<script>window.hit = 1</script>",
    '"><img src=x onerror="window.hit = 1">',
    'O\'Neill & "Sons" </script><b>bold</b> {{payload}} ${1}',
    "long " * 2000,
    "שלום \u202e reversed",
    "",
]
SHIFTS = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


def open_watched(
    browser: Browser, address: str, troubles: list[str], *, size: tuple[int, int], **options: Any
) -> Page:
    """Open a page, without motion; what it complains about or asks for is added to the troubles."""
    width, height = size
    settings = {"reduced_motion": "reduce", **options}
    context = browser.new_context(viewport={"width": width, "height": height}, **settings)
    page = context.new_page()
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("request", lambda request: troubles.append(request.url))
    page.add_init_script(SHIFTS)
    page.goto(address)
    if options.get("java_script_enabled", True):
        page.wait_for_selector("footer:visible")
    return page


def grave_faults(page: Page) -> list[tuple[str, list[str]]]:
    """Scan a page for what keeps people from using it."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe is not installed"
    )
    found = axe.Axe().run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [(one["id"], [node["html"] for node in one["nodes"]]) for one in grave]
