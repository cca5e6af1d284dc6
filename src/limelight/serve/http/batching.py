"""One thread that makes lists: what waits while it works is answered by one call of the engine.

A request that meets an idle thread is answered at once, alone; those that arrive meanwhile are
taken together, so that there is no time to wait for and no latency is added at low load. Kernels
release the GIL, and the event loop never waits for them. All that changes a ledger is done by the
same thread, in the order in which it was asked for.
"""

from __future__ import annotations

import asyncio
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Ask = TypeVar("Ask")
Reply = TypeVar("Reply")
Made = TypeVar("Made")


class OverloadError(Exception):
    """More requests wait than may; whoever asks should come back later."""


class Ticket(NamedTuple):
    """Something to do, and who waits for it."""

    what: Any
    future: asyncio.Future[Any]
    is_job: bool


class Batcher(Generic[Ask, Reply]):
    """Answers requests in batches, in a thread of its own.

    Parameters
    ----------
    answer
        Called with one request or more; gives an answer or an error for each.
    most
        How many requests one call may have.
    waiting
        How many requests may wait in all; others are refused.
    """

    def __init__(
        self, answer: Callable[[list[Ask]], Sequence[Reply]], *, most: int = 32, waiting: int = 512
    ) -> None:
        self._answer, self._most, self._limit = answer, most, waiting
        self._inbox: SimpleQueue[Ticket | None] = SimpleQueue()
        self._left: Ticket | None = None
        self.waiting = 0
        """How many requests and jobs have no answer yet."""
        self.batches = self.answered = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="limelight-lists", daemon=True)

    def start(self) -> None:
        """Start the thread; called in the event loop that will ask."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def ask(self, request: Ask) -> asyncio.Future[Reply]:
        """Ask for an answer; the error of a request is its answer, and not raised.

        Raises
        ------
        OverloadError
            If too many wait already.
        """
        return self._put(request, is_job=False, may_refuse=True)

    def run(self, job: Callable[[], Made], *, may_refuse: bool = False) -> asyncio.Future[Made]:
        """Have the thread do something else, after all that was asked before.

        Raises
        ------
        OverloadError
            If it may be refused, and too many wait already.
        """
        return self._put(job, is_job=True, may_refuse=may_refuse)

    async def close(self) -> None:
        """Answer all that waits, and end the thread."""
        self._inbox.put(None)
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join)

    def _put(self, what: object, *, is_job: bool, may_refuse: bool) -> asyncio.Future[Any]:
        assert self._loop is not None
        if may_refuse and self.waiting >= self._limit:
            raise OverloadError
        self.waiting += 1
        future = self._loop.create_future()
        self._inbox.put(Ticket(what, future, is_job))
        return future

    def _work(self) -> None:
        while (first := self._next()) is not None:
            if first.is_job:
                self._do(first)
                continue
            batch = self._gather(first)
            wanted = [ticket for ticket in batch if not ticket.future.cancelled()]
            made: Sequence[Any] = []
            if wanted:
                self.batches += 1
                self.answered += len(wanted)
                try:
                    made = self._answer([ticket.what for ticket in wanted])
                except BaseException as error:  # whoever asked is told
                    made = [error] * len(wanted)
            self._tell(self._deliver, wanted, made, len(batch))

    def _next(self) -> Ticket | None:
        if self._left is not None:
            ticket, self._left = self._left, None
            return ticket
        return self._inbox.get()

    def _gather(self, first: Ticket) -> list[Ticket]:
        """Take what else waits; a job among it is done afterwards."""
        batch = [first]
        while len(batch) < self._most:
            try:
                ticket = self._inbox.get_nowait()
            except Empty:
                break
            if ticket is None:
                self._inbox.put(None)  # the end, once all is answered
                break
            if ticket.is_job:
                self._left = ticket
                break
            batch.append(ticket)
        return batch

    def _do(self, ticket: Ticket) -> None:
        # Also if nobody waits any more: what was shown is counted.
        try:
            made = ticket.what()
        except BaseException as error:
            self._tell(self._fail, ticket, error)
        else:
            self._tell(self._deliver, [ticket], [made], 1)

    def _deliver(self, wanted: list[Ticket], made: Sequence[Any], n_tickets: int) -> None:
        self.waiting -= n_tickets
        for ticket, one in zip(wanted, made, strict=True):
            if not ticket.future.done():
                ticket.future.set_result(one)

    def _fail(self, ticket: Ticket, error: BaseException) -> None:
        self.waiting -= 1
        if not ticket.future.done():
            ticket.future.set_exception(error)

    def _tell(self, function: Callable[..., None], *arguments: object) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function, *arguments)
