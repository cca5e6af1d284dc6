"""All users of a saved model, piece by piece, on one machine or many: what the verbs call."""

from limelight.jobs.evaluate import evaluate
from limelight.jobs.recommend import recommend
from limelight.jobs.rerank import rerank

__all__ = ["evaluate", "recommend", "rerank"]
