"""Figures 4 to 9 and 11 to 16 of the local likelihood paper, on the R lists, as docs/drift-figures.png and
docs/drift-penalised.png; and what of them can be said in numbers.

    python -m benchmarks.drift_figures

Figures 1, 2 and 5 of any index are drawn by `sdretrieval drift`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.collections import ROOT
from benchmarks.results_drift import ADDITIVE, BACKGROUND, Data, Scored, load, mixture, score, smoothed, split
from benchmarks.tables import standard_error
from sdretrieval.core.plotting import GREY, STYLE, empty_figure, write_figure
from sdretrieval.core.timeline import DAY, timeline
from sdretrieval.estimate.time.bandwidth import LikelihoodChoice, choose_by_likelihood, plug_in
from sdretrieval.estimate.time.held_out import FoldedTimeline
from sdretrieval.estimate.time.kernels import Kernel
from sdretrieval.estimate.time.local_likelihood import LocalLikelihood
from sdretrieval.estimate.time.penalised import (
    METHODS,
    aligned_strength,
    choose_strength,
    estimate,
    leave_one_out_score,
    penalties,
    solve,
)

WORDS = 500  # the most frequent, as in the paper's Figure 5
KERNEL = "triangular"  # as there
GRID = np.array([1.5, 3, 6, 12, 25, 50, 100, 200, 400, 1000]) * DAY
ENDS = 50 * DAY  # left out of Figures 4, 8 and 9, as there: estimates at the ends are of one side alone
SHARES = (0.1, 0.2, 0.5, 1.0)
TOY = np.array([0.0, 2.0, 3.0, 4.0, 4.0]), np.array([0.1, 0.2, 0.2, 0.2, 0.3])
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


TOLD: list[str] = []  # what can be said in numbers


def tell(line: str) -> None:
    TOLD.append(line)
    print(line, file=sys.stderr, flush=True)


def frequent(data: Data) -> Data:
    chosen = np.sort(np.argsort(-np.asarray(data.train.sum(axis=0)).ravel())[:WORDS])
    return Data(data.train[:, chosen], data.train_times, data.test[:, chosen], data.test_times)


def fewer(data: Data, share: float, seed: int = 0) -> Data:
    """So many of the training documents."""
    rows = np.flatnonzero(np.random.default_rng(seed).random(data.train.shape[0]) < share)
    return Data(csr_matrix(data.train[rows]), data.train_times[rows], data.test, data.test_times)


def cross_validated(data: Data, online: bool) -> LikelihoodChoice:
    folded = FoldedTimeline(data.train, data.train_times, resolution=DAY, background=BACKGROUND, additive=ADDITIVE)
    return choose_by_likelihood(folded, kernel=Kernel(KERNEL, online), bandwidths=np.append(GRID, inf), refine=False)


def model_of(data: Data, h: Any, online: bool = False) -> LocalLikelihood:
    return LocalLikelihood(data.train, data.train_times, h, kernel=Kernel(KERNEL, online), resolution=DAY)


# -- Figures 4 to 9 ------------------------------------------------------------------------------------------------


def variances(data: Data, h: float = 25 * DAY) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Figure 4, left: θ(1 - θ) of each word, the variance of its estimate from random halves of the documents, and
    that of (12) for independent words; means over forty times."""
    half = np.random.default_rng(0).random(data.train.shape[0]) < 0.5
    parts = [
        LocalLikelihood(data.train[rows], data.train_times[rows], h, kernel=KERNEL, resolution=DAY)
        for rows in (half, ~half)
    ]
    whole = model_of(data, h)
    times = whole.line.times[np.linspace(0, len(whole.line.times) - 1, 42).astype(int)[1:-1]]
    theta = whole.over(times)
    spread = np.nanmean((parts[0].over(times) - parts[1].over(times)) ** 2 / 4, axis=0)
    each = theta * (1 - theta)
    return each.mean(axis=0), spread, (each / whole.effective_words(times)[:, None]).mean(axis=0)


def density_slope(data: Data, h: float = 25 * DAY) -> tuple[np.ndarray, np.ndarray]:
    """Figure 4, right: g'/g, by day."""
    line = timeline(data.train, data.train_times, resolution=DAY)
    grid = np.arange(line.times[0] + ENDS, line.times[-1] - ENDS, 7 * DAY)
    g = Kernel("tricube").weights(grid[:, None] - line.times[None, :], h) @ line.documents
    return grid, np.gradient(g, grid / DAY) / g


