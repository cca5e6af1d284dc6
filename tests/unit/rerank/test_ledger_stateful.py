"""The exposure in a ledger is that of its lists, whatever users chose before."""

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.support.examples import examples

from limelight.data import read_candidates
from limelight.metrics.lists import position_weights
from limelight.rerank.market.ledger import Help, Ledger, knots
from limelight.rerank.market.pool import Pool
from limelight.rerank.relevance import ScoreRelevance
from limelight.rerank.welfare import Power

N_USERS, N_ITEMS, K = 9, 6, 3


class Market(RuleBasedStateMachine):
    """Users choose again and again while the help for accounts changes."""

    @initialize(
        seed=st.integers(0, 99), by_impact=st.booleans(), grouped=st.booleans(), warm=st.booleans()
    )
    def start(self, seed, by_impact, grouped, warm):
        generator = np.random.default_rng(seed)
        users, items = np.nonzero(generator.random((N_USERS, N_ITEMS)) < 0.8)
        table = pa.table(
            {"user_id": users, "item_id": items, "score": generator.random(len(users))}
        )
        pool = Pool(read_candidates(table, catalogue=list(range(N_ITEMS))), ScoreRelevance())
        accounts = generator.integers(0, 2, N_ITEMS).astype(np.int32) if grouped else None
        self.ledger = Ledger(
            pool,
            position_weights(K),
            accounts=accounts,
            by_impact=by_impact,
            threads=1,
            seed=seed,
        )
        if warm:
            self.ledger.open()
        else:
            self.ledger.serve(lambda: self.help_of(0.5))

    def help_of(self, strength):
        n = self.ledger.n_accounts
        entitlement = np.full(n, self.ledger.weights.sum() / n)
        table = np.tile(Power(exponent=1, offset=0.3).marginal(knots()), (2, 1))
        return Help(entitlement, np.full(n, strength), table)

    @rule(
        strength=st.sampled_from([-1.0, 0.0, 0.3, 20.0]),
        stretch=st.sampled_from([None, 1, 4]),
        batch=st.sampled_from([None, 1, 5, 10**12]),
    )
    def sweep(self, strength, stretch, batch):
        before = self.ledger.places.copy()
        changed = self.ledger.sweep(lambda: self.help_of(strength), stretch, batch)
        assert changed == np.count_nonzero((before != self.ledger.places).any(axis=1))

    @rule()
    def start_over(self):
        self.ledger.open()

    @invariant()
    def exposure_is_that_of_the_lists(self):
        if not hasattr(self, "ledger"):
            return
        ledger = self.ledger
        expected = ledger.exposure_of(ledger.places)
        np.testing.assert_allclose(ledger.exposure, expected, rtol=1e-9, atol=1e-9)
        assert ledger.served == ledger.pool.n_users
        counts = ledger.pool.candidates.counts
        for places, count in zip(ledger.places, counts, strict=True):
            shown = places[places >= 0]
            assert len(shown) == min(K, count)
            assert (np.diff(shown) > 0).all()


TestMarket = Market.TestCase
TestMarket.settings = examples(40, stateful_step_count=8)
