"""The settings of markets: what is helped, how strongly, and how lists are ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from limelight._base.errors import ConfigError
from limelight._base.settings import Settings, check_choice, check_integer, check_number, setting
from limelight._native import resolve_threads
from limelight.rerank.market.market import GroupAccounts, Market
from limelight.rerank.reranker import PoolConfig
from limelight.rerank.targets.groups import as_target, check_wishes
from limelight.rerank.welfare import LOG, Power, Welfare, WelfareName, as_welfare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64
    from limelight.data.groups import Groups
    from limelight.rerank.market.market import OwnListSurvey
    from limelight.rerank.market.pool import Pool

GROUPS = Power(exponent=3.0)
"""The usual welfare of groups. They are few and unlike, so the least exposed count more."""


@dataclass(frozen=True, kw_only=True)
class SubsidyConfig(Settings):
    """How strongly items are subsidised, and for what."""

    strength: float = setting(
        0.1, "How much exposure counts against relevance; 0 gives the plain lists."
    )
    welfare: Welfare | WelfareName = setting(LOG, "What shared exposure is worth.")


@dataclass(frozen=True, kw_only=True)
class MarketConfig(PoolConfig, SubsidyConfig):
    """The settings of re-rankers in which items are subsidised."""

    def check_own_settings(self) -> None:
        """Check that welfare and relevance are known."""
        as_welfare(self.welfare)
        PoolConfig.check_own_settings(self)

    def market(
        self,
        pool: Pool,
        k: int,
        survey: OwnListSurvey | None = None,
        *,
        by_place: bool = False,
        offsets: Float64 | None = None,
        **accounts: Any,
    ) -> Market:
        """Make a market with these settings; ``accounts`` are further ones of ``Market``."""
        check_integer("k", k, least=1)
        return Market(
            pool,
            k,
            as_welfare(self.welfare),
            threads=resolve_threads(self.num_threads),
            seed=self.random_state,
            survey=survey,
            by_place=by_place,
            offsets=offsets,
            **accounts,
        )


@dataclass(frozen=True, kw_only=True)
class AccountsConfig(MarketConfig):
    """The settings of re-rankers that keep accounts of exposure, of items or of groups of them."""

    order: Literal["relevance", "subsidised"] = setting(
        "relevance",
        "Whether lists are in the order of relevance, or of relevance plus subsidy, in which items "
        "were chosen.",
    )
    places: Literal["discounted", "uniform"] = setting(
        "discounted",
        "Whether the first places of a list count most, or all alike.",
    )
    items: float = setting(
        0.0,
        "How strongly items are helped beside their groups, relative to the strength for groups; "
        "without groups it does not count.",
    )
    group_welfare: Welfare | WelfareName = setting(
        GROUPS, "What exposure is worth to groups of items, where they have accounts."
    )
    group_shares: Literal["equal", "catalogue"] | Mapping[Any, float] = setting(
        "equal",
        "What groups are entitled to: the same for all, in proportion to their items, or a share "
        "for every group.",
    )
    per_user: bool | None = setting(
        None,
        "Whether strength is in units of each user's own list, so that all give up about the same "
        "part of what they can get; left out, where groups have accounts.",
    )

    def check_own_settings(self) -> None:
        """Check names and shares."""
        check_choice("order", self.order, ("relevance", "subsidised"))
        check_choice("places", self.places, ("discounted", "uniform"))
        check_number("items", self.items)
        if isinstance(self.group_shares, str):
            check_choice("group_shares", self.group_shares, ("equal", "catalogue"))
        else:
            check_wishes(None, None, self.group_shares)
        as_welfare(self.group_welfare)
        MarketConfig.check_own_settings(self)

    def accounts(self, members: Groups | None, n_items: int) -> dict[str, Any]:
        """Return the settings of a market that are of accounts."""
        known: dict[str, Any] = {
            "order": float(self.order == "subsidised"),
            "uniform": self.places == "uniform",
        }
        if members is None:
            return known | {"per_user": bool(self.per_user)}
        shares = as_target(self.group_shares, members, n_items).low
        welfare = as_welfare(self.group_welfare)
        if self.items and welfare.by_impact != as_welfare(self.welfare).by_impact:
            message = f"items and groups cannot differ in impact: {self.group_welfare!r}"
            raise ConfigError(message, hint="use 'impact' for both, or for neither")
        groups = GroupAccounts(members, welfare, shares, self.items)
        return known | {"per_user": self.per_user is not False, "groups": groups}


@dataclass(frozen=True, kw_only=True)
class BestResponseConfig(AccountsConfig):
    """The settings of :class:`BestResponse`."""

    sweeps: int = setting(
        3,
        "How often users choose at the strength given, after once at three larger ones; from the "
        "second time on, only those whose lists have just changed.",
        at_least=1,
    )
    thorough: bool = setting(
        False,
        "Whether everybody chooses so often, at each strength. It takes about twice as long, and "
        "pays where users are few.",
    )
