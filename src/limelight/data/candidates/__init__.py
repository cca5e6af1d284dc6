"""Candidates with scores, sorted in as much memory as there is."""
