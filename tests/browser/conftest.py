"""A Chromium for the pages of a file of tests."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(scope="module")  # what drives it keeps an event loop running
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: make browser")
    with sync_api.sync_playwright() as playwright:
        # A sanitizer that is loaded into this process is not for the browser.
        own = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], env=own
        )
        yield browser
        browser.close()
