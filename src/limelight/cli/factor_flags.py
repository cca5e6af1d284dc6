"""The flags of all models of user and item factors."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer


@dataclass(frozen=True)
class FactorFlags:
    """Hyper-parameters; what was not given is left to the model's config."""

    factors: Annotated[int | None, typer.Option(metavar="N", help="Length of the vectors.")] = None
    epochs: Annotated[
        int | None,
        typer.Option(metavar="N", help="How many times all users and items are updated."),
    ] = None
    unobserved_weight: Annotated[
        float | None, typer.Option(metavar="NUMBER", help="Weight of a pair that was not observed.")
    ] = None
    regularization: Annotated[
        float | None,
        typer.Option(metavar="NUMBER", help="Weight of the squared norms of what is learnt."),
    ] = None
    row_solver: Annotated[
        str | None,
        typer.Option(
            metavar="cholesky|cg",
            help="Solve every row exactly, or by a few steps of descent: for many factors.",
        ),
    ] = None
    random_state: Annotated[
        int | None,
        typer.Option("--seed", metavar="N", help="The same seed gives the same result."),
    ] = None
    num_threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            help="How many threads to use; 0: all that the process may use.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return the settings that were given."""
        return {name: value for name, value in vars(self).items() if value is not None}
