"""Saying what a command takes of the memory before it takes it, and refusing what does not fit."""

from limelight._memory import require, size
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
    import pyarrow as pa

    most = require(needed, what, hint=hint)
    pa.default_memory_pool().release_unused()  # what looking at files left behind
    of = "" if most is None else f" (of {size(most)})"
    note(f"{what} takes about {size(needed)} of memory{of}")
