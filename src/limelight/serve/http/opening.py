"""Models and ledgers from folders, as the settings of a service say."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError, DataError
from limelight.data.groups import read_groups
from limelight.data.ids import ids_to_arrow
from limelight.report.titles import read_titles
from limelight.rerank.folder import load
from limelight.serve.engine import CANDIDATES, Engine
from limelight.serve.http.arms import Arm, Loaded
from limelight.serve.http.settings import default_ledger
from limelight.serve.ledger.journal import Journal
from limelight.serve.ledger.ledger import Ledger
from limelight.serve.replicas.journaled import JournaledReplicas, journal_beside
from limelight.serve.replicas.replicas import Replicas
from limelight.serve.replicas.valkey import ValkeyTransport
from limelight.serve.requests import Request
from limelight.serve.rules import read_never_show
from limelight.serve.start import start_of
from limelight.store.model_folder import require_complete
from limelight.store.model_state import load_promise

if TYPE_CHECKING:
    from limelight.serve.http.arms import Keeper
    from limelight.serve.http.settings import ServeSettings


def load_arm(settings: ServeSettings, name: str) -> Loaded:
    """Read the folder of a model, and warm its engine up."""
    folder = Path(settings.models[name])
    require_complete(folder)
    recommender = load(folder)
    ids, k = ids_to_arrow(recommender.item_ids), settings.k
    n_candidates = max(settings.candidates or CANDIDATES, k)
    start = start_of(
        recommender,
        k=k,
        n_candidates=n_candidates,
        groups=None if (groups := settings.table("groups")) is None else read_groups(groups, ids),
    )
    never = settings.table("never_show")
    engine = Engine(
        recommender,
        k=k,
        n_candidates=n_candidates,
        never_show=None if never is None else read_never_show(never, recommender.item_ids),
        threads=settings.threads,
    )
    # What a first request makes is made here, so that nobody waits for it.
    engine.answer([Request(), Request(user=recommender.user_ids[0], history=ids[:1].to_pylist())])
    catalogue = settings.table("catalogue")
    return Loaded(
        engine=engine,
        start=start,
        fingerprint=fingerprint_of(folder),
        titles=None if catalogue is None else read_titles(catalogue, ids),
        front=_stored_front(folder),
    )


def open_arms(settings: ServeSettings) -> dict[str, Arm]:
    """Open all models and their ledgers."""
    found: dict[str, Arm] = {}
    try:
        for name in settings.models:
            found[name] = _open_arm(settings, name, load_arm(settings, name))
    except BaseException:
        for arm in found.values():
            if arm.keeper is not None:
                arm.keeper.close()
        raise
    return found


def _open_arm(settings: ServeSettings, name: str, loaded: Loaded) -> Arm:
    now, start = time.time(), loaded.start
    engine = loaded.engine
    window, half_life = settings.forgetting
    ledger = Ledger(
        engine.n_items,
        window=window,
        half_life=half_life,
        groups=start.config.groups,
        time=now,
    )
    keeper = _keeper(settings, name, ledger, engine)
    try:
        # What the fit had shown counts until the ledger has lists of its own. Where other replicas
        # cannot be asked, they may have some, and it would be counted again.
        is_empty = not ledger.lists and not keeper.status()["notes"]
        if start.exposure is not None and start.lists and is_empty:
            ledger.start_from(start.exposure, start.lists, time=now)
        return Arm(
            name,
            loaded,
            ledger,
            keeper=keeper,
            target=settings.target,
            counts_served=settings.count == "served",
            durable=settings.durable,
            waiting=settings.limits.queue,
        )
    except BaseException:
        keeper.close()
        raise


def _keeper(settings: ServeSettings, name: str, ledger: Ledger, engine: Engine) -> Keeper:
    every, durable = settings.flush_every, settings.durable
    if settings.ledger is None or not settings.shares_ledger:
        folder = settings.ledger_folder(name)
        for model in map(Path, settings.models.values()):
            if model.resolve() in (folder.resolve(), *folder.resolve().parents):
                message = f"a ledger does not go into a model folder: {str(folder)!r}"
                raise ConfigError(message, hint="name another folder with --ledger")
        return Journal(folder, ledger, item_ids=engine.item_ids, flush_every=every, durable=durable)
    transport = ValkeyTransport(
        settings.ledger, namespace=name, width=ledger.width, n_buckets=ledger.n_buckets
    )
    journal, missing = None, None
    if durable:
        base, given = default_ledger(settings.models[name]), {"item_ids": engine.item_ids}
        try:
            journal = journal_beside(base, transport.address, ledger, flush_every=every, **given)
        except DataError as error:
            # Such as in a container whose disk may only be read. The others are durable enough.
            missing = error
    replicas = Replicas(
        ledger,
        transport,
        item_ids=engine.item_ids,
        every=every,
        durable=durable,
        k=engine.k,
        n_candidates=engine.n_candidates,
    )
    if missing is not None:
        replicas.start_notes.append(f"there is no journal beside the ledger: {missing.message}")
    return replicas if journal is None else JournaledReplicas(replicas, journal)


def fingerprint_of(folder: Path) -> str:
    """Return a name for what a folder holds: another one when any of its files changes."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                found.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def _stored_front(folder: Path) -> list[dict[str, Any]] | None:
    """Return what other targets would cost in nDCG, as `fit` found it."""
    points = (load_promise(folder) or {}).get("front", ())
    return [{"gini": one["gini"], "loss": one["ndcg_loss"]} for one in points] or None
