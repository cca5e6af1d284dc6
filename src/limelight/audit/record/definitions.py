"""What each figure of a record means, in words and as a formula, and how its interval is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_JACKKNIFE = (
    "figure ± z e, cut at 0 and 1, where e² = (n - 1)/n sum_u (figure without user u - their "
    "mean)² over the n users (jackknife)"
)
_EXACT = (
    "Clopper and Pearson's exact interval of s m successes in m observations, where m is "
    "s (1 - s) / e² and e² = (n - 1)/n sum_u (s without user u - their mean)²; one observation of "
    "the usual size is added, and m is multiplied by (z / t)² with Student's t of n - 1"
)
_NONE = "none"


class Definition(NamedTuple):
    """One figure: its words, its formula and its interval."""

    words: str
    formula: str
    interval: str


DEFINITIONS = {
    "exposure": Definition(
        "Exposure of an item: what its places in all lists are worth together. The log weight of a "
        "place is that of nDCG; the uniform weight is 1.",
        "o_j = sum over lists that show j at rank r <= k of 1 / log2(r + 1)",
        _NONE,
    ),
    "gini": Definition(
        "How unevenly the items of the catalogue share exposure: 0 if all have the same.",
        "sum_i sum_j |o_i - o_j| / (2 n² mean(o)), n items of the catalogue, log weight",
        _JACKKNIFE,
    ),
    "gini_uniform": Definition(
        "The same where every rank counts alike.",
        "sum_i sum_j |o_i - o_j| / (2 n² mean(o)), uniform weight",
        _JACKKNIFE,
    ),
    "gini_floor": Definition(
        "About the lowest Gini that so many places could have.",
        "Gini after handing out the places one by one, the most valuable first, to the item that "
        "has least",
        _NONE,
    ),
    "coverage": Definition(
        "The share of the catalogue that at least one list shows.",
        "|{j: o_j > 0}| / n",
        _JACKKNIFE,
    ),
    "entropy": Definition(
        "How evenly exposure is shared: 1 if all items have the same.",
        "- sum_j p_j ln p_j / ln n, p_j = o_j / sum(o), log weight",
        _JACKKNIFE,
    ),
    "top_share": Definition(
        "The share of the exposure that the most exposed 1 % of the items hold.",
        "sum of the ceil(n / 100) largest o_j / sum(o), log weight",
        _JACKKNIFE,
    ),
    "merit_gini": Definition(
        "How unevenly exposure is shared for what items merit: 0 if in proportion.",
        "sum_i sum_j |e_i m_j - e_j m_i| / 2, e and m the shares of exposure and merit",
        _JACKKNIFE,
    ),
    "merit_distance": Definition(
        "The share of the exposure that would have to move to match merit.",
        "sum_j |e_j - m_j| / 2",
        _JACKKNIFE + "; its change without a user to first order",
    ),
    "merit_spearman": Definition(
        "Rank correlation of exposure and merit over all items.",
        "Spearman's rho, ties sharing their mean rank",
        _NONE,
    ),
    "merit_none_share": Definition(
        "The share of the exposure that items without merit hold.",
        "sum of o_j over items with m_j = 0 / sum(o)",
        _NONE,
    ),
    "exposure_share": Definition(
        "A group's share of the exposure; an item in several groups is shared among them.",
        "s_g = sum_j w_jg o_j / sum(o), sum_g w_jg = 1 for each item that has groups, log weight",
        _EXACT,
    ),
    "ratio": Definition(
        "A group's exposure for each of its items, in multiples of that of a mean item.",
        "r_g = s_g / c_g, c_g = sum_j w_jg / n",
        "that of the exposure share, divided by c_g",
    ),
    "impact_ratio": Definition(
        "A group's exposure for each of its items, over that of the most favoured group. Small "
        "groups are not compared.",
        "r_g / max_h r_h",
        "from l_g / max_h h_h to min(1, h_g / max_h l_h), where l and h are the ends of intervals "
        "of the ratios that hold for all groups at once",
    ),
    "selection_rate": Definition(
        "The share of a group's items that at least one list shows.",
        "sum_j w_jg [o_j > 0] / sum_j w_jg",
        _NONE,
    ),
    "selection_ratio": Definition(
        "That share over the highest of all groups. Small groups are not compared.",
        "rate_g / max_h rate_h",
        _NONE,
    ),
    "reach": Definition(
        "The share of the users who saw at least one item of the group at ranks 1 to k.",
        "|{u: a list of u shows an item of g}| / n",
        "Clopper and Pearson's exact interval of a share of n users",
    ),
}


def definitions_of(figures: Iterable[str]) -> list[dict[str, str]]:
    """List the definitions of some figures, and of exposure, which most of them are made of.

    Examples
    --------
    >>> [one["figure"] for one in definitions_of(["coverage"])]
    ['exposure', 'coverage']
    """
    names = dict.fromkeys(["exposure", *figures])
    return [
        {"figure": name, **DEFINITIONS[name]._asdict()} for name in names if name in DEFINITIONS
    ]
