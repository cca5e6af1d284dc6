"""The thread that makes lists: what waits is answered together, in order, whatever fails."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from limelight.serve.http.batching import Batcher, OverloadError


class Maker:
    """Answers with what it was asked; waits where it is told to."""

    def __init__(self):
        self.calls, self.go = [], threading.Event()
        self.go.set()

    def __call__(self, asked):
        self.go.wait(30)
        self.calls.append(list(asked))
        if "boom" in asked:
            raise MemoryError
        return [f"<{one}>" for one in asked]


@asynccontextmanager
async def running(**limits):
    maker = Maker()
    batcher = Batcher(maker, **limits)
    batcher.start()
    yield maker, batcher
    maker.go.set()
    await batcher.close()
    assert batcher.waiting == 0


async def begun(batcher):
    """Wait until the thread has taken the first request."""
    while batcher._inbox.qsize():
        await asyncio.sleep(0.001)


def test_a_request_that_meets_an_idle_thread_is_answered_alone():
    async def run():
        async with running() as (maker, batcher):
            assert await batcher.ask("a") == "<a>"
            assert await batcher.ask("b") == "<b>"
            assert maker.calls == [["a"], ["b"]]
            assert (batcher.batches, batcher.answered) == (2, 2)

    asyncio.run(run())


def test_what_arrives_meanwhile_is_answered_together():
    async def run():
        async with running(most=4) as (maker, batcher):
            maker.go.clear()
            first = batcher.ask("first")
            await begun(batcher)
            rest = [batcher.ask(n) for n in range(10)]
            maker.go.set()
            assert await first == "<first>"
            assert await asyncio.gather(*rest) == [f"<{n}>" for n in range(10)]
            assert maker.calls == [["first"], [0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]

    asyncio.run(run())


def test_jobs_are_done_between_requests_in_order():
    async def run():
        async with running() as (maker, batcher):
            maker.go.clear()
            first = batcher.ask("first")
            await begun(batcher)
            before = batcher.ask("before")
            job = batcher.run(lambda: maker.calls.append("job") or 7)
            after = [batcher.ask("after"), batcher.ask("last")]
            maker.go.set()
            assert await job == 7
            await asyncio.gather(first, before, *after)
            assert maker.calls == [["first"], ["before"], "job", ["after", "last"]]

    asyncio.run(run())


def test_a_call_that_fails_tells_all_who_asked_and_no_one_else():
    async def run():
        async with running() as (maker, batcher):
            maker.go.clear()
            first = batcher.ask("first")
            await begun(batcher)
            together = [batcher.ask("a"), batcher.ask("boom")]
            maker.go.set()
            assert await first == "<first>"
            found = await asyncio.gather(*together)
            assert [type(one) for one in found] == [MemoryError, MemoryError]
            assert await batcher.ask("b") == "<b>"

    asyncio.run(run())


def test_a_job_that_fails():
    async def run():
        async with running() as (_, batcher):
            with pytest.raises(ZeroDivisionError):
                await batcher.run(lambda: 1 / 0)
            assert await batcher.run(lambda: 1) == 1

    asyncio.run(run())


def test_only_so_many_may_wait():
    async def run():
        async with running(waiting=3) as (maker, batcher):
            maker.go.clear()
            asked = [batcher.ask(n) for n in range(3)]
            with pytest.raises(OverloadError):
                batcher.ask("more")
            with pytest.raises(OverloadError):
                batcher.run(lambda: 1, may_refuse=True)
            due = batcher.run(lambda: "due")  # what the service itself needs is not refused
            maker.go.set()
            assert await asyncio.gather(*asked, due) == ["<0>", "<1>", "<2>", "due"]
            assert await batcher.ask("later") == "<later>"

    asyncio.run(run())


def test_who_does_not_wait_any_more_costs_nothing():
    async def run():
        async with running() as (maker, batcher):
            maker.go.clear()
            first = batcher.ask("first")
            await begun(batcher)
            gone, left = batcher.ask("gone"), batcher.ask("left")
            gone.cancel()
            maker.go.set()
            await first
            assert await left == "<left>"
            assert maker.calls == [["first"], ["left"]]

    asyncio.run(run())


def test_a_job_is_done_though_nobody_waits_for_it():
    """What was shown is counted, also if the client left before it heard so."""

    async def run():
        async with running() as (maker, batcher):
            maker.go.clear()
            first, done = batcher.ask("first"), []
            await begun(batcher)
            batcher.run(lambda: done.append(1)).cancel()
            batcher.run(lambda: done.append(1 / 0)).cancel()
            maker.go.set()
            await first
            assert await batcher.run(lambda: done) == [1]

    asyncio.run(run())


def test_all_that_waits_is_answered_at_the_end():
    async def run():
        async with running(most=2) as (maker, batcher):
            maker.go.clear()
            asked = [batcher.ask(n) for n in range(7)]
            closing = asyncio.create_task(batcher.close())
            await asyncio.sleep(0.01)
            maker.go.set()
            assert await asyncio.gather(*asked) == [f"<{n}>" for n in range(7)]
            await closing

    asyncio.run(run())
