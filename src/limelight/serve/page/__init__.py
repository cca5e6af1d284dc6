"""The page of a service: what the window holds, live, in one HTML file."""

from __future__ import annotations

from functools import cache
from importlib import resources

from limelight.report.document import document, part, script

SHARED = (
    "dom.js",
    "format.js",
    "theme.js",
    "legend.js",
    "chart.js",
    "table.js",
    "spread.js",
    "facts.js",
    "contents.js",
)
"""What the page has in common with that of a report."""
HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""What to send with the page; its own policy, which a browser adds to this one, is inside."""
_OWN = resources.files("limelight.serve.page")


@cache
def live_page() -> str:
    """Return the page, which asks the server that it came from for ``v1/exposure``.

    Addresses are relative, so that a proxy may put the service into a folder. Nothing in the page
    is of a model or of a request: it is the same everywhere, and needs no token.

    Examples
    --------
    >>> page = live_page()
    >>> page[:15], "v1/exposure" in page, "connect-src 'self'" in page
    ('<!doctype html>', True, True)
    """
    scripts = [*map(part, SHARED), *map(_own, _own("scripts.txt").split())]
    return document(
        _own("live.html"),
        {},
        title="limelight: exposure live",
        style=part("page.css") + _own("live.css"),
        script=script(scripts),
        asks=True,
    )


def _own(name: str) -> str:
    return (_OWN / name).read_text(encoding="utf-8")
