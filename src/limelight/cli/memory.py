"""Saying what a command takes of the memory before it takes it, and refusing what does not fit."""

from limelight._memory import limit, require, size
from limelight.cli.output import note


def announce(what: str, needed: int, *, hint: str) -> None:
    """Print how much memory the process will hold at the peak; refuse where there is less.

    Parameters
    ----------
    what
        What takes it, such as "reading".
    needed
        Bytes, all that the process holds included.
    hint
        What would fit.
    """
    require(needed, what, hint=hint)
    most = limit()
    of = "" if most is None else f" (of {size(most)})"
    note(f"{what} takes about {size(needed)} of memory{of}")
