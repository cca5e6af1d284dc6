import numpy as np
import pytest

import limelight as ll
from limelight._base.seeds import seed_of

HISTORIES = ll.marketplace(200, 60, 3000).interactions


def ranking():
    return ll.Popularity().fit(HISTORIES).ranking(filter_seen=False)


DRAWS = {
    "marketplace": lambda **given: ll.marketplace(200, 60, 3000, **given).interactions.matrix,
    "split_users": lambda **given: (
        ll.split_users(HISTORIES, validation=20, test=20, **given).test.targets
    ),
    "as_unseen": lambda **given: ll.as_unseen(HISTORIES.matrix, 50, **given),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_has_two_names_and_may_come_from_a_generator(draw):
    first = draw(random_state=3)
    assert (first != draw(seed=3)).nnz == 0
    assert (first != draw(seed=3, random_state=3)).nnz == 0
    for kind in (np.random.default_rng, np.random.RandomState):
        drawn, again = (draw(random_state=kind(8)).toarray() for _ in range(2))
        np.testing.assert_array_equal(drawn, again)
    with pytest.raises(ll.ConfigError, match="mean the same, but differ: 3, 4") as error:
        draw(random_state=3, seed=4)
    assert error.value.hint == "leave out seed, which is the older name"


def test_a_law_of_relevance_takes_either_name():
    found = [
        ll.calibrate(ranking(), HISTORIES.matrix, **given)
        for given in ({"seed": 3}, {"random_state": 3}, {"random_state": np.int64(3)})
    ]
    assert found[0] == found[1] == found[2]


def test_rerank_takes_a_generator():
    model = ll.Popularity().fit(HISTORIES)
    one, two = (
        ll.rerank(model, k=5, gini=0.5, random_state=np.random.default_rng(2)) for _ in range(2)
    )
    assert one.metrics == two.metrics


def test_a_generator_beside_a_seed_is_refused():
    with pytest.raises(ll.ConfigError, match="mean the same, but differ"):
        seed_of(np.random.default_rng(0), 3)


def test_what_is_no_seed_is_refused_where_it_is_used():
    with pytest.raises(ll.ConfigError, match="random_state must be an integer: 'x'"):
        ll.IALS(random_state="x")
