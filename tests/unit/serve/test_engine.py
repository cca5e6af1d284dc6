"""The engine: lists as ``recommend`` makes them, for every kind of request and model."""

from __future__ import annotations

import tempfile
import warnings

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import limelight as ll
from limelight._base.errors import LimelightError
from limelight.serve import Engine, Ledger, Request, RequestControl
from limelight.serve.rules import NeverShown
from limelight.serve.start import start_of

pytestmark = pytest.mark.unit
MARKET = ll.marketplace(400, 150, 7000).interactions
UNSEEN = ll.marketplace(40, 150, 700, random_state=5).interactions


def weighted():
    matrix = MARKET.matrix.astype(np.float32)
    matrix.data = np.random.default_rng(0).uniform(0.5, 3, matrix.nnz).astype(np.float32)
    return ll.IALS(factors=8, epochs=5).fit(matrix, weight="values")


def with_text_ids():
    rows, columns = (numbers.tolist() for numbers in MARKET.matrix.nonzero())
    users, items = [f"u{row}" for row in rows], [f"i{column}" for column in columns]
    data = ll.read(pa.table({"user_id": users, "item_id": items}))
    return ll.IALS(factors=9, epochs=5).fit(data)


def without_histories():
    with tempfile.TemporaryDirectory() as folder:
        ll.IALS(factors=8, epochs=5).fit(MARKET).save(f"{folder}/bare", history=False)
        return ll.load(f"{folder}/bare")


def exposed(**settings):
    return ll.ExADMM(factors=8, exposure_strength=0.01, epochs=5, **settings).fit(MARKET)


MODELS = {
    "ials": lambda: ll.IALS(factors=8, epochs=5).fit(MARKET),
    "exadmm": exposed,
    "joint": lambda: exposed(fold_in="joint"),
    "weighted": weighted,
    "ease": lambda: ll.EASE().fit(MARKET),
    "popularity": lambda: ll.Popularity().fit(MARKET),
    "text": with_text_ids,
    "no-histories": without_histories,
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]()


def histories(model, n_rows):
    """Return so many histories as a matrix over the model's items, and as own ids."""
    matrix = UNSEEN.matrix[:n_rows, : len(model.item_ids)].astype(np.float32)
    lists = [model.item_ids[matrix[row].indices].tolist() for row in range(n_rows)]
    return scipy.sparse.csr_matrix(matrix), lists


def same(answers, lists, model):
    for answer, ids, scores in zip(answers, lists.ids, lists.scores, strict=True):
        kept = ids >= 0
        assert answer.items == model.item_ids[ids[kept]].tolist()
        np.testing.assert_array_equal(answer.scores, scores[kept])
        np.testing.assert_array_equal(answer.numbers, ids[kept])


def test_a_first_pass_changes_no_list():
    market = ll.marketplace(300, 6000, 20000).interactions
    model = ll.IALS(factors=24, epochs=2).fit(market)
    requests = [
        Request(user=3),
        Request(history=[5, 4711, 80], exclude=[7, 9]),
        Request(history=[1, 2], allow=list(range(0, 6000, 2)), k=40),
        Request(),
    ]
    never = NeverShown(np.arange(100, 900, dtype=np.int32))
    before = model.recommend(users=[3, 4], k=15)
    for settings in ({}, {"never_show": never}):
        plain = Engine(model, k=15, first_pass=False, **settings)
        quick = Engine(model, k=15, **settings)
        alone = [quick.answer([request])[0] for request in requests]
        for answers in (quick.answer(requests), alone):
            for one, other in zip(answers, plain.answer(requests), strict=True):
                assert one.items == other.items
                assert one.scores.tobytes() == other.scores.tobytes()
    # The engine's index is at hand now.
    after = model.recommend(users=[3, 4], k=15)
    assert before.ids.tobytes() == after.ids.tobytes()
    assert before.scores.tobytes() == after.scores.tobytes()


def test_training_users_get_the_lists_of_recommend(model):
    engine = Engine(model, k=7)
    users = model.user_ids[[3, 250, 3]].tolist()
    answers = engine.answer([Request(user=user) for user in users])
    keeps = model.learned.seen is not None
    same(answers, model.recommend(user_ids=users, k=7, filter_seen=keeps), model)
    assert {answer.basis for answer in answers} == {"user"}


def test_unseen_users_get_the_lists_of_recommend(model):
    if getattr(model.config, "fold_in", "") == "joint":
        pytest.skip("a list of joint fold-in depends on who else asks")
    matrix, ids = histories(model, 6)
    answers = Engine(model, k=9).answer([Request(history=one) for one in ids])
    same(answers, model.recommend(matrix, k=9), model)
    assert {answer.basis for answer in answers} == {"history"}


def test_a_request_alone_is_answered_as_one_among_others(model):
    _, ids = histories(model, 4)
    requests = [
        Request(history=ids[0]),
        Request(user=model.user_ids.tolist()[9]),
        Request(),
        Request(history=ids[1], exclude=ids[2]),
        Request(history=ids[2], allow=ids[3], k=3),
        Request(user=model.user_ids.tolist()[8], history=ids[3]),
    ]
    engine = Engine(model, k=6)
    together = engine.answer(requests)
    for request, among_others in zip(requests, together, strict=True):
        [alone] = engine.answer([request])
        assert alone.items == among_others.items
        np.testing.assert_array_equal(alone.scores, among_others.scores)


