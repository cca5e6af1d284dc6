"""Fits that are spread over machines: ranks as actors of a Ray cluster, which is an extra.

The algorithms know none of this: they work together through `limelight.solve.exchange`. Ray places
the ranks, notices their deaths and ships rows; nothing is retried behind our back, and what must
last is a checkpoint on disk, never an object of the cluster.
"""
