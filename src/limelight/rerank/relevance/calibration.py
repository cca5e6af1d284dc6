"""Which law of relevance fits held-out pairs.

First the four numbers of a product of powers are fitted, as one Poisson regression of gains. Then
curves and the factors of items are fitted on top, with a ridge that draws them back to the powers.
How strong it is is chosen by held-back users, so with few pairs hardly more than the powers is
left. Factors of items are kept only if held-back users find more in the order that they give.
Bounds on slopes keep relevance from falling with the score, or rising with the rank.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from limelight._base.errors import DataError
from limelight._base.seeds import seed_of
from limelight._base.settings import check_integer
from limelight.data.candidates.candidates import Block
from limelight.data.rows import pair_numbers, row_numbers
from limelight.metrics.lists import position_weights
from limelight.recommend.fold_in import history_rows, take_rows
from limelight.recommend.ranking import as_ranking
from limelight.rerank.relevance.laws import (
    BY_RANK,
    BY_SCORES,
    FEATURES,
    HEAD,
    Relevance,
    features,
)
from limelight.rerank.relevance.regression import Regression

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from limelight._base.arrays import Float64, Int64
    from limelight._base.seeds import RandomState
    from limelight._native._kernels import Csr
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.relevance.regression import RegressionFit

_USERS = 2000
"""How many users with held-out items to find are looked at, at most."""
_DEPTH = 2000
"""How many of a user's candidates are looked at, at most."""
_RANKS = 25_000
"""How many first ranks of all users together are looked at; deeper ones in inverse proportion, with
as much weight. Fewer users are looked at more closely."""
_SHOWN = 100
"""An item is popular, where nothing else is known, if it is often among a user's first so many."""
_PIVOT = 0.5  # a scale is positive if so much of the first candidates' scores is
_USUAL = {"log": BY_SCORES, "logit": BY_RANK}
_DOUBT = 2.0  # how much worse, in log-likelihood, the first scale may fit
_RIDGE = 5.0  # of the powers, about the usual ones: some twenty hits count for as much
_RIDGES = (1000.0, 100.0, 10.0)
"""Of what comes on top. With fewer hits than _ENOUGH they grow in proportion."""
_ENOUGH = 1000
_FOLDS = 3
_FEWEST = 3 * _FOLDS
"""Users with held-out items to find among their candidates; fewer tell of the powers alone."""
_LEVELS = (0.0, 0.2, 0.5, 0.8, 1.0)
"""Where the knots of a curve are, as quantiles of the pairs that matter."""
_POPULARITY = "popularity"
_DIGITS = 5  # of curves and factors


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
    popularity: Any = None,
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
    popularity
        How many users are known to like each item, by item number, such as
        ``split.train.matrix.getnnz(axis=0)``. Unless given, an item is as popular as it is often
        among the first 100 candidates of these users.
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
    counts = _popularity(popularity, pairs.block, ranking.n_items)
    if not pairs.gains.any():
        message = f"none of the held-out pairs of {len(users):,} users is among their candidates"
        raise DataError(message, hint="check that both name users and items in the same way")
    laws = [_powers(pairs, scale) for scale in _scales(pairs.block)]
    # Positive scores are taken for logits only if these fit clearly better.
    powers = min(laws, key=lambda found: found[0] + _DOUBT * (found is not laws[0]))[1]
    folds = _folds(pairs, generator)
    if folds is None:
        return powers
    bending = _Bending(pairs, powers, np.log1p(counts), folds)
    # Factors of items change the order of candidates, so it must be seen that users like it.
    if not bending.orders_better(folds, k):
        bending = _Bending(pairs, powers, None, folds)
    return bending.law()


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
    """Give most candidates of deep ranks weight 0, because they are many and alike; hits stay.

    They stay in the block, because the features of the others depend on their ranks.
    """
    block = pairs.block
    place = np.arange(len(pairs.gains)) - block.indptr[row_numbers(block.indptr)]
    every = max(_RANKS // (len(block.indptr) - 1), HEAD)
    chance = np.where(pairs.gains > 0, 1, np.minimum(1, every / (place + 1)))
    weights = np.where(generator.random(len(place)) < chance, 1 / chance, 0.0)
    return pairs._replace(weights=weights)


def _scales(block: Block) -> list[Literal["log", "logit"]]:
    place = np.arange(len(block.scores)) - block.indptr[row_numbers(block.indptr)]
    is_positive = np.mean(block.scores[place < HEAD] > 0) > _PIVOT
    return ["log", "logit"] if is_positive else ["logit"]


def _popularity(given: Any, block: Block, n_items: int) -> Float64:
    """Return how popular each item is: as was given, or by whom it could be shown to."""
    if given is None:
        place = np.arange(len(block.items)) - block.indptr[row_numbers(block.indptr)]
        return np.bincount(block.items[place < _SHOWN], minlength=n_items).astype(np.float64)
    hint = "give one number for each item of the ranking"
    try:
        counts = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        message = f"popularity must be {n_items:,} numbers: {type(given).__name__}"
        raise DataError(message, hint=hint) from error
    if counts.shape != (n_items,):
        message = f"popularity must be {n_items:,} numbers: shape {counts.shape}"
        raise DataError(message, hint=hint)
    wrong = counts[~(np.isfinite(counts) & (counts >= 0))]
    if len(wrong):
        message = f"popularity must be 0 or more, and finite: {wrong[0]}"
        raise DataError(message, hint=hint)
    return counts


def _powers(pairs: _Pairs, scale: Literal["log", "logit"]) -> tuple[float, Relevance]:
    """Fit a product of powers; returns how badly it fits, and the law."""
    first = pairs.block.scores[pairs.block.indptr[:-1][np.diff(pairs.block.indptr) > 0]]
    floor = max(1e-3 * float(np.median(first)), 1e-30)
    used = pairs.weights > 0
    X = np.column_stack(features(pairs.block, scale=scale, floor=floor))[used]
    # Relevance rises with the score and falls with the rank.
    low, high = np.array([0, -np.inf, -np.inf]), np.array([np.inf, np.inf, 0])
    # Few pairs tell little, so powers are drawn to the usual ones, and never become all alike.
    law = _USUAL[scale]
    usual = np.array([law.score, law.head, law.rank])
    given = pairs.gains[used], pairs.weights[used], X @ usual
    found = Regression(X, *given, low - usual, high - usual).fit(_RIDGE)
    score, head, rank = np.clip(found.slopes + usual, low, high).tolist()
    known: dict[str, Any] = {"constant": found.constant, "scale": scale, "floor": floor}
    return found.loss, Relevance(score=score, head=head, rank=rank, **known)


class _Bending:
    """Fits curves, and factors of items by their popularity, on top of a product of powers.

    A curve is the sum of its segments: each grows from 0 at one knot to its width at the next, and
    its slope is found by the regression.
    """

    def __init__(
        self, pairs: _Pairs, powers: Relevance, popularity: Float64 | None, folds: Int64
    ) -> None:
        self._pairs, self._powers, self._popularity = pairs, powers, popularity
        known = features(pairs.block, scale=powers.scale, floor=powers.floor)
        self._values = {name: of(*known) for name, of in FEATURES.items()}
        if popularity is not None:
            self._values[_POPULARITY] = popularity[pairs.block.items]
        levels, heads, ranks = known
        self._offset = powers.constant + powers.score * levels + powers.head * heads
        self._offset += powers.rank * ranks
        used = pairs.weights > 0
        # Shallow ranks matter most, because lists are made of them.
        mass = pairs.weights[used] / (np.exp(ranks[used]) + HEAD)
        self._knots = {name: _knots(values[used], mass) for name, values in self._values.items()}
        bounds = _bounds(powers)
        counts = [len(knots) - 1 for knots in self._knots.values()]
        self._low, self._high = np.repeat([bounds[name] for name in self._values], counts, axis=0).T
        self._users = row_numbers(pairs.block.indptr)
        self._all = self._of(used)
        liked = max(int(np.count_nonzero(pairs.gains)), 1)
        self._ridges = [ridge * max(1.0, _ENOUGH / liked) for ridge in _RIDGES]
        self._found, self._of_others = self._fit(folds)

    def _of(self, rows: NDArray[np.bool_]) -> Regression:
        """Return the regression of some pairs."""
        columns = [_segments(v[rows], self._knots[name]) for name, v in self._values.items()]
        X, y, weights = np.concatenate(columns, axis=1), self._pairs.gains, self._pairs.weights
        return Regression(X, y[rows], weights[rows], self._offset[rows], self._low, self._high)

    def _fit(self, folds: Int64) -> tuple[RegressionFit, list[RegressionFit]]:
        """Fit all users, and all but one part, by the ridge that is best for the part left out."""
        fold = folds[self._users[self._pairs.weights > 0]]
        found, tried = None, []
        for ridge in self._ridges:
            found = self._all.fit(ridge, start=found)
            parts = [self._all.fit(ridge, fold != n, found) for n in range(_FOLDS)]
            loss = sum(self._all.loss(one, fold == n) for n, one in enumerate(parts))
            tried.append((loss, found, parts))
        return min(tried, key=lambda one: one[0])[1:]

    def orders_better(self, folds: Int64, k: int) -> bool:
        """Tell whether laws of some users order the candidates of the others better than scores do.

        It has to be more than chance: by more than the standard error of the difference in nDCG.
        """
        block = self._pairs.block
        place = np.arange(len(block.items)) - block.indptr[self._users]
        weights = np.append(position_weights(k), np.zeros(_SHOWN))
        gained = np.zeros(len(folds))
        for part, found in enumerate(self._of_others):
            shown = (place < _SHOWN) & (folds[self._users] == part)
            some = self._of(shown)
            users, worth = self._users[shown], some.offset + some.X @ found.slopes
            order = np.lexsort((-worth, users))
            moved = weights[place[shown]] * (some.y[order] - some.y)
            gained += np.bincount(users, moved, minlength=len(folds))
        return bool(gained.mean() > gained.std() / np.sqrt(len(gained)))

    def law(self) -> Relevance:
        """Return the law with as much bending as held-back users bear out."""
        if not self._all.X.shape[1]:
            return self._powers
        _, slopes, constant, _ = self._found
        rises = np.split(slopes, np.cumsum([len(knots) - 1 for knots in self._knots.values()])[:-1])
        curves = {
            name: np.append(0, np.cumsum(rise * np.diff(knots))).round(_DIGITS)
            for (name, knots), rise in zip(self._knots.items(), rises, strict=True)
        }
        factors = curves.pop(_POPULARITY, np.zeros(1))
        items: tuple[float, ...] = ()
        if self._popularity is not None and len(factors) > 1:
            found = np.interp(self._popularity, self._knots[_POPULARITY], factors)
            items = tuple(found.round(_DIGITS).tolist())
        return replace(
            self._powers,
            constant=self._powers.constant + constant,
            curves=tuple(
                (name, tuple(self._knots[name].tolist()), tuple(values.tolist()))
                for name, values in curves.items()
                if len(values) > 1
            ),
            items=items,
        )


def _folds(pairs: _Pairs, generator: np.random.Generator) -> Int64 | None:
    """Deal users into parts, those with something found evenly; None, if these are too few."""
    users = row_numbers(pairs.block.indptr)
    liked = np.unique(users[pairs.gains > 0])
    if len(liked) < _FEWEST:
        return None
    folds = generator.integers(_FOLDS, size=len(pairs.block.indptr) - 1)
    folds[generator.permutation(liked)] = np.arange(len(liked)) % _FOLDS
    return folds


def _bounds(powers: Relevance) -> dict[str, tuple[float, float]]:
    """Return how far slopes may go, so that relevance rises with the score and falls with the rank.

    The score has two curves, its own and that of the gap: each may take half of its slope back.
    """
    free = (-np.inf, np.inf)
    half = (-powers.score / 2, np.inf)
    rank = (-np.inf, -powers.rank)
    return {"score": half, "head": free, "rank": rank, "gap": half, _POPULARITY: free}


def _knots(values: Float64, mass: Float64) -> Float64:
    """Return quantiles of values of some mass, without repetition."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(mass[order])
    at = np.searchsorted(sums, np.array(_LEVELS) * sums[-1])
    knots = np.unique(values[order][np.minimum(at, len(order) - 1)].astype(np.float64))
    wide = np.diff(knots, prepend=-np.inf) > 1e-6 * (1 + np.abs(knots))
    return np.asarray(knots[wide])


def _segments(values: Float64, knots: Float64) -> Float64:
    """Return how far values go along each segment between knots."""
    return np.clip(values[:, None] - knots[:-1], 0, np.diff(knots))
