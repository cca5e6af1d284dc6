"""``limelight evaluate``: accuracy and exposure of a model on held-out users."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from limelight._base.errors import DataError
from limelight.cli.flags import (
    Json,
    ModelFolder,
    Threads,
    argument,
    length,
    option,
    showing,
    signature_defaults,
    takes_flags,
)
from limelight.cli.flags.reading import SPLIT_FILE
from limelight.cli.frame import ExecutorFlags
from limelight.cli.output import note, report

if TYPE_CHECKING:
    from limelight.data import Split


class SplitPart(StrEnum):
    """The held-out parts of a split."""

    validation = "validation"
    test = "test"


@takes_flags
def evaluate(
    folder: ModelFolder,
    split: Annotated[
        Path, argument("SPLIT", "The split folder whose training part the model was fitted to.")
    ],
    *,
    k: Annotated[list[int] | None, length("Length of the lists; may be repeated.")] = None,
    part: Annotated[SplitPart, option("validation|test", "The held-out users.")] = SplitPart.test,
    threads: Threads = None,
    where: ExecutorFlags,
    as_json: Json = False,
) -> None:
    """Measure accuracy and exposure of a model on held-out users.

    In: a model folder and the split folder it was trained on. Out: nDCG and recall with 95 %
    bootstrap bounds; Gini (0: all items have the same exposure), its floor, coverage, entropy and
    the share of the top 1 % of the items. With --executor ray the users are measured in pieces,
    and the figures are the same.

    \b
    Examples:
      limelight evaluate model/ split/
      limelight evaluate model/ split/ -k 5 -k 20 --part validation --json
      limelight evaluate model/ split/ --executor ray --address auto
    """
    from limelight.jobs.evaluate import evaluate as measure

    where.check()
    cutoffs: dict[str, Any] = {"k": tuple(k)} if k else {}
    with where.open(threads) as executor:
        found = measure(
            folder,
            _load_split(split),
            part.value,
            num_threads=threads,
            executor=executor,
            note=note,
            **cutoffs,
        )
    text = "\n".join([*found.sentences(), "", repr(found)])
    report(text, {"part": part.value, **found.to_dict()}, as_json=as_json)


def _defaults() -> dict[str, str]:
    from limelight.metrics.evaluate import evaluate as measure

    return signature_defaults(measure, "k")


def _load_split(path: Path) -> "Split":
    from limelight.data import Split

    if not (path / SPLIT_FILE).is_file():
        message = f"not a split folder, it has no {SPLIT_FILE}: {str(path)!r}"
        raise DataError(message, hint="write one with: limelight data split FILE -o split/")
    return Split.load(path)


Command = showing(_defaults)
