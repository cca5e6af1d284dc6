"""The mathematics once more, in dense float64 NumPy: slow, short, and read against the papers.

Nothing here shares code with the solvers. Matrices are dense, so these twins are for problems of a
few hundred rows. The letters are those of :mod:`limelight.solve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.spatial.distance import jensenshannon

if TYPE_CHECKING:
    from collections.abc import Callable

    from limelight._base.arrays import Float64


class DenseTerm(NamedTuple):
    """Groups x items, and a weight and a target for each group."""

    W: Float64
    c: Float64
    tau: Float64


@dataclass(frozen=True, eq=False)
class DenseProblem:
    """The objective over a dense matrix R: 0, or the weight of an observed pair."""

    R: Float64
    unobserved_weight: float
    regularization: float
    exponent: float = 1.0
    exposure: float = 0.0
    """lambda_ex"""
    term: DenseTerm | None = None
    """What it multiplies; None is |V s|^2."""

    @property
    def user_ridge(self) -> Float64:
        """lambda_i of every user."""
        return self._ridge(self.R)

    @property
    def item_ridge(self) -> Float64:
        """lambda_j of every item."""
        return self._ridge(self.R.T)

    def _ridge(self, R: Float64) -> Float64:
        counts = R.sum(axis=1) + self.unobserved_weight * R.shape[1]
        return np.asarray(self.regularization * counts**self.exponent)

    def loss(self, U: Float64, V: Float64) -> float:
        """Everything but exposure."""
        scores = U @ V.T
        observed = np.sum(self.R * (1 - scores) ** 2)
        unobserved = self.unobserved_weight * np.sum(scores**2)
        ridge = self.user_ridge @ np.sum(U**2, axis=1) + self.item_ridge @ np.sum(V**2, axis=1)
        return 0.5 * float(observed + unobserved + ridge)

    def objective(self, U: Float64, V: Float64) -> float:
        """Return the loss and the exposure of the mean user."""
        return self.loss(U, V) + self.exposure_term(V, U.mean(axis=0))

    def exposure_term(self, V: Float64, s: Float64) -> float:
        """Return lambda_ex / 2 sum_g c_g ((W V s)_g - tau_g)^2."""
        if self.term is None:
            return 0.5 * self.exposure * float(np.sum((V @ s) ** 2))
        W, c, tau = self.term
        return 0.5 * self.exposure * float(np.sum(c * (W @ V @ s - tau) ** 2))

    def exposure_force(self, V: Float64, s: Float64) -> Float64:
        """Return its derivative by every item's mean score."""
        W, c, tau = self.term or DenseTerm(np.eye(len(V)), np.ones(len(V)), np.zeros(len(V)))
        return np.asarray(self.exposure * W.T @ (c * (W @ V @ s - tau)), np.float64)

    def lagrangian(self, state: DenseState, rho: float) -> float:
        """Return the augmented Lagrangian with the scaled dual variable w."""
        U, V, s, w = state
        gap = U.mean(axis=0) - s
        constraint = np.sum((gap + w) ** 2) - np.sum(w**2)
        return self.loss(U, V) + self.exposure_term(V, s) + 0.5 * rho * float(constraint)


class DenseState(NamedTuple):
    """The variables of exADMM."""

    U: Float64
    V: Float64
    s: Float64
    w: Float64


def solve_rows(
    R: Float64, F: Float64, shared: Float64, ridge: Float64, shift: Float64 | None = None
) -> Float64:
    """x_i = (shared + ridge_i I + sum_j R_ij f_j f_j^T)^-1 (sum_j R_ij f_j - shift)."""
    right = R @ F - (0 if shift is None else shift)
    return _solved(_row_systems(R, F, shared, ridge), right)


def respond_rows(
    R: Float64, F: Float64, shared: Float64, ridge: Float64, probe: Float64
) -> Float64:
    """y_i = (shared + ridge_i I + sum_j R_ij f_j f_j^T)^-1 probe."""
    return _solved(_row_systems(R, F, shared, ridge), np.tile(probe, (len(R), 1)))


def _row_systems(R: Float64, F: Float64, shared: Float64, ridge: Float64) -> Float64:
    own = np.array([(F.T * row) @ F for row in R])
    return np.asarray(own + shared + ridge[:, None, None] * np.eye(F.shape[1]), np.float64)


