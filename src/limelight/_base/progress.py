"""Progress bars on standard error, where there is somebody to see them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def progress_bar(
    description: str, total: int, *, show: bool | None = None
) -> Iterator[Callable[..., None]]:
    """Show a bar while the block runs; the function it yields moves it on by one.

    That function may be given another text to stand before the bar from then on.

    Parameters
    ----------
    description
        What stands before the bar.
    total
        How many times the function will be called.
    show
        True or False; None shows it when standard error is a terminal.

    Examples
    --------
    >>> with progress_bar("fit", 3, show=False) as advance:
    ...     for _ in range(3):
    ...         advance()
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda *_: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=Console(stderr=True),
    ) as bar:
        task = bar.add_task(description, total=total)

        def advance(text: str | None = None) -> None:
            bar.update(task, advance=1, description=text)

        yield advance
