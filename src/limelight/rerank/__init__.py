"""Re-rankers: from what every user would like best to lists that share the exposure."""

from limelight.rerank.base import Reranker
from limelight.rerank.fairrec import FairRec
from limelight.rerank.greedy import Greedy

__all__ = ["FairRec", "Greedy", "Reranker"]
