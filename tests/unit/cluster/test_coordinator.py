"""Where ranks meet, without any cluster."""

from __future__ import annotations

import asyncio
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import limelight as ll
from limelight.cluster.ray.coordinator import Commit, Coordinator, GenerationOverError, News

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def coordinator_of(size: int, play: Callable[[Coordinator], Awaitable[Any]]) -> Any:
    """Play a scene in the first generation of a coordinator."""

    async def scene() -> Any:
        coordinator = Coordinator(size)
        await coordinator.begin(1)
        return await play(coordinator)

    return asyncio.run(asyncio.wait_for(scene(), timeout=10))


async def outcome(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except Exception as error:  # what came of it is looked at by the test
        return error


def test_sums_add_up_shard_by_shard_whoever_comes_first():
    parts = [np.array([10.0**power, 1.0]) for power in (16, 0, 0, -3, 5)]
    expected = parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
    runs = {0: parts[:2], 1: parts[2:4], 2: parts[4:]}

    async def play(coordinator):
        return await asyncio.gather(
            *(coordinator.all_reduce(1, 1, rank, runs[rank]) for rank in (2, 0, 1))
        )

    for total in coordinator_of(3, play):
        np.testing.assert_array_equal(total, expected)
    np.testing.assert_array_equal(parts[0], [1e16, 1.0])


def test_trades_give_everybody_what_is_meant_for_them():
    async def play(coordinator):
        return await asyncio.gather(
            *(
                coordinator.all_to_all(
                    1, 1, rank, "exchange_rows", [f"{rank}>{to}" for to in range(3)]
                )
                for rank in range(3)
            )
        )

    assert coordinator_of(3, play) == [
        ["0>0", "1>0", "2>0"],
        ["0>1", "1>1", "2>1"],
        ["0>2", "1>2", "2>2"],
    ]


def test_ranks_may_be_one_rendezvous_ahead():
    async def play(coordinator):
        async def attend(rank):
            return [
                await coordinator.all_reduce(1, number, rank, [np.full(1, float(number))])
                for number in range(1, 4)
            ]

        return await asyncio.gather(attend(0), attend(1))

    assert coordinator_of(2, play) == [[2.0, 4.0, 6.0]] * 2


def test_a_new_term_sends_home_who_waits_and_refuses_who_comes_late():
    async def play(coordinator):
        waiting = asyncio.create_task(outcome(coordinator.all_reduce(1, 1, 0, [np.ones(1)])))
        await asyncio.sleep(0)
        await coordinator.begin(2)
        late = await outcome(coordinator.all_reduce(1, 1, 1, [np.ones(1)]))
        others = [
            await outcome(call)
            for call in (
                coordinator.tell(1, 0, 1, {}),
                coordinator.commit(1, 0, 1),
                coordinator.check(1),
            )
        ]
        again = await asyncio.gather(
            *(coordinator.all_reduce(2, 1, rank, [np.ones(1)]) for rank in range(2))
        )
        return [await waiting, late, *others], again

    refused, again = coordinator_of(2, play)
    assert [type(one) for one in refused] == [GenerationOverError] * 5
    assert again == [2.0, 2.0]


def test_a_commit_happens_once_all_ranks_have_said_so():
    async def play(coordinator):
        await coordinator.commit(1, 0, 7)
        before = await coordinator.events(0, wait=False)
        await coordinator.commit(1, 1, 7)
        return before, await coordinator.events(0, wait=False)

    assert coordinator_of(2, play) == ([], [(0, Commit(7))])


def test_half_a_commit_is_void_in_the_next_term():
    async def play(coordinator):
        await coordinator.commit(1, 0, 7)
        await coordinator.begin(2)
        await coordinator.commit(2, 1, 7)
        before = await coordinator.events(0, wait=False)
        await coordinator.commit(2, 0, 7)
        return before, await coordinator.events(0, wait=False)

    assert coordinator_of(2, play) == ([], [(0, Commit(7))])


def test_all_ranks_get_the_same_answer_on_stopping():
    async def play(coordinator):
        answers = [await coordinator.tell(1, 0, 5, {"rank": 0})]
        await coordinator.ask_to_stop()
        answers += [await coordinator.tell(1, 1, 5, {}), await coordinator.tell(1, 1, 6, {})]
        await coordinator.begin(2)
        return answers, await coordinator.tell(2, 0, 6, {}), await coordinator.events(0, wait=False)

    answers, later, events = coordinator_of(2, play)
    assert answers == [False, False, True]
    assert later is True
    assert events[0] == (0, News(0, 5, {"rank": 0}))


def test_events_are_waited_for_and_kept_until_they_are_known():
    async def play(coordinator):
        waiting = asyncio.create_task(coordinator.events(0, wait=True))
        await asyncio.sleep(0)
        await coordinator.commit(1, 0, 1)
        first = await waiting
        again = await coordinator.events(0, wait=False)
        waiting = asyncio.create_task(coordinator.events(1, wait=True))
        await asyncio.sleep(0)
        await coordinator.commit(1, 0, 2)
        return first, again, await waiting

    first, again, second = coordinator_of(1, play)
    assert first == again == [(0, Commit(1))]
    assert second == [(1, Commit(2))]


def test_ranks_that_lose_step_are_told_so():
    async def play(coordinator):
        waiting = asyncio.create_task(outcome(coordinator.all_reduce(1, 1, 0, [np.ones(1)])))
        await asyncio.sleep(0)
        wrong = await outcome(coordinator.all_to_all(1, 1, 1, "gather_items", [None, None]))
        await coordinator.begin(2)
        return wrong, await waiting

    wrong, _ = coordinator_of(2, play)
    assert str(wrong) == "rank 1 came to gather_items while others wait in sum_small"


@pytest.mark.parametrize("kind", [ll.DataError, ll.ConfigError, ll.SolveError])
def test_errors_travel_whole(kind):
    error = kind("no such column: 'movie'", hint="pass item='movieId'")
    error.add_note("read by rank 3")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.message, copy.hint, copy.args) == (error.message, error.hint, error.args)
    assert copy.__notes__ == ["read by rank 3"]
