"""Take the pictures of report pages that the documentation shows.

python tools/screenshots.py              an audit of made-up lists: audit.png and audit-phone.png
python tools/screenshots.py --run run/   also the page of a run: report.png, report-phone.png
python tools/screenshots.py -o FOLDER    another place than docs/figures

Chromium must be installed (`make browser`). The lists are drawn with a fixed seed.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from playwright.sync_api import sync_playwright

import limelight as ll
from limelight.report.exhibit_folder import load_exhibit
from limelight.report.page import write_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FIGURES = Path(__file__).resolve().parent.parent / "docs" / "figures"
DESKTOP, PHONE = (1280, 900), (390, 844)
N_ITEMS, N_USERS, WEEKS, K = 400, 300, 8, 10
STUDIOS = ["Aurora Pictures", "Bright House", "Cobalt", "Dunmore & Sons", "Eastgate", "Fable"]


def draw_lists(evenness: float, seed: int) -> pa.Table:
    """Draw lists that show more items from week to week."""
    random = np.random.default_rng(seed)
    shown = []
    for week in range(WEEKS):
        appeal = -np.log(np.arange(1, N_ITEMS + 1)) * (1.2 - evenness - 0.05 * week)
        scores = appeal + random.gumbel(0, 1, (N_USERS, N_ITEMS))
        shown.append(np.argsort(-scores, axis=1)[:, :K])
    start = np.datetime64("2024-01-01", "s") + np.arange(WEEKS) * np.timedelta64(7, "D")
    return pa.table(
        {
            "user_id": np.repeat(np.tile(np.arange(N_USERS), WEEKS), K),
            "item_id": np.concatenate(shown).ravel(),
            "rank": np.tile(np.arange(1, K + 1), WEEKS * N_USERS),
            "shown_at": np.repeat(start, N_USERS * K),
        }
    )


def write_audit(path: Path) -> None:
    """Write the page of an audit that has everything."""
    random = np.random.default_rng(7)
    items = np.arange(N_ITEMS)
    studio = random.choice(len(STUDIOS), N_ITEMS, p=[0.35, 0.2, 0.15, 0.12, 0.1, 0.08])
    chosen = np.unique(
        random.geometric(0.01, 3000) % N_ITEMS * 1000 + random.integers(0, 999, 3000)
    )
    ll.audit(
        draw_lists(0.3, seed=1),
        against=draw_lists(0.1, seed=2),
        catalogue=pa.table({"item_id": items, "title": [f"Film {item + 1}" for item in items]}),
        groups=pa.table({"item_id": items, "group": [STUDIOS[one] for one in studio]}),
        merit=pa.table({"user_id": chosen % 1000, "item_id": chosen // 1000}),
        timestamp="shown_at",
        min_coverage=0.9,
        group_cap=0.3,
    ).report(path)


def take(browser: Browser, page: Path, picture: Path, size: tuple[int, int], theme: str) -> None:
    """Take what a window of a size shows first."""
    width, height = size
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=theme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        device_scale_factor=1,
    )
    window = context.new_page()
    window.goto(page.as_uri())
    window.wait_for_selector("footer:visible")
    window.wait_for_timeout(300)  # charts are drawn after the page is laid out
    window.screenshot(path=picture)
    context.close()
    print(picture, file=sys.stderr)


def main() -> None:
    """Write the pages to a temporary folder, and their pictures to where they belong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("-o", "--output", type=Path, default=FIGURES)
    parser.add_argument("--run", type=Path, help="a folder that `limelight demo` wrote")
    given = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("error: chromium is not installed\n\nhint: make browser")
    given.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = {"audit": Path(folder) / "audit.html"}
        write_audit(pages["audit"])
        if given.run is not None:
            pages["report"] = Path(folder) / "report.html"
            write_page(load_exhibit(given.run), pages["report"])
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, page in pages.items():
            take(browser, page, given.output / f"{name}.png", (DESKTOP[0], 1400), "light")
            take(browser, page, given.output / f"{name}-phone.png", (PHONE[0], 1000), "dark")
        browser.close()


if __name__ == "__main__":
    main()
