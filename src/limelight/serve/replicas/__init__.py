"""Several processes that count into one ledger, over a Valkey or Redis server."""
