"""Re-rankers: from what every user would like best to lists that share the exposure."""

from limelight.data.groups import read_groups
from limelight.rerank.folder import load
from limelight.rerank.methods.allocate import Allocate
from limelight.rerank.methods.best_response import BestResponse, Online
from limelight.rerank.methods.fairrec import FairRec
from limelight.rerank.methods.frank_wolfe import FrankWolfe, Prices
from limelight.rerank.methods.greedy import Greedy
from limelight.rerank.methods.group_shares import GroupPrices, GroupShares
from limelight.rerank.relevance import Relevance, ScoreRelevance, calibrate
from limelight.rerank.rerank import rerank
from limelight.rerank.reranker import Reranker
from limelight.rerank.result import RerankResult
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
