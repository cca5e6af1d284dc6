"""Audits of anybody's lists: how even their exposure is, and how well they fit merit."""
