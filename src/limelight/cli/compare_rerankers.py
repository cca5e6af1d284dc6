"""Scores the fronts of all re-rankers on a data set.

python -m limelight.cli.compare_rerankers ratings.parquet --rating rating --min-rating 4
"""

from pathlib import Path
from typing import Annotated

import typer

from limelight.cli.flags import Reading, takes_flags
from limelight.cli.output import to_json
from limelight.data.split import split_users
from limelight.lab.fronts import measure_fronts, table


@takes_flags
def main(
    data: Annotated[Path, typer.Argument(help="A table of interactions.")],
    *,
    reading: Reading,
    validation: Annotated[int, typer.Option(help="Users who calibrate and warm up.")] = 1000,
    test: Annotated[int, typer.Option(help="Users who are served.")] = 1000,
    seeds: Annotated[int, typer.Option(help="How many fits.")] = 3,
    factors: Annotated[int, typer.Option(help="As for IALS.")] = 64,
    unobserved_weight: Annotated[float, typer.Option(help="As for IALS.")] = 0.1,
    regularization: Annotated[float, typer.Option(help="As for IALS.")] = 0.003,
    epochs: Annotated[int, typer.Option(help="As for IALS.")] = 16,
    output: Annotated[Path | None, typer.Option("-o", help="A JSON file of all points.")] = None,
) -> None:
    """Score the fronts of all re-rankers on one data set."""
    split = split_users(reading.interactions(data), validation=validation, test=test)
    settings = {
        "factors": factors,
        "unobserved_weight": unobserved_weight,
        "regularization": regularization,
        "epochs": epochs,
    }
    runs = []
    for seed in range(seeds):
        for name, fronts in measure_fronts(split, settings, seed):
            typer.echo(f"seed {seed} {name}: {fronts.score(name):.4f}", err=True)
        runs.append(fronts)
    typer.echo(table(runs))
    if output is not None:
        record = {"runs": [{"base": run.base, "points": run.points} for run in runs]}
        output.write_text(to_json(record, indent=1), encoding="utf-8")


if __name__ == "__main__":
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(main)
    app()