def by_size(data: Data) -> dict[str, list[float]]:
    """Figure 7: held-out likelihood against the daily training size."""
    found: dict[str, list[float]] = {}
    for share in SHARES:
        some = fewer(data, share)
        choice = cross_validated(some, False)
        ways: dict[str, Any] = {"global": inf, "h by cross-validation": choice.bandwidth, "h_t": choice.schedule()}
        for label, h in ways.items():
            found.setdefault(label, []).append(score(some, mixture(model_of(some, h)), False).mean)
        best = max(score(some, mixture(model_of(some, h)), False).mean for h in GRID)
        found.setdefault("best h on the test documents", []).append(best)
        print(f"share {share:g}:", {label: round(values[-1], 4) for label, values in found.items()}, file=sys.stderr)
    return found


def simulated_mise(n: int, online: bool, seed: int, words: int = 20, length: int = 50) -> float:
    """The least Σ_w ∫ (θ̂ - θ)² over h, for a known smooth drift and n documents at uniform times."""
    rng = np.random.default_rng(seed)
    base, phase = rng.dirichlet(np.full(words, 2.0)), rng.uniform(0, 2 * np.pi, words)

    def theta(t: np.ndarray) -> np.ndarray:
        raw = base * (1 + 0.8 * np.sin(2 * np.pi * t[:, None] + phase))
        return raw / raw.sum(axis=1, keepdims=True)

    times = rng.random(n)
    p = theta(times)
    counts = csr_matrix(np.stack([rng.multinomial(length, row) for row in p]).astype(float))
    at = np.linspace(0.25, 0.9, 60)
    truth = theta(at)
    errors = [
        np.nansum((LocalLikelihood(counts, times, h, kernel=Kernel("tricube", online)).over(at) - truth) ** 2)
        for h in np.geomspace(0.01, 0.6, 16)
    ]
    return float(min(errors) / len(at))


def rates() -> dict[bool, tuple[np.ndarray, np.ndarray, float, float]]:
    """Sizes, least errors, and the slope of one in the other on logarithmic axes with its standard error."""
    found = {}
    sizes = np.array([300, 1000, 3000, 10000])
    for online in (False, True):
        each = np.array([[simulated_mise(int(n), online, seed) for n in sizes] for seed in range(8)])
        slopes = [np.polyfit(np.log(sizes), np.log(row), 1)[0] for row in each]
        error = standard_error(slopes)
        found[online] = sizes, each.mean(axis=0), float(np.mean(slopes)), error
        tell(f"{'online' if online else 'offline'}: least error falls as n^{np.mean(slopes):.3f} (s.e. {error:.3f})")
    return found


def in_years(times: np.ndarray) -> np.ndarray:
    return 1970 + times / (365.25 * DAY)


def draw_local() -> None:
    import matplotlib

    everything = load("rlists")
    data = frequent(everything)
    with matplotlib.rc_context(STYLE):
        figure = empty_figure(15.0, 6.4)
        panels = figure.subplots(2, 4).ravel()
        _draw_variance(panels[0], data)
        grid, slope = density_slope(data)
        panels[1].plot(in_years(grid), slope, linewidth=0.8)
        panels[1].set_title("Figure 4: g'(t)/g(t), a day", loc="left")
        tell(f"|g'/g|: median {np.median(np.abs(slope)):.4f} a day, largest {np.abs(slope).max():.4f}")
        for axes, share, name in ((panels[2], 1.0, "Figure 5: all documents"), (panels[3], 0.1, "Figure 6: a tenth")):
            _draw_bandwidths(axes, fewer(data, share), name)
        for label, values in by_size(data).items():
            panels[4].plot([share * data.train.shape[0] for share in SHARES], values, "-o", markersize=3, label=label)
        panels[4].set(xscale="log", xlabel="training documents", ylabel="nats a word")
        panels[4].set_title("Figure 7: by training size", loc="left")
        panels[4].legend(frameon=False, fontsize=7)
        _draw_plug_in(panels[5], panels[6], data)
        for online, (sizes, errors, slope_, _) in rates().items():
            label = f"{'online' if online else 'offline'}: n^{slope_:.2f}"
            panels[7].loglog(sizes, errors, "-o", markersize=3, label=label)
        panels[7].set_title("Proposition 3: least mise, simulated", loc="left")
        panels[7].set(xlabel="n documents")
        panels[7].legend(frameon=False, fontsize=7)
        write_figure(figure, ROOT / "docs" / "drift-figures.png", dpi=90)


