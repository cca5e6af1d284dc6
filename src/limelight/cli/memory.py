"""Saying what a command takes of the memory before it takes it, and refusing what does not fit."""

from collections.abc import Callable

from limelight._errors import DataError
from limelight._memory import require, resident, size
from limelight.cli.output import note


def announce(what: str, needed: int | None, *, hint: str) -> None:
    """Print how much memory the process will hold at the peak; refuse where there is less.

    Parameters
    ----------
    what
        What takes it, such as "reading".
    needed
        Bytes, all that the process holds included; None where nobody knows.
    hint
        What would fit.
    """
    if needed is None:
        return
    most = require(needed, what, hint=hint)
    of = "" if most is None else f" (of {size(most)})"
    note(f"{what} takes about {size(needed)} of memory{of}")


def with_held(look: Callable[[], int | None]) -> int | None:
    """Add what a look at files says to what the process held before it.

    Parameters
    ----------
    look
        Returns bytes. Where it cannot read a file the answer is None: who needs the file says why.
    """
    import pyarrow as pa

    held = resident()
    try:
        needed = look()
    except (DataError, pa.ArrowException, OSError, ValueError, KeyError, TypeError):
        return None
    pa.default_memory_pool().release_unused()  # what looking left behind
    return None if needed is None else held + needed
