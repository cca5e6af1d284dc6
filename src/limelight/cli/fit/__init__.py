"""``limelight fit``: learn a model from interactions."""

from dataclasses import MISSING, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight._base.errors import ConfigError, DataError
from limelight._base.settings import flag_of
from limelight._base.text import count
from limelight.cli.fit.cluster import ClusterFit, Keeping, fit_cluster
from limelight.cli.fit.growth import fit_from, refuse_with_from, with_features
from limelight.cli.fit.plain import FitQuality, control_of, fit_plain, next_steps, summary
from limelight.cli.flags import (
    CheckpointEvery,
    DataFile,
    Json,
    Report,
    Resume,
    SettingFlags,
    option,
    showing,
    takes_flags,
)
from limelight.cli.flags.columns import ColumnFlags, TableColumns
from limelight.cli.flags.reading import Reading
from limelight.cli.frame import checkpoint_of
from limelight.cli.output import check_page, note_page, remark, report, summarise
from limelight.cli.targets import Targets
from limelight.cli.tune import TuneFlags
from limelight.models.folder import MODELS
from limelight.store.checkpoint import until_done

if TYPE_CHECKING:
    from limelight.models.base import Model
    from limelight.store.checkpoint import Checkpoint

_KINDS = {name.lower(): kind for name, kind in MODELS.items()}
ModelName = StrEnum("ModelName", list(_KINDS))  # type: ignore[misc]


