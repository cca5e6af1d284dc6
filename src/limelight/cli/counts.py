"""Large numbers as people write them: 100M, 10B, 2.5k."""

import math
import re

from limelight._errors import ConfigError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
_NUMBER = re.compile(r"([0-9][0-9_,]*\.?[0-9]*(?:e\+?[0-9]{1,2})?)\s*([kmbgt]?)", re.IGNORECASE)


def parse_count(flag: str, text: str) -> int:
    """Read 100M as 100,000,000.

    Examples
    --------
    >>> parse_count("--users", "2.5k"), parse_count("--users", "1e6"), parse_count("--users", "1B")
    (2500, 1000000, 1000000000)
    """
    found = _NUMBER.fullmatch(text.strip())
    value = math.nan
    if found:
        value = float(re.sub("[_,]", "", found[1])) * _UNITS[found[2].lower()]
    if not value.is_integer():
        message = f"{flag} must be a whole number: {text!r}"
        raise ConfigError(message, hint="write 2500, 2.5k, 100M or 10B")
    return int(value)
