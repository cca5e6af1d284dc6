"""``limelight fit --from``: grow a model by new interactions instead of fitting one."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.settings import flag_of
from limelight.cli.frame import announce
from limelight.models.folder import MODELS

if TYPE_CHECKING:
    from limelight.cli.flags.reading import Reading
    from limelight.data import Interactions
    from limelight.models.base import Model


def fit_from(
    folder: Path,
    name: str | None,
    settings: dict[str, Any],
    source: Path,
    reading: "Reading",
    item_features: Any,
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
    more = with_features(model, item_features, has_target=False, on_cluster=False)
    if "num_threads" in settings:
        model.use_threads(settings["num_threads"])
    data = reading.interactions(source)
    before = _sizes(model)
    _announce(model, data)
    started = time.perf_counter()
    model.partial_fit(data, **more)
    seconds = time.perf_counter() - started
    after = _sizes(model)
    new = {f"new_{what}": n - before[what] for what, n in after.items()}
    return model, {"model": type(model).__name__.lower(), **after, **new, "seconds": seconds}


def refuse_with_from(**given: bool) -> None:
    """Refuse what only a fit to all interactions can do."""
    for what, is_given in given.items():
        if is_given:
            message = f"--from keeps a model as it was fitted, so there is no {what}"
            raise ConfigError(message, hint="leave out one of the two")


def with_features(
    fitted: "Model", item_features: Any, *, has_target: bool, on_cluster: bool
) -> dict[str, Any]:
    """Return what a fit is given of the features of items, or refuse them."""
    from limelight.models.factor_model import FactorModel

    if item_features is None:
        return {}
    if has_target or on_cluster or not isinstance(fitted, FactorModel):
        what = "a target" if has_target else "--executor ray"
        what = what if has_target or on_cluster else f"--model {type(fitted).__name__.lower()}"
        message = f"{what} cannot use --item-features: {item_features}"
        hint = "use --model ials or exadmm, on one machine"
        if has_target:
            hint = "leave out the target, and control exposure with --exposure-strength"
        raise ConfigError(message, hint=hint)
    return {"item_features": item_features}


def _announce(model: "Model", data: "Interactions") -> None:
    """Say how much memory growing takes, or refuse it."""
    from limelight._base.memory import peak, resident
    from limelight._native import resolve_threads
    from limelight.data.ids import positions
    from limelight.models.factor_model import FactorModel
    from limelight.solve.cost import grow_bytes

    known = _sizes(model)
    new = [
        int((positions(theirs, own) < 0).sum())
        for theirs, own in ((data.user_ids, model.user_ids), (data.item_ids, model.item_ids))
    ]
    needed = grow_bytes(
        n_users=known["users"] + new[0],
        n_items=known["items"] + new[1],
        n_entries=known["interactions"] + data.nnz,
        factors=model.numbers.factors if isinstance(model, FactorModel) else 0,
        threads=resolve_threads(model.config.num_threads),
        weighted=model.learned.weighted,
    )
    hint = "use a machine with more memory: the model and all its histories are held"
    announce("growing the model", max(peak(), resident() + needed), hint=hint)


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
        configs = (type(model.config), *(config for _, config in MODELS.values()))
        flag = next(flag_of(one, setting) for one in configs if hasattr(one, setting))
        if not hasattr(model.config, setting):
            message = f"{own} has no such setting: {flag}"
            raise ConfigError(message, hint=hint)
        given = getattr(model.config, setting)
        theirs = model.chosen_.get(setting, given)
        if setting != "num_threads" and value not in (given, theirs):
            message = f"--from {folder} was fitted with {flag} {theirs}, not {value}"
            raise ConfigError(message, hint=hint)