def _solved(systems: Float64, right: Float64) -> Float64:
    return np.asarray(np.linalg.solve(systems, right[:, :, None])[:, :, 0], np.float64)


def ials_epoch(problem: DenseProblem, U: Float64, V: Float64) -> tuple[Float64, Float64]:
    """Users first, then items."""
    a0 = problem.unobserved_weight
    del U
    U = solve_rows(problem.R, V, a0 * V.T @ V, problem.user_ridge)
    V = solve_rows(problem.R.T, U, a0 * U.T @ U, problem.item_ridge)
    return U, V


def v_step(problem: DenseProblem, U: Float64, s: Float64) -> Float64:
    """Minimise over V."""
    shared = problem.unobserved_weight * U.T @ U + problem.exposure * np.outer(s, s)
    return solve_rows(problem.R.T, U, shared, problem.item_ridge)


def user_gradient(problem: DenseProblem, U: Float64, V: Float64) -> Float64:
    """Return the gradient of the loss at every user, exposure left out."""
    error = problem.R * (U @ V.T - 1)
    unobserved = problem.unobserved_weight * U @ (V.T @ V)
    return error @ V + unobserved + problem.user_ridge[:, None] * U


def item_gradient(problem: DenseProblem, U: Float64, V: Float64) -> Float64:
    """Return the gradient of the loss at every item, exposure left out."""
    error = problem.R.T * (V @ U.T - 1)
    unobserved = problem.unobserved_weight * V @ (U.T @ U)
    return error @ U + unobserved + problem.item_ridge[:, None] * V


def u_step(problem: DenseProblem, state: DenseState, steps: Float64 | float, rho: float) -> Float64:
    """Minimise sum_i |u_i - utilde_i|^2 / (2 gamma_i) + rho / 2 |mean(U) - s + w|^2 over U.

    Written as the linear system it is: u_i + (gamma_i rho / n) mean(U) = utilde_i + (gamma_i
    rho / n) (s - w), so that the closed form of the solvers has something to be compared with.
    """
    U, V, s, w = state
    n = len(U)
    gamma = np.broadcast_to(np.asarray(steps, dtype=np.float64), n)
    tilde = U - gamma[:, None] * user_gradient(problem, U, V)
    pull = gamma * rho / n
    system = np.eye(n) + np.outer(pull, np.full(n, 1 / n))
    return np.asarray(np.linalg.solve(system, tilde + pull[:, None] * (s - w)), np.float64)


def exadmm_epoch(
    problem: DenseProblem, state: DenseState, steps: Float64 | float, rho: float
) -> DenseState:
    """Take the steps V, U, s, w."""
    U, V, s, w = state
    V = v_step(problem, U, s)
    U = u_step(problem, DenseState(U, V, s, w), steps, rho)
    mean = U.mean(axis=0)
    system = problem.exposure * V.T @ V + rho * np.eye(V.shape[1])
    s = np.linalg.solve(system, rho * (mean + w))
    return DenseState(U, V, s, w + mean - s)


def coupled_users(problem: DenseProblem, V: Float64, exposure: float | None = None) -> Float64:
    """Minimise the objective over all users at once, coupled by their mean, as one big system."""
    n, d = len(problem.R), V.shape[1]
    lex = problem.exposure if exposure is None else exposure
    G = V.T @ V
    own = np.einsum("ij,ja,jb->iab", problem.R, V, V)
    own += problem.unobserved_weight * G + problem.user_ridge[:, None, None] * np.eye(d)
    system = np.kron(np.full((n, n), lex / n**2), G)
    for i in range(n):
        system[i * d : (i + 1) * d, i * d : (i + 1) * d] += own[i]
    solution = np.linalg.solve(system, (problem.R @ V).ravel())
    return np.asarray(solution, np.float64).reshape(n, d)


def curvature(R: Float64, F: Float64) -> Float64:
    """One power step towards the largest eigenvalue of each history's Gramian, from its sum."""
    out = np.zeros(len(R))
    for i, row in enumerate(R):
        start = row @ F
        if start.any():
            out[i] = np.linalg.norm((F.T * row) @ (F @ start)) / np.linalg.norm(start)
    return out


