"""Laws of relevance: what a candidate is worth to its user.

Scores of different users, and of different models, mean different things. Prices need one scale.
The law here is a product of powers,

    relevance = c * score^a * head^b * (rank + 1)^r,

where head is the geometric mean of the user's first 20 scores, and candidates with equal scores
share their mean rank. Of logits, which may be negative, the exponential takes the place of the
score. a >= 0 and r <= 0, so that relevance falls along a user's candidates.

Where enough is known, curves bend the powers: each adds a piecewise linear function of the
logarithm of the score, the head, the rank or the gap (score over head) to the logarithm of
relevance. A factor of each item comes on top, because models overrate and underrate items by
their popularity. With it, relevance need not fall along the scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_choice, check_number
from limelight._base.text import short
from limelight.data.rows import row_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Float64, Int64
    from limelight.data.candidates.candidates import Block, Candidates


HEAD = 20
"""How many candidates, the first, tell the level of a user's scores."""
_LARGEST = 80.0  # exp of it fits 32 bits
Curve: TypeAlias = tuple[str, tuple[float, ...], tuple[float, ...]]
"""A feature, knots that ascend, and what is added there; beyond them it stays as it is."""
FEATURES: dict[str, Callable[[Float64, Float64, Float64], Float64]] = {
    "score": lambda levels, heads, ranks: levels,
    "head": lambda levels, heads, ranks: heads,
    "rank": lambda levels, heads, ranks: ranks,
    "gap": lambda levels, heads, ranks: levels - heads,
}
"""What curves are of, by the logarithms of score, head and rank."""


@dataclass(frozen=True, kw_only=True)
class Relevance:
    """A law of relevance; :func:`calibrate` finds the one that fits held-out pairs.

    Examples
    --------
    >>> from limelight.data.candidates.candidates import Block
    >>> block = Block(np.array([0, 3]), np.arange(3, dtype=np.int32), np.float32([3, 2, 1]))
    >>> Relevance(rank=-1.0)(block).round(2)
    array([0.5 , 0.33, 0.25], dtype=float32)
    """

    score: float = 0.0
    """a"""
    head: float = 0.0
    """b"""
    rank: float = -0.7
    """r"""
    constant: float = 0.0
    """log c"""
    scale: Literal["log", "logit"] = "log"
    """Whether scores are positive, or logits."""
    floor: float = 1e-3
    """Positive scores below this count as this."""
    curves: tuple[Curve, ...] = field(default=(), repr=False)
    """What bends the powers."""
    items: tuple[float, ...] = field(default=(), repr=False)
    """By item number, the logarithm of its factor; items beyond them have the factor 1."""

    def __post_init__(self) -> None:
        """Refuse laws by which relevance would rise along a user's candidates."""
        # Folders hold lists where laws have tuples.
        own = tuple((str(name), tuple(knots), tuple(ys)) for name, knots, ys in self.curves)
        object.__setattr__(self, "curves", own)
        object.__setattr__(self, "items", tuple(self.items))
        for name in ("score", "head", "rank", "constant"):
            check_number(name, getattr(self, name), above=-np.inf)
        check_number("floor", self.floor, above=0)
        check_choice("scale", self.scale, ["log", "logit"])
        if self.score < 0 or self.rank > 0:
            message = f"relevance would rise along the candidates: {self!r}"
            raise ConfigError(message, hint="score must be 0 or more, rank 0 or less")
        for name, knots, values in self.curves:
            check_choice("curve", name, list(FEATURES))
            if not (len(knots) == len(values) >= 2 and (np.diff(knots) > 0).all()):
                message = f"the knots of a curve must rise, one value each: {short(knots)}"
                raise ConfigError(message, hint="use what calibrate returns")

    def __call__(self, block: Block) -> Float32:
        """Return the relevance of some users' candidates."""
        levels, heads, ranks = features(block, scale=self.scale, floor=self.floor)
        exponent = self.constant + self.score * levels + self.head * heads + self.rank * ranks
        for name, knots, values in self.curves:
            exponent += np.interp(FEATURES[name](levels, heads, ranks), knots, values)
        if self.items:
            exponent += self._item_terms[np.minimum(block.items, len(self.items))]
        relevance = np.exp(np.clip(exponent, -_LARGEST, _LARGEST)).astype(np.float32)
        # Factors of items may change the order of candidates; nothing else may.
        return relevance if self.items else _level(relevance, block.indptr)

    @cached_property
    def _item_terms(self) -> Float32:
        return np.append(np.asarray(self.items, dtype=np.float32), np.float32(0))


