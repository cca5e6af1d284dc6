"""The settings of markets: who is helped, how strongly, and how lists are ordered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import Settings, check_choice, check_integer, check_number, setting
from limelight._native import resolve_threads
from limelight.data.groups import Groups, as_groups
from limelight.rerank.market.market import GroupAccounts, Market
from limelight.rerank.reranker import PoolConfig, Reranker
from limelight.rerank.targets.groups import as_target, check_wishes
from limelight.rerank.welfare import LOG, Power, Welfare, WelfareName, as_welfare

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight._base.arrays import Float64
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
class GroupAccountsConfig(MarketConfig):
    """The settings of re-rankers that may help groups of items, such as providers."""

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

    def check_own_settings(self) -> None:
        """Check welfares and shares."""
        check_number("items", self.items)
        if isinstance(self.group_shares, str):
            check_choice("group_shares", self.group_shares, ("equal", "catalogue"))
        else:
            check_wishes(None, None, self.group_shares)
        as_welfare(self.group_welfare)
        MarketConfig.check_own_settings(self)

    def accounts(self, members: Groups | None, n_items: int) -> dict[str, Any]:
        """Return the settings of a market that are of accounts."""
        if members is None:
            return {}
        shares = as_target(self.group_shares, members, n_items).low
        welfare = as_welfare(self.group_welfare)
        if self.items and welfare.by_impact != as_welfare(self.welfare).by_impact:
            message = f"items and groups cannot differ in impact: {self.group_welfare!r}"
            raise ConfigError(message, hint="use 'impact' for both, or for neither")
        return {"groups": GroupAccounts(members, welfare, shares, self.items)}


@dataclass(frozen=True, kw_only=True)
class AccountsConfig(GroupAccountsConfig):
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
    per_user: bool | None = setting(
        None,
        "Whether strength is in units of each user's own list, so that all give up about the same "
        "part of what they can get; left out, where groups have accounts.",
    )

    def check_own_settings(self) -> None:
        """Check names and shares."""
        check_choice("order", self.order, ("relevance", "subsidised"))
        check_choice("places", self.places, ("discounted", "uniform"))
        GroupAccountsConfig.check_own_settings(self)

    def accounts(self, members: Groups | None, n_items: int) -> dict[str, Any]:
        """Return the settings of a market that are of accounts and of lists."""
        per_user = members is not None if self.per_user is None else self.per_user
        return GroupAccountsConfig.accounts(self, members, n_items) | {
            "order": float(self.order == "subsidised"),
            "uniform": self.places == "uniform",
            "per_user": per_user,
        }


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


class GroupAccountsReranker(Reranker):
    """A re-ranker that helps items or, once :meth:`of` says so, groups of them.

    Attributes
    ----------
    groups_ : Groups or None
        Groups of items that have accounts.
    """

    config: GroupAccountsConfig
    groups_: Groups | None = None
    _labels: int | None = None  # how many items were labelled, where groups were given so

    def of(self, groups: Any) -> Self:
        """Keep accounts of groups of items, such as sellers or studios, and help these.

        Strength is then that of the help for groups. With the setting ``items``, items are helped
        as well, beside their groups.

        Parameters
        ----------
        groups
            What ``limelight.rerank.read_groups(file, item_ids)`` returns, or one label an item, in
            the order of the catalogue; None, or a negative number, is for items without a group.
            An item in several groups counts for each with its weight.

        Examples
        --------
        >>> import numpy as np
        >>> import limelight as ll
        >>> model = ll.IALS(factors=8).fit(ll.marketplace(600, 100, 9000).interactions)
        >>> sellers = np.arange(100) % 7
        >>> spreads = []
        >>> for strength in (0.0, 1.0):
        ...     method = ll.BestResponse(strength=strength).of(sellers)
        ...     ids, scores = method.rerank(model.ranking(), k=10)
        ...     spreads.append(np.ptp(np.bincount(sellers, ll.exposure(ids, n_items=100))))
        >>> bool(spreads[1] < spreads[0] / 2)
        True
        """
        if groups is None or isinstance(groups, (str, Path)):
            message = f"groups must be labels, one an item, or what read_groups returns: {groups!r}"
            raise DataError(message, hint="read a file with ll.read_groups(file, model.item_ids)")
        is_read = isinstance(groups, Groups)
        size = int(groups.items.max(initial=-1)) + 1 if is_read else len(groups)
        self.groups_ = as_groups(groups, size)
        self._labels = None if is_read else size
        return self

    def at(self, strength: float) -> Self:
        """Return the same re-ranker at another strength, for the same groups."""
        return self._for_same(super().at(strength))

    def __sklearn_clone__(self) -> Self:
        """Return one with the same settings and groups, and nothing remembered."""
        return self._for_same(super().__sklearn_clone__())

    def _for_same(self, other: Self) -> Self:
        other.groups_, other._labels = self.groups_, self._labels
        return other

    def __repr__(self) -> str:
        """Show the settings that differ from the defaults, and how many groups there are."""
        own = super().__repr__()
        return own if self.groups_ is None else f"{own}.of({len(self.groups_.group_ids):,} groups)"

    def _accounts(self, n_items: int) -> dict[str, Any]:
        """Return the settings of a market of so many items that are of accounts."""
        if self._labels not in (None, n_items):
            message = f"{self._labels:,} items have a label, and the catalogue has {n_items:,}"
            raise DataError(message, hint="give one label for each item of the catalogue")
        members = None if self.groups_ is None else as_groups(self.groups_, n_items)
        return self.config.accounts(members, n_items)
