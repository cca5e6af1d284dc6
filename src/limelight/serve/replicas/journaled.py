"""Replicas with a journal beside: what is counted while the others are away survives a kill."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from limelight._base.errors import DataError
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.journal_files import free_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from limelight.serve.ledger.ledger import Ledger
    from limelight.serve.replicas.replicas import Replicas


def journal_beside(
    base: Path, address: str, ledger: Ledger, *, item_ids: Any, flush_every: float
) -> Journal:
    """Open the first journal of a shared ledger that no other process of this machine uses.

    Who starts again takes over what a killed process left.

    Parameters
    ----------
    base
        Where a process that shares nothing would keep its journal; this one lies beside it.
    address
        Of the shared ledger: what was counted for one is not told to another.
    ledger, item_ids, flush_every
        As :class:`Journal` takes them.
    """
    digest = hashlib.sha256(address.encode()).hexdigest()[:12]
    while True:
        folder = free_folder(base.with_name(f"{base.name}-{digest}"))
        try:
            return Journal(folder, ledger, item_ids=item_ids, flush_every=flush_every)
        except DataError as error:
            # Another process was faster; the next folder is free, or the one after.
            if not isinstance(error.__cause__, BlockingIOError):
                raise


class JournaledReplicas:
    """Keeps a ledger with others, and in a journal for when they cannot be reached.

    Parameters
    ----------
    replicas
        Durable ones.
    journal
        Of the same ledger, opened before. It is flushed before an answer only while the others are
        away.
    """

    def __init__(self, replicas: Replicas, journal: Journal) -> None:
        self.replicas, self.journal = replicas, journal
        replicas.is_journaled = True

    def flush(self, now: float) -> None:
        """Write what was counted to the others or, if that cannot be, to the disk."""
        self.replicas.flush(now)
        self.journal.durable = self.replicas.error is not None
        self.journal.flush(now)

    def learn(self, events: Iterable[str | None]) -> None:
        """Find out which events others counted just now."""
        self.replicas.learn(events)

    def renumbered(self, item_ids: Any) -> None:
        """Take notice that the ledger has another catalogue now."""
        self.replicas.renumbered(item_ids)
        self.journal.renumbered(item_ids)

    def status(self) -> dict[str, Any]:
        """Say what is wrong, and how old the news of others is."""
        found, beside = self.replicas.status(), self.journal.status()
        notes = list(dict.fromkeys([*found["notes"], *beside["notes"]]))
        return found | {"notes": notes, "start_notes": found["start_notes"] + beside["start_notes"]}

    def write_state(self, state: dict[str, Any]) -> None:
        """Keep what holds the target."""
        self.replicas.write_state(state)
        self.journal.write_state(state)

    def read_state(self) -> dict[str, Any] | None:
        """Return what was kept last, by any process or by the last one of this journal."""
        return self.replicas.read_state() or self.journal.read_state()

    def close(self) -> None:
        """Write all, and let go."""
        self.replicas.close()
        self.journal.close()
