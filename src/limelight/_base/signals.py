"""Signals that ask a process to end: work is stopped where it can be taken up again."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def terminate(number: int, frame: FrameType | None) -> None:
    """Handle SIGTERM as Python handles SIGINT: by an exception, so that files are put in order."""
    del number, frame
    raise Terminated


@contextmanager
def interruptible() -> Iterator[None]:
    """Let SIGINT and SIGTERM end a command by exceptions, so that files are put in order.

    Code in C++ may lose an exception: Arrow imports pandas when it first converts an array, and
    forgets every error of that import. The next block of :func:`finishing` therefore raises a
    signal again that was lost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        _unanswered.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        terminate(number, frame)

    before = {number: signal.getsignal(number) for number in _NUMBERS}
    signal.signal(signal.SIGTERM, end)
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        _unanswered.clear()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def finishing() -> Iterator[Callable[[], bool]]:
    """Let SIGINT and SIGTERM wait until a piece of work is complete.

    A second signal does not wait. Outside the main thread, which alone hears signals, nothing is
    different.

    Yields
    ------
    A function that tells whether a signal has arrived. If so, save the work so far and leave the
    block, which then passes the signal on.

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
    # While the exception of a signal is on its way, it is not lost: this block tidies up.
    if _unanswered and not isinstance(sys.exc_info()[1], KeyboardInterrupt | Terminated):
        raise KeyboardInterrupt if _unanswered[0] == signal.SIGINT else Terminated
    heard: list[int] = []
    before = {number: signal.getsignal(number) for number in _NUMBERS}

    def hear(number: int, frame: FrameType | None) -> None:
        if heard:
            _end(number, frame)
        heard.append(number)

    if not _waiting:
        _handlers.update(before)
    _waiting.append(hear)
    try:
        for number in _NUMBERS:
            signal.signal(number, hear)
        yield lambda: bool(heard)
    finally:
        _waiting.remove(hear)
        for number, handler in before.items():
            signal.signal(number, handler)
    if heard:
        _end(heard[0], None)


def _end(number: int, frame: FrameType | None) -> None:
    """Call the handler that was there before the outermost block.

    That ends all blocks and not only the innermost, because their work is not complete, either.
    """
    handler = _handlers[signal.Signals(number)]
    if callable(handler):
        handler(number, frame)
    elif handler != signal.SIG_IGN:
        signal.raise_signal(number)


_NUMBERS = (signal.SIGINT, signal.SIGTERM)
_unanswered: list[int] = []
"""The signals that have raised an exception in an interruptible block."""
_waiting: list[object] = []
"""The handlers of all blocks that are open."""
_handlers: dict[signal.Signals, object] = {}
"""The handlers that were there before the outermost block."""
