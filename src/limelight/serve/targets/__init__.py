"""Holding a target over what was shown: strength and prices follow the ledger."""
