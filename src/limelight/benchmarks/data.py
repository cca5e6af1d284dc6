"""What is raced on: tables that the user names, or made-up ones shaped like well-known sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from limelight._errors import ConfigError
from limelight.data import marketplace, read, split_users

if TYPE_CHECKING:
    from limelight.data import Interactions, Split

SHAPES = {"ml-1m-like": (6_000, 3_500, 575_000), "gowalla-like": (30_000, 41_000, 1_030_000)}
"""Users, items and interactions of the built-in sets."""

_HELD_OUT = 500
_NUMBERS = {"min_rating": float, "min_user": int, "min_item": int, "core": int}
_TEXTS = ("user", "item", "rating", "timestamp", "filter_order")


@dataclass(frozen=True, eq=False)
class DataSet:
    """Interactions with a name; some users are held out to measure accuracy on."""

    name: str
    interactions: Interactions
    source: str = "made up"

    @cached_property
    def split(self) -> Split:
        """Training users, and at most 500 others to test on."""
        held_out = max(1, min(_HELD_OUT, self.interactions.n_users // 10))
        return split_users(self.interactions, validation=0, test=held_out)

    def describe(self) -> dict[str, Any]:
        """Say where the data come from, and how large the training part is."""
        train = self.split.train
        sizes = {"users": train.n_users, "items": train.n_items, "interactions": train.nnz}
        return {"source": self.source, **sizes}


def built_in(name: str) -> DataSet:
    """Make up a marketplace shaped like a well-known data set."""
    users, items, interactions = SHAPES[name]
    return DataSet(name, marketplace(users, items, interactions).interactions)


def read_named(text: str) -> DataSet:
    """Read a data set as ``--data`` names it: NAME=FILE, then settings of `limelight.read`.

    Raises
    ------
    ConfigError
        If the text cannot be understood.
    """
    name, path, settings = parse_named(text)
    return DataSet(name, read(path, **settings), source=path.rpartition("/")[2])


def parse_named(text: str) -> tuple[str, str, dict[str, Any]]:
    """Take ``NAME=FILE,setting=value,...`` apart.

    Examples
    --------
    >>> parse_named("ml-1m=ratings.parquet,rating=stars,min-rating=4")
    ('ml-1m', 'ratings.parquet', {'rating': 'stars', 'min_rating': 4.0})
    """
    first, *rest = text.split(",")
    name, is_named, path = first.partition("=")
    if not (is_named and name and path):
        message = f"--data must be NAME=FILE: {text!r}"
        hint = "for example --data ml-1m=ratings.parquet,rating=rating,min-rating=4"
        raise ConfigError(message, hint=hint)
    return name, path, dict(_setting(part) for part in rest)


def _setting(part: str) -> tuple[str, Any]:
    given, _, value = part.partition("=")
    name = given.strip().replace("-", "_")
    if name in _TEXTS and value:
        return name, value
    try:
        return name, _NUMBERS[name](value)
    except (KeyError, ValueError):
        message = f"not a setting of --data: {part!r}"
        known = ", ".join(known.replace("_", "-") for known in (*_TEXTS, *_NUMBERS))
        raise ConfigError(message, hint=f"after the file may follow: {known}") from None
