"""What a candidate is worth to its user, from its score and its rank among her candidates.

Scores of different users, and of different models, mean different things. Prices need one scale.
The law here is a product of powers,

    relevance = c * score^a * head^b * (rank + 1)^r,

where head is the geometric mean of the user's first 20 scores, and candidates with equal scores
share their mean rank. Of logits, which may be negative, the exponential takes the place of the
score. a >= 0 and r <= 0, so that relevance falls along a user's candidates. :func:`calibrate` finds
the law that fits held-out pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.seeds import seed_of
from limelight._base.settings import check_choice, check_integer, check_number
from limelight.data.candidates.candidates import Block
from limelight.data.rows import pair_numbers, row_numbers
from limelight.metrics.lists import position_weights
from limelight.recommend.fold_in import history_rows, take_rows
from limelight.recommend.ranking import as_ranking

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64, Int64
    from limelight._base.seeds import RandomState
    from limelight._native._kernels import Csr
    from limelight.recommend.ranking import Ranking


HEAD = 20
"""How many candidates, the first, tell the level of a user's scores."""
_LARGEST = 80.0  # exp of it fits 32 bits


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

    def __post_init__(self) -> None:
        """Refuse laws by which relevance would rise along a user's candidates."""
        for name in ("score", "head", "rank", "constant"):
            check_number(name, getattr(self, name), above=-np.inf)
        check_number("floor", self.floor, above=0)
        check_choice("scale", self.scale, ["log", "logit"])
        if self.score < 0 or self.rank > 0:
            message = f"relevance would rise along the candidates: {self!r}"
            raise ConfigError(message, hint="score must be 0 or more, rank 0 or less")

    def __call__(self, block: Block) -> Float32:
        """Return the relevance of some users' candidates."""
        levels, heads, ranks = features(block, scale=self.scale, floor=self.floor)
        exponent = self.constant + self.score * levels + self.head * heads + self.rank * ranks
        relevance = np.exp(np.clip(exponent, -_LARGEST, _LARGEST)).astype(np.float32)
        return _level(relevance, block.indptr)


BY_RANK = Relevance()
"""What is assumed where nothing was held out: only the order of a user's candidates counts."""


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


_USERS = 2000
"""How many users with something to find are looked at, at most."""
_DEPTH = 2000
"""How many of a user's candidates are looked at, at most."""
_EVERY = 200
"""Ranks up to this are all looked at; deeper ones in inverse proportion, with as much weight."""
_PIVOT = 0.5  # a scale is positive if so much of the first candidates' scores is
_STEPS = 100
_RIDGE = 1e-3


class _Pairs(NamedTuple):
    """What the fit sees: a gain for each pair, and how many pairs it stands for."""

    block: Block
    gains: Float64
    weights: Float64


def calibrate(
    ranking: Ranking,
    targets: Any,
    k: int = 20,
    *,
    random_state: RandomState | None = None,
    seed: int | None = None,
) -> Relevance:
    """Fit a law of relevance to held-out pairs.

    The relevance of a candidate is what it would add to its user's nDCG@k from the first place: the
    chance that it is among her held-out items, over the nDCG's norm. So the relevance of lists is
    in the units of accuracy, and users with few held-out items count as much as others.

    Parameters
    ----------
    ranking
        Who ranks what, such as ``model.ranking(split.validation.history)``.
    targets : sparse matrix
        Held-out items, one row a user of the ranking.
    k
        Length of the lists.
    random_state
        Seed of the pairs that are looked at, where there are many; 0 unless given. A NumPy
        generator draws one.
    seed
        The older name of ``random_state``.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(900, 100, 20000)
    >>> split = ll.split_users(market.interactions, validation=200, test=200)
    >>> model = ll.IALS(factors=8).fit(split.train)
    >>> part = split.validation
    >>> law = calibrate(model.ranking(part.history), part.targets)
    >>> law.score >= 0 and law.rank <= 0
    True
    """
    check_integer("k", k, least=1)
    seed = seed_of(random_state, seed)
    check_integer("random_state", seed, least=0)
    ranking = as_ranking(ranking)
    generator = np.random.default_rng(seed)
    wanted = history_rows(targets, np.arange(ranking.n_items))
    if wanted.n_rows != ranking.n_users:
        message = f"targets have {wanted.n_rows:,} rows, the ranking {ranking.n_users:,} users"
        raise DataError(message, hint="give one row of held-out items for each user of the ranking")
    users = np.flatnonzero(np.diff(wanted.indptr) > 0)
    if len(users) == 0:
        message = "no held-out pair to calibrate with"
        raise DataError(message, hint="hold out some interactions of users who have candidates")
    users = np.sort(generator.permutation(users)[:_USERS])
    pairs = _thin(_gains_of(ranking, users, wanted, k), generator)
    if not pairs.gains.any():
        message = f"none of the held-out pairs of {len(users):,} users is among their candidates"
        raise DataError(message, hint="check that both name users and items in the same way")
    laws = [_fit(pairs, scale) for scale in _scales(pairs.block)]
    return min(laws, key=lambda found: found[0])[1]


