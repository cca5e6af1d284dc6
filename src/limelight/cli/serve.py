"""``limelight serve``: lists by HTTP, at a target that holds for what is shown."""

import logging
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from limelight._base.errors import ConfigError, DataError
from limelight._base.signals import Terminated
from limelight._base.text import count, parse_share
from limelight.cli.flags import given_flags, length, option, takes_flags
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.output import note
from limelight.cli.targets import Gini, GroupCap, GroupFloor, Groups, MinCoverage, target_option

if TYPE_CHECKING:
    from limelight.serve.http.arms import Arm
    from limelight.serve.http.settings import ServeSettings


class CountedAs(StrEnum):
    """What counts as exposure."""

    shown = "shown"
    served = "served"


@dataclass(frozen=True)
class HeldTarget:
    """What is held over the window."""

    panel: ClassVar[str] = "Target"
    gini: Gini = None
    min_coverage: MinCoverage = None
    max_relevance_loss: Annotated[
        str | None, target_option("SHARE", "Target: the relevance that may be lost, such as 2%.")
    ] = None
    groups: Groups = None
    group_cap: GroupCap = None
    group_floor: GroupFloor = None
    window: Annotated[
        str | None,
        target_option("TIME", "Over how long: 7d, 12h, 30m.  [7d]", show_default=False),
    ] = None
    half_life: Annotated[
        str | None,
        target_option("TIME", "Instead of a window: after how long exposure counts half."),
    ] = None

    def given(self) -> dict[str, Any]:
        """Return what was asked for, as the library takes it."""
        return given_flags(
            gini=self.gini,
            min_coverage=parse_share("--min-coverage", self.min_coverage),
            max_relevance_loss=parse_share("--max-relevance-loss", self.max_relevance_loss),
            group_cap=parse_share("--group-cap", self.group_cap),
            group_floor=parse_share("--group-floor", self.group_floor),
        )

    def seconds(self) -> dict[str, float]:
        """Return the window or the half-life in seconds."""
        from limelight.data.times import duration

        named = given_flags(window=self.window, half_life=self.half_life)
        return {name: duration(text, f"--{name.replace('_', '-')}") for name, text in named.items()}


@dataclass(frozen=True)
class LedgerFlags:
    """Where exposure is kept, and what counts."""

    panel: ClassVar[str] = "Ledger"
    ledger: Annotated[
        str | None,
        option(
            "FOLDER|redis://...",
            "Where to keep what was shown: a folder, or a Valkey or Redis server that replicas "
            "share.  [a folder of the user's own]",
        ),
    ] = None
    count: Annotated[
        CountedAs,
        option(
            "shown|served",
            "What counts: lists that clients report to /v1/shown, or every answer.",
        ),
    ] = CountedAs.shown
    durable: Annotated[
        bool,
        typer.Option(
            "--durable", help="Write the ledger before every answer: a kill loses nothing."
        ),
    ] = False
    flush_every: Annotated[
        str,
        option(
            "TIME", "How often the ledger is written otherwise; a kill loses at most that much."
        ),
    ] = "1s"


@dataclass(frozen=True)
class ListenFlags:
    """Where and how to listen."""

    panel: ClassVar[str] = "Service"
    host: Annotated[
        str, option("ADDRESS", "Address to listen on; 0.0.0.0: all addresses of this machine.")
    ] = "127.0.0.1"
    port: Annotated[int, option("N", "Port to listen on.")] = 8080
    workers: Annotated[
        int, option("N", "Processes that answer; several need a ledger at redis://...")
    ] = 1
    threads: Annotated[int, option("N", "Threads of one search; 0: all.")] = 1
    token_file: Annotated[
        Path | None,
        option("FILE", "Tokens of clients, one a line; or the variable LIMELIGHT_TOKEN."),
    ] = None
    admin_token_file: Annotated[
        Path | None,
        option("FILE", "Tokens of admins, one a line; or LIMELIGHT_ADMIN_TOKEN."),
    ] = None
    rate: Annotated[
        float | None, option("NUMBER", "Requests a second from one address, at most.")
    ] = None
    queue: Annotated[int, option("N", "Requests that may wait; others are refused with 503.")] = 512
    max_wait: Annotated[str, option("TIME", "How long a request may wait for its list.")] = "2s"
    max_body: Annotated[
        int, option("BYTES", "Largest size of a request, or of a line of a batch.")
    ] = 1 << 20
    log_users: Annotated[
        bool, typer.Option("--log-users", help="Log the ids of users as well.")
    ] = False
    no_log: Annotated[
        bool, typer.Option("--no-log", help="Do not log requests to standard output.")
    ] = False


