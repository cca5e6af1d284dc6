"""``ll.tune``: the settings that validation users prefer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from limelight._base.errors import ConfigError
from limelight._base.progress import progress_bar
from limelight._base.settings import check_integer
from limelight.control.tuning.factors import NUMBERS_OF_TRIALS, FactorSearch
from limelight.control.tuning.search import Limits, Search, TrialCache
from limelight.control.tuning.space import FactorSpace, Space
from limelight.data.split import as_split
from limelight.data.times import duration
from limelight.models.base import Model
from limelight.models.exadmm import ExADMM
from limelight.models.factor_model import FactorModel
from limelight.store.checkpoint import digest

if TYPE_CHECKING:
    import os

    from limelight.control.tuning.result import TuneResult
    from limelight.data.split import Split

BUDGET = "5m"


def tune(
    data: Any,
    *,
    model: Model | None = None,
    budget: str | float | None = None,
    trials: int | None = None,
    at: int = 20,
    folder: str | os.PathLike[str] | None = None,
    show_progress: bool | None = None,
) -> TuneResult:
    """Find the settings that validation users prefer, by nDCG.

    Of factor models these are the number of factors, the regularisation, its exponent and the
    unobserved weight; epochs follow from convergence. Many settings are tried with few factors, the
    better ones again with more, and every trial starts from the factors of an earlier one. Of other
    models it is what they declare, one fit a trial. Test users are looked at once, at the end: for
    what was found and for the defaults, both fitted from scratch. A trial is short and asks
    validation users several times, so its nDCG is not that of :func:`~limelight.evaluate`; the
    figures at the end are.

    Parameters
    ----------
    data : Split, Interactions or sparse matrix
        What to learn from and to measure with. Unless it is split, a tenth of the users is held
        out for validation and another for the test, at most 5,000 each.
    model
        What to tune; ``ExADMM()`` unless given. Settings other than its defaults stay as they are.
    budget
        How long it may take, such as "5m", "1h" or a number of seconds; "5m" unless trials are
        given. How many trials that is depends on the machine, so the result may too. It counts the
        two fits at the end.
    trials
        How many settings to try instead, at most: the same call gives the same result on any
        machine. There is either a budget or a number of trials.
    at
        Length of the lists whose nDCG counts.
    folder
        Where to keep every trial; the same call goes on where it was interrupted. In the end it
        has ``tune.json``, ``tune.parquet``, ``tune.png`` and ``model``, and the same call returns
        what they hold. More trials of EASE or a network go on from there, too; those of a factor
        model need another folder, because they are others.
    show_progress
        Whether to show a bar on standard error; None does so on a terminal.

    Returns
    -------
    TuneResult
        With ``settings``, ``model``, which is fitted to the training users, and ``trials``.

    Examples
    --------
    >>> import limelight as ll
    >>> data = ll.marketplace(600, 100, 9000).interactions
    >>> found = ll.tune(data, model=ll.IALS(epochs=10), trials=6, at=10)
    >>> len(found.trials), sorted(found.settings)[:2]
    (6, ['epochs', 'factors'])
    >>> found.best.ndcg >= found.trials[0].ndcg
    True
    """
    base = ExADMM() if model is None else model
    limits = check_tuning(base, budget=budget, trials=trials, at=at)
    return run_search(data, base, limits, at=at, folder=folder, show_progress=show_progress)


def run_search(
    data: Any,
    base: Model,
    limits: Limits,
    *,
    at: int = 20,
    folder: str | os.PathLike[str] | None = None,
    is_drawn: bool = True,
    show_progress: bool | None = None,
) -> TuneResult:
    """Look for settings until the limits are reached; see :func:`tune`.

    A folder that nobody looks into needs no figure: ``is_drawn`` leaves it out.
    """
    trials = limits.trials
    split = as_split(data)
    check_integer("at", at, least=1, most=split.train.n_items)
    about = {
        "kind": "a search for settings",
        "model": type(base).__name__,
        **{name: value for name, value in base.get_params().items() if name != "num_threads"},
        "data": _about(split),
        "at": at,
        "budget": limits.seconds,
    }
    if isinstance(base, FactorModel):
        # The rounds follow from the number; trials of other models are the same for any number.
        about["trials"] = trials
    kept = TrialCache(folder, about)
    done = kept.begin(trials)
    if done is not None:
        return done
    search = (FactorSearch if isinstance(base, FactorModel) else Search)(
        base, split, at, kept, limits
    )
    with progress_bar("tune", trials or NUMBERS_OF_TRIALS[0], show=show_progress) as advance:
        for trial in search.trials():
            limits.spent += trial.seconds
            best = max(found.ndcg for found in search.found)
            advance(f"tune {type(base).__name__}: best nDCG@{at} {best:.4f}")
    return kept.finish(search.result(), is_drawn=is_drawn)


def check_tuning(
    model: Any,
    *,
    budget: str | float | None = None,
    trials: int | None = None,
    at: int | None = None,
) -> Limits:
    """Refuse what cannot be tuned, which needs no data; return when the search is to end."""
    if not isinstance(model, Model):
        message = f"there is no model to tune: {model!r}"
        raise ConfigError(message, hint="pass one such as ll.ExADMM()")
    if budget is not None and trials is not None:
        message = f"tuning ends by time or by trials, not by both: {budget!r} and {trials}"
        hint = "leave the trials out, or the budget: only trials give the same result anywhere"
        raise ConfigError(message, hint=hint)
    seconds = None
    if trials is None:
        seconds = duration(BUDGET if budget is None else budget, "budget")
    else:
        check_integer("trials", trials, least=1, most=10_000)
    if at is not None:
        check_integer("at", at, least=1)
    space = FactorSpace if isinstance(model, FactorModel) else Space
    if not space.searched(model.config):
        message = f"{type(model).__name__} has no setting to tune"
        hint = "leave one to its default; IALS, ExADMM, EASE and networks have some"
        raise ConfigError(message, hint=hint)
    return Limits(seconds, trials)


def _about(split: Split) -> str:
    parts = [
        part for held in (split.validation, split.test) for part in (held.history, held.targets)
    ]
    return " ".join([split.train.fingerprint(), *(str(digest(part.indices)) for part in parts)])
