"""``--resume``: where commands keep how far they have come."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limelight._errors import LimelightError
from limelight.cli.output import note
from limelight.store.checkpoint import EVERY, Checkpoint

ENDING = ".checkpoint"


def checkpoint_of(output: Path, *, resume: bool, every: float | None = None) -> Checkpoint:
    """Return the checkpoint beside an output; what is not to be taken up is removed.

    Parameters
    ----------
    output
        What the command writes in the end.
    resume
        Whether to go on from it.
    every
        Seconds between two saves; None leaves it to the library.
    """
    from limelight._base.settings import check_number

    seconds = EVERY if every is None else every
    check_number("--checkpoint-every", seconds)
    target = output.resolve()
    kept = Checkpoint(target.with_name(target.name + ENDING), seconds)
    if not resume:
        kept.remove()
    elif not kept.exists:
        say_nothing_to_resume()
    return kept


def say_nothing_to_resume() -> None:
    """Tell who gave --resume that it has no effect."""
    note("There is nothing to resume: starting from the beginning.")


@contextmanager
def until_done(kept: Checkpoint) -> Iterator[None]:
    """Delete a checkpoint once the work is done, or has failed for good.

    A disk that was full may be emptied, and a killed process started again: then it stays.
    """
    try:
        yield
    except LimelightError as error:
        if not isinstance(error.__cause__, OSError):
            kept.remove()
        raise
    kept.remove()
