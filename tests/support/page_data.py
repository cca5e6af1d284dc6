"""Reading the data of a report page back."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

_PAYLOAD = re.compile(r'id="payload"[^>]*>([^<]*)<')


def page_data(page: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a page shows, as it was before it was packed."""
    found = _PAYLOAD.search(Path(page).read_text(encoding="utf-8"))
    assert found, "the page has no data"
    data: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return data
