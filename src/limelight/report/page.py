"""A report as one HTML file that needs nothing else: no network, no other file, no server."""

from __future__ import annotations

import base64
import gzip
import html
import json
from typing import TYPE_CHECKING, Any

from limelight._base.files import write_text
from limelight.report.document import document, part, script
from limelight.report.payload import payload

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from limelight.report.exhibit import Exhibit

_LARGEST = 2_900_000
"""Bytes of a page that can be sent by mail; tables get shorter until it is no larger."""
_SHORTER_TABLES = (10_000, 5_000, 2_000)


def write_page(exhibit: Exhibit, path: str | os.PathLike[str]) -> None:
    """Write the report of an exhibit, whole or not at all; its folder is made if need be."""
    text = render(payload(exhibit))
    for most in _SHORTER_TABLES:
        if len(text) > _LARGEST:
            text = render(payload(exhibit, most))
    write_text(path, text)


def render(data: Mapping[str, Any]) -> str:
    """Put what :func:`~limelight.report.payload.payload` returned into the page.

    It is compressed and written in an alphabet without a "<", so that nothing in it can end the
    script that holds it. The page writes it as text and never as markup.
    """
    return document(
        part("page.html"),
        {"headline": html.escape(data["headline"]), "payload": _packed(data)},
        title=data["title"],
        style=part("page.css"),
        script=script([part(name) for name in part("scripts.txt").split()]),
    )


def _packed(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Broken titles hold lone surrogates, which cannot be encoded. Without a time in its header, the
    # same exhibit gives the same bytes.
    packed = gzip.compress(text.encode("utf-8", errors="replace"), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode("ascii")
