"""Report pages of made-up runs: as rich or as poor, and as hostile, as a test wants them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LORENZ_X = np.linspace(0, 1, 51)
METRICS = [
    ("ndcg", "nDCG@20", 4, False, "higher", "Accuracy: held-out items near the top of the lists."),
    ("recall", "Recall@20", 4, False, "higher", "Accuracy: held-out items that the lists contain."),
    ("gini", "Gini", 3, False, "lower", "Inequality of exposure: 0 is equal, 1 is one item only."),
    ("coverage", "Coverage", 1, True, "higher", "Items that stand in at least one list."),
    (
        "top_share",
        "Top 1 % of items",
        1,
        True,
        None,
        "Exposure that the top 1 % of the items hold.",
    ),
]


def made_up(
    *, methods: int = 1, steps: int = 4, items: int = 120, users: int = 3, k: int = 10
) -> dict[str, Any]:
    """Make the payload of a run whose exposure grows more even with every step of each method."""
    random = np.random.default_rng(7)
    popularity = np.arange(1, items + 1) ** -1.1 * random.uniform(0.6, 1.4, items)
    studios = [f"Studio {letter}" for letter in "ABCDEFGH"]
    member = random.integers(len(studios), size=items)
    ranks = np.unique(np.geomspace(1, items, 40).astype(int))

    def point(method: str, strength: float | None, evenness: float, cost: float) -> dict[str, Any]:
        noise = np.exp(evenness * random.normal(0, 0.5, items))
        exposure = popularity ** (1 - 0.8 * evenness) * noise
        exposure[exposure < np.quantile(exposure, 0.35 * (1 - evenness))] = 0
        exposure *= items / exposure.sum()
        ascending = np.sort(exposure)
        cumulative = np.concatenate([[0], np.cumsum(ascending)]) / items
        lorenz = np.interp(LORENZ_X, np.linspace(0, 1, items + 1), cumulative)
        ndcg = 0.142 * (1 - cost * evenness**2)
        scores = np.log(exposure + 1e-3) + random.gumbel(0, 0.4 + evenness, (users, items))
        strongest = "" if strength is None else f", strength {strength:g}"
        return {
            "method": method,
            "strength": strength,
            "label": method + strongest,
            "sentence": f"{method}{strongest} does what it does.",
            "figures": {
                "ndcg": [ndcg, ndcg - 0.004, ndcg + 0.004],
                "recall": [1.6 * ndcg, 1.6 * ndcg - 0.006, 1.6 * ndcg + 0.006],
                "gini": [_gini(exposure), None, None],
                "coverage": [float(np.mean(exposure > 0)), None, None],
                "top_share": [float(ascending[-max(1, items // 100) :].sum() / items), None, None],
            },
            "settings": [["factors", "64"], ["exposure_strength", f"{strength or 0:g}"]],
            "on_front": cost < 0.3 or evenness < 0.3,
            "lorenz": lorenz.tolist(),
            "by_rank": ascending[::-1][ranks - 1].round(4).tolist(),
            "exposure": exposure.round(4).tolist(),
            "groups": (np.bincount(member, exposure, len(studios)) / items).tolist(),
            "lists": np.argsort(-scores)[:, :k].tolist(),
            "trace": _trace(evenness) if method != "Re-ranking" else [],
        }

    points = [point("iALS", None, 0.0, 0.0)]
    for number, name in enumerate(["exADMM", "Re-ranking"][:methods]):
        for step in range(1, steps + 1):
            strength = float(f"{10 ** (-3 + 3 * step / steps):.2g}")
            points.append(point(name, strength, step / steps, 0.22 + 0.2 * number))
    return {
        "version": 1,
        "kind": "frontier",
        "title": "Frontier of exADMM",
        "headline": "Half of the catalogue is seen three times as often for 2 % of the accuracy.",
        "k": k,
        "slider": "Exposure strength",
        "base": 0,
        "chosen": 1 + steps // 2,
        "metrics": [
            {
                "key": key,
                "label": label,
                "digits": digits,
                "percent": share,
                "better": way,
                "help": say,
                "accuracy": key in {"ndcg", "recall"},
            }
            for key, label, digits, share, way, say in METRICS
        ],
        "points": points,
        "lorenz_x": LORENZ_X.tolist(),
        "ranks": ranks.tolist(),
        "items": {
            "label": [_title(number) for number in range(items)],
            "id": [f"i{number}" for number in range(items)],
            "group": [studios[one] for one in member],
            "interactions": np.maximum(1, 4000 * popularity).astype(int).tolist(),
        },
        "items_note": "",
        "groups": {"label": studios, "items": np.bincount(member, minlength=len(studios)).tolist()},
        "groups_note": "",
        "users": [
            {
                "label": f"u{number}",
                "history": random.choice(items, 12, replace=False).tolist(),
                "liked": random.choice(min(items, 40), 6, replace=False).tolist(),
            }
            for number in range(users)
        ],
        "data": [["Users", "20,000"], ["Items", f"{items:,}"], ["Interactions", "1,234,567"]],
        "made": [["Command", "limelight frontier ratings.parquet --report report.html"]],
        "notes": ["Intervals are 95 % bootstrap intervals over test users."],
    }


def _gini(exposure: NDArray[np.float64]) -> float:
    order = np.arange(1, len(exposure) + 1)
    return float(2 * order @ np.sort(exposure) / (len(exposure) * exposure.sum()) - 1)


def _trace(evenness: float) -> list[dict[str, float | None]]:
    return [
        {
            "epoch": epoch,
            "objective": 1e5 * (1 + 0.5**epoch) * (1 + evenness),
            "residual_V": 10.0 * 0.6**epoch,
            "residual_U": 4.0 * 0.7**epoch,
            "feasibility": None if epoch == 1 else 0.5**epoch,
        }
        for epoch in range(1, 21)
    ]


def _title(number: int) -> str:
    first = ["Silent", "Golden", "Last", "Hidden", "Northern", "Paper", "Second", "Blue"]
    second = ["Harbour", "Garden", "Letter", "Winter", "River", "Machine", "Island", "Summer"]
    return f"{first[number % 8]} {second[number // 8 % 8]} {number}"
