"""Accumulators that grow and merge in any order hold what one pass over the same rows would."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, rule
from scipy import sparse
from tests.support.examples import examples

from limelight._base.errors import DataError
from limelight.metrics.accumulate import ListAccumulator, tally

N_ITEMS, K = 7, (2, 4)
LIST = st.integers(0, K[-1]).flatmap(
    lambda length: st.permutations(range(N_ITEMS)).map(
        lambda items: [*items[:length], *[-1] * (K[-1] - length)]
    )
)
USER = st.tuples(LIST, st.sets(st.integers(0, N_ITEMS - 1), max_size=3))
ROWS = st.lists(st.tuples(st.integers(0, N_ITEMS - 1), st.integers(1, 9)), max_size=6)


def targets_of(users):
    """Lay out the items to find as a matrix."""
    dense = np.zeros((len(users), N_ITEMS))
    for row, (_, targets) in enumerate(users):
        dense[row, list(targets)] = 1
    return sparse.csr_matrix(dense)


def lists_of(users):
    return np.array([items for items, _ in users], dtype=np.int64).reshape(len(users), K[-1])


class ListAccumulators(RuleBasedStateMachine):
    """Each accumulator is paired with the users that went into it."""

    pairs = Bundle("pairs")

    def __init__(self):
        super().__init__()
        self.known = []

    @rule(target=pairs)
    def start(self):
        pair = ListAccumulator(N_ITEMS, K), []
        self.known.append(pair)
        return pair

    @rule(pair=pairs, users=st.lists(USER, max_size=4))
    def update(self, pair, users):
        accumulator, seen = pair
        accumulator.update(lists_of(users), targets_of(users))
        seen += users

    @rule(pair=pairs, other=pairs)
    def merge(self, pair, other):
        users = list(other[1])
        pair[0].merge(other[0])
        pair[1].extend(users)

    def teardown(self):
        for accumulator, users in self.known:
            if not any(targets for _, targets in users):
                continue
            once = ListAccumulator(N_ITEMS, K)
            once.update(lists_of(users), targets_of(users))
            if not once.exposure().any():
                with pytest.raises(DataError, match=r"no exposure at all|no lists to measure"):
                    accumulator.result()
                continue
            assert accumulator.result() == pytest.approx(once.result(), rel=1e-9)
            np.testing.assert_allclose(accumulator.exposure(), once.exposure())


class Tallies(RuleBasedStateMachine):
    """Tallies of rows that are added to each other are tallies of all the rows."""

    tallies = Bundle("tallies")

    @staticmethod
    def count(rows):
        items, ranks = (np.array([row[c] for row in rows], dtype=np.int32) for c in range(2))
        return tally(items, ranks, N_ITEMS)

    @rule(target=tallies, rows=ROWS)
    def start(self, rows):
        return self.count(rows), rows

    @rule(target=tallies, one=consumes(tallies), other=tallies)
    def add(self, one, other):
        rows = one[1] + other[1]
        added, once = one[0].plus(other[0]), self.count(rows)
        for name in vars(once):
            np.testing.assert_allclose(getattr(added, name), getattr(once, name), err_msg=name)
            assert getattr(added, name).dtype == getattr(once, name).dtype
        return added, rows


TestListAccumulators = ListAccumulators.TestCase
TestListAccumulators.settings = examples(15, stateful_step_count=8)
TestTallies = Tallies.TestCase
TestTallies.settings = examples(50, stateful_step_count=12)