@takes_flags
def serve(
    folder: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="A folder that `limelight fit` wrote.")
    ] = None,
    *,
    model: Annotated[
        list[str] | None,
        option("NAME=FOLDER", "Instead of MODEL: several models, each with a name.", "--model"),
    ] = None,
    split: Annotated[
        str | None,
        option("a=90,b=10", "How many of the users each model serves; otherwise equally many."),
    ] = None,
    k: Annotated[int, length("Length of lists, unless a request says otherwise.")] = 20,
    candidates: Annotated[
        int | None,
        option("N", "How many of the best items a list is chosen from under control.  [1000]"),
    ] = None,
    never_show: Annotated[
        Path | None, option("FILE", "Items that nobody is shown: a table item_id.")
    ] = None,
    catalogue: Annotated[
        Path | None, option("FILE", "Titles for the page: a table item_id,title.")
    ] = None,
    target: HeldTarget,
    columns: Annotated[
        TableColumns,
        ColumnFlags(groups=("item", "group"), catalogue=("item", "title"), never_show=("item",)),
    ],
    ledger: LedgerFlags,
    listening: ListenFlags,
) -> None:
    """Answer requests by HTTP, and hold a target over what was shown.

    In: a model folder. Out: a service, until Ctrl-C or SIGTERM, after which it answers what it was
    asked and writes its ledger. The model folder is only read. SIGHUP reads it again. The service
    shows itself at http://127.0.0.1:8080/ and describes its calls at /openapi.json. Standard output
    has a line of JSON for every request.

    Exposure is what clients report to /v1/shown; with --count served, every answer counts. It is
    kept in a ledger, and control follows it, so that the target holds over the window. Try a target
    on a log of requests first: `limelight replay`.

    \b
    Examples:
      limelight serve model/
      limelight serve model/ --gini 0.6 --window 7d --count served
      limelight serve model/ --gini 0.6 --ledger redis://localhost:6379/0 --port 8081
      limelight serve --model old=a/ --model new=b/ --split old=90,new=10
    """
    try:
        from limelight.serve import service
        from limelight.serve.http.opening import open_arms
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("limelight"):
            raise
        message = f"serving needs packages that are not installed: {error.name}"
        raise ConfigError(message, hint="pip install 'limelight[serve]'") from None
    settings = _settings(
        _models(folder, model),
        target,
        ledger,
        listening,
        split=split,
        k=k,
        candidates=candidates,
        tables=columns.tables(groups=target.groups, catalogue=catalogue, never_show=never_show),
    )
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    service.LOG.setLevel(logging.INFO)
    needs_token = _needs_token(settings)
    place = service.listen(listening.host, listening.port)
    with place:
        arms = open_arms(settings)
        lines = _hello(settings, arms, f"http://{place_of(place)}", needs_token=needs_token)
        try:
            service.run(settings, place, arms, lambda: note("\n".join(lines)))
        except (KeyboardInterrupt, Terminated):
            _say_goodbye(arms)


def _say_goodbye(arms: dict[str, "Arm"]) -> None:
    """Say that all is written, or what is not."""
    unwritten = [one for arm in arms.values() for one in arm.unwritten()]
    if unwritten:
        message = f"all requests are answered, but the ledger is not whole: {'; '.join(unwritten)}"
        raise DataError(message, hint="with --durable it is also kept in a journal on this machine")
    note("all requests are answered, and the ledger is written")


