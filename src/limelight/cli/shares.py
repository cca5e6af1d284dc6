"""Shares as people write them: 2%, 0.02, or a table."""

from pathlib import Path
from typing import Any

from limelight._errors import ConfigError


def parse_share(flag: str, text: str | None) -> float | None:
    """Read 2% as 0.02.

    Examples
    --------
    >>> parse_share("--group-cap", "3%")
    0.03
    """
    if text is None:
        return None
    try:
        return float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        message = f"{flag} must be a share: {text!r}"
        raise ConfigError(message, hint="write 2% or 0.02") from None


def parse_shares(text: str | None, *names: str) -> str | dict[Any, float] | None:
    """Read the name of a target, or a table of shares.

    Examples
    --------
    >>> parse_shares("equal", "equal", "catalogue")
    'equal'
    """
    if text is None or text in names:
        return text
    from limelight.rerank.group_wishes import read_shares

    return read_shares(Path(text))
