"""HTML documents of one file: style and scripts inside, and a policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import html
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TEMPLATE = resources.files("limelight.report") / "template"


def part(name: str) -> str:
    """Return a file of the template.

    Examples
    --------
    >>> "byId" in part("dom.js")
    True
    """
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def script(parts: Sequence[str]) -> str:
    """Join files into one script, in a function, so that their names are not global.

    Examples
    --------
    >>> print(script(["const a = 1;", "const b = 2;"]))
    (() => {
    "use strict";
    const a = 1;
    const b = 2;
    })();
    """
    return "\n".join(["(() => {", '"use strict";', *parts, "})();"])


def document(
    body: str, slots: Mapping[str, str], *, title: str, style: str, script: str, asks: bool = False
) -> str:
    """Fill the slots of a body, and put the head that all our pages share before it.

    The browser runs the charts and this script and applies this style, and no other: the policy
    names them by their hashes. The page may ask the server that it came from if ``asks``, and
    nobody else.

    Examples
    --------
    >>> page = document("<body>{{greeting}}", {"greeting": "Hi"}, title="A", style="", script="")
    >>> page[-8:], "connect-src" in page
    ('<body>Hi', False)
    """
    charts = part("charts.min.js")
    policy = [
        "default-src 'none'",
        f"script-src {_hash(charts)} {_hash(script)}",
        f"style-src {_hash(style)}",
        *(["connect-src 'self'"] if asks else []),
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    slots = {"charts": charts, "script": script, "title": html.escape(title), **slots}
    head = {"policy": "; ".join(policy), "title": slots["title"], "style": style}
    return _filled(part("head.html"), head) + _filled(body, slots)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _filled(text: str, slots: Mapping[str, str]) -> str:
    """Fill the slots one by one, because a title may hold the name of another."""
    first, *rest = text.split("{{")
    pieces = [first]
    for piece in rest:
        name, _, after = piece.partition("}}")
        pieces += [slots[name.strip()], after]
    return "".join(pieces)