def _draw_variance(axes: Any, data: Data) -> None:
    each, spread, independent = variances(data)
    axes.loglog(each, spread, ".", markersize=2.5, label="random halves")
    order = np.argsort(each)
    axes.loglog(each[order], independent[order], color=GREY, linewidth=1, label="independent words, (12)")
    axes.set_title("Figure 4: variance against θ(1 - θ)", loc="left")
    axes.legend(frameon=False, fontsize=7)
    slope = np.polyfit(np.log(each), np.log(spread), 1)[0]
    tell(f"variance grows as (θ(1-θ))^{slope:.2f}, {np.median(spread / independent):.1f} x that of independent words")


def _draw_bandwidths(axes: Any, data: Data, title: str) -> None:
    for online in (False, True):
        choice = cross_validated(data, online)
        finite = np.isfinite(choice.bandwidths)
        label = "online" if online else "offline"
        [line] = axes.plot(choice.bandwidths[finite] / DAY, choice.scores[finite], "-o", markersize=3, label=label)
        axes.axhline(choice.scores[~finite][0], color=line.get_color(), linewidth=0.8, linestyle="--")
        tell(f"{title}, {label}: best h {choice.bandwidth / DAY:g} days")
    axes.set(xscale="log", xlabel="h, days (dashed: global)")
    axes.set_title(title, loc="left")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, high - 0.5), high)
    axes.legend(frameon=False, fontsize=7)


def _draw_plug_in(speed: Any, inverse: Any, data: Data) -> None:
    found = plug_in(data.train, data.train_times, kernel=Kernel("tricube", online=True))
    inside = (found.times > found.times[0] + ENDS) & (found.times < found.times[-1] - ENDS)
    norm = 1e3 * DAY * np.sqrt(np.maximum(found.bias, 0))
    speed.plot(in_years(found.times[inside]), norm[inside], linewidth=0.8)
    speed.set_title("Figure 8: norm of θ̇, 10⁻³ a day", loc="left")
    found = plug_in(data.train, data.train_times, kernel="tricube")
    line = timeline(data.train, data.train_times, resolution=DAY)
    near = Kernel("tricube").weights(found.times[:, None] - line.times[None, :], 25 * DAY)
    daily = near @ line.lengths / near.sum(axis=1)
    finite = np.isfinite(found.varying) & inside
    inverse.plot(daily[finite], DAY / found.varying[finite], ".", markersize=3, label="plug-in (20)")
    g = np.geomspace(daily[finite].min(), daily[finite].max(), 100)
    theory = (np.sqrt(g.mean() / g) + np.sqrt(g / g.mean())) ** 0.4
    inverse.plot(g, theory * np.median(DAY / found.varying[finite]) / np.median(theory), color=GREY, label="its shape")
    inverse.set(xscale="log", xlabel="words a day")
    inverse.set_title("Figure 9: 1/h_t, a day", loc="left")
    inverse.legend(frameon=False, fontsize=7)
    correlation = np.corrcoef(np.log(daily[finite]), np.log(1 / found.varying[finite]))[0, 1]
    tell(f"1/h_t against words a day: correlation of logarithms {correlation:.2f}")


# -- Figures 11 to 16 ----------------------------------------------------------------------------------------------


def busy_day(data: Data) -> tuple[np.ndarray, np.ndarray]:
    """The counts of the day with the most words, and the global model."""
    line = timeline(data.train, data.train_times, resolution=DAY)
    day = int(np.argmax(line.lengths))
    return np.asarray(line.counts[day].todense()).ravel(), smoothed(np.asarray(line.counts.sum(axis=0)).ravel())


def exact_leave_one_out(c: np.ndarray, q: np.ndarray, strength: float) -> float:
    """(41), solved anew for each word left out."""
    lam, total = penalties(q, strength), 0.0
    for w in np.flatnonzero(c):
        rest = c.copy()
        rest[w] -= 1
        total += c[w] * np.log(solve(rest, q, lam).theta[w])
    return total


