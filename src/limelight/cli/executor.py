"""``--executor``: where the work of a command is done."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from limelight._errors import ConfigError

if TYPE_CHECKING:
    from limelight.scale.pieces import Pieces


class Where(StrEnum):
    """Where work can be done."""

    local = "local"
    ray = "ray"


@dataclass(frozen=True)
class Executor:
    """Where the work of a command is done, and by how many."""

    panel: ClassVar[str] = "Cluster"
    executor: Annotated[
        Where,
        typer.Option(
            metavar="local|ray",
            help="ray: share the work among the workers of a Ray cluster, all of which must see "
            "the same files.",
        ),
    ] = Where.local
    address: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Of a Ray cluster; auto: the one that this machine belongs to. Without it, the "
            "one in RAY_ADDRESS or, if there is none, this machine alone.",
        ),
    ] = None
    workers: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many pieces are worked on at once, each by as many threads as --threads "
            "says, or by one; if not given, as many as there are cores for.",
        ),
    ] = None

    def check(self) -> bool:
        """Tell whether work is to be cut into pieces; refuse flags that would have no effect."""
        if self.executor is Where.ray:
            return True
        for flag, value in (("--address", self.address), ("--workers", self.workers)):
            if value is not None:
                message = f"{flag} is for a cluster: {value}"
                raise ConfigError(message, hint="add --executor ray")
        return False

    @contextmanager
    def pieces(self, threads: int | None = None) -> Iterator["Pieces"]:
        """Join the cluster for as long as the block runs."""
        from limelight.scale.ray_pieces import RayPieces

        with RayPieces(self.address, self.workers, threads or 1) as pieces:
            yield pieces
