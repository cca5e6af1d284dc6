"""``limelight fit --from``: grow a model by new interactions instead of fitting one."""

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.settings import flag_of
from limelight.cli.output import note

if TYPE_CHECKING:
    from limelight.cli.flags import Reading
    from limelight.models.base import Model


def fit_from(
    folder: Path,
    name: str | None,
    settings: dict[str, Any],
    source: Path,
    reading: "Reading",
    item_features: Path | None,
) -> tuple["Model", dict[str, Any]]:
    """Load a model and let it take in new interactions; return it, and what is new.

    ``name`` and ``settings`` are what was asked for on the command line: they must be the model's.
    """
    from limelight.rerank.folder import load

    loaded = load(folder)
    if loaded.reranker is not None:
        message = f"the lists of the model were decided for the users that it has: {str(folder)!r}"
        hint = "fit to all interactions, with the same target"
        raise ConfigError(message, hint=hint)
    model = loaded.model
    _refuse_other_settings(model, name, settings, folder)
    if "num_threads" in settings:
        model.use_threads(settings["num_threads"])
    data = reading.interactions(source)
    before = _sizes(model)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        if item_features is None:
            model.partial_fit(data)
        else:
            model.partial_fit(data, item_features=item_features)  # type: ignore[call-arg]
    seconds = time.perf_counter() - started
    for one in said:
        note(f"note: {one.message}")
    after = _sizes(model)
    new = {f"new_{what}": n - before[what] for what, n in after.items()}
    return model, {"model": type(model).__name__.lower(), **after, **new, "seconds": seconds}


def refuse_with_from(**given: bool) -> None:
    """Refuse what only a fit to all interactions can do."""
    for what, is_given in given.items():
        if is_given:
            message = f"a {what} needs a fit to all interactions, not --from"
            raise ConfigError(message, hint="leave out one of the two")


def with_features(
    fitted: "Model", item_features: Path | None, *, has_target: bool, on_cluster: bool
) -> dict[str, Any]:
    """Return what a fit is given of the features of items, or refuse them."""
    from limelight.models.factor_model import FactorModel

    if item_features is None:
        return {}
    if has_target or on_cluster or not isinstance(fitted, FactorModel):
        what = "a target" if has_target else "--executor ray"
        what = what if has_target or on_cluster else f"--model {type(fitted).__name__.lower()}"
        message = f"{what} has no use for --item-features: {item_features}"
        raise ConfigError(message, hint="use --model ials or exadmm, on one machine")
    return {"item_features": item_features}


def _sizes(model: "Model") -> dict[str, int]:
    seen = model.learned.seen
    return {
        "users": len(model.user_ids),
        "items": len(model.item_ids),
        "interactions": 0 if seen is None else seen.n_entries,
    }


def _refuse_other_settings(
    model: "Model", name: str | None, settings: dict[str, Any], folder: Path
) -> None:
    """Refuse a model or settings that differ from those of the folder."""
    own, hint = type(model).__name__.lower(), "leave the flag out, or fit to all interactions"
    if name is not None and name != own:
        message = f"--from {folder} is {own}, not --model {name}"
        raise ConfigError(message, hint=hint)
    for setting, value in settings.items():
        if not hasattr(model.config, setting):
            message = f"{own} has no such setting: {setting}"
            raise ConfigError(message, hint=hint)
        theirs = getattr(model.config, setting)
        if setting != "num_threads" and theirs != value:
            flag = flag_of(type(model.config), setting)
            message = f"--from {folder} was fitted with {flag} {theirs}, not {value}"
            raise ConfigError(message, hint=hint)