def top_k(scores: Float64, seen: Float64, k: int) -> np.ndarray:
    """Rank by score, equal scores by number; seen items are left out, -1 fills up."""
    masked = np.where(seen > 0, -np.inf, scores)
    order = np.argsort(-masked, axis=1, kind="stable")[:, :k]
    return np.where(np.take_along_axis(masked, order, axis=1) > -np.inf, order, -1)


def first_pass(user: Float64, items: Float64, k: int) -> np.ndarray:
    """Tell which items may be among the k best, by bounds on their scores.

    An item is s q + e with whole numbers q up to 127, the user t p + f with p up to 32767. A score
    is no further from s t (p . q) than |user| |e| + s |f| |q|.
    """
    s, t = np.abs(items).max(axis=1) / 127, np.abs(user).max() / 32767
    q = np.rint(items / np.where(s > 0, s, 1.0)[:, None])
    p = np.rint(user / t)
    e, f = items - s[:, None] * q, user - t * p
    width = np.linalg.norm(user) * np.linalg.norm(e, axis=1)
    width += s * np.linalg.norm(f) * np.linalg.norm(q, axis=1)
    lower, upper = s * t * (q @ p) - width, s * t * (q @ p) + width
    return np.asarray(upper >= np.sort(lower)[-k])


def round_robin(scores: Float64, order: np.ndarray, copies: Any, k: int) -> np.ndarray:
    """Let users take turns; each takes the best item in stock that she does not hold.

    Copies are of every item, or of each. Scores of -inf are hidden items; users who are shown none
    take no turns. It ends when the copies are gone, all have k items, or somebody can take nothing.
    Equal scores go to the lower number. Returns users x k, one column a round, filled with -1.
    """
    picks = np.full((len(scores), k), -1)
    stock = np.full(scores.shape[1], copies)
    turns = [user for user in order if np.isfinite(scores[user]).any()]
    for column in range(k):
        for user in turns:
            wanted = np.where(stock > 0, scores[user], -np.inf)
            wanted[picks[user, :column]] = -np.inf
            if not np.isfinite(wanted).any():
                return picks
            picks[user, column] = wanted.argmax()
            stock[picks[user, column]] -= 1
    return picks


def fairrec(scores: Float64, order: np.ndarray, copies: Any, k: int) -> list[list[int]]:
    """Everybody's picks, filled up with her best other items, by score, then number."""
    lists = []
    for row, picks in zip(scores, round_robin(scores, order, copies, k), strict=True):
        by_score = np.argsort(-row, kind="stable")
        ranked = by_score[np.isfinite(row[by_score])].tolist()
        held = {int(item) for item in picks if item >= 0}
        held |= set([item for item in ranked if item not in held][: k - len(held)])
        lists.append([item for item in ranked if item in held])
    return lists


def greedy_values(
    scores: Float64,
    bins: np.ndarray,
    taste: Float64,
    listed: list[int],
    settings: tuple[str, float],
) -> Float64:
    """Tell what each candidate is worth as the next item of one user's list; -inf if listed.

    Scores are those of her candidates, bins theirs, ``settings`` are method and strength.
    """
    method, strength = settings
    span = scores.max() - scores.min()
    values = np.full(len(scores), -np.inf)
    for item in set(range(len(scores))) - set(listed):
        relevance = (scores[item] - scores.min()) / span if span else 0.0
        alike = [bins[other] == bins[item] for other in listed]
        if method == "calibrated":
            shares = np.bincount(bins[[*listed, item]], minlength=len(taste)) / (len(listed) + 1)
            gain = -(jensenshannon(taste, shares, base=2) ** 2)
        elif method == "xquad_binary":
            gain = taste[bins[item]] * (not any(alike))
        else:
            gain = taste[bins[item]] * (1 - (np.mean(alike) if listed else 0))
        values[item] = (1 - strength) * relevance + strength * gain
    return values


def vae_loss(
    parameters: dict[str, Float64], R: Float64, inputs: Float64, noise: Float64, beta: float
) -> float:
    """Average a variational autoencoder's loss over the rows of R."""
    encoded = np.tanh(inputs @ parameters["item_input"] + parameters["input_bias"])
    latent = encoded @ parameters["latent_weights"] + parameters["latent_bias"]
    mean, log_variance = np.split(latent, 2, axis=1)
    drawn = mean + np.exp(log_variance / 2) * noise
    layer = np.tanh(drawn @ parameters["decoder_weights"] + parameters["decoder_bias"])
    divergence = 0.5 * (np.exp(log_variance) + mean**2 - 1 - log_variance).sum(axis=1)
    return float(np.mean(_unlikely(parameters, R, layer) + beta * divergence))


