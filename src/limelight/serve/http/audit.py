"""The audit of the window as `GET /v1/exposure` gives it, at most once a second."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight.serve.http.exposure import accounts_of, extremes, figures_of, floor_for
from limelight.serve.http.wire import ENCODE, Exposure, HistoryPoint, Latency
from limelight.serve.ledger.window import HALF_LIVES

if TYPE_CHECKING:
    from limelight.serve.http.arms import Arm, LedgerCopy, Loaded
    from limelight.serve.http.settings import ServeSettings
    from limelight.serve.http.telemetry import LatencyWindow

_FRESH = 1.0
_MOST_POINTS = 1000
_UNREPORTED = 100
"""From so many lists on, it is said if none was reported as shown."""


class Look(NamedTuple):
    """What is known of a model at one moment."""

    copy: LedgerCopy
    status: dict[str, Any]
    loaded: Loaded


class WindowAudit:
    """Measures the window of one model; what was measured a moment ago is told again."""

    def __init__(self, arm: Arm, settings: ServeSettings, latencies: LatencyWindow) -> None:
        self._arm, self._settings, self._latencies = arm, settings, latencies
        self._lock = asyncio.Lock()
        self._made: dict[int, tuple[float, bytes]] = {}

    async def content(self, top: int) -> bytes:
        """Return the audit as JSON, with so many items and groups."""
        async with self._lock:
            at, found = self._made.get(top, (0.0, b""))
            if found and time.monotonic() - at < _FRESH:
                return found
            arm = self._arm
            # At once, so that a model that is swapped in meanwhile does not mix with another.
            look = await arm.batcher.run(lambda: Look(arm.copy(), arm.status(), arm.loaded))
            # Sorting a large catalogue takes long, and the thread of the lists must not wait.
            made = await asyncio.to_thread(lambda: ENCODE(self._measure(look, top)))
            now = time.monotonic()
            kept = {key: one for key, one in self._made.items() if now - one[0] < _FRESH}
            self._made = kept | {top: (now, made)}
            return made

    def _measure(self, look: Look, top: int) -> Exposure:
        arm, now = self._arm, time.monotonic()
        copy, status, loaded = look
        figures, plain = figures_of(copy.exposure), copy.plain_exposure
        most, least = extremes(copy.exposure, loaded.engine.item_ids, loaded.titles, top)
        target = status.get("target")
        bounds = ((target or {}).get("group_cap"), (target or {}).get("group_floor"))
        groups = loaded.start.config.groups
        names = [] if groups is None else list(groups.group_ids)
        latency = self._latencies.percentiles(now)
        return Exposure(
            model=arm.name,
            window_seconds=window_seconds(self._settings),
            lists=copy.lists,
            gini=figures.gini,
            gini_floor=floor_for(copy.lists, self._settings.k, len(copy.exposure)),
            coverage=figures.coverage,
            lorenz=figures.lorenz,
            strength=float(status.get("strength", 0.0)),
            target=target,
            relevance_loss=None if copy.plain <= 0 else 1.0 - copy.shown / copy.plain,
            accounts=accounts_of(copy.groups, float(copy.exposure.sum()), names, bounds, top),
            most=most,
            least=least,
            history=[HistoryPoint(*point) for point in status.get("history", ())][-_MOST_POINTS:],
            requests_per_second=self._latencies.rate(now),
            latency_ms=None if latency is None else Latency(*latency),
            notes=[*notes_of(arm), *status.get("notes", ())],
            gini_plain=status.get("gini_plain"),
            lorenz_plain=None if plain is None else figures_of(plain).lorenz,
            front=loaded.front,
            stale_seconds=status.get("stale_seconds"),
        )


def window_seconds(settings: ServeSettings) -> float:
    """Return the window, or twelve half-lives, after which nothing is left."""
    window, half_life = settings.forgetting
    return window or HALF_LIVES * (half_life or 0.0)


def notes_of(arm: Arm) -> list[str]:
    """Say what whoever reads the figures must know."""
    found = list(arm.loaded.notes)
    if not arm.counts_served and not arm.reported and arm.answered >= _UNREPORTED:
        found.append(
            f"{arm.answered:,} lists were answered, and nothing was reported to /v1/shown, so no "
            "exposure is counted: report what users see, or start with --count served."
        )
    return found
