"""``limelight frontier``: what evenness costs, from one end of a method's control to the other."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from limelight._base.errors import ConfigError
from limelight.cli.flags import (
    Json,
    Report,
    Resume,
    SettingFlags,
    argument,
    given_flags,
    length,
    option,
    showing,
    signature_defaults,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.flags.reading import Reading
from limelight.cli.output import check_page, note_page, remark, report
from limelight.cli.targets import For, population_file, population_of
from limelight.models.exadmm import ExADMMConfig

_SETTINGS = (
    "factors", "epochs", "tolerance", "unobserved_weight", "regularization", "row_solver",
    "random_state", "num_threads",
)  # fmt: skip


class BaseName(StrEnum):
    """The models that control exposure in training."""

    exadmm = "exadmm"
    ease = "ease"


class MethodName(StrEnum):
    """The methods that have a front."""

    exadmm = "exadmm"
    ease = "ease"
    best_response = "best-response"
    online = "online"
    prices = "prices"


@takes_flags
def frontier(
    source: Annotated[
        Path,
        argument(
            "DATA",
            "A .parquet, .csv, .tsv or .dat file (also .gz, .bz2, .zst, .zip), a folder of "
            "parts, or a split folder.",
        ),
    ],
    *,
    output: Annotated[
        Path | None,
        option("FOLDER", "The folder to write to, and to go on from.", "-o", "--output"),
    ] = None,
    methods: Annotated[
        list[MethodName] | None,
        option(
            "NAME",
            "exadmm, ease: control in training, of the model itself; best-response, online and "
            "prices: the plain model, re-ranked in a batch, one user after the other, or without "
            "any state. May be repeated.  [default: the model, best-response]",
            "--method",
        ),
    ] = None,
    model: Annotated[
        BaseName,
        option(
            "NAME",
            "exadmm; ease: item weights in closed form, one fit for all points.",
            rich_help_panel="Model",
        ),
    ] = BaseName.exadmm,
    points: Annotated[int | None, option("N", "How many points each method has.")] = None,
    at: Annotated[int | None, length("Length of the lists.")] = None,
    population: For = None,
    settings: Annotated[dict[str, Any], SettingFlags([ExADMMConfig], *_SETTINGS)],
    reading: Reading,
    columns: Annotated[TableColumns, ColumnFlags(beside_reading=True, **{"for": ("user",)})],
    resume: Resume = False,
    page: Report = None,
    as_json: Json = False,
) -> None:
    """Trace what evenness of exposure costs in accuracy.

    In: a table of interactions, of whose users a tenth is held out for validation and another for
    the test, at most 5,000 each; or a split folder. Out: a table of points on standard output, from
    no control to a strong one, and with -o a folder with frontier.parquet, frontier.json,
    frontier.png, the models on the front and what `limelight report` needs. Points go where the
    curve has its widest gap. Exposure is that of everybody's lists, unless --for says otherwise;
    held-out users are served among all others. Validation users decide, test users confirm.

    A model is trained from scratch once. Every other one starts from its nearest neighbour, so
    that twelve points take two to three times as long as one; those of ease follow from one fit.
    With -o every point is written at once, and Ctrl-C or SIGTERM waits for it: the same command
    goes on where it was interrupted, with or without --resume.

    \b
    Which point to take:
      of those marked "front", the lowest Gini whose nDCG you can afford. A point of exADMM is a
      model in FOLDER/models/exadmm-N, ready for `limelight recommend`. EASE has one model,
      FOLDER/models/plain: `at_strength` gives it any strength. The strength of a re-ranker is for
      `ll.BestResponse(strength=...)` and others.

    \b
    Examples:
      limelight frontier split/ -o front/
      limelight frontier ratings.csv --rating rating --min-rating 4 --factors 128 -o front/
      limelight frontier split/ --method best-response --method online --points 8 --at 10 --json
      limelight frontier split/ --model ease --regularization 500 -o front/
    """
    from limelight.cli.fit import ModelName, make_model
    from limelight.control.frontier import frontier as trace

    check_page(page)
    if resume and output is None:
        message = "--resume needs the folder to go on from"
        raise ConfigError(message, hint="name it with -o")
    names = [name.value for name in methods] if methods else None
    users = columns.beside(reading).tables(**{"for": population_file(population)})["for"]
    people = users or population_of(population)
    given = given_flags(methods=names, points=points, at=at, population=people)
    if model is BaseName.ease:
        # The seed is that of re-rankers: nothing of the model itself is drawn.
        seed = given_flags(random_state=settings.pop("random_state", None))
        settings = {"model": make_model(ModelName["ease"], settings), **seed}
    found = trace(reading.interactions_or_split(source), folder=output, **given, **settings)
    if page is not None:
        found.report(page)
        note_page(page)
    report(repr(found), found.to_dict() | {"output": output}, as_json=as_json)
    if output is not None:
        remark(f"written to {output}")


def _defaults() -> dict[str, str]:
    from limelight.control.frontier import frontier as trace

    config = ExADMMConfig()
    settings = {name: str(getattr(config, name)) for name in _SETTINGS}
    return settings | signature_defaults(trace, "points", "at")


Command = showing(_defaults)
