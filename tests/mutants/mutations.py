"""One-line changes of the mathematics and of the experiments' settings, each with who must notice.

A change is a file below ``src/limelight``, what stands there exactly once, what stands there
instead, and the test files that must fail. Signs, factors, ends of ranges and published settings
are changed: what no type checker and no crash would tell.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """A change of one line."""

    file: str
    before: str
    after: str
    tests: str
    """Test files, separated by spaces, below ``tests/unit``."""


_STEPS = "solve/steps.py"
_STEP_TESTS = "solve/test_steps.py solve/test_theorem.py solve/test_convergence.py"
_EXACT = "solve/exact.py"
_EXACT_TESTS = "solve/test_exact.py"
_EXPOSURE = "metrics/exposure.py"
_EXPOSURE_TESTS = "metrics/test_exposure.py"
_ACCURACY = "metrics/accuracy.py"
_ACCURACY_TESTS = "metrics/test_accuracy.py"
_WELFARE_TESTS = "rerank/test_welfare.py rerank/test_markets.py"
_GREEDY = "rerank/methods/greedy.py"
_GREEDY_TESTS = "rerank/test_greedy.py"
_MARKET = "rerank/market/market.py"
_MARKET_TESTS = "rerank/test_markets.py rerank/test_grouped_market.py"
_PRICES = "rerank/methods/frank_wolfe.py"
_PAPER = "lab/paper/experiments.py"
_METHODS = "lab/paper/methods.py"
_PAPER_TESTS = "lab/test_paper.py lab/test_paper_settings.py lab/test_report.py lab/test_timing.py"
_NEXT = "\n            "
"""From one setting of an experiment to the next, where one alone stands there more than once."""

SOLVERS = [
    Mutation(_STEPS, "with_exposure = shared + problem", "with_exposure = shared - problem",
             _STEP_TESTS),
    Mutation(_STEPS, "state.V -= response", "state.V += response", _STEP_TESTS),
    Mutation(_STEPS, "pull = state.penalty / n", "pull = state.penalty", _STEP_TESTS),
    Mutation(_STEPS, "h = pull * (mean - (state.s - state.w))",
             "h = pull * (mean - (state.s + state.w))", _STEP_TESTS),
    Mutation(_STEPS, "/ (1 + pull * mean_step)", "/ (1 - pull * mean_step)", _STEP_TESTS),
    Mutation(_STEPS, "+ float(squares) * np.outer(h, h)", "- float(squares) * np.outer(h, h)",
             _STEP_TESTS),
    Mutation(_STEPS, "return mean - mean_step * h", "return mean + mean_step * h", _STEP_TESTS),
    Mutation(_STEPS, "rho * (mean + state.w)", "rho * (mean - state.w)", _STEP_TESTS),
    Mutation(_STEPS, "state.w = state.w + mean - state.s", "state.w = state.w - mean + state.s",
             _STEP_TESTS),
    Mutation(_STEPS, "shared = problem.unobserved_weight * problem.item_gramian(state.V)",
             "shared = problem.item_gramian(state.V)", _STEP_TESTS),
    Mutation("solve/step_sizes.py", "state.w = state.w * (state.penalty / rho)",
             "state.w = state.w * (rho / state.penalty)", _STEP_TESTS),
    Mutation("solve/step_sizes.py", "_PENALTY_OVER_CURVATURE * problem.n_users / mean_step",
             "_PENALTY_OVER_CURVATURE * mean_step / problem.n_users", _STEP_TESTS),
    Mutation(_EXACT, "system = np.eye(len(B)) + kappa * B @ term.Q",
             "system = np.eye(len(B)) - kappa * B @ term.Q", _EXACT_TESTS),
    Mutation(_EXACT, "mean + B @ (state.w + kappa * term.q)",
             "mean + B @ (state.w - kappa * term.q)", _EXACT_TESTS + " models/test_exadmm.py "
             "models/test_exposure_targets.py solve/test_exposure_term.py"),
    Mutation(_EXACT, "price = kappa * (term.Q @ state.s - term.q)",
             "price = kappa * (term.Q @ state.s + term.q)", _EXACT_TESTS + " models/test_exadmm.py "
             "models/test_exposure_targets.py solve/test_exposure_term.py"),
    Mutation("solve/state.py", "constraint = np.sum((gap + state.w) ** 2)",
             "constraint = np.sum((gap - state.w) ** 2)", _STEP_TESTS + " solve/test_state.py"),
    Mutation("solve/state.py", "problem.unobserved_weight * unobserved + held_back",
             "problem.unobserved_weight * unobserved - held_back", _STEP_TESTS),
    Mutation("solve/ease.py", "scale = 1 / np.sqrt(squares + regularization)",
             "scale = 1 / np.sqrt(squares)", "models/test_ease.py"),
    Mutation("solve/ease.py", "own = z / solved.diagonal", "own = z * solved.diagonal",
             "models/test_ease.py control/test_ease_control.py"),
    Mutation("solve/ease.py", "return np.asarray(kappa * free / (1 + kappa * along), np.float64)",
             "return np.asarray(kappa * free / (1 - kappa * along), np.float64)",
             "models/test_ease.py control/test_ease_control.py"),
]  # fmt: skip

METRICS = [
    Mutation(_ACCURACY, "ideal = np.append(np.nan, np.cumsum(weights))",
             "ideal = np.append(np.nan, weights)", _ACCURACY_TESTS),
    Mutation(_ACCURACY, "return np.asarray(found / reachable[np.minimum(matches.n_targets, k)]",
             "return np.asarray(found / reachable[matches.n_targets.clip(0, k) * 0 + k]",
             _ACCURACY_TESTS),
    Mutation(_ACCURACY, "relevant = pairs.data > 0", "relevant = pairs.data >= 0", _ACCURACY_TESTS),
    Mutation(_ACCURACY, "return Matches(found & (lists >= 0), n_targets)",
             "return Matches(found, n_targets)", _ACCURACY_TESTS),
    Mutation(_EXPOSURE, "weights = 2.0 * np.arange(1, n + 1) - n - 1",
             "weights = 2.0 * np.arange(1, n + 1) - n", _EXPOSURE_TESTS),
    Mutation(_EXPOSURE, "below = np.cumsum(sizes) - sizes", "below = np.cumsum(sizes)",
             _EXPOSURE_TESTS),
    Mutation(_EXPOSURE, "values[: len(values) // 2].sum()", "values[len(values) // 2 :].sum()",
             _EXPOSURE_TESTS),
    Mutation(_EXPOSURE, "math.ceil(top * len(values) - 1e-9)", "math.floor(top * len(values))",
             _EXPOSURE_TESTS),
    Mutation(_EXPOSURE, "float(-(shares @ np.log(shares)) / math.log(len(values)))",
             "float(-(shares @ np.log(shares)) / math.log(len(shares)))", _EXPOSURE_TESTS),
    Mutation(_EXPOSURE, "gained=int(np.sum(change > _SEEN_CHANGE))",
             "gained=int(np.sum(change > 0))", "metrics report audit/test_audit.py"),
    Mutation(_EXPOSURE, "values = values + rounds * weight", "values = values + weight",
             _EXPOSURE_TESTS),
    Mutation("metrics/lists.py", "1.0 / np.log2(ranks + 1.0)", "1.0 / np.log2(ranks + 2.0)",
             "metrics/test_lists.py metrics/test_accuracy.py"),
]  # fmt: skip

RERANKERS = [
    Mutation("rerank/welfare.py", "return np.asarray((x + self.offset) ** -self.exponent)",
             "return np.asarray((x + self.offset) ** self.exponent)", _WELFARE_TESTS),
    Mutation("rerank/welfare.py", "(x + self.offset) ** (1 - self.exponent)) / (1 - self.exponent)",
             "(x + self.offset) ** (1 - self.exponent)) / (1 + self.exponent)", _WELFARE_TESTS),
    Mutation("rerank/welfare.py", "return np.asarray(1 - np.minimum(x, self._BEND))",
             "return np.asarray(np.minimum(x, self._BEND) - 1)", _WELFARE_TESTS),
    Mutation("rerank/welfare.py", "np.clip((self.least - x) / self.width, 0, 1)",
             "np.clip((x - self.least) / self.width, 0, 1)", _WELFARE_TESTS),
    Mutation("rerank/welfare.py", "fading**2 / (2 * self.width)", "fading**2 / self.width",
             _WELFARE_TESTS),
    Mutation("rerank/welfare.py", "return np.asarray(pull / pull.mean())",
             "return np.asarray(pull / pull.sum())", _WELFARE_TESTS),
    Mutation(_MARKET, "scale = strength if self.by_impact else strength * self.survey.unit",
             "scale = strength", _MARKET_TESTS),
    Mutation(_MARKET, "return np.where(means > 0, means, self.survey.unit)",
             "return np.where(means > 0, self.survey.unit, means)", _MARKET_TESTS),
    Mutation(_MARKET, "return groups.items * of_items + scale * of_groups",
             "return groups.items * of_items - scale * of_groups", _MARKET_TESTS),
    Mutation(_PRICES, "weight = 2 / (step + 3)", "weight = 2 / (step + 2)",
             "rerank/test_markets.py rerank/test_accounts.py rerank/test_welfare.py"),
    Mutation(_PRICES, "chances *= 1 - weight", "chances *= weight", "rerank/test_markets.py"),
    Mutation(_GREEDY, "return tastes * (1 - taken / max(place, 1))",
             "return tastes * (1 + taken / max(place, 1))", _GREEDY_TESTS),
    Mutation(_GREEDY, "relevance = (1 - self.config.strength) * _scaled(own)",
             "relevance = _scaled(own)", _GREEDY_TESTS),
    Mutation(_GREEDY, "middle = (p + q) / 2", "middle = p + q", _GREEDY_TESTS),
    Mutation("metrics/popularity.py", "order = np.argsort(-counts", "order = np.argsort(counts",
             _GREEDY_TESTS),
    Mutation("rerank/methods/fairrec.py", "return n_users * min(k, n_items) / n_items",
             "return n_users * k / n_items", "rerank/test_fairrec.py rerank/test_run.py"),
    Mutation("rerank/targets/search.py", "loss = 1 - worth / own if own else 0.0",
             "loss = worth / own - 1 if own else 0.0", "rerank/test_run.py control/test_goals.py"),
    Mutation("rerank/targets/search.py", "return lack >= 0 if self.is_loss",
             "return lack <= 0 if self.is_loss", "rerank/test_run.py control/test_goals.py"),
]  # fmt: skip

SETTINGS = [
    Mutation(_PAPER, '"filter_order": "together"', '"filter_order": "items-first"', _PAPER_TESTS),
    Mutation(_PAPER, '"filter_order": "items-first"', '"filter_order": "users-first"',
             _PAPER_TESTS),
    Mutation(_PAPER, '"min_rating": 4, "min_user": 5', '"min_rating": 3.5, "min_user": 5',
             _PAPER_TESTS),
    Mutation(_PAPER, '"min_item": 200', '"min_item": 20', _PAPER_TESTS),
    Mutation(_PAPER, "held_out=500,", "held_out=1_000,", _PAPER_TESTS),
    Mutation(_PAPER, "held_out=50_000", "held_out=10_000", _PAPER_TESTS),
    Mutation(_PAPER, f"held_out=10_000,{_NEXT}factors=256", f"held_out=10_000,{_NEXT}factors=128",
             _PAPER_TESTS),
    Mutation(_PAPER, f"factors=32,{_NEXT}cutoffs=(5, 10, 20)",
             f"factors=32,{_NEXT}cutoffs=(5, 10, 50)", _PAPER_TESTS),
    Mutation(_PAPER, f"timed=(5, 20),{_NEXT}weights=(2e-4",
             f"timed=(10, 20),{_NEXT}weights=(2e-4", _PAPER_TESTS),
    Mutation(_PAPER, "weights=(2e-4, 3e-3, 9e-2)", "weights=(2e-4, 3e-3, 9e-3)", _PAPER_TESTS),
    Mutation(_PAPER, "weight_range=(1e-7, 1.0)", "weight_range=(1e-3, 1.0)", _PAPER_TESTS),
    Mutation(_PAPER, '"unobserved_weight": 0.06, "regularization": 7e-4',
             '"unobserved_weight": 0.06, "regularization": 7e-3', _PAPER_TESTS),
    Mutation(_PAPER, '"unobserved_weight": 0.02, "regularization": 0.002',
             '"unobserved_weight": 0.2, "regularization": 0.002', _PAPER_TESTS),
    Mutation(_PAPER, "_ROUNDING = 0.01", "_ROUNDING = 0.5", _PAPER_TESTS),
    Mutation(_METHODS, '_MOST_EPOCHS = 500', '_MOST_EPOCHS = 5',
             _PAPER_TESTS),
    Mutation(_METHODS, '_TOLERANCE = 1e-5', '_TOLERANCE = 1e-2', _PAPER_TESTS),
    Mutation(_METHODS, '"epochs": _at_most(epochs, 200)', '"epochs": _at_most(epochs, 20)',
             _PAPER_TESTS),
    Mutation(_METHODS, '"anneal_steps": Range(100, 200_000', '"anneal_steps": Range(100, 200',
             _PAPER_TESTS),
    Mutation(_METHODS, '"regularization": Range(1e-4, 1.0)', '"regularization": Range(1e-2, 1.0)',
             _PAPER_TESTS),
    Mutation(_METHODS, '"unobserved_weight": Range(1e-4, 1.0)',
             '"unobserved_weight": Range(0.5, 1.0)', _PAPER_TESTS),
    Mutation(_METHODS, '"preference": Range(0.05, 20.0)', '"preference": Range(0.05, 2.0)',
             _PAPER_TESTS),
    Mutation(_METHODS, 'fixed={**factor, "solver": "admm"}', "fixed={**factor}", _PAPER_TESTS),
    Mutation(_METHODS, "return published if given is None else min(given, published)",
             "return published if given is None else given", _PAPER_TESTS),
    Mutation("lab/paper/tuning.py", '["maximize", "minimize"] if controls',
             '["maximize", "maximize"] if controls', _PAPER_TESTS + " ../runs/test_reproduce.py"),
    Mutation("lab/paper/tuning.py", "split.validation, k=self.cutoffs",
             "split.test, k=self.cutoffs", _PAPER_TESTS + " ../runs/test_reproduce.py"),
    Mutation("lab/paper/times.py", "each * (method.epochs - epochs)",
             "each * (method.epochs + epochs)", _PAPER_TESTS),
]  # fmt: skip

MUTATIONS = {
    "solvers": SOLVERS,
    "metrics": METRICS,
    "rerankers": RERANKERS,
    "settings": SETTINGS,
}
