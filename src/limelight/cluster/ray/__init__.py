"""Ranks, collectives and executors that run as actors and tasks of Ray."""
