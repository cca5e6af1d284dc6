"""The data sets of the paper: where they are published, how they are prepared, what to expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.errors import ConfigError, DataError
from limelight.data.read import read
from limelight.data.split import Split, split_users
from limelight.data.synthetic import marketplace
from limelight.lab.paper.raw import RawLayout, as_published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from limelight.data import Interactions
    from limelight.data.sources import Source


class DataSize(NamedTuple):
    """A row of the paper's Table 1."""

    users: int
    items: int
    interactions: int


class Time(NamedTuple):
    """Seconds to train and to infer, as published; None where the paper has none."""

    training: float | None
    inference: tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One data set of the paper with the settings of its experiments."""

    title: str
    origin: str
    """Where the data are published."""
    reading: Mapping[str, Any]
    """How :func:`limelight.read` prepares them."""
    size: DataSize
    held_out: int
    """Users for validation, and as many for the test."""
    factors: int
    cutoffs: tuple[int, int, int]
    """The lengths of lists in Figure 1."""
    timed: tuple[int, int]
    """The lengths of lists in Table 3."""
    weights: tuple[float, float, float]
    """Small, medium and large exposure weights of Figure 2."""
    between: tuple[float, ...] = ()
    """Weights that are drawn beside them, where all three do nothing or all they can."""
    weight_range: tuple[float, float]
    """Exposure weights to search."""
    ials: Mapping[str, float]
    exadmm: Mapping[str, float]
    """Settings that the paper's authors published with their code."""
    times: Mapping[str, Time] = field(default_factory=dict)
    """As published; empty for data that are not the paper's."""
    is_published: bool = True
    """Whether the sizes are those of the paper's Table 1, not our own counts."""
    raw: RawLayout | None = None
    """How the published file is written, if it has no names of columns."""


EXPERIMENTS: Mapping[str, Experiment] = MappingProxyType(
    {
        "epinions": Experiment(
            title="Epinions",
            origin="the Epinions data of Massa and Avesani at trustlet.org "
            "(ratings_data.txt.bz2), or any table of its ratings with the columns user, item, "
            "rating",
            raw=RawLayout(("user", "item", "rating"), " "),
            reading={
                "rating": "rating",
                "min_rating": 4,
                "min_user": 20,
                "min_item": 20,
                "filter_order": "together",
            },
            size=DataSize(6_287, 3_999, 129_574),
            held_out=500,
            factors=32,
            cutoffs=(5, 10, 20),
            timed=(5, 20),
            weights=(2e-4, 3e-3, 9e-2),
            between=(1e-6, 1e-5),
            weight_range=(1e-7, 1.0),
            ials={"unobserved_weight": 0.06, "regularization": 7e-4},
            exadmm={"unobserved_weight": 0.06, "regularization": 2e-4},
            times={
                "iALS": Time(0.7, (0.1, 0.1)),
                "Mult-VAE": Time(72.6, (0.5, 0.5)),
                "iALS+FairRec": Time(0.7, (0.3, 0.3)),
                "Multi-FR": Time(4011.3, (0.5, 0.5)),
                "exADMM": Time(1.7, (0.4, 0.4)),
            },
        ),
        "ml-20m": Experiment(
            title="ML-20M",
            origin="MovieLens 20M at grouplens.org (ratings.csv)",
            reading={"rating": "rating", "min_rating": 4, "min_user": 5},
            size=DataSize(136_677, 20_108, 9_990_682),
            held_out=10_000,
            factors=256,
            cutoffs=(10, 20, 50),
            timed=(10, 50),
            weights=(1e-10, 1e-7, 3e-6),
            weight_range=(1e-10, 1e-4),
            ials={"unobserved_weight": 0.1, "regularization": 0.003},
            exadmm={"unobserved_weight": 0.1, "regularization": 0.002},
            times={
                "iALS": Time(67.2, (4.2, 4.2)),
                "Mult-VAE": Time(1872.6, (14.7, 14.7)),
                "iALS+FairRec": Time(67.2, (23.3, 30.1)),
                "Multi-FR": Time(None, (None, None)),
                "exADMM": Time(98.0, (9.5, 9.5)),
            },
        ),
        "msd": Experiment(
            title="MSD",
            origin="the Echo Nest Taste Profile of the Million Song Dataset "
            "(train_triplets.txt), or any table of it with the columns user, item",
            raw=RawLayout(("user", "item", "count"), "\t"),
            reading={"min_item": 200, "min_user": 20, "filter_order": "items-first"},
            size=DataSize(571_355, 41_140, 33_633_450),
            held_out=50_000,
            factors=512,
            cutoffs=(10, 20, 50),
            timed=(10, 50),
            weights=(1e-12, 1e-10, 1e-3),
            between=(1e-7,),
            weight_range=(1e-12, 1e-3),
            ials={"unobserved_weight": 0.03, "regularization": 5e-4},
            exadmm={"unobserved_weight": 0.02, "regularization": 0.002},
            times={
                "iALS": Time(857.6, (39.4, 39.4)),
                "Mult-VAE": Time(22580.1, (145.2, 145.2)),
                "iALS+FairRec": Time(857.6, (None, None)),
                "Multi-FR": Time(None, (None, None)),
                "exADMM": Time(1533.1, (89.6, 89.6)),
            },
        ),
        "letterboxd": Experiment(
            title="Letterboxd",
            origin="ratings of films on Letterboxd from 1 to 10, with the columns user, item, "
            "rating; it stands in for ML-20M, whose settings it has",
            reading={"rating": "rating", "min_rating": 8, "min_user": 5},
            size=DataSize(49_659, 12_809, 8_734_130),
            held_out=5_000,
            factors=256,
            cutoffs=(10, 20, 50),
            timed=(10, 50),
            weights=(1e-10, 1e-7, 3e-6),
            weight_range=(1e-10, 1e-4),
            ials={"unobserved_weight": 0.1, "regularization": 0.003},
            exadmm={"unobserved_weight": 0.1, "regularization": 0.002},
            is_published=False,
        ),
        "gowalla": Experiment(
            title="Gowalla",
            origin="check-ins on Gowalla as LightGCN's authors publish them, all of them together, "
            "with the columns user, item",
            reading={},
            size=DataSize(29_858, 40_981, 1_027_370),
            held_out=3_000,
            factors=128,
            cutoffs=(5, 10, 20),
            timed=(5, 20),
            weights=(1e-7, 1e-5, 1e-3),
            weight_range=(1e-9, 1e-1),
            ials={"unobserved_weight": 0.01, "regularization": 0.005},
            exadmm={"unobserved_weight": 0.01, "regularization": 0.005},
            is_published=False,
        ),
    }
)

