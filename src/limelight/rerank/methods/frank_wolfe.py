"""Frank-Wolfe: a mixture of prices that shares exposure on average, for users in any order.

One set of prices for everybody fails: near the optimum many users are almost indifferent, and all
of them move to the same cheap items. A mixture does not: each user draws one set of prices.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import check_integer, hyperparameters, setting
from limelight._base.text import short
from limelight._native import resolve_threads
from limelight.rerank.market.market import choose
from limelight.rerank.methods import register
from limelight.rerank.methods.market_config import GroupAccountsConfig, GroupAccountsReranker
from limelight.rerank.relevance import ScoreRelevance
from limelight.rerank.reranker import Reranker, RerankerState
from limelight.rerank.welfare import Power, Welfare, WelfareName, as_welfare

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Float64, Int32, Int64
    from limelight.data.candidates.candidates import Candidates
    from limelight.metrics.lists import Lists
    from limelight.recommend.ranking import Ranking
    from limelight.rerank.market.pool import Pool

_SMOOTH = Power(offset=1.0)
"""A large offset, because steep prices fit only the users that they were found for."""


@dataclass(frozen=True, kw_only=True)
class FrankWolfeConfig(GroupAccountsConfig):
    """The settings of :class:`FrankWolfe`."""

    welfare: Welfare | WelfareName = setting(_SMOOTH, "What shared exposure is worth.")
    steps: int = setting(100, "How many sets of prices are mixed.", at_least=1, at_most=10_000)

    def check_own_settings(self) -> None:
        """Check that the welfares are known, and of exposure."""
        super().check_own_settings()
        for welfare in (self.welfare, self.group_welfare):
            if as_welfare(welfare).by_impact:
                message = f"prices cannot follow impact: {welfare!r}"
                hint = "use BestResponse, whose subsidies depend on the user"
                raise ConfigError(message, hint=hint)


class Mixture(NamedTuple):
    """Sets of prices, and how often each is drawn."""

    subsidies: Float32
    """What is added to the relevance of each item, one row a set."""
    chances: Float64
    """Of the rows; they add up to 1."""


@register(FrankWolfeConfig)
class FrankWolfe(GroupAccountsReranker):
    """Lists drawn from the policy of the largest relevance plus welfare (Do and Usunier, 2021).

    Each step sets prices by the exposure so far, asks what everybody would choose, and mixes that
    in with weight 2 / (t + 2). Users then draw one of the sets of prices. The mean exposure of the
    policy is optimal in the limit; that of one draw scatters about it. For users served together
    :class:`BestResponse` is better; :meth:`fit` gives :class:`Prices`, for users who are not known
    yet. With :meth:`of`, prices follow the exposure of groups of items: an item has the prices of
    its groups, weighted by how much it is in each.

    Parameters are the fields of
    :class:`~limelight.rerank.methods.frank_wolfe.FrankWolfeConfig`, by name.

    Examples
    --------
    >>> import limelight as ll
    >>> market = ll.marketplace(600, 100, 9000)
    >>> split = ll.split_users(market.interactions, validation=100, test=100)
    >>> model = ll.IALS(factors=8).fit(split.train)
    >>> ranking = model.ranking(split.validation.history)
    >>> prices = ll.FrankWolfe(strength=0.3, steps=20).fit(ranking, k=10)
    >>> ids, scores = prices.rerank(model.ranking(split.test.history), k=10)
    >>> ids.shape
    (100, 10)
    """

    method = "prices"
    config: FrankWolfeConfig
    __init__ = hyperparameters(FrankWolfeConfig)

    def fit(self, ranking: Ranking | Candidates, k: int) -> Prices:
        """Find the mixture of prices for users like those of a ranking.

        Parameters
        ----------
        ranking
            Who ranks what. Best are users whom the model has not seen in training, such as
            ``model.ranking(split.validation.history)``.
        k
            Length of the lists.
        """
        with self.pool(ranking) as pool:
            return Prices(self.mix(pool, k), replace(self.config, relevance=pool.law))

    def places_from(self, pool: Pool, k: int) -> Int32:
        """Find the policy for these users and draw a list for each, by her id."""
        prices = Prices(self.mix(pool, k), self.config)
        return prices.places_from(pool, k, user_ids=pool.candidates.user_ids)

    def _lists(self, ranking: Ranking, k: int) -> Lists:
        # A ranking knows its users by row number, so users of candidates draw by row number too.
        with self.pool(ranking) as pool:
            return Prices(self.mix(pool, k), self.config).lists_from(pool, k)

    def mix(self, pool: Pool, k: int) -> Mixture:
        """Find the mixture for the users of a pool."""
        market = self.config.market(pool, k, **self._accounts(pool.n_items))
        market.ledger.open()

        def respond(prices: Float32) -> Float64:
            places = choose(pool, k, prices[None], None, market.ledger.threads)
            return market.ledger.exposure_of(places)

        return mix_prices(
            self.config.steps,
            market.ledger.exposure,
            lambda exposure: market.subsidies(self.config.strength, exposure),
            respond,
        )


def mix_prices(
    steps: int,
    exposure: Float64,
    price: Callable[[Float64], Float64],
    respond: Callable[[Float32], Float64],
) -> Mixture:
    """Mix the prices of so many steps, from some exposure on.

    ``price`` gives the subsidies of items at an exposure, ``respond`` the exposure that everybody's
    choice at some subsidies gives.
    """
    subsidies = np.empty((steps, len(exposure)), dtype=np.float32)
    chances = np.zeros(steps)
    for step in range(steps):
        subsidies[step] = price(exposure)
        weight = 2 / (step + 3)
        exposure = (1 - weight) * exposure + weight * respond(subsidies[step])
        chances *= 1 - weight
        chances[step] = weight
    return Mixture(subsidies, chances / chances.sum())


@dataclass(frozen=True, eq=False)
class PricesState(RerankerState):
    """A mixture of prices."""

    subsidies: Float32
    chances: Float64


@register(FrankWolfeConfig)
class Prices(Reranker):
    """Serves anybody, at prices that she draws by a hash of her id: nothing is remembered.

    The same user gets the same prices again, also on another machine. :meth:`FrankWolfe.fit` makes
    it.

    Parameters
    ----------
    mixture
        Sets of prices, and how often each is drawn.
    config
        How they were found: what relevance is, how many candidates there are, the seed of the
        draws.
    """

    serves, by_user = "alone", True
    state_type = PricesState
    config: FrankWolfeConfig

    def __init__(self, mixture: Mixture, config: FrankWolfeConfig) -> None:
        self.mixture, self.config = mixture, config

    def rerank(self, ranking: Ranking | Candidates, k: int, *, user_ids: Any = None) -> Lists:
        """Return lists of k places, one row for each user of the ranking.

        Parameters
        ----------
        ranking, k
            What users would like best, and the length of the lists.
        user_ids
            Who the users are, integers or text; their row numbers, unless given.
        """
        check_integer("k", k, least=1)
        with self.pool(ranking) as pool:
            return self.choose(pool, k, user_ids)

    def choose(self, pool: Pool, k: int, user_ids: Any) -> Lists:
        """Return the lists of a pool's users."""
        return pool.lists(self.places_from(pool, k, user_ids=user_ids))

    def places_from(self, pool: Pool, k: int, *, user_ids: Any = None) -> Int32:
        """Return the same lists as places among each user's candidates."""
        ids = np.arange(pool.n_users) if user_ids is None else np.asarray(user_ids)
        if len(ids) != pool.n_users:
            message = f"{len(ids):,} user ids for {pool.n_users:,} users"
            raise DataError(message, hint="pass one id for each row of the ranking")
        threads = resolve_threads(self.config.num_threads)
        return choose(pool, k, self.mixture.subsidies, self.draw(ids), threads)

    def state(self) -> PricesState:
        """Return the mixture."""
        return PricesState(*self.mixture)

    def restore(self, state: PricesState, n_items: int) -> None:
        """Take over a mixture."""
        steps = self.config.steps
        subsidies = state.array("subsidies", (steps, n_items)).astype(np.float32)
        chances = state.array("chances", (steps,)).astype(np.float64)
        if (chances < 0).any() or not np.isclose(chances.sum(), 1):
            message = f"chances must be 0 or more and add up to 1: {short(chances.tolist())}"
            raise DataError(message, hint="save the model again")
        self.mixture = Mixture(subsidies, chances)

    def draw(self, user_ids: Any) -> Int32:
        """Return which set of prices each user has, by ids that are integers or text."""
        ends = np.cumsum(self.mixture.chances)
        numbers = uniform(user_ids, self.config.random_state)
        drawn: Int64 = np.searchsorted(ends, numbers, side="right")
        return np.minimum(drawn, len(ends) - 1).astype(np.int32)

    def item_vectors(self, item_vectors: Float32, draw: int | None = None) -> Float32:
        """Return item vectors with their prices, for an index of maximum inner products.

        For one draw there is one dimension more, and a user who drew these prices is searched for
        by her own vector and a 1. For all draws there is one more for each set of prices, so that
        one index serves everybody: a user's vector is followed by zeros, and a 1 at her draw.

        Her k nearest items are then what :meth:`rerank` chooses. Fetch k and as many as her history
        has, leave out what she has seen, keep k, and sort them by relevance. An index of the mean
        prices is no substitute, because it misses items that users choose at their own.

        Parameters
        ----------
        item_vectors
            One row an item, such as ``model.item_factors``.
        draw
            Which set of prices; all of them, unless given.
        """
        if not isinstance(self.config.relevance, ScoreRelevance):
            message = f"relevance is not the product of vectors: {self.config.relevance!r}"
            raise ConfigError(
                message, hint="find the prices with relevance=limelight.rerank.ScoreRelevance()"
            )
        sets = self.mixture.subsidies if draw is None else self.mixture.subsidies[[draw]]
        return np.column_stack([item_vectors, sets.T])


def uniform(user_ids: Any, seed: int) -> Float64:
    """Hash ids to numbers from 0 to 1 that look random, the same on every machine.

    Examples
    --------
    >>> uniform([7, 8], seed=0).round(3)
    array([0.51 , 0.977])
    >>> bool(uniform(["7"], seed=0) == uniform([7], seed=0))
    True
    """
    salt = int(seed).to_bytes(8, "little")
    digests = b"".join(
        hashlib.blake2b(str(user).encode(), digest_size=8, salt=salt).digest()
        for user in np.asarray(user_ids).tolist()
    )
    return np.frombuffer(digests, dtype="<u8") / 2.0**64
