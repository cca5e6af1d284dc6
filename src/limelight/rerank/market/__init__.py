"""Users who choose at the items' prices: pool, market and ledger."""
