"""A fit without a target, and what it says: how good the model is for held-out users."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from limelight._base.documents import pairs
from limelight._base.errors import DataError
from limelight._base.text import count, percent
from limelight.cli.frame import announce_fit
from limelight.cli.output import ending, remark, summarise
from limelight.store.checkpoint import until_done

if TYPE_CHECKING:
    from limelight.cli.flags.reading import Reading
    from limelight.cli.tune import TuneFlags
    from limelight.data import HeldOut, Interactions, Split
    from limelight.metrics.evaluate import Evaluation
    from limelight.models.base import Model
    from limelight.store.checkpoint import Checkpoint

_LENGTH = 20
FEWEST_USERS = 50
"""Fewer users than these cannot spare some: a tenth of them would tell nothing."""
MOST_ROWS = 10_000_000
"""With more interactions than these, a second fit to measure the first is only made if asked for:
it takes about as long."""


def fit_plain(
    model: "Model",
    tuning: "TuneFlags",
    source: Path,
    reading: "Reading",
    output: Path,
    *,
    more: dict[str, Any],
    history: bool,
    measure: bool | None,
    at: int | None,
    checkpoint: "Checkpoint",
    as_json: bool,
) -> None:
    """Fit a model without a target, write it, and say how good it is for held-out users."""
    from limelight.data.split import Split
    from limelight.models.growing import GrowingModel

    whole = reading.interactions_or_split(source)
    model, kept_fit = tuning.apply(model, whole, checkpoint)
    data = whole.train if isinstance(whole, Split) else whole
    validation = whole.validation if isinstance(whole, Split) else None
    announce_fit(data, model.config)
    started = time.perf_counter()
    with until_done(checkpoint):
        _learn(model, data, validation, kept_fit, more)
        seconds = time.perf_counter() - started
        model.save(output, history=history)
    record = record_of(model, data, seconds, output)
    if model.chosen_:
        chosen = ", ".join(f"{name} {value:.4g}" for name, value in model.chosen_.items())
        remark(f"chosen from the data: {chosen}; --tune looks for better settings")
    if isinstance(model, GrowingModel) and more:
        cold = model.cold_exposure()
        share = f"{percent(cold.share, 2)} of the places in lists of 20 for training users"
        remark(f"items without interactions: {cold.items:,}, with {share}")
    control, following = control_of(model), next_steps(model, source, output)
    if isinstance(whole, Split) and measure is not False:
        quality = measure_split(model, whole, at)
    elif why := why_not_measured(data, model, asked=measure):
        quality = FitQuality(how=why)
    else:
        note_second_fit(seconds)
        again: Model = type(model)(**model.config.changed())
        del model  # it is written, and the second fit needs the room
        quality = measure_again(again, data, at, more)
    record |= quality.record()
    told = (*quality.sentences(control), following)
    summarise(summary(record, *told), record, written=output, as_json=as_json)


def _learn(
    fitted: "Model",
    data: "Interactions",
    validation: "HeldOut | None",
    kept: "Checkpoint",
    more: dict[str, Any],
) -> None:
    """Fit, with the held-out users of a split for the models that want some."""
    from limelight.models.neural.model import NeuralModel

    if isinstance(fitted, NeuralModel):
        # A split without targets is as good as none: the model then holds users out by itself.
        given = validation if validation is not None and validation.targets.nnz else None
        fitted.fit(data, validation=given, checkpoint=kept)
    else:
        fitted.fit(data, checkpoint=kept, **more)


class FitQuality(NamedTuple):
    """How good a model is for users whom it was not fitted to, or why nobody knows."""

    found: "Evaluation | None" = None
    how: str = ""
    """Who was held out and how; or why nothing was measured."""
    seconds: float = 0.0
    """What the measuring took."""

    def record(self) -> dict[str, Any]:
        """Return the figures for JSON."""
        if self.found is None:
            return {"measured": None, "not_measured": self.how}
        return {"measured": {**self.found.to_dict(), "how": self.how, "seconds": self.seconds}}

    def sentences(self, control: str) -> list[str]:
        """Say whether exposure is controlled, and how good the model is."""
        if self.found is None:
            return [f"{control} How good the model is was not measured: {self.how}."]
        first, *others = self.found.sentences()
        return [f"{control} {first}", *others, f"{self.how}."]


_CONTROLS = ("exposure_strength", "exposure_weight", "preference")


def _exposure_settings(model: "Model") -> dict[str, float]:
    """Return the settings by which a model controls exposure in training."""
    values = ((name, getattr(model.config, name, 0)) for name in _CONTROLS)
    return {name: value for name, value in values if value}


def control_of(model: "Model") -> str:
    """Say whether the model controls exposure in training."""
    if not (settings := _exposure_settings(model)):
        return "Control of exposure is off."
    how = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in settings.items())
    return f"Exposure is controlled in training ({how})."


def next_steps(model: "Model", source: Path, output: Path) -> str:
    """Say what to do next."""
    lists = f"`limelight recommend {output} -o lists.parquet` makes everybody's lists"
    if _exposure_settings(model):
        return f"Next: {lists}."
    even = f"`limelight fit {source} --gini 0.6 -o {output}` shares exposure more evenly"
    return f"Next: {even}; {lists}."


def why_not_measured(data: "Interactions", model: "Model", *, asked: bool | None) -> str | None:
    """Say why nobody is held out of a table to measure a fit, or return None if somebody is."""
    from limelight.models.neural.model import NeuralModel

    if asked is False:
        return "--no-measure"
    if isinstance(model, NeuralModel):
        return "a network is fitted once; hold users out with `limelight data split`"
    if data.n_users < FEWEST_USERS:
        return f"{count(data.n_users, 'user')} are too few to hold some out"
    if data.nnz > MOST_ROWS and not asked:
        return "it takes a second fit, about as long as this one; add --measure"
    return None


def measure_split(model: "Model", split: "Split", k: int | None) -> FitQuality:
    """Measure a model on the test users of the split that it was fitted to."""
    from limelight.metrics.evaluate import evaluate

    if not split.test.targets.nnz:
        return FitQuality(how="the test users of the split have no held-out items to find")
    started = time.perf_counter()
    found = evaluate(model, split.test, k or _LENGTH)
    how = "They are the test users of the split, whom the model was not fitted to"
    return FitQuality(found, how, time.perf_counter() - started)


def measure_again(
    model: "Model", data: "Interactions", k: int | None, more: dict[str, Any]
) -> FitQuality:
    """Fit an unfitted model to all but some users, as a target does, and measure it on these.

    The model that was written stays as it is: it was fitted to everybody.
    """
    from limelight.data.split import as_split
    from limelight.metrics.evaluate import evaluate

    started = time.perf_counter()
    try:
        split = as_split(data)
    except DataError as error:
        return FitQuality(how=error.message)
    model.fit(split.train, **more)
    found = evaluate(model, split.test, min(k or _LENGTH, len(model.item_ids)))
    seconds = time.perf_counter() - started
    how = (
        f"They were left out of a second fit with the same settings ({seconds:.1f} seconds more); "
        "the model written was fitted to everybody"
    )
    return FitQuality(found, how, seconds)


def note_second_fit(seconds: float) -> None:
    """Say beforehand what measuring takes."""
    remark(f"measuring by a second fit, about {seconds:.1f} seconds more; --no-measure skips it")


def record_of(
    fitted: "Model", data: "Interactions", seconds: float, output: Path
) -> dict[str, Any]:
    """Return what is known at the end of a fit, for JSON."""
    from limelight.models.neural.model import NeuralModel

    record = {
        "model": type(fitted).__name__.lower(),
        "users": data.n_users,
        "items": len(fitted.item_ids),
        "interactions": data.nnz,
        "seconds": seconds,
        "chosen": dict(fitted.chosen_),
    }
    if isinstance(fitted, NeuralModel):
        record |= {"kept_epoch": fitted.kept_.epoch, "validation_ndcg@100": fitted.kept_.ndcg}
    return record | ending(fitted.trace_, fitted.status_) | {"output": str(output)}


_SHOWN = {
    "model": "",
    "users": ",",
    "items": ",",
    "interactions": ",",
    "new_users": ",",
    "new_items": ",",
    "new_interactions": ",",
    "epochs": ",",
    "seconds": ".1f",
    "objective": ".6g",
    "kept_epoch": ",",
    "validation_ndcg@100": ".4f",
    "status": "",
}


def summary(record: dict[str, Any], *first: str) -> str:
    """Write what is known at the end of a fit, after the sentences that come first."""
    rows = [
        (name.replace("_", " "), f"{record[name]:{form}}")
        for name, form in _SHOWN.items()
        if name in record
    ]
    meaning = [record["meaning"]] if "meaning" in record else []
    return "\n".join([*first, *([""] if first else []), pairs(rows).text(), *meaning])
