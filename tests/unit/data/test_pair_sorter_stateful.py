"""A sorter that takes batches of any size, in any order, gives the rows of a naive twin."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.support.examples import examples

from limelight.data.candidates.sorter import BUFFER_BYTES, PairSorter

SCORES = st.floats(-3, 3, width=32)


class Sorter(RuleBasedStateMachine):
    """Pairs come grouped for a while, then in disorder, through a buffer of a few."""

    def __init__(self):
        super().__init__()
        self.pairs = []
        self.n_users = 0

    @initialize(capacity=st.integers(2, 12))
    def start(self, capacity):
        self.sorter = PairSorter(memory=capacity * BUFFER_BYTES)

    def _add(self, users, scores):
        # Every pair is a new one: the items of a user are numbered as they come.
        items = list(range(len(self.pairs), len(self.pairs) + len(users)))
        self.pairs += zip(users, [-score for score in scores], items, strict=True)
        self.sorter.add(
            np.array(users, dtype=np.int32),
            np.array(items, dtype=np.int32),
            np.array(scores, dtype=np.float32),
        )

    @rule(scores=st.lists(SCORES, min_size=1, max_size=9))
    def add_new_user(self, scores):
        self._add([self.n_users] * len(scores), scores)
        self.n_users += 1

    @rule(data=st.data(), scores=st.lists(SCORES, max_size=9))
    def add_known_users(self, data, scores):
        if self.n_users:
            known = st.integers(0, self.n_users - 1)
            self._add([data.draw(known) for _ in scores], scores)

    def teardown(self):
        if not hasattr(self, "sorter"):
            return
        indptr, rows = self.sorter.finish()
        items, scores = rows.read(0, int(indptr[-1]))
        found = [
            (user, -score, item)
            for user, (start, stop) in enumerate(pairwise(indptr.tolist()))
            for score, item in zip(
                scores[start:stop].tolist(), items[start:stop].tolist(), strict=True
            )
        ]
        assert found == sorted(self.pairs)
        self.sorter.close()


TestSorter = Sorter.TestCase
TestSorter.settings = examples(60, stateful_step_count=15)