def test_what_may_be_shown(model):
    _, ids = histories(model, 3)
    engine = Engine(model, k=150)
    everything = set(model.item_ids.tolist())
    [excluded, allowed, both, none] = engine.answer(
        [
            Request(history=ids[0], exclude=ids[1]),
            Request(history=ids[0], allow=ids[1]),
            Request(history=ids[0], allow=ids[1], exclude=ids[1][:1]),
            Request(history=ids[0], allow=[]),
        ]
    )
    assert set(excluded.items) == everything - set(ids[0]) - set(ids[1])
    assert set(allowed.items) == set(ids[1]) - set(ids[0])
    assert set(both.items) == set(ids[1][1:]) - set(ids[0])
    assert none.items == []


def test_items_that_are_never_shown(model):
    hidden = np.array([2, 5, 77], dtype=np.int32)
    never = NeverShown(hidden, frozenset({"recalled"}))
    engine = Engine(model, k=150, never_show=never)
    banned = set(model.item_ids[hidden].tolist())
    plain = Engine(model, k=150)
    requests = [
        Request(user=model.user_ids.tolist()[3]),
        Request(),
        Request(history=histories(model, 1)[1][0]),
        Request(allow=[*banned, model.item_ids.tolist()[9]]),
    ]
    for ruled, free in zip(engine.answer(requests), plain.answer(requests), strict=True):
        assert not banned & set(ruled.items)
        assert ruled.items == [id_ for id_ in free.items if id_ not in banned]
    own = [*banned, "new", "recalled"]
    [ranked] = engine.answer([Request(items=own, scores=[3.0, 2.0, 1.0, 0.5, 9.0])])
    assert ranked.items == ["new"]


def test_of_a_user_without_history_it_says_so(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = Engine(model, k=4).answer([Request(user="nobody"), Request(history=["?"])])
    assert first.basis == second.basis == "everybody"
    assert first.items == second.items
    assert len(first.items) == 4
    assert second.unknown == ["?"]


def test_a_training_user_with_more_of_a_history():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    row, more = 11, [1, 2]
    seen = MARKET.matrix[row].indices
    [answer] = Engine(model, k=5).answer([Request(user=row, history=more)])
    together = np.zeros((1, MARKET.n_items), dtype=np.float32)
    together[0, seen] = together[0, more] = 1
    same([answer], model.recommend(scipy.sparse.csr_matrix(together), k=5), model)
    assert answer.basis == "history"


def test_own_candidates():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    [answer] = Engine(model).answer(
        [Request(items=["new", 3, "7", 9], scores=[0.1, 0.5, 0.5, 0.9], k=3, exclude=[9])]
    )
    assert answer.items == [3, "7", "new"]
    assert answer.numbers.tolist() == [3, 7, -1]
    assert answer.unknown == ["new"]
    assert answer.basis == "candidates"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(k=0), "k must be a whole number from 1 up: 0"),
        (Request(k=True), "k must be a whole number from 1 up: True"),
        (Request(items=[1, 2], scores=[1.0]), "1 scores for 2 candidates"),
        (Request(items=[1]), "0 scores for 1 candidates"),
        (Request(items=[1, "1"], scores=[1.0, 2.0]), "item '1' is a candidate twice"),
        (Request(items=["x", "x"], scores=[1.0, 2.0]), "item 'x' is a candidate twice"),
        (Request(items=[1], scores=[np.nan]), "the score of item 1 must be finite"),
        (Request(items=[1], scores=[1e300]), "the score of item 1 must be finite"),
    ],
)
def test_a_bad_request_leaves_the_others_alone(request_, said):
    engine = Engine(ll.IALS(factors=8, epochs=2).fit(MARKET), k=2)
    bad, good = engine.answer([request_, Request(user=3)])
    assert isinstance(bad, LimelightError)
    assert said in str(bad)
    assert bad.hint
    assert len(good.items) == 2


def test_the_ledger_follows_what_was_shown():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    engine, ledger = Engine(model, k=5), Ledger(150, window=60)
    answers = engine.answer([Request(user=1, id="a"), Request(user=1, id="a")], ledger, time=1.0)
    assert ledger.lists == 1
    assert set(np.flatnonzero(ledger.totals)) == set(answers[0].numbers.tolist())
    engine.answer([Request(user=2)], ledger, count=False)
    assert ledger.lists == 1


def controlled(model, strength, **settings):
    start = start_of(model, k=10, n_candidates=150)
    control = RequestControl(start.config, strength)
    return Engine(model, k=10, n_candidates=150, control=control, **settings)


def test_control_spreads_exposure():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    spread = {}
    for strength in (0.0, 0.5):
        engine, ledger = controlled(model, strength), Ledger(150, window=1e6)
        for user in range(400):
            engine.answer([Request(user=user)], ledger, time=float(user))
        spread[strength] = ll.gini(ledger.totals.astype(np.float64))
        loss = 1 - ledger.shown / ledger.plain
        assert (loss == 0) if strength == 0 else (0 < loss < 0.3)
    assert spread[0.5] < spread[0.0] - 0.2


def test_without_strength_control_changes_nothing():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    plain = Engine(model, k=10).answer([Request(user=4)])
    [ruled] = controlled(model, 0.0).answer([Request(user=4)], Ledger(150, window=9.0))
    assert ruled.items == plain[0].items
    assert ruled.subsidy.tolist() == [0.0] * 10


def test_own_candidates_are_controlled_in_units_of_their_own():
    model = ll.IALS(factors=8, epochs=5).fit(MARKET)
    lists = []
    for factor in (1.0, 1000.0):
        engine, ledger = controlled(model, 0.5), Ledger(150, window=1e6)
        generator = np.random.default_rng(3)
        for time in range(60):
            scores = (factor * np.sort(generator.random(40))[::-1]).tolist()
            request = Request(items=generator.permutation(150)[:40].tolist(), scores=scores)
            [answer] = engine.answer([request], ledger, time=float(time))
        lists.append(answer.items)
    assert lists[0] == lists[1]
