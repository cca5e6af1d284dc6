"""What every model of limelight promises."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

if TYPE_CHECKING:
    from pathlib import Path

    from limelight.data.interactions import Ids
    from limelight.recommend.topk import Lists


class Recommender(Protocol):
    """A model that learns from interactions and ranks the items of its catalogue."""

    @property
    def item_ids(self) -> Ids:
        """The id of every item number that :meth:`recommend` returns."""

    def fit(self, X: Any) -> Self:
        """Learn from Interactions or a sparse matrix of users x items."""

    def recommend(
        self, histories: Any = None, k: int = 10, *, users: Any = None, filter_seen: bool = True
    ) -> Lists:
        """Rank k items for unseen users by their histories, or for users of the training data."""

    def save(self, path: str | Path) -> None:
        """Write the model to a folder."""
