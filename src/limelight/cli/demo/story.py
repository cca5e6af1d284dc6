"""What ``limelight demo`` tells: a table, two figures and a few sentences."""

from collections.abc import Sequence
from pathlib import Path

from limelight._base.documents import Table
from limelight.cli.demo.runs import MOST_LOSS, DemoModel, K
from limelight.report.figures.exposures import lorenz
from limelight.report.figures.front import front
from limelight.report.figures.inputs import Point
from limelight.report.figures.style import save

_HEAD = ("", "nDCG", "vs iALS", "recall", "Gini", "vs iALS", "coverage", "top 1 %", "seconds")
_LEGEND = """\
Gini: 0 if all items get the same exposure, near 1 if a few get all of it.
coverage: share of the items that any list shows.
top 1 %: share of the exposure that the most exposed 1 % of the items hold."""


def tell(
    output: Path, models: Sequence[DemoModel], chosen: DemoModel, *, page: Path, figures: bool
) -> str:
    """Write the table, what it says, and what to do next."""
    base = models[0]
    table = Table(_HEAD, [_row(base, outcome) for outcome in models]).text()
    head = f"Lists of {K} for {base.test['users']:,} test users"
    return "\n\n".join(
        [head, table, _LEGEND, _finding(output, base, chosen), _next(output, page, figures=figures)]
    )


def _row(base: DemoModel, outcome: DemoModel) -> tuple[str, ...]:
    accuracy = evenness = ""
    if outcome is not base:
        accuracy = f"{_change(base, outcome):+.1%}"
        evenness = f"{outcome.at_k('gini') - base.at_k('gini'):+.4f}"
    return (
        outcome.name,
        f"{outcome.at_k('ndcg'):.4f}",
        accuracy,
        f"{outcome.at_k('recall'):.4f}",
        f"{outcome.at_k('gini'):.4f}",
        evenness,
        f"{outcome.at_k('coverage'):.1%}",
        f"{outcome.at_k('top_share'):.1%}",
        f"{outcome.seconds:.1f}",
    )


def _change(base: DemoModel, outcome: DemoModel) -> float:
    return outcome.at_k("ndcg") / base.at_k("ndcg") - 1


def _finding(output: Path, base: DemoModel, chosen: DemoModel) -> str:
    kept = f"The model in {output / 'model'} is {chosen.name}"
    if chosen is base:
        return f"{kept}: none that is more even comes within {MOST_LOSS:.0%} of its nDCG."
    true, measured = chosen.relevance / base.relevance - 1, _change(base, chosen)
    return (
        f"{kept}: of those that lose at most {MOST_LOSS:.0%} of nDCG\n"
        f"on the validation users, it shares exposure most evenly. The top 1 % of the\n"
        f"items hold {chosen.at_k('top_share'):.0%} of it instead of "
        f"{base.at_k('top_share'):.0%}. Made-up data also tell what users truly\n"
        f"like: in that the lists change by {true:+.1%}, in nDCG by {measured:+.1%}."
    )


def _next(output: Path, page: Path, *, figures: bool) -> str:
    drawn = f"Open {page} in a browser: who gains, who loses, what it costs.\n"
    if figures:
        drawn += f"Figures: {output / 'tradeoff.png'} and {output / 'lorenz.png'}.\n"
    model, lists = output / "model", output / "lists.parquet"
    return (
        f"{drawn}Next, measure the model, make lists and audit them:\n"
        f"  limelight evaluate {model} {output / 'split'} -k 5 -k 20\n"
        f"  limelight recommend {model} -k 20 -o {lists}\n"
        f"  limelight audit {lists} --catalogue {model / 'items.parquet'} "
        f"--groups {output / 'providers.parquet'}"
    )


def draw(output: Path, models: Sequence[DemoModel], chosen: DemoModel) -> None:
    """Draw the trade-off and the Lorenz curves."""
    base, strongest = models[0], models[-1]
    points = [
        Point(outcome.at_k("gini"), outcome.at_k("ndcg"), f"{outcome.weight:.0e}")
        for outcome in models[1:]
    ]
    series = {
        "iALS": [Point(base.at_k("gini"), base.at_k("ndcg"))],
        "exADMM, by exposure weight": points,
    }
    first, last = (-100 * _change(base, outcome) for outcome in (chosen, strongest))
    title = f"Evener exposure costs {first:.0f} % of nDCG at first, {last:.0f} % in the end"
    save(front(series, title=title, accuracy=f"nDCG@{K}"), output / "tradeoff.png")
    compared = {
        outcome.name: outcome.shown.exposure
        for outcome in (base, chosen, strongest)
        if outcome.shown.exposure is not None
    }
    before, after = (100 * outcome.at_k("top_share") for outcome in (base, strongest))
    title = f"The top 1 % of items hold {before:.0f} % of the exposure, or only {after:.0f} %"
    save(lorenz(compared, title=title), output / "lorenz.png")