_ROUNDING = 0.01  # the paper prints two or three digits of the number of interactions


def find(name: str) -> Experiment:
    """Look an experiment up by its name on the command line."""
    if name not in EXPERIMENTS:
        message = f"unknown experiment: {name!r}"
        raise ConfigError(message, hint=f"choose one of: {', '.join(EXPERIMENTS)}")
    return EXPERIMENTS[name]


def prepare(experiment: Experiment, source: Source, columns: Mapping[str, str]) -> Split:
    """Read the published data, apply the paper's filters and hold users out.

    ``columns`` names those of users and items, where they are not the usual ones.
    """
    published = as_published(source, experiment.raw)
    split = hold_out(read(published, **{**experiment.reading, **columns}), experiment.held_out)
    found, wanted = size_of(split), experiment.size
    exact = found[:2] == wanted[:2]
    if not exact or abs(found.interactions / wanted.interactions - 1) > _ROUNDING:
        whose = "the paper has it" if experiment.is_published else "we count it"
        message = f"this is not {experiment.title} as {whose}: {_show(found)}"
        hint = f"expected {_show(wanted)}, from {experiment.origin}"
        raise DataError(message, hint=hint)
    return split


def make_up(size: DataSize, held_out: int, seed: int = 0) -> Split:
    """Make up a marketplace of a size, and hold users out."""
    return hold_out(marketplace(*size, seed=seed).interactions, held_out)


def hold_out(data: Interactions, users: int) -> Split:
    """Hold out users for validation and as many for the test."""
    return split_users(data, validation=users, test=users)


def size_of(split: Split) -> DataSize:
    """Count what a split holds, all parts together."""
    parts = (split.validation, split.test)
    interactions = split.train.nnz + sum(part.history.nnz + part.targets.nnz for part in parts)
    users = split.train.n_users + sum(part.n_users for part in parts)
    return DataSize(users, split.train.n_items, interactions)


def _show(size: DataSize) -> str:
    return f"{size.users:,} users, {size.items:,} items, {size.interactions:,} interactions"
