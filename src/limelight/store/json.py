"""JSON files that anybody may have written: too large or too deeply nested ones are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import os

_MOST_BYTES = 1 << 28


def read_json(path: str | os.PathLike[str]) -> Any:
    """Read a JSON file.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it is not a file, larger than 256 MiB, not JSON, or nested too deeply.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "config.json"
    >>> size = file.write_text('{"factors": 8}')
    >>> read_json(file)
    {'factors': 8}
    """
    file = Path(path)
    size = file.stat().st_size
    # A pipe would wait for ever, and a device may never end.
    if not file.is_file():
        message = "it is not a file"
        raise ValueError(message)
    if size > _MOST_BYTES:
        message = f"it has {size:,} bytes, more than any that limelight writes"
        raise ValueError(message)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except RecursionError as error:
        message = "it is nested too deeply"
        raise ValueError(message) from error


def plain_number(value: object) -> object:
    """Turn a number of NumPy into one of Python, for ``json.dumps(default=...)``.

    Examples
    --------
    >>> json.dumps({"epochs": np.int64(3)}, default=plain_number)
    '{"epochs": 3}'
    """
    if isinstance(value, np.generic):
        return value.item()
    message = f"{type(value).__name__} {value!r}"
    raise TypeError(message)