@takes_flags
def fit(
    source: DataFile,
    output: Annotated[
        Path,
        option(
            "FOLDER", "The model folder to write; an older model is replaced.", "-o", "--output"
        ),
    ],
    *,
    model: Annotated[
        ModelName | None,
        option(
            "NAME",
            "exadmm; ials: the same without control over exposure; ease: item weights in closed "
            "form, for up to about 50,000 items; multvae and multdae: neural networks; multifr: "
            "one with control over exposure; popularity and random: to compare with.  [exadmm]",
            rich_help_panel="Model",
        ),
    ] = None,
    start: Annotated[
        Path | None,
        option(
            "FOLDER",
            "Grow this model by the interactions, with its own settings, instead of fitting one.",
            "--from",
            rich_help_panel="Model",
        ),
    ] = None,
    item_features: Annotated[
        Path | None,
        option(
            "FILE",
            "A table of item_id and features, so that items without interactions can be shown.",
            rich_help_panel="Data",
        ),
    ] = None,
    targets: Targets,
    tuning: TuneFlags,
    settings: Annotated[dict[str, Any], SettingFlags([config for _, config in MODELS.values()])],
    reading: Reading,
    columns: Annotated[
        TableColumns,
        ColumnFlags(
            beside_reading=True,
            of=("item", "group"),
            groups=("item", "group"),
            group_shares=("group",),
            item_features=("item",),
            **{"for": ("user",)},
        ),
    ],
    measure: Annotated[
        bool | None,
        typer.Option(
            "--measure/--no-measure",
            help="Without a target, say how good the model is for held-out users: the test users "
            "of a split, or some users of a table, by a second fit. Of a table with more than "
            "10,000,000 interactions only if asked for; not with --executor ray, nor --from.",
        ),
    ] = None,
    no_history: Annotated[
        bool,
        typer.Option(
            "--no-history",
            help="Leave the training histories out of the model: it becomes smaller, "
            "but can no longer leave out what its users have seen, and a network no longer "
            "serves them at all.",
        ),
    ] = False,
    cluster: ClusterFit,
    resume: Resume = False,
    checkpoint_every: CheckpointEvery = None,
    page: Report = None,
    as_json: Json = False,
) -> None:
    """Learn a model from interactions, or meet a target.

    In: a table of interactions, or a split folder, of which the training part is taken; a neural
    network also takes the validation part, to know when to stop. Out: a model folder for
    `recommend` and `evaluate`, and on standard output what was reached and what it costs.

    Without a target nothing controls exposure. The model is fitted to everybody and written. Then
    the same settings are fitted again without a tenth of the users, at most 5,000, who tell how
    good they are; a split has its own test users, and needs no second fit.

    Settings that are "auto" follow from the size and the density of the data. --tune looks for
    better ones first: a tenth of the users is held out to ask, and the model is then fitted to
    everybody.

    A target is for the people who are served: exposure is that of the lists of all users of the
    data, unless --for says otherwise. The model is first fitted to training users. Validation
    users, served among all others, decide what controls it and how strongly (in training, or by
    re-ranking), and test users say what it costs; of a table a tenth of the users each, at most
    5,000, are held out for both. Then the model is fitted to everybody, and the target is checked
    over everybody's lists. The model folder holds the control, the exposure of the population and
    the front that was tried, so that `recommend` serves any part of the users as promised.

    Ctrl-C, or SIGTERM, ends a fit after the current epoch; FOLDER.checkpoint then holds what the
    same command needs to go on with --resume, to the same bits. It is also written every minute,
    with --tune after every trial, and deleted once the model is there.

    With --from a model takes in new interactions without a fit to all of them: only users and items
    that are new or have new interactions are solved for.

    With --executor ray the same fit is shared by the workers of a Ray cluster, all of which must
    see the data and the folder of the model. A worker or a machine may be lost meanwhile.

    \b
    Examples:
      limelight fit split/ --exposure-strength 0.1 -o model/
      limelight fit ratings.csv --rating rating --min-rating 4 --factors 128 -o model/
      limelight fit split/ --model ials --regularization 0.01 -o baseline/
      limelight fit ratings.parquet --tune --budget 10m -o model/
      limelight fit ratings.parquet --gini 0.6 --at 20 -o model/
      limelight fit split/ --max-ndcg-loss 2% --serve stream -o model/
      limelight fit ratings.parquet --gini 0.7 --max-ndcg-loss 3% --nearest -o model/
      limelight fit ratings.parquet --gini 0.6 --for 100000 -o model/
      limelight fit ratings.parquet --gini 0.5 --of studios.parquet -o model/
      limelight fit split/ --groups studios.parquet --group-cap 3% -o model/
      limelight fit new.parquet --from model/ -o model/
      limelight fit ratings.parquet --item-features films.parquet -o model/
      limelight fit parts/ --executor ray --address auto --workers 8 -o model/
    """
    check_page(page)
    tuning.check()
    refuse_no_model(output)
    tables = columns.beside(reading).tables(item_features=item_features, **targets.tables())
    if start is not None:
        refuse_with_from(
            target=targets.any,
            report=page is not None,
            checkpoint=resume or checkpoint_every is not None,
            cluster=cluster.check(),
            tuning=tuning.tune,
        )
        fitted, record = fit_from(
            start, model and model.value, settings, source, reading, tables["item_features"]
        )
        fitted.save(output, history=not no_history)
        record["output"] = str(output)
        new = (count(record[f"new_{what}s"], f"new {what}") for what in ("user", "item"))
        said = f"The model was grown by {count(record['new_interactions'], 'new interaction')}"
        text = summary(record, f"{said}, with {' and '.join(new)}.")
        summarise(text, record, written=output, as_json=as_json)
        return
    model = model or ModelName["exadmm"]
    fitted = make_model(model, settings)
    tuning.check_model(fitted, targets.at)
    more = with_features(
        fitted, tables["item_features"], has_target=targets.any, on_cluster=cluster.check()
    )
    if cluster.check():
        _refuse_on_cluster(targets, tuning, page)
        ended = fit_cluster(
            fitted,
            source,
            reading,
            output,
            cluster,
            keeping=Keeping(resume, checkpoint_every),
            history=not no_history,
            as_json=as_json,
        )
        if ended is not None:
            record = {"model": model.value, **ended, "output": str(output)}
            quality = FitQuality(how="--executor ray fits once")
            told = (*quality.sentences(control_of(fitted)), next_steps(fitted, source, output))
            record |= quality.record()
            summarise(summary(record, *told), record, written=output, as_json=as_json)
        return
    kept = checkpoint_of(output, resume=resume, every=checkpoint_every)
    if targets.any:
        fit_target(
            fitted,
            targets,
            tables,
            tuning,
            source,
            reading,
            output,
            history=not no_history,
            page=page,
            checkpoint=kept,
            as_json=as_json,
        )
        return
    if page is not None:
        message = f"a report compares users' lists with and without control: --report {page}"
        hint = "add a target such as --gini 0.6, or use `limelight frontier`"
        raise ConfigError(message, hint=hint)
    fit_plain(
        make_model(model, settings),  # nobody else holds it, so it can be freed
        tuning,
        source,
        reading,
        output,
        more=more,
        history=not no_history,
        measure=measure,
        at=targets.at,
        checkpoint=kept,
        as_json=as_json,
    )


