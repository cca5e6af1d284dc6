"""``limelight tune``: find the settings that validation users prefer."""

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from limelight._base.errors import ConfigError
from limelight._base.signals import Terminated
from limelight.cli.flags import (
    Json,
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
from limelight.cli.flags.reading import Reading
from limelight.cli.output import remark, report
from limelight.models.folder import MODELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from limelight.control.tuning.result import TuneResult
    from limelight.models.base import Model
    from limelight.store.checkpoint import Checkpoint

GOES_ON = "the same command goes on from here"

Budget = Annotated[
    str | None,
    option(
        "TIME",
        "How long to look for better settings, the two fits at the end included: 90s, 5m, 1h. How "
        "many are tried depends on the machine, and so may the result.  [default: 5m, unless "
        "--trials]",
        show_default=False,
    ),
]
Trials = Annotated[
    int | None,
    option("N", "How many settings to try instead of a budget: the same result on any machine."),
]


def check_budget(budget: str | None) -> None:
    """Refuse a budget that is no time, before anything is read."""
    from limelight.data.times import duration

    if budget is not None:
        duration(budget, "--budget")


@dataclass(frozen=True)
class TuneFlags:
    """Whether `fit` looks for better settings first, and for how long."""

    panel: ClassVar[str] = "Model"
    tune: Annotated[
        bool,
        typer.Option(
            "--tune",
            help="Look for better settings first, as `limelight tune` does, on validation users.",
        ),
    ] = False
    budget: Budget = None
    trials: Trials = None

    def check(self) -> None:
        """Refuse flags that would have no effect, and a budget that is no time."""
        check_budget(self.budget)
        for name in ("budget", "trials"):
            value = getattr(self, name)
            if value is not None and not self.tune:
                message = f"--{name} is for tuning: {value}"
                raise ConfigError(message, hint="add --tune")

    def check_model(self, model: "Model", at: int | None) -> None:
        """Refuse what cannot be tuned, before anything is read."""
        if self.tune:
            from limelight.control.tuning.tune import check_tuning

            check_tuning(model, budget=self.budget, trials=self.trials, at=at)

    def apply(
        self, model: "Model", data: Any, kept: "Checkpoint", at: int | None = None
    ) -> tuple["Model", "Checkpoint"]:
        """Return a model with tuned settings, if tuning was asked for; say what was found.

        The checkpoint then holds the trials. The other one that is returned lies in it, and is for
        the fit that follows.
        """
        if not self.tune:
            return model, kept
        from limelight.control.tuning.tune import check_tuning, run_search

        limits = check_tuning(model, budget=self.budget, trials=self.trials)
        if kept.load({"kind": "a fit with tuning"}) is None:
            kept.save({}, {})
        with saying_how_to_go_on("the same command with --resume goes on from here"):
            place, length = kept.path / "tuning", given_flags(at=at)
            found = run_search(data, model, limits, folder=place, is_drawn=False, **length)
        remark(f"{found}\n")
        return found.unfitted(), kept.part("fit")


@contextmanager
def saying_how_to_go_on(how: str) -> "Iterator[None]":
    """Say how to go on, where a signal ends the work."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as end:
        end.add_note(how)
        raise


@takes_flags
def tune(
    source: Annotated[
        Path,
        argument(
            "DATA",
            "A .parquet, .csv, .tsv or .dat file (also .gz, .bz2, .zst, .zip), a folder of "
            "parts, or a split folder.",
        ),
    ],
    *,
    model: Annotated[
        str,
        option(
            "NAME",
            "exadmm, ials, ease, multvae, multdae or multifr. Unless exposure is controlled, "
            "exadmm minimises what ials does, but by other steps: the models are not the same.",
            rich_help_panel="Model",
        ),
    ] = "exadmm",
    budget: Budget = None,
    trials: Trials = None,
    at: Annotated[int | None, length("Length of the lists whose nDCG counts.")] = None,
    output: Annotated[
        Path | None,
        option("FOLDER", "The folder to write to, and to go on from.", "-o", "--output"),
    ] = None,
    settings: Annotated[dict[str, Any], SettingFlags([config for _, config in MODELS.values()])],
    reading: Reading,
    resume: Resume = False,
    as_json: Json = False,
) -> None:
    """Find the settings that validation users prefer.

    In: a table of interactions, of whose users a tenth is held out for validation and another for
    the test, at most 5,000 each; or a split folder. Out: a table of what was tried on standard
    output and, with -o, a folder with tune.json, tune.parquet, tune.png and a model that is fitted
    to the training users.

    Of factor models, factors, regularisation, its exponent and the unobserved weight are tuned:
    many settings with few factors, the better half of them with twice as many, and so on, each
    from the factors of the trial before. Settings that are given other than their defaults stay as
    they are. To tune and fit in one go, use `limelight fit --tune`.

    The nDCG of a trial is of a short fit. It is the mean over up to five folds: validation users
    are asked several times, each time for other items of theirs. In the end the best settings and
    the defaults are fitted from scratch, and the folds decide between them. These two are measured
    as `limelight evaluate` does, too, and test users are looked at this once. The model written is
    the one that was measured.

    With -o every trial is written at once, and Ctrl-C or SIGTERM waits for it: the same command
    goes on where it was interrupted, with or without --resume. Once it is done, --model ease and
    networks can go on with more --trials; for exadmm and ials these are others, and need another
    folder.

    \b
    Examples:
      limelight tune split/ --budget 10m -o tuned/
      limelight tune ratings.csv --rating rating --min-rating 4 --trials 24 -o tuned/
      limelight tune split/ --model ease --trials 8 --json
    """
    from limelight.cli.fit import ModelName, make_model
    from limelight.control.tuning.tune import check_tuning
    from limelight.control.tuning.tune import tune as search

    if resume and output is None:
        message = "--resume needs the folder to go on from"
        raise ConfigError(message, hint="name it with -o")
    if model not in ModelName.__members__:
        message = f"--model is not a known choice: {model!r}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(ModelName.__members__)}")
    check_budget(budget)
    base = make_model(ModelName[model], settings)
    given = given_flags(budget=budget, trials=trials, at=at)
    check_tuning(base, **given)
    data = reading.interactions_or_split(source)
    with nullcontext() if output is None else saying_how_to_go_on(GOES_ON):
        found: TuneResult = search(data, model=base, folder=output, **given)
    record = found.to_dict() | {"output": output}
    report(str(found), record, as_json=as_json)
    if output is not None:
        remark(f"written to {output}")


def _defaults() -> dict[str, str]:
    from limelight.control.tuning.tune import tune as search

    return signature_defaults(search, "at")


Command = showing(_defaults)
