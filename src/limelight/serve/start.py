"""What control of requests starts from: what a fit found and saved, or a look at some users."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from limelight._base.errors import ConfigError
from limelight.metrics.lists import position_weights
from limelight.recommend.candidates import candidates_of
from limelight.rerank.market.market import Market
from limelight.rerank.market.pool import Pool
from limelight.rerank.methods.best_response import MarketReranker
from limelight.rerank.methods.frank_wolfe import Prices
from limelight.rerank.methods.group_shares import GroupPrices
from limelight.rerank.relevance import by_scores
from limelight.rerank.welfare import LOG, as_welfare
from limelight.serve.control import ControlConfig

if TYPE_CHECKING:
    from limelight._base.arrays import Float32, Float64
    from limelight.data.groups import Groups
    from limelight.models.recommender import Recommender
    from limelight.rerank.market.market import OwnListSurvey
    from limelight.rerank.market.pool import Law
    from limelight.rerank.welfare import Welfare

_USERS = 2000
"""How many training users tell what relevance and plain lists are like."""


class ControlStart(NamedTuple):
    """Settings of control, the strength to start with, and what lists gave so far."""

    config: ControlConfig
    strength: float
    exposure: Float64 | None = None
    """By item, of the lists of the users that a fit knew."""
    lists: float = 0.0
    """How many lists that is of."""


def start_of(
    recommender: Recommender,
    *,
    k: int = 20,
    n_candidates: int = 1000,
    groups: Groups | None = None,
    has_target: bool = False,
) -> ControlStart:
    """Return what control of a model's requests starts from.

    Parameters
    ----------
    recommender
        A model, or a model whose lists are re-ranked: by best response, a stream or prices.
    k, n_candidates
        How long lists are, and from how many candidates they are chosen.
    groups
        Groups that may have caps and floors, if not those whose accounts the re-ranker keeps.
    has_target
        Whether strength will be moved to meet a target. Prices, which have none, then give way to
        a strength of 0.

    Examples
    --------
    >>> import limelight as ll
    >>> model = ll.IALS(factors=8).fit(ll.marketplace(300, 100, 4000).interactions)
    >>> start_of(model, k=10).strength
    0.0
    >>> start_of(ll.Online(strength=0.2).over(model), k=10).strength
    0.2
    """
    method = recommender.reranker
    if method is None:
        return ControlStart(_surveyed(recommender, k, n_candidates, groups), 0.0)
    if isinstance(method, MarketReranker):
        return _market_start(recommender, method, k, n_candidates, groups)
    if not isinstance(method, Prices | GroupPrices):
        name = type(method).__name__
        message = f"{name} makes the lists of many users together, so it cannot answer one request"
        hint = "serve the model itself with a target, or fit with --serve stream or stateless"
        raise ConfigError(message, hint=hint)
    law = None if method.config.relevance == "auto" else method.config.relevance
    found = _surveyed(recommender, k, n_candidates, groups, law=law or method.law_)
    prices: dict[str, Any] = {}
    if isinstance(method, GroupPrices):
        prices["offsets"] = -method.item_prices.astype(np.float64)
    elif not has_target:
        prices["offsets_of"] = UserPrices(method)
    return ControlStart(replace(found, **prices), 0.0)


class UserPrices:
    """What prices add to relevance, by the hash of a user's id."""

    def __init__(self, method: Prices) -> None:
        self._method = method

    def __call__(self, user: object) -> Float32:
        """Return what is added to each item of a user; one without a name draws as '' does."""
        [draw] = self._method.draw(["" if user is None else str(user)])
        found: Float32 = self._method.mixture.subsidies[draw]
        return found


def _market_start(
    recommender: Recommender,
    method: MarketReranker,
    k: int,
    n_candidates: int,
    groups: Groups | None,
) -> ControlStart:
    config, n_items = method.config, len(recommender.item_ids)
    welfare = as_welfare(config.welfare)
    accounts = method.config.accounts(method.groups_, n_items)
    helped = accounts.get("groups")
    if groups is not None and helped is not None and groups.group_ids != helped.members.group_ids:
        message = f"the model helps {len(helped.members.group_ids):,} groups of its own"
        raise ConfigError(message, hint="leave out the groups, or fit the model with these")
    if welfare.by_impact or (helped is not None and helped.welfare.by_impact):
        message = f"a service counts exposure, and not impact: {config.welfare!r}"
        raise ConfigError(message, hint="fit with welfare='log', 'power' or 'gini'")
    if config.places == "uniform":
        message = "a service counts places by their discount: places='uniform'"
        raise ConfigError(message, hint="fit with places='discounted'")
    law = None if config.relevance == "auto" else config.relevance
    survey = method.survey_ if method.is_settled else None
    found = _surveyed(
        recommender, k, n_candidates, groups, law=law or method.law_, survey=survey, welfare=welfare
    )
    found = replace(
        found,
        offsets=method.offsets_,
        accounts=helped,
        groups=helped.members if helped is not None else groups,
        by_order=accounts["order"] > 0,
        per_user=accounts["per_user"],
    )
    if not method.is_settled:
        return ControlStart(found, config.strength)
    # Lists of another length give another amount of exposure.
    ratio = position_weights(k).sum() / position_weights(method.length_).sum()
    return ControlStart(found, config.strength, ratio * method.exposure_, method.served_)


def _surveyed(
    recommender: Recommender,
    k: int,
    n_candidates: int,
    groups: Groups | None,
    *,
    law: Law | None = None,
    survey: OwnListSurvey | None = None,
    welfare: Welfare = LOG,
) -> ControlConfig:
    """Look at the lists of some training users for what is not known: the law, and the unit."""
    if law is None or survey is None:
        with candidates_of(_some_ranking(recommender), n_candidates) as candidates:
            law = by_scores(candidates) if law is None else law
            with Pool(candidates, law) as pool:
                survey = survey or Market(pool, k, welfare, threads=1, seed=0).survey
    return ControlConfig(
        n_items=len(recommender.item_ids),
        law=law,
        unit=survey.unit,
        welfare=welfare,
        length=k,
        merit=survey.merit,
        groups=groups,
    )


def _some_ranking(recommender: Recommender) -> Any:
    n_users = len(recommender.user_ids)
    some = np.unique(np.linspace(0, n_users - 1, min(n_users, _USERS)).astype(np.int64))
    knows = recommender.learned.seen is not None
    return recommender.model.ranking(users=some, filter_seen=knows)
