"""Finding the law of relevance that fits held-out pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.settings import check_integer
from limelight._errors import DataError
from limelight.data.candidates import Block
from limelight.data.grouping import pair_numbers, row_numbers
from limelight.evaluate.lists import position_weights
from limelight.recommend.candidate_ranking import as_ranking
from limelight.recommend.histories import history_rows, take_rows
from limelight.rerank.relevance import HEAD, Relevance, features

if TYPE_CHECKING:
    from limelight._arrays import Float64, Int64
    from limelight._native._kernels import Csr
    from limelight.recommend.ranking import Ranking

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


def calibrate(ranking: Ranking, targets: Any, k: int = 20, *, seed: int = 0) -> Relevance:
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
    seed
        Of the pairs that are looked at, where there are many.

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
    check_integer("seed", seed, least=0)
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
    pairs = _thin(_look(ranking, users, wanted, k), generator)
    if not pairs.gains.any():
        message = f"none of the held-out pairs of {len(users):,} users is among their candidates"
        raise DataError(message, hint="check that both name users and items in the same way")
    laws = [_fit(pairs, scale) for scale in _scales(pairs.block)]
    return min(laws, key=lambda found: found[0])[1]


def _look(ranking: Ranking, users: Int64, targets: Csr, k: int) -> _Pairs:
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
    """Leave most deep candidates out, which are many and alike; features are made before."""
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
