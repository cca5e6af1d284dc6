"""The page of a real service that is asked all the while."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from tests.support.browser import SIZES, grave_faults, open_watched
from tests.support.service import JSON, ask, make_arm, serving

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser
    from tests.support.service import LiveService


@contextmanager
def load(service: LiveService) -> Iterator[None]:
    """Ask for lists as fast as they come, until the block ends."""
    ended = threading.Event()

    def work() -> None:
        link = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30)
        user = 0
        while not ended.wait(0.002):
            user = (user + 1) % 300
            assert ask(link, "POST", "/v1/recommend", {"user": user}, JSON).status == 200
        link.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("size", SIZES)
def test_the_page_follows_a_service_under_load(browser: Browser, size: tuple[int, int]) -> None:
    troubles: list[str] = []
    arm = make_arm(counts_served=True, target={"gini": 0.4})
    with serving(arm, target={"gini": 0.4}, count="served") as service, load(service):
        address = f"http://127.0.0.1:{service.port}"
        page = open_watched(browser, address, troubles, size=size)
        headline = page.locator("#headline")
        sync_api.expect(headline).to_contain_text("the target is 0.400", timeout=20_000)
        first = headline.inner_text()
        sync_api.expect(headline).not_to_have_text(first, timeout=20_000)
        sync_api.expect(page.locator("#most li").first).to_be_visible()
        assert page.locator("#lorenz svg path").count() > 0
        assert grave_faults(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == size[0]
        page.context.close()
    assert [one for one in troubles if not one.startswith(f"{address}/")] == []
