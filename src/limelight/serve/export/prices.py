"""What other programs need to know of a model's control: prices by item, and what they add to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limelight._base.errors import ConfigError
from limelight.data.candidates.candidates import Block
from limelight.rerank.methods.frank_wolfe import Prices
from limelight.rerank.methods.group_shares import GroupPrices
from limelight.rerank.relevance import Relevance, ScoreRelevance

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float32, Float64, Int32
    from limelight.models.recommender import Recommender
    from limelight.rerank.market.pool import Law
    from limelight.rerank.reranker import Reranker

_DRAW = (
    "hash the text of the user's id by BLAKE2b to 8 bytes, salted by the seed as 8 bytes, the "
    "lowest first; read it as such a number, divide it by 2^64, and take the first set whose "
    "chance, added to all before it, is larger; users.parquet has the sets of known users"
)
_RELEVANCE = (
    "exp(constant + score * log(max(s, floor)) + head * log(h) + rank * log(r + 1)), with s the "
    "score, h the geometric mean of max(s, floor) over the user's 20 best, r the rank from 1, "
    "which equal scores share; of the scale logit, s stands for log(max(s, floor)). Curves add "
    "their value in between the knots, of log score, log head, log rank or log score less log "
    "head; items.parquet has what each item adds as log_factor"
)


@dataclass(frozen=True, eq=False)
class ItemPrices:
    """What is added to the relevance of items, whoever was served before."""

    name: str
    """Of the re-ranker that has them."""
    sets: Float32
    """One row a set, one column an item."""
    chances: Float64
    """How often each set is drawn."""
    law: Law
    """What relevance is."""
    candidates: int | None
    """How many items of a ranking each user chooses from."""
    seed: int = 0
    draw_sets: Callable[[Any], Int32] | None = None
    """Says by their ids which set users have; None where there is one."""

    @property
    def is_linear(self) -> bool:
        """Whether scores are relevance, so that an index can rank by score plus price."""
        return isinstance(self.law, ScoreRelevance)

    @property
    def mean(self) -> Float32:
        """The price of each item, on average over who draws what."""
        return np.asarray(self.chances @ self.sets, dtype=np.float32)

    def draw(self, user_ids: Any) -> Int32:
        """Return which set of prices each user has."""
        if self.draw_sets is None:
            return np.zeros(len(user_ids), dtype=np.int32)
        return self.draw_sets(user_ids)

    def values(self, ids: Int32, scores: Float32, draws: Int32) -> Float32:
        """Return what items are worth, one row a user, each user's best score first."""
        if self.is_linear:
            relevance = scores
        else:
            indptr = np.arange(len(ids) + 1) * ids.shape[1]
            relevance = self.law(Block(indptr, ids.ravel(), scores.ravel())).reshape(ids.shape)
        return np.asarray(relevance + self.sets[draws[:, None], ids], dtype=np.float32)

    @property
    def log_factors(self) -> tuple[float, ...]:
        """What the law adds for each item, if it does."""
        return self.law.items if isinstance(self.law, Relevance) else ()

    def record(self) -> dict[str, Any]:
        """Say how prices are used, for somebody who has only files."""
        found: dict[str, Any] = {
            "reranker": self.name,
            "value": "relevance + price: show the items of the highest value, by relevance",
            "sets": len(self.sets),
        }
        if self.draw_sets is not None:
            found |= {"draw": _DRAW, "seed": self.seed, "chances": self.chances.tolist()}
        if isinstance(self.law, Relevance):
            settings = asdict(self.law)
            settings.pop("items")
            return found | {"relevance": _RELEVANCE, "law": settings}
        return found | {"relevance": "the score", "law": None}


def prices_of(recommender: Recommender) -> ItemPrices | None:
    """Return the prices of a model's control; None if nothing controls it.

    Raises
    ------
    ConfigError
        If its lists depend on more than prices.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.IALS(factors=8, epochs=2).fit(ll.marketplace(300, 100, 4000).interactions)
    >>> prices = ll.FrankWolfe(strength=0.3, steps=5).fit(model.ranking(), k=10)
    >>> prices_of(prices.over(model)).sets.shape
    (5, 100)
    """
    reranker: Reranker | None = recommender.reranker
    if reranker is None:
        return None
    name = type(reranker).__name__
    if isinstance(reranker, Prices):
        config = reranker.config
        law = _law(reranker)
        draw = reranker.draw if len(reranker.mixture.chances) > 1 else None
        return ItemPrices(
            name, *reranker.mixture, law, config.candidates, config.random_state, draw
        )
    if isinstance(reranker, GroupPrices):
        sets = -reranker.item_prices[None]
        return ItemPrices(name, sets, np.ones(1), _law(reranker), reranker.config.candidates)
    message = f"{name} has no prices by item: its lists depend on who was served before"
    raise ConfigError(
        message,
        hint="fit with --serve stateless, which finds prices; or add --plain, which leaves the "
        "control out",
    )


def _law(reranker: Reranker) -> Law:
    law = reranker.config.relevance
    if not isinstance(law, Relevance | ScoreRelevance):
        message = f"this law of relevance cannot be exported: {law!r}"
        raise ConfigError(
            message, hint="use what calibrate returns, Relevance() or ScoreRelevance()"
        )
    return law
