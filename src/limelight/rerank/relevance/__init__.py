"""What a candidate is worth to its user: laws, and how held-out pairs tell them."""

from limelight.rerank.relevance.calibration import calibrate
from limelight.rerank.relevance.laws import (
    BY_RANK,
    HEAD,
    Relevance,
    ScoreRelevance,
    by_scores,
    check_law,
    features,
)

__all__ = [
    "BY_RANK",
    "HEAD",
    "Relevance",
    "ScoreRelevance",
    "by_scores",
    "calibrate",
    "check_law",
    "features",
]
