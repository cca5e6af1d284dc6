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
from limelight.metrics.evaluate import Evaluation, evaluate
from limelight.metrics.exposure import (
    coverage,
    entropy,
    exposure,
    gini,
    gini_floor,
    lorenz,
    top_share,
)
from limelight.metrics.rarefaction import GiniEstimate, gini_at
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
    "EASE",
    "IALS",
    "Allocate",
    "Audit",
    "BestResponse",
    "ConfigError",
    "DataError",
    "Evaluation",
    "ExADMM",
    "Explanation",
    "ExposureTargets",
    "FairRec",
    "FrankWolfe",
    "Frontier",
    "GiniEstimate",
    "Greedy",
    "GroupShares",
    "HeldOut",
    "Interactions",
    "LimelightError",
    "LimelightWarning",
    "ListAccumulator",
    "Marketplace",
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
    "as_unseen",
    "audit",
    "calibrate",
    "compare",
    "coverage",
    "entropy",
    "evaluate",
    "exposure",
    "fit_to",
    "frontier",
    "gini",
    "gini_at",
    "gini_floor",
    "load",
    "lorenz",
    "marketplace",
    "ndcg",
    "plot",
    "read",
    "read_candidates",
    "read_groups",
    "recall",
    "rerank",
    "split_time",
    "split_users",
    "top_share",
    "tune",
]
