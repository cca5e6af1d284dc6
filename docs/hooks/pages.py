"""Pages of the site that live outside docs/, and the links between them and the rest.

Links in Markdown are those of the repository, so that they work there, too; here they become those
of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "running-benchmarks.md",
}
"""Paths in the repository, and their pages."""
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that live outside docs/."""
    for path, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Turn links between files of the repository into links between pages."""
    here = page.file.src_uri
    path = next((path for path, made in OUTSIDE.items() if made == here), f"docs/{here}")
    return LINK.sub(lambda link: _link(link[1], path, here), markdown)


def _link(link: str, path: str, here: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    page = OUTSIDE.get(target, target.removeprefix("docs/"))
    return posixpath.relpath(page, posixpath.dirname(here) or ".")