def place_of(place: Any) -> str:
    """Return the address of a socket as a browser on this machine would take it."""
    host, port = place.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _models(folder: Path | None, models: list[str] | None) -> dict[str, str]:
    from limelight.serve.http.settings import parse_models

    if (folder is None) == (not models):
        message = "give one model folder, or several with --model"
        raise ConfigError(message, hint="for example: limelight serve model/")
    return parse_models(models or [str(folder)])


def _settings(
    models: dict[str, str],
    target: HeldTarget,
    ledger: LedgerFlags,
    listening: ListenFlags,
    **more: Any,
) -> "ServeSettings":
    from limelight.data.sources import names_in
    from limelight.data.times import duration
    from limelight.serve.http.settings import ServeSettings, ServiceLimits, parse_split

    def text(path: Any) -> str | None:
        return None if path is None else str(path)

    tables = {name: table for name, table in more["tables"].items() if table is not None}

    return ServeSettings(
        models,
        split=parse_split(more["split"]),
        k=more["k"],
        candidates=more["candidates"],
        target=target.given(),
        groups=text(tables.get("groups")),
        **target.seconds(),
        never_show=text(tables.get("never_show")),
        catalogue=text(tables.get("catalogue")),
        columns={name: names_in(table) for name, table in tables.items()},
        ledger=ledger.ledger,
        flush_every=duration(ledger.flush_every, "--flush-every"),
        durable=ledger.durable,
        count=ledger.count.value,
        log_users=listening.log_users,
        log_requests=not listening.no_log,
        threads=listening.threads,
        workers=listening.workers,
        token_file=text(listening.token_file),
        admin_token_file=text(listening.admin_token_file),
        limits=ServiceLimits(
            rate=listening.rate,
            queue=listening.queue,
            seconds=duration(listening.max_wait, "--max-wait"),
            body_bytes=listening.max_body,
        ),
    )


def _hello(
    settings: "ServeSettings", arms: dict[str, "Arm"], address: str, *, needs_token: bool
) -> list[str]:
    """Say what is served, what is held, and three lines to try."""
    lines = []
    for name, arm in arms.items():
        engine = arm.engine
        users, items = count(len(engine.model.user_ids), "user"), count(engine.n_items, "item")
        lines.append(f"{name}: {engine.name}, {users}, {items}")
        status = {} if arm.keeper is None else arm.keeper.status()
        lines += [*status.get("start_notes", ()), *status.get("notes", ())]
    if settings.goal is not None:
        window, half_life = settings.forgetting
        span = f"a window of {window:,.0f} s" if window else f"a half-life of {half_life:,.0f} s"
        lines.append(f"holds {settings.goal} over {span}")
    else:
        lines.append("holds no target; give one with --gini, or on the page")
    engine = next(iter(arms.values())).engine
    user, item = _json_id(engine.model.user_ids[0]), _json_id(engine.item_ids[0])
    token = ' -H "authorization: Bearer $LIMELIGHT_TOKEN"' if needs_token else ""
    head = f"curl -s '{address}/v1/%s'{token}"
    post = "-H 'content-type: application/json' -d"
    return [
        *lines,
        f'try: {head % "recommend"} {post} \'{{"user": {user}, "k": 5}}\'',
        f'     {head % "shown"} {post} \'{{"events": [{{"user": {user}, "items": [{item}]}}]}}\'',
        f"     {head % 'exposure?top=3'}",
        f"serving at {address}/ until Ctrl-C",
    ]


def _json_id(value: Any) -> str:
    import json

    return json.dumps(value.item() if hasattr(value, "item") else value)


def _needs_token(settings: "ServeSettings") -> bool:
    """Tell whether clients need a token; refuse files of tokens that cannot be used."""
    from limelight.serve.http.settings import ADMIN_TOKEN, TOKEN, read_tokens

    read_tokens(settings.admin_token_file, ADMIN_TOKEN)
    return bool(read_tokens(settings.token_file, TOKEN))
