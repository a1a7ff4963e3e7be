"""How good the minima are that single starts reach, with and without the moves of fit/reshape.py.

``.venv/bin/python benchmarks/minima.py [--only hals|anls|smooth ...] [--page]``. First the paper's
problem: losses at the end and the time it took, both ways interleaved. Then planted smooth motifs
(regimes.py): how many are found from one start, and by the best of ten. A motif counts as found if
its similarity is at least 0.8 of what least squares with the true times reach. Starts and data sets
are none of those that the moves were made with (starts below 200, data sets below 700,000).
Numbers go to minima.json, each part in its place, and with ``--page`` from there to the page.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import harness
import numpy as np
import regimes
from discovered import least_squares

from motifold.datasets import make_sequences
from motifold.matching import match_motifs

TOL = 1e-4
FIRST_START, FIRST_SET = 200, regimes.REPORT + 50_000
FOUND = 0.8
# Two starts have ended alike if their losses differ by no more than this.
ALIKE = 0.005
SMOOTH = ("noise .1", "noise .3", "spikes 60 %", "spikes 30 %", "spectrogram", "shared features")
SMOOTH += ("lengths", "warped")
WAYS = {"before": False, "now": True}
PARTS = ("hals", "anls", "smooth")
RESULTS = Path(__file__).with_suffix(".json")


def on_the_papers_problem(X: np.ndarray, sizes: tuple[int, int], starts: int, solver: str) -> dict:
    """Losses and seconds of every start, both ways in turns."""
    runs: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for seed in range(FIRST_START, FIRST_START + starts):
        for way, reshape in WAYS.items():
            seconds, loss, _ = harness.ended_fit(
                X, *sizes, seed, tol=TOL, solver=solver, reshape=reshape
            )
            runs[way].append((loss, seconds))
            print(f"  start {seed}, {way}: {loss:.5f} after {seconds:.2f} s", flush=True)
    return runs


def found(made: regimes.Made, motifs: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Which of the planted motifs were found."""
    similarity = match_motifs(made.motifs, motifs).similarity
    return np.asarray(similarity >= FOUND * reference)


def on_smooth_motifs(name: str, sets: int, starts: int) -> dict[str, dict[str, float]]:
    """Shares found by one start and by the best of all, of starts that end alike, and seconds."""
    shares: dict[str, dict[str, list[float]]] = {way: {} for way in WAYS}
    for i in range(sets):
        made = regimes.make(name, FIRST_SET + i)
        reference = np.array(least_squares(made))
        _, L, _ = made.motifs.shape
        ends: dict[str, list[tuple[float, float, np.ndarray]]] = {way: [] for way in WAYS}
        for seed in range(FIRST_START, FIRST_START + starts):
            for way, reshape in WAYS.items():
                ends[way].append(
                    harness.ended_fit(made.X, 3, L, seed, tol=1e-3, solver="hals", reshape=reshape)
                )
        lowest = min(loss for runs in ends.values() for _, loss, _ in runs)
        for way, runs in ends.items():
            hits = [found(made, motifs, reference).mean() for _, _, motifs in runs]
            best = int(np.argmin([loss for _, loss, _ in runs]))
            alike = np.mean([loss <= (1 + ALIKE) * lowest for _, loss, _ in runs])
            told = {"one": np.mean(hits), "best": hits[best], "alike": alike}
            told["seconds"] = sum(seconds for seconds, _, _ in runs)
            for key, value in told.items():
                shares[way].setdefault(key, []).append(float(value))
    return {way: {key: float(np.mean(v)) for key, v in of.items()} for way, of in shares.items()}


def losses_table(results: dict) -> list[str]:
    """A row for every solver and way."""
    rows = []
    for solver in (part for part in ("hals", "anls") if part in results):
        before = np.array(results[solver]["before"])[:, 1].sum()
        for way in WAYS:
            losses, seconds = np.array(results[solver][way]).T
            ratio = seconds.sum() / before
            values = [f"{value:.4f}" for value in (np.median(losses), losses.min(), losses.max())]
            rows.append([solver.upper(), way, *values, f"{seconds.mean():.1f}", f"{ratio:.2f}"])
    header = ["solver", "", "median loss", "best", "worst", "seconds", "times before"]
    return harness.table(header, rows, words=2)


def smooth_table(results: dict[str, dict[str, dict[str, float]]]) -> list[str]:
    """A row for every regime."""
    rows = []
    for name, ways in results.items():
        row: list[object] = [name]
        for key in ("one", "best", "alike"):
            row += [f"{100 * ways[way][key]:.0f} %" for way in WAYS]
        rows.append([*row, f"{ways['now']['seconds'] / ways['before']['seconds']:.2f}"])
    header = ["planted", "one start, before", "now", "best of ten, before", "now"]
    header += ["end alike, before", "now", "time"]
    return harness.table(header, rows)


def main() -> None:
    """Print the tables; with ``--page`` write them to the page."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--sets", type=int, default=4, help="data sets of smooth motifs a regime")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    shape, planted = (2500, 250, 5, 20), SMOOTH
    if options.smoke:
        options.starts, options.sets, shape, planted = 1, 1, (200, 20, 2, 6), SMOOTH[:1]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() and not options.smoke else {}
    X = make_sequences(*shape, random_state=0).X
    for solver in (part for part in ("hals", "anls") if part in options.only):
        tiny = make_sequences(200, 20, 2, 6, random_state=0).X
        harness.ended_fit(tiny, 2, 6, 0, tol=0.1, solver=solver, reshape=True)  # compiles
        results[solver] = on_the_papers_problem(X, shape[2:], options.starts, solver)
    if "smooth" in options.only:
        results["smooth"] = {}
        for name in planted:
            results["smooth"][name] = on_smooth_motifs(name, options.sets, options.starts)
            print(name, results["smooth"][name], flush=True)
    losses, smooth = losses_table(results), smooth_table(results.get("smooth", {}))
    print("\n".join([*losses, "", *smooth]))
    if options.smoke:
        return
    if options.only:
        results["commit"] = harness.machine()["commit"]
        harness.save(RESULTS, results)
    if options.page:
        harness.write_section("minima", page(losses, smooth, results["commit"]))


def page(losses: list[str], smooth: list[str], commit: str) -> list[str]:
    """The section of the page."""
    problem = "the paper's synthetic problem (2500 × 250, K = 5, L = 20, probability .9, noise .1)"
    return [
        "## Minima",
        "",
        f"Measured by `benchmarks/minima.py --page` at commit {commit}: {problem}, tol {TOL:g}, "
        'single starts that the moves of `acceleration="auto"` were not made with. Before: the '
        "same without the moves; runs in turns.",
        "",
        *losses,
        "",
        "Planted smooth motifs (1500 × 51, each feature a bump of width 1 at its own lag), fresh "
        "data sets, default settings: motifs found from one start and by the best of ten, and "
        f"starts whose loss is within {100 * ALIKE:g} % of the lowest of all. The last column is "
        "the time relative to before.",
        "",
        *smooth,
    ]


if __name__ == "__main__":
    main()
