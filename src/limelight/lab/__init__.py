"""Benchmarks against other libraries, and the paper's experiments."""
