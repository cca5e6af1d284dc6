"""The targets of ``limelight fit``: a wish instead of a weight."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from limelight._base.errors import ConfigError
from limelight.cli.flags import Gini, GroupCap, GroupFloor, Groups, MinCoverage, Reading
from limelight.cli.output import note, report
from limelight.cli.report import note_page
from limelight.cli.values import parse_share, parse_shares
from limelight.store.checkpoint import until_done

if TYPE_CHECKING:
    from limelight.models.base import Model
    from limelight.store.checkpoint import Checkpoint

_NAMED_SHARES = ("equal", "catalogue", "interactions")


@dataclass(frozen=True)
class Targets:
    """What the lists should reach; one wish, or caps and floors of groups."""

    panel: ClassVar[str] = "Target"
    gini: Gini = None
    max_ndcg_loss: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Target: the nDCG that may go for as even an exposure as that buys, such as 2%.",
        ),
    ] = None
    min_coverage: MinCoverage = None
    groups: Groups = None
    group_cap: GroupCap = None
    group_floor: GroupFloor = None
    group_shares: Annotated[
        str | None,
        typer.Option(
            metavar="equal|catalogue|interactions|FILE",
            help="Target: the same for all groups, in proportion to their items or to their "
            "interactions, or a table group,share.",
        ),
    ] = None
    at: Annotated[
        int | None,
        typer.Option(metavar="N", help="Length of the lists that the target speaks of.  [20]"),
    ] = None
    serve: Annotated[
        str | None,
        typer.Option(
            metavar="batch|stream|stateless",
            help="How users will be served: together, one after the other, or by machines that "
            "share nothing.  [batch]",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the wishes that were given, as the library takes them."""
        wishes = {own.name: getattr(self, own.name) for own in fields(self)}
        for name in ("max_ndcg_loss", "min_coverage", "group_cap", "group_floor"):
            wishes[name] = parse_share(f"--{name.replace('_', '-')}", wishes[name])
        wishes["group_shares"] = parse_shares(self.group_shares, *_NAMED_SHARES)
        return {name: value for name, value in wishes.items() if value is not None}

    @property
    def any(self) -> bool:
        """Whether there is a target."""
        given = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        lone = [name for name in given if name in ("at", "serve")]
        if lone and len(lone) == len(given):
            message = f"--{lone[0]} speaks of a target, and none was given"
            raise ConfigError(message, hint="add a target such as --gini 0.6")
        return bool(given)


def fit_target(
    model: "Model",
    targets: Targets,
    source: Path,
    reading: Reading,
    output: Path,
    *,
    history: bool,
    page: Path | None,
    checkpoint: "Checkpoint",
    as_json: bool,
) -> None:
    """Fit a model to a target, write what serves, and say what was achieved."""
    from limelight.control.fit_to import fit_to

    data = reading.interactions_or_split(source)
    with until_done(checkpoint):
        result = fit_to(data, model=model, checkpoint=checkpoint, **targets.given())
        result.model.save(output, history=history)
    if page is not None:
        result.report(page)
        note_page(page)
    record = {**result.to_dict(), "output": str(output)}
    report(str(result), record, as_json=as_json)
    note(f"written to {output}")
