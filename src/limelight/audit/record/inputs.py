"""What an audit was made from: files with their sizes and digests, and the columns that it used."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.errors import DataError
from limelight.data.files import files_of
from limelight.data.names import find_column
from limelight.data.sources import TableSource, is_file_source, open_parts

if TYPE_CHECKING:
    from collections.abc import Iterable

_COLUMNS = {
    "lists": ("user", "item", "rank", "score"),
    "against": ("user", "item", "rank", "score"),
    "catalogue": ("item", "title"),
    "groups": ("item", "group", "weight"),
    "intersect": ("item", "group", "weight"),
    "merit": ("user", "item"),
}


class InputFile(NamedTuple):
    """A file as it was when it was read."""

    path: str
    name: str
    """Below its folder, where a folder was given."""
    size: int
    modified: int


@dataclass(frozen=True)
class AuditInput:
    """A table that an audit was made from."""

    role: str
    """`lists`, `against`, `catalogue`, `groups`, `intersect` or `merit`."""
    name: str
    """The path as it was given; of a table in memory, its type."""
    columns: dict[str, str]
    files: tuple[InputFile, ...] = ()
    is_folder: bool = False
    rows: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it for a record, with the SHA-256 of its files.

        That of a folder is the digest of what ``sha256sum *`` prints there, files by name.
        """
        digests = [(file.name, _digest(file)) for file in self.files]
        together: str | None = digests[0][1] if digests else None
        if self.is_folder:
            lines = "".join(f"{digest}  {name}\n" for name, digest in digests)
            together = hashlib.sha256(lines.encode()).hexdigest()
        return {
            "role": self.role,
            "name": self.name,
            "files": len(self.files) if self.files else None,
            "bytes": sum(file.size for file in self.files) if self.files else None,
            "rows": self.rows,
            "sha256": together,
            "columns": self.columns,
        }


def inputs_of(
    rows: Iterable[int], timestamp: str | None = None, **sources: Any
) -> tuple[AuditInput, ...]:
    """Describe all sources that were given; ``rows`` are those of the lists, and of the others."""
    found = [_input(role, source) for role, source in sources.items() if source is not None]
    counts = dict(zip(("lists", "against"), rows, strict=False))
    times = {} if timestamp is None else {"timestamp": timestamp}
    return tuple(
        replace(one, rows=counts[one.role], columns=one.columns | times)
        if one.role in counts
        else one
        for one in found
    )


def _input(role: str, source: Any) -> AuditInput:
    plain = source.source if isinstance(source, TableSource) else source
    if role == "catalogue" and not is_file_source(source) and len(getattr(plain, "shape", ())) < 2:
        return AuditInput(role, type(plain).__name__, {})
    parts = open_parts(source)
    columns: dict[str, str] = {}
    for what in _COLUMNS[role]:
        # Where there are ranks, nobody looks for scores.
        if not (what == "score" and "rank" in columns):
            name = find_column(source, parts, what)
            columns |= {} if name is None else {what: name}
    if not is_file_source(source):
        return AuditInput(role, type(plain).__name__, columns)
    path = Path(plain).expanduser()
    is_folder = path.is_dir()
    files = files_of(path) if is_folder else [path]
    return AuditInput(
        role, os.fspath(plain), columns, tuple(_seen(file) for file in files), is_folder
    )


def _seen(file: Path) -> InputFile:
    about = file.stat()
    return InputFile(os.fspath(file), file.name, about.st_size, about.st_mtime_ns)


def _digest(file: InputFile) -> str:
    """Digest a file; refuse one that has changed since it was read."""
    with Path(file.path).open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if _seen(Path(file.path)) != file:
        message = f"the file has changed since it was audited: {file.path!r}"
        raise DataError(message, hint="audit it again")
    return digest