def place(theta: np.ndarray) -> np.ndarray:
    return np.atleast_2d(theta) @ CORNERS


def draw_penalised() -> None:
    import matplotlib

    data = load("rlists")
    c, q = busy_day(data)
    with matplotlib.rc_context(STYLE):
        figure = empty_figure(15.0, 6.4)
        panels = figure.subplots(2, 5).ravel()
        strengths = np.linspace(0, 2.2, 80)
        paths = np.array([solve(*TOY, np.full(5, s)).theta - TOY[1] for s in strengths])
        panels[0].plot(strengths, paths)
        panels[0].set_title("Figure 11: the toy, θ* - q", loc="left")
        strengths = np.geomspace(0.3, 100, 40)
        solutions = [solve(c, q, np.full(len(c), s)) for s in strengths]
        moved = np.argsort(-np.abs(solutions[10].theta - q))[:12]
        panels[1].semilogx(strengths, [1e3 * (one.theta - q)[moved] for one in solutions])
        panels[1].set_title("Figure 11: a day, 10³ (θ* - q)", loc="left")
        panels[2].loglog(strengths, [max(one.moved, 0.5) for one in solutions])
        panels[2].set_title("Figure 12: words that leave q", loc="left")
        for axes, method in zip(panels[3:6], ("sparse0", "interpolation", "discounting"), strict=True):
            _draw_simplex(axes, method)
        _draw_methods(panels[6], panels[7], data)
        _draw_leave_one_out(panels[8], panels[9], c, q)
        write_figure(figure, ROOT / "docs" / "drift-penalised.png", dpi=90)


def _draw_simplex(axes: Any, method: str) -> None:
    """Figure 14: the path of the estimate from c = (1, 3, 5) to q, over the prior where there is one."""
    c, q = np.array([1.0, 3.0, 5.0]), np.array([0.3, 0.4, 0.3])
    u = np.linspace(0.005, 0.99, 120)
    grid = np.array([(a, b, 1 - a - b) for a in u for b in u if a + b < 0.995])
    log: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "sparse0": lambda x: -np.abs(np.log(x / q)).sum(axis=1),  # (36) with λ_w = 1
        "interpolation": lambda x: (10 * q * np.log(x)).sum(axis=1),
    }
    if method in log:
        axes.tricontour(*place(grid).T, np.exp(log[method](grid) - log[method](q[None])[0]), levels=8, linewidths=0.5)
    axes.plot(*place(np.vstack([np.eye(3), np.eye(3)[:1]])).T, color=GREY, linewidth=1)
    path = [estimate(c, q, s, method) for s in np.linspace(0, 6 if method != "interpolation" else 60, 200)]
    axes.plot(*place(np.array(path)).T, "r-", linewidth=1.6)
    axes.plot(*place(q).T, "k+")
    axes.set(aspect="equal")
    axes.axis("off")
    axes.set_title(f"Figure 14: {method}", loc="left")


