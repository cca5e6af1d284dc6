"""A model that is served: its control, its target, what is kept, and another model in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.support.service import K, make_arm, small_model

import limelight as ll
from limelight._base.errors import ConfigError
from limelight.serve import Engine, Request
from limelight.serve.http.arms import Loaded, seconds_that_count
from limelight.serve.http.wire import ShownEvent
from limelight.serve.ledger.buckets import UNIT
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.start import start_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from limelight.serve.http.arms import Arm

NOW = 1_800_000_000.0


class Kept:
    """A keeper that writes down what it is asked to do."""

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        self.state, self.calls = state, list[str]()

    def flush(self, time: float) -> None:
        self.calls.append("flush")

    def learn(self, events: Iterable[str | None]) -> None:
        self.calls.append(f"learn {' '.join(map(str, events))}")

    def renumbered(self, item_ids: Any) -> None:
        self.calls.append(f"renumbered {len(item_ids)}")

    def status(self) -> dict[str, Any]:
        return {"notes": ["kept"], "stale_seconds": 0.5}

    def write_state(self, state: dict[str, Any]) -> None:
        self.state = state

    def read_state(self) -> dict[str, Any] | None:
        return self.state

    def close(self) -> None:
        self.calls.append("close")


def loaded(model: Any) -> Loaded:
    engine = Engine(model, k=K, n_candidates=50)
    return Loaded(engine=engine, start=start_of(model, k=K, n_candidates=50), fingerprint="new")


def serve(arm: Arm, users: range) -> None:
    arm._answer([Request(user=user, id=f"r{user}") for user in users])


def test_without_a_target_lists_are_the_models_own() -> None:
    arm = make_arm(counts_served=True)
    assert arm.engine.control is None
    assert arm.strength == 0
    serve(arm, range(30))
    assert arm.ledger.lists == arm.answered == 30
    assert arm.status() == {"strength": 0.0, "notes": [], "target": None}


def test_a_target_comes_moves_and_goes() -> None:
    arm = make_arm(counts_served=True)
    arm.aim({"gini": 0.3})
    assert arm.holder is not None
    assert arm.engine.control is arm.holder.control
    assert arm.strength > 0
    holder = arm.holder
    arm.aim({"gini": 0.5})
    assert arm.holder is holder
    assert arm.status()["target"] == {"gini": 0.5}
    with pytest.raises(ConfigError, match="need groups"):
        arm.aim({"group_cap": 0.1})
    assert arm.target == {"gini": 0.5}, "a target that is refused leaves the old one"
    assert str(holder.goal) == "a Gini index of 0.5"
    arm.aim({})
    assert arm.engine.control is None
    assert arm.strength == 0


def test_the_strength_of_a_stream_is_taken_from_its_fit() -> None:
    model = ll.Online(strength=0.2).over(small_model())
    engine = Engine(model, k=K, n_candidates=50)
    start = start_of(model, k=K, n_candidates=50)
    arm = make_arm()
    arm.swap(Loaded(engine=engine, start=start))
    assert arm.strength == 0.2


def test_prices_of_a_fit_give_way_to_a_target_and_come_back() -> None:
    model = small_model()
    prices = ll.FrankWolfe(strength=0.2, steps=2).fit(model.ranking(), k=K)
    arm = make_arm(counts_served=True)
    arm.swap(loaded(prices.over(model)))
    assert arm.engine.control is not None
    assert arm.engine.control.config.offsets_of is not None
    arm.aim({"gini": 0.3})
    assert arm.engine.control.config.offsets_of is None
    arm.aim({})
    assert arm.engine.control.config.offsets_of is not None


def test_an_answer_is_remembered_through_reloads_of_the_same_catalogue() -> None:
    arm = make_arm()
    serve(arm, range(3))
    for _ in range(3):
        arm.swap(loaded(small_model()))
    assert arm.count([ShownEvent(id="r1")]).accepted == 1


def test_a_state_is_taken_up() -> None:
    first = make_arm(target={"gini": 0.3}, keeper=(kept := Kept()), counts_served=True)
    for start in range(0, 300, 10):
        serve(first, range(start, start + 10))
        first.tick()
    assert kept.state is not None
    assert "flush" in kept.calls
    second = make_arm(target={"gini": 0.3}, keeper=Kept(kept.state))
    assert second.strength == pytest.approx(first.strength)


def test_durable_counts_are_kept_before_the_answer() -> None:
    kept = Kept()
    arm = make_arm(keeper=kept, counts_served=True, durable=True)
    serve(arm, range(3))
    assert kept.calls == ["learn r0 r1 r2", "flush"]
    arm = make_arm(keeper=(kept := Kept()), durable=True)
    serve(arm, range(3))
    assert kept.calls == [], "an answer that is not counted need not be kept"
    arm.count([ShownEvent(id="r1")])
    assert kept.calls == ["learn r1", "flush"]


def test_notes_of_the_target_and_of_the_keeper_are_both_told() -> None:
    status = make_arm(target={"gini": 0.3}, keeper=Kept()).status()
    assert status["notes"][-1] == "kept"
    assert len(status["notes"]) == 2
    assert status["stale_seconds"] == 0.5


def test_a_state_that_is_none_of_ours_is_left_out_with_a_note() -> None:
    arm = make_arm(target={"gini": 0.3}, keeper=Kept({"strength": "much"}))
    assert arm.status()["notes"][0].startswith("the saved state of the target was not used")


def test_another_model_goes_on_with_the_ledger_by_item_ids() -> None:
    arm = make_arm(target={"gini": 0.3}, keeper=(kept := Kept()), counts_served=True)
    serve(arm, range(100))
    ids, held = arm.engine.item_ids, arm.ledger.totals.copy()
    strength, lists = arm.strength, arm.ledger.lists
    other = ll.IALS(factors=4, epochs=2).fit(ll.marketplace(200, 90, 3000, seed=3).interactions)
    arm.swap(loaded(other))
    assert kept.calls[-2:] == ["flush", f"renumbered {len(other.item_ids)}"]
    known = dict(zip(ids.tolist(), held.tolist(), strict=True))
    expected = [known.get(id_, 0) for id_ in other.item_ids.tolist()]
    np.testing.assert_array_equal(arm.ledger.totals, expected)
    assert arm.ledger.lists == lists
    assert arm.strength == pytest.approx(strength, rel=0.5), (
        "control goes on, and does not start anew"
    )
    assert arm.fingerprint == "new"
    serve(arm, range(5))


def test_what_was_shown() -> None:
    arm = make_arm(clock=lambda: NOW)
    serve(arm, range(5))
    assert arm.ledger.lists == 0
    first = arm.engine.item_ids[:2].tolist()
    events = [
        ShownEvent(id="r1"),
        ShownEvent(id="r1"),
        ShownEvent(id="r2", items=first),
        ShownEvent(id="gone"),
        ShownEvent(user=7, items=first, time=NOW - 1e6),
        ShownEvent(user=7, items=[*first, "no such item"], time=NOW + 1e6),
    ]
    assert arm.count(events) == (3, 1, 1, ["gone"], ["no such item"])
    assert arm.reported == 3
    assert arm.ledger.time == pytest.approx(NOW), "a client's clock that is ahead moves nothing"
    assert arm.copy().exposure.sum() == pytest.approx(arm.ledger.totals.sum() / UNIT)


def test_what_a_half_life_counts_over() -> None:
    assert seconds_that_count(Ledger(3, window=60.0)) == 60
    assert seconds_that_count(Ledger(3, half_life=60.0)) == pytest.approx(86.56, abs=0.01)
