"""Models that are neural networks. They compute with JAX, which is an extra."""