def _gains_of(ranking: Ranking, users: Int64, targets: Csr, k: int) -> _Pairs:
    """Find the gain of every candidate of some users."""
    ids, scores = ranking.top(users, min(_DEPTH, ranking.n_items))
    is_there = ids >= 0
    indptr = np.append(0, np.cumsum(is_there.sum(axis=1)))
    block = Block(indptr, ids[is_there], scores[is_there])
    counts = np.diff(targets.indptr)[users]
    norms = np.cumsum(position_weights(k))[np.minimum(counts, k) - 1]
    rows = row_numbers(indptr)
    wanted = take_rows(targets, users)
    hits = np.isin(
        pair_numbers(rows, block.items, ranking.n_items),
        pair_numbers(row_numbers(wanted.indptr), wanted.indices, ranking.n_items),
    )
    return _Pairs(block, hits / norms[rows], np.ones(len(rows)))


def _thin(pairs: _Pairs, generator: np.random.Generator) -> _Pairs:
    """Give most candidates of deep ranks weight 0, because they are many and alike.

    They stay in the block, because the features of the others depend on their ranks.
    """
    block = pairs.block
    place = np.arange(len(pairs.gains)) - block.indptr[row_numbers(block.indptr)]
    chance = np.minimum(1, _EVERY / (place + 1))
    weights = np.where(generator.random(len(place)) < chance, 1 / chance, 0.0)
    return pairs._replace(weights=weights)


def _scales(block: Block) -> list[Literal["log", "logit"]]:
    place = np.arange(len(block.scores)) - block.indptr[row_numbers(block.indptr)]
    is_positive = np.mean(block.scores[place < HEAD] > 0) > _PIVOT
    return ["log", "logit"] if is_positive else ["logit"]


def _fit(pairs: _Pairs, scale: Literal["log", "logit"]) -> tuple[float, Relevance]:
    """Fit one kind of law; returns how badly it fits, and the law."""
    first = pairs.block.scores[pairs.block.indptr[:-1][np.diff(pairs.block.indptr) > 0]]
    floor = max(1e-3 * float(np.median(first)), 1e-30)
    used = pairs.weights > 0
    columns = [values[used] for values in features(pairs.block, scale=scale, floor=floor)]
    signs = (1, 0, -1)  # relevance rises with the score and falls with the rank
    chosen = [0, 1, 2]
    while True:
        loss, slopes, constant = _regress(
            np.column_stack([columns[c] for c in chosen]), pairs.gains[used], pairs.weights[used]
        )
        wrong = [c for c, slope in zip(chosen, slopes, strict=True) if slope * signs[c] < 0]
        if not wrong:
            break
        chosen.remove(wrong[0])
    powers = dict.fromkeys(("score", "head", "rank"), 0.0)
    names = list(powers)
    powers.update({names[c]: float(s) for c, s in zip(chosen, slopes, strict=True)})
    return loss, Relevance(**powers, constant=float(constant), scale=scale, floor=floor)


def _regress(X: Float64, y: Float64, weights: Float64) -> tuple[float, Float64, float]:
    """Fit log E[y] = X slopes + constant by damped Newton steps on the Poisson likelihood."""
    centre = np.average(X, axis=0, weights=weights)
    spread = np.sqrt(np.average((X - centre) ** 2, axis=0, weights=weights)) + 1e-9
    Z = np.column_stack([(X - centre) / spread, np.ones(len(X))])
    ridge = np.append(np.full(X.shape[1], _RIDGE), 0.0)

    def loss_at(theta: Float64) -> float:
        exponent = np.minimum(Z @ theta, 30.0)
        return float(weights @ (np.exp(exponent) - y * exponent) + ridge @ theta**2)

    theta = np.append(np.zeros(X.shape[1]), np.log(np.average(y, weights=weights)))
    loss = loss_at(theta)
    for _ in range(_STEPS):
        rate = weights * np.exp(np.minimum(Z @ theta, 30.0))
        gradient = Z.T @ (rate - weights * y) + 2 * ridge * theta
        hessian = (Z * rate[:, None]).T @ Z + np.diag(2 * ridge + 1e-9)
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while loss_at(theta - size * step) > loss and size > 1e-6:
            size /= 2
        theta = theta - size * step
        before, loss = loss, loss_at(theta)
        if before - loss <= 1e-9 * abs(before):
            break
    slopes = theta[:-1] / spread
    return loss, slopes, float(theta[-1] - slopes @ centre)
