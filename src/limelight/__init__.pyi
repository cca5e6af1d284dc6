"""The public names and where they come from, for type checkers and editors.

When limelight runs, ``__init__.py`` finds them in the same places.
"""

from limelight import plot as plot
from limelight._base.errors import (
    ConfigError,
    DataError,
    LimelightError,
    LimelightWarning,
    MemoryLimitError,
    SolveError,
)
from limelight.audit.audit import audit
from limelight.audit.result import Audit
from limelight.control.card import model_card
from limelight.control.fit_to import fit_to
from limelight.control.frontier import frontier
from limelight.control.frontier_result import Frontier
from limelight.control.tuning.tune import tune
from limelight.control.tuning.result import TuneResult
from limelight.data import (
    HeldOut,
    Interactions,
    Marketplace,
    Split,
    TableSource,
    as_unseen,
    marketplace,
    read,
    read_candidates,
    read_groups,
    split_time,
    split_users,
)
from limelight.metrics.accumulate import ListAccumulator
from limelight.metrics.accuracy import ndcg, recall
from limelight.metrics.awrf import awrf
from limelight.metrics.evaluate import Evaluation, evaluate
from limelight.metrics.expected_exposure import ExpectedExposure, expected_exposure
from limelight.metrics.exposure import (
    coverage,
    entropy,
    exposure,
    gini,
    gini_floor,
    lorenz,
    mmf,
    top_share,
)
from limelight.metrics.groups import group_exposure
from limelight.metrics.measures import MeasureAccumulator
from limelight.metrics.overlap import least_item_promoted, rank_biased_overlap
from limelight.metrics.popularity import aclt, aplt, arp, long_tail
from limelight.metrics.rarefaction import GiniEstimate, gini_at
from limelight.metrics.users import Envy, envy, user_gini
from limelight.models import EASE, IALS, ExADMM, MultDAE, MultiFR, MultVAE, Popularity, Random
from limelight.models.compare import ModelComparison, compare
from limelight.models.exadmm import ExposureTargets
from limelight.recommend.explain import Explanation
from limelight.rerank import (
    Allocate,
    BestResponse,
    FairRec,
    FrankWolfe,
    Greedy,
    GroupShares,
    Online,
    Prices,
    calibrate,
    load,
    rerank,
)

__version__: str

__all__ = [
    "Allocate",
    "Audit",
    "BestResponse",
    "ConfigError",
    "DataError",
    "EASE",
    "Envy",
    "Evaluation",
    "ExADMM",
    "ExpectedExposure",
    "Explanation",
    "ExposureTargets",
    "FairRec",
    "FrankWolfe",
    "Frontier",
    "GiniEstimate",
    "Greedy",
    "GroupShares",
    "HeldOut",
    "IALS",
    "Interactions",
    "LimelightError",
    "LimelightWarning",
    "ListAccumulator",
    "Marketplace",
    "MeasureAccumulator",
    "MemoryLimitError",
    "ModelComparison",
    "MultDAE",
    "MultVAE",
    "MultiFR",
    "Online",
    "Popularity",
    "Prices",
    "Random",
    "SolveError",
    "Split",
    "TableSource",
    "TuneResult",
    "aclt",
    "aplt",
    "arp",
    "as_unseen",
    "audit",
    "awrf",
    "calibrate",
    "compare",
    "coverage",
    "entropy",
    "envy",
    "evaluate",
    "expected_exposure",
    "exposure",
    "fit_to",
    "frontier",
    "gini",
    "gini_at",
    "gini_floor",
    "group_exposure",
    "least_item_promoted",
    "load",
    "long_tail",
    "lorenz",
    "marketplace",
    "mmf",
    "model_card",
    "ndcg",
    "plot",
    "rank_biased_overlap",
    "read",
    "read_candidates",
    "read_groups",
    "recall",
    "rerank",
    "split_time",
    "split_users",
    "top_share",
    "tune",
    "user_gini",
]
