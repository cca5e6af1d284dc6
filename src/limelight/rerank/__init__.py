"""Re-rankers: from what every user would like best to lists that share the exposure."""

from limelight.evaluate.audit_input import read_groups
from limelight.rerank.allocate import Allocate
from limelight.rerank.base import Reranker
from limelight.rerank.best_response import BestResponse, Online
from limelight.rerank.calibrate import calibrate
from limelight.rerank.fairrec import FairRec
from limelight.rerank.files import load
from limelight.rerank.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.greedy import Greedy
from limelight.rerank.group_shares import GroupPrices, GroupShares
from limelight.rerank.relevance import Relevance, ScoreRelevance
from limelight.rerank.result import RerankResult
from limelight.rerank.run import rerank
from limelight.rerank.welfare import (
    GiniWelfare,
    Impact,
    MinimumExposure,
    Power,
    TargetShares,
    Welfare,
)

__all__ = [
    "Allocate",
    "BestResponse",
    "FairRec",
    "FrankWolfe",
    "GiniWelfare",
    "Greedy",
    "GroupPrices",
    "GroupShares",
    "Impact",
    "MinimumExposure",
    "Online",
    "Power",
    "Prices",
    "Relevance",
    "RerankResult",
    "Reranker",
    "ScoreRelevance",
    "TargetShares",
    "Welfare",
    "calibrate",
    "load",
    "read_groups",
    "rerank",
]
