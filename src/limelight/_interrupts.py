"""Signals that ask a process to end: work is stopped where it can be taken up again."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import FrameType


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM as Python handles SIGINT: by an exception, so that files are put in order."""
    del number, frame
    raise Terminated


@contextmanager
def finishing() -> Iterator[Callable[[], bool]]:
    """Let SIGINT and SIGTERM wait until a piece of work is complete.

    A second signal does not wait. Outside the main thread, which alone hears signals, nothing is
    different.

    Yields
    ------
    A function that tells whether somebody waits: then is the time to write down what there is, and
    to leave the block, which passes the signal on.

    Examples
    --------
    >>> with finishing() as is_asked:
    ...     for epoch in range(3):
    ...         if is_asked():
    ...             break
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    heard: list[int] = []
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def hear(number: int, frame: FrameType | None) -> None:
        if heard:
            _pass_on(kept, number, frame)
        heard.append(number)

    try:
        for number in kept:
            signal.signal(number, hear)
        yield lambda: bool(heard)
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    if heard:
        _pass_on(kept, heard[0], None)


def _pass_on(
    handlers: Mapping[signal.Signals, object], number: int, frame: FrameType | None
) -> None:
    handler = handlers[signal.Signals(number)]
    if callable(handler):
        handler(number, frame)
    elif handler != signal.SIG_IGN:
        signal.raise_signal(number)