def _draw_methods(left: Any, right: Any, data: Data) -> None:
    """Figure 15: five methods against the mean penalty; simulated (65 % of words as in q), and a day of posts."""
    from benchmarks.penalised import problem

    strengths = np.geomspace(0.003, 30, 14)
    c, q = problem(5000, 20_000)
    rng = np.random.default_rng(0)  # as in problem(): the truth that the counts were drawn from
    moved, theta = rng.random(len(q)) > 0.65, q.copy()
    theta[moved] *= np.exp(rng.normal(0, 1, moved.sum()))
    theta /= theta.sum()
    inner = split(data)
    line, held = (
        timeline(counts, times, resolution=DAY)
        for counts, times in ((inner.train, inner.train_times), (inner.test, inner.test_times))
    )
    background = smoothed(np.asarray(line.counts.sum(axis=0)).ravel())
    days = [t for t in held.times[np.argsort(-held.lengths)][:60] if t in set(line.times)]
    rows = [(int(np.searchsorted(line.times, t)), int(np.searchsorted(held.times, t))) for t in days]
    words = np.array([float(held.lengths[row]) for _, row in rows])
    best: dict[str, tuple[float, Scored]] = {}
    for method in METHODS:
        aligned = "sparse1" if method == "interpolation" else method
        simulated, real = [], []
        for s in strengths:
            mine = s if method in ("discounting", "sparse0") else aligned_strength(q, s, aligned)
            simulated.append(-theta @ np.log(np.maximum(estimate(c, q, min(mine, 1e9), method), 1e-12)))
            mine = s if method in ("discounting", "sparse0") else aligned_strength(background, s, aligned)
            sums = []
            for row, test in rows:
                p = estimate(np.asarray(line.counts[row].todense()).ravel(), background, mine, method)
                span = slice(held.counts.indptr[test], held.counts.indptr[test + 1])
                sums.append(float(held.counts.data[span] @ np.log(np.maximum(p[held.counts.indices[span]], 1e-12))))
            real.append(Scored(np.array(sums), words))
        left.semilogx(strengths, simulated, label=method)
        right.semilogx(strengths, [one.mean for one in real], label=method)
        best[method] = min(simulated), max(real, key=lambda one: one.mean)
    for method, (entropy, one) in best.items():
        error = f" ({one.error_to(best['interpolation'][1]):.4f})" if method != "interpolation" else ""
        tell(
            f"{method}: least cross entropy, simulated {entropy:.4f}; best likelihood from one day's posts, over "
            f"{len(words)} days {one.mean:.4f}{error}"
        )
    left.set_title("Figure 15: cross entropy, simulated", loc="left")
    right.set_title("Figure 15: nats a held-out word, a day", loc="left")
    low, high = left.get_ylim()
    left.set_ylim(low, min(high, low + 0.6))
    low, high = right.get_ylim()
    right.set_ylim(max(low, high - 0.8), high)
    right.legend(frameon=False, fontsize=7)


def _draw_leave_one_out(left: Any, right: Any, c: np.ndarray, q: np.ndarray) -> None:
    """Figure 16: (42) against (41), and what choosing λ by it loses."""
    from benchmarks.penalised import problem

    strengths = np.geomspace(3, 1000, 10)
    approximate = np.array([leave_one_out_score(c, q, penalties(q, s)) for s in strengths]) / c.sum()
    exact = np.array([exact_leave_one_out(c, q, float(s)) for s in strengths]) / c.sum()
    left.semilogx(strengths, exact, label="(41)")
    left.semilogx(strengths, approximate, "--", label="(42)")
    left.set_title("Figure 16: leave-one-out", loc="left")
    left.legend(frameon=False, fontsize=7)
    tell(f"(42) differs from (41) by {np.abs(approximate - exact).max():.1e} nats a word at most")
    sizes, losses = (2_000, 10_000, 50_000, 200_000), []
    for tokens in sizes:
        each = []
        for seed in range(4):
            counts, background = problem(5000, tokens, seed)
            rng = np.random.default_rng(seed)
            moved, theta = rng.random(5000) > 0.65, background.copy()
            theta[moved] *= np.exp(rng.normal(0, 1, moved.sum()))
            theta /= theta.sum()
            tried = np.geomspace(1, 3000, 24)
            chosen = choose_strength(counts, background).strength
            truth = [theta @ np.log(estimate(counts, background, float(s))) for s in (chosen, *tried)]
            each.append(max(truth) - truth[0])
        losses.append(float(np.mean(each)))
    right.semilogx(sizes, 1e3 * np.array(losses), "-o", markersize=3)
    right.set_title("Figure 16: lost, 10⁻³ nats a word", loc="left")
    right.set(xlabel="words")
    lost = ", ".join(f"{loss:.5f} ({n:,} words)" for n, loss in zip(sizes, losses, strict=True))
    tell(f"lost by choosing λ by (42), nats a word: {lost}")


def figures_part() -> str:
    TOLD.clear()
    draw_local()
    draw_penalised()
    lines = "\n".join(f"- {line}" for line in TOLD)
    return f"""\
### The paper's Figures 4 to 9 and 11 to 16, on rlists

The {WORDS} most frequent words and the triangular kernel of its Figure 5 in the first picture, all words in the second;
Figures 11 (left), 14, 15 (left), 16 (right) and the rate are of made-up counts, as there
(`python -m benchmarks.drift_figures`).

![variance, density, bandwidths, sizes, gradient, rate](drift-figures.png)

![penalised estimates](drift-penalised.png)

In brackets the standard error of the difference to interpolation, over days.

{lines}"""


if __name__ == "__main__":
    print(figures_part())