def _refuse_on_cluster(targets: Targets, tuning: TuneFlags, page: Path | None) -> None:
    """Refuse what only one machine can do."""
    if tuning.tune:
        message = "settings are tuned on one machine, not by --executor ray"
        raise ConfigError(message, hint="use `limelight tune` on a sample, then give its settings")
    if targets.any or page is not None:
        what = "a target is met" if targets.any else "a report is made"
        message = f"{what} on one machine, not by --executor ray"
        hint = "fit on the cluster with --exposure-strength, then use `limelight rerank`"
        raise ConfigError(message, hint=hint)


def make_model(name: ModelName, settings: dict[str, Any]) -> "Model":
    """Make a model of settings; refuse those that it does not have."""
    kind, config = _KINDS[name]
    known = {field.name for field in fields(config)}
    for setting in settings:
        if setting not in known:
            having = {
                other: config
                for other, (_, config) in _KINDS.items()
                if setting in {field.name for field in fields(config)}
            }
            flag = flag_of(next(iter(having.values())), setting)
            message = f"{name} has no such setting: {flag}"
            hint = f"leave it out, or choose one of --model {', '.join(having)}"
            raise ConfigError(message, hint=hint)
    return kind(**settings)


def _defaults() -> dict[str, str]:
    """Look up the defaults of all settings, model by model where they differ."""
    found: dict[str, dict[str, str]] = {}
    for name, (_, config) in _KINDS.items():
        for field in fields(config):
            if field.default is not MISSING:
                found.setdefault(field.name, {})[name] = str(field.default)
    text = {}
    for setting, values in found.items():
        if len(set(values.values())) > 1:
            text[setting] = ", ".join(f"{value} for {name}" for name, value in values.items())
        else:
            only = "" if len(values) == len(ModelName) else f"; only for {', '.join(values)}"
            text[setting] = next(iter(values.values())) + only
    return text


def refuse_no_model(output: Path) -> None:
    """Refuse to overwrite anything but a model, before the work begins."""
    from limelight.store.model_folder import is_model_folder

    is_free = not output.exists() or (output.is_dir() and not any(output.iterdir()))
    if not is_free and not (output.is_dir() and is_model_folder(output)):
        message = f"will not overwrite what is not a model: {str(output)!r}"
        raise DataError(message, hint="choose a new folder, or move the old one away first")


def fit_target(
    model: "Model",
    targets: Targets,
    tables: dict[str, Any],
    tuning: TuneFlags,
    source: Path,
    reading: Reading,
    output: Path,
    *,
    history: bool,
    page: Path | None,
    checkpoint: "Checkpoint",
    as_json: bool,
) -> None:
    """Fit a model to a target, write what serves, and say what was achieved."""
    from limelight.control.fit_to import fit_to
    from limelight.data.groups import check_groups

    for name in ("of", "groups"):
        if tables[name] is not None:
            check_groups(tables[name])  # now, because reading and fitting may take long
    data = reading.interactions_or_split(source)
    model, kept_fit = tuning.apply(model, data, checkpoint, targets.at)
    with until_done(checkpoint):
        result = fit_to(data, model=model, checkpoint=kept_fit, **targets.given(tables))
        result.model.save(output, history=history)
    if page is not None:
        result.report(page)
        note_page(page)
    record = {**result.to_dict(), "output": str(output)}
    report(str(result), record, as_json=as_json)
    remark(f"written to {output}")


Command = showing(_defaults)