def dae_loss(parameters: dict[str, Float64], R: Float64, inputs: Float64) -> float:
    """Average a denoising autoencoder's loss over the rows of R."""
    layer = np.tanh(inputs @ parameters["item_input"] + parameters["input_bias"])
    return float(np.mean(_unlikely(parameters, R, layer)))


def _unlikely(parameters: dict[str, Float64], R: Float64, layer: Float64) -> Float64:
    scores = layer @ parameters["item_output"].T + parameters["item_bias"]
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return np.asarray(-(R * np.log(shares)).sum(axis=1), np.float64)


class Turn(NamedTuple):
    """What a market is before a user chooses: exposure by item, and what helps items."""

    exposure: Float64
    help: Callable[[Float64], Float64]
    """Subsidies of all items at some exposure."""
    weights: Float64
    """Of places."""
    offsets: Float64 | None = None
    """By item, added to relevance and help."""
    by_impact: bool = False
    """Whether exposure and help count as much as they are relevant; offsets do not."""

    def amounts(self, relevance: Float64) -> Float64:
        """Return the exposure that a list gives to its items, by their relevance."""
        weights = self.weights[: len(relevance)]
        return weights * relevance if self.by_impact else weights

    def worth(self, relevance: Float64, exposure: Float64) -> Float64:
        """Return what every item is worth to a user."""
        help_now = self.help(exposure)
        helped = relevance * (1 + help_now) if self.by_impact else relevance + help_now
        return helped if self.offsets is None else helped + self.offsets


def respond(relevance: Float64, order: list[int], lists: list[list[int]], turn: Turn) -> Float64:
    """Let users choose again, one after the other; returns the exposure and changes the lists.

    Relevance is dense, users x items, -inf where an item is no candidate. A list holds items, the
    most relevant first.
    """
    exposure, k = turn.exposure.copy(), len(turn.weights)
    for user in order:
        own = relevance[user]
        exposure[lists[user]] -= turn.amounts(own[lists[user]])
        exposure = np.maximum(exposure, 0)
        by_relevance = np.lexsort((np.arange(len(exposure)), -own))
        worth = turn.worth(own, exposure)[by_relevance]
        best = np.sort(np.argsort(-worth, kind="stable")[:k])
        lists[user] = [int(j) for j in by_relevance[best] if np.isfinite(own[j])]
        exposure[lists[user]] += turn.amounts(own[lists[user]])
    return exposure


def ease_slope(
    R: Float64, B: Float64, l2: float, kappa: float, W: Float64, tau: Float64
) -> Float64:
    """Half of the gradient of |R - R B|^2 + l2 |B|^2 + kappa |W B^T m - tau|^2, m the mean row."""
    m = R.mean(axis=0)
    return R.T @ (R @ B - R) + l2 * B + kappa * np.outer(m, W.T @ (W @ B.T @ m - tau))


def ease(R: Float64, l2: float, kappa: float, W: Float64, tau: Float64) -> Float64:
    """The weights B with a diagonal of zeros at which that gradient vanishes: one linear system."""
    m, n = R.mean(axis=0), R.shape[1]
    A = R.T @ R + l2 * np.eye(n)
    system = np.kron(A, np.eye(n)) + kappa * np.kron(np.outer(m, m), W.T @ W)
    right = (R.T @ R).ravel() + kappa * np.kron(m, W.T @ tau)
    free = ~np.eye(n, dtype=bool).ravel()
    B = np.zeros(n * n)
    B[free] = np.linalg.solve(system[np.ix_(free, free)], right[free])
    return B.reshape(n, n)


def ease_by_columns(R: Float64, l2: float, kappa: float) -> Float64:
    """The same for kappa |B^T m|^2, where no column depends on another."""
    m, n = R.mean(axis=0), R.shape[1]
    system = R.T @ R + l2 * np.eye(n) + kappa * np.outer(m, m)
    B = np.zeros((n, n))
    for j in range(n):
        others = np.arange(n) != j
        B[others, j] = np.linalg.solve(system[np.ix_(others, others)], (R.T @ R)[others, j])
    return B
