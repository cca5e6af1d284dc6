"""``limelight plot``: the figures of a run, for papers and slides."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

from limelight._base.errors import ConfigError, DataError
from limelight.cli.flags import option, takes_flags
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.output import note
from limelight.cli.report import ReportGroups, Run

FigureFormat = StrEnum("FigureFormat", ["png", "svg", "pdf"])
FigureName = StrEnum("FigureName", ["front", "lorenz", "exposure", "groups", "convergence"])


@takes_flags
def plot(
    run: Run,
    output: Annotated[
        Path | None,
        option("FOLDER", "The folder to write to.  [default: RUN/figures]", "-o", "--output"),
    ] = None,
    kinds: Annotated[
        list[FigureFormat] | None,
        option("png|svg|pdf", "The format; may be repeated.  [default: png]", "--as"),
    ] = None,
    only: Annotated[
        list[FigureName] | None,
        option(
            "front|lorenz|exposure|groups|convergence", "Draw this figure only; may be repeated."
        ),
    ] = None,
    groups: ReportGroups = None,
    *,
    columns: Annotated[TableColumns, ColumnFlags(groups=("item", "group"))],
) -> None:
    """Draw the figures of a run.

    In: the folder of a run. Out: the trade-off (front), Lorenz curves, exposure by rank, the
    shares of groups, and how the solver converged, each as far as the run has it. Needs the extra
    plot. The same figures in Python: limelight.plot.

    \b
    Examples:
      limelight plot run/ -o figures/
      limelight plot front/ --as pdf --as svg --only front
    """
    from limelight.report.exhibit_folder import load_exhibit
    from limelight.report.figures.of_run import figures_of_run
    from limelight.report.figures.style import save
    from limelight.report.titles import with_titles_and_groups

    found = figures_of_run(
        with_titles_and_groups(load_exhibit(run), **columns.tables(groups=groups))
    )
    for wanted in only or ():
        if wanted not in found:
            message = f"this run has no such figure: {wanted.value}"
            raise ConfigError(message, hint=f"it has {', '.join(found) or 'none'}")
    folder = output or run / "figures"
    if folder.exists() and not folder.is_dir():
        message = f"the output is not a folder: {str(folder)!r}"
        raise DataError(message, hint="choose another name with -o")
    for name, draw in found.items():
        if not only or name in only:
            axes = draw()
            for kind in kinds or (FigureFormat.png,):
                file = folder / f"{name}.{kind.value}"
                save(axes, file)
                note(f"written to {file}")
