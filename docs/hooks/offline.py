"""The site is read without a network: a page that would fetch something stops the build."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.exceptions import PluginError

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\bsrc=["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*\bhref=["']?(?:https?:)?//[^"'\s>]+"""
)


def on_post_build(config: MkDocsConfig) -> None:
    """Look through all pages for what a browser would load from elsewhere."""
    for page in sorted(Path(config.site_dir).rglob("*.html")):
        if fetched := FETCHED.search(page.read_text()):
            message = f"{page.name} would fetch from the network: {fetched[0]}"
            raise PluginError(message)