BY_RANK = Relevance()
"""What is assumed where nothing was held out: only the order of a user's candidates counts."""


BY_SCORES = Relevance(score=1.4, head=-0.45, rank=-0.25)
"""About what held-out pairs gave on many sets, by several models."""
_LOWEST, _MOST = -0.01, 0.98
"""Scores have powers if this part of a user's first 20 is not negative, by more than this share of
the usual first score."""
_USERS = 2000
"""How many users tell what scores are like."""


def by_scores(candidates: Candidates) -> Relevance:
    """Return what is assumed of scores where nothing was held out.

    Of positive scores their shape and level count. It does not matter in what unit they are. Where
    scores of a user's first 20 candidates may be negative, only the order counts.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from limelight.data.candidates.candidates import read_candidates
    >>> table = pa.table({"user_id": [1, 1], "item_id": [5, 6], "score": [0.9, 0.1]})
    >>> by_scores(read_candidates(table)).score
    1.4
    """
    users = np.flatnonzero(candidates.counts > 0)
    if not len(users):
        return BY_RANK
    block = candidates.take(users[:: len(users) // _USERS + 1])
    usual = float(np.median(block.scores[block.indptr[:-1]]))
    place = np.arange(len(block.scores)) - block.indptr[row_numbers(block.indptr)]
    if usual <= 0 or np.mean(block.scores[place < HEAD] >= _LOWEST * usual) < _MOST:
        return BY_RANK
    # Rounded to a power of ten, the floor is the same for most samples of users.
    return replace(BY_SCORES, floor=float(10.0 ** np.floor(np.log10(max(1e-3 * usual, 1e-36)))))


@dataclass(frozen=True)
class ScoreRelevance:
    """Scores that are on one scale for all users, such as probabilities, stand for themselves.

    Examples
    --------
    >>> from limelight.data.candidates.candidates import Block
    >>> ScoreRelevance()(Block(np.array([0, 1]), np.zeros(1, np.int32), np.ones(1, np.float32)))
    array([1.], dtype=float32)
    """

    def __call__(self, block: Block) -> Float32:
        """Return the scores; below 0, where nothing is worth showing, 0."""
        first = block.scores[block.indptr[:-1][np.diff(block.indptr) > 0]]
        if (first < 0).any():
            message = f"a user's best score is below 0, which is no relevance: {first.min():g}"
            hint = "give held-out pairs that say what scores mean, or let only their order count"
            raise DataError(message, hint=hint)
        return np.maximum(block.scores, np.float32(0))


def check_law(law: object) -> None:
    """Refuse what is no law of relevance.

    Examples
    --------
    >>> check_law(BY_RANK)
    """
    if not callable(law):
        message = f"relevance must be a law: {law!r}"
        raise ConfigError(
            message, hint="use what calibrate returns, Relevance() or ScoreRelevance()"
        )


def features(
    block: Block, *, scale: Literal["log", "logit"], floor: float
) -> tuple[Float64, Float64, Float64]:
    """Return log score, log head and log (rank + 1) of candidates; rank is from 1."""
    scores = block.scores.astype(np.float64)
    levels = scores if scale == "logit" else np.log(np.maximum(scores, floor))
    rows = row_numbers(block.indptr)
    in_head = np.arange(len(levels)) - block.indptr[rows] < HEAD
    sizes = np.maximum(np.minimum(np.diff(block.indptr), HEAD), 1)
    heads = np.bincount(rows[in_head], levels[in_head], minlength=len(sizes)) / sizes
    return levels, heads[rows], np.log(_places(block) + 2.0)


def _places(block: Block) -> Float64:
    """Return the place of each candidate, from 0; equal scores of a user share their mean place."""
    is_first = np.ones(len(block.scores), dtype=np.bool_)
    is_first[1:] = np.diff(block.scores) != 0
    is_first[block.indptr[:-1][np.diff(block.indptr) > 0]] = True
    starts = np.append(np.flatnonzero(is_first), len(is_first))
    middle = (starts[:-1] + starts[1:] - 1) / 2
    place = middle[np.cumsum(is_first) - 1] - block.indptr[row_numbers(block.indptr)]
    return np.asarray(place)


def _level(relevance: Float32, indptr: Int64) -> Float32:
    """Lower values by a last bit where rounding lets relevance rise along a row."""
    is_first = np.zeros(len(relevance) + 1, dtype=np.bool_)
    is_first[indptr] = True
    while len(rises := np.flatnonzero((np.diff(relevance) > 0) & ~is_first[1:-1]) + 1):
        relevance[rises] = relevance[rises - 1]
    return relevance
