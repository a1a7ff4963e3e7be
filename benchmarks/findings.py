"""Are the findings right, and how fast are they? One section of numbers for each claim.

Run it as ``.venv/bin/python benchmarks/findings.py`` for all sections, or name some of ``k``,
``k-regimes``, ``events``, ``false-positives``, ``power``, ``sweep`` and ``consensus``. The last two
need the songbird data (``MOTIFOLD_DATA``, or the network). Each prints its numbers and puts them
into ``findings.json`` beside this script, where ``discovered.py`` puts its own. ``--page`` makes
the section "Findings" of docs/benchmarks.md of that file, all of it, instead of measuring. Pictures
of recordings go to the folder given by ``--out``. With ``--store FOLDER`` the runs of ``k`` and
``k-regimes`` are kept there: done again, they are read, and only the rule is applied anew.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import numpy as np
import regimes
from findings_page import keep, write_page
from joblib import Parallel, delayed
from scipy.ndimage import gaussian_filter1d
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF, find_consensus, find_events, significance
from motifold.datasets import fetch_songbird
from motifold.matching import match_motifs

N, T, L, MOTIF_LENGTH = 40, 1200, 24, 8
PROBABILITY = 0.01
# Of the data sets that are made up. Rules and defaults were chosen on seeds below 1000.
FIRST_SEED = 60000
# For the number of motifs those of before are known, too: 64000 and REPORT + 500 have been used.
FIRST_SEED_OF_K = FIRST_SEED + 4100
FIRST_HARD_SEED = regimes.REPORT + 600


@dataclass(frozen=True)
class Sizes:
    """How much is measured: data sets of each kind, runs without sequences, fits of SONG."""

    sets: int = 20
    null_runs: int = 200
    more_null_runs: int = 2000
    fits: int = 50
    hard_sets: int = 6
    regimes: tuple[str, ...] = (
        *("spikes 30 %", "spikes 15 %", "warped"),
        *("independent", "shared rates 3"),
    )
    noises: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4)
    levels: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
    store: Path | None = None

    def stored(self, name: str) -> Path | None:
        """Where the runs of a sweep are kept, if they are."""
        return None if self.store is None else self.store / f"{name}.jsonl"


SMOKE = Sizes(
    sets=1,
    null_runs=2,
    more_null_runs=2,
    fits=2,
    hard_sets=0,
    noises=(0.1,),
    levels=(0.1,),
)


def plant(seed: int, K: int, noise: float, T: int = T) -> tuple[np.ndarray, ...]:
    """X (T, N), motifs (K, L, N), activations (T, K): each feature in one motif, at one lag."""
    rng = np.random.default_rng(seed)
    motifs = np.zeros((K, L, N))
    for n in range(N):
        lag = (L - MOTIF_LENGTH) // 2 + rng.integers(MOTIF_LENGTH)
        motifs[n % K, lag, n] = rng.uniform(0.5, 1.5)
    H = rng.uniform(0.5, 1.5, (T, K)) * (rng.random((T, K)) < PROBABILITY)
    for k in range(K):  # a motif does not start again before half of its lags have passed
        last = -L
        for t in np.flatnonzero(H[:, k]):
            H[t, k] *= t - last >= L // 2
            last = t if H[t, k] else last
    X = np.zeros((T, N))
    for lag in range(L):
        X[lag:] += H[: T - lag] @ motifs[:, lag]
    return np.maximum(X + noise * rng.standard_normal(X.shape), 0), motifs, H


def fit(X: np.ndarray, K: int, seed: int, **options: object) -> CNMF:
    """A fit without the warning of a fit that did not converge: what it found counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(K, L, random_state=seed, n_jobs=1, **options).fit(X)  # type: ignore[arg-type]


def number_of_motifs(out: Path, sizes: Sizes) -> dict[str, Any]:
    """Suggested K against the true one."""
    rows = []
    for i in range(sizes.sets):
        K = 2 + i % 4
        X, *_ = plant(FIRST_SEED_OF_K + i, K, noise=0.0)
        found = motifold.sweep(
            X,
            n_components=range(1, K + 3),
            n_lags=L,
            n_seeds=8,
            n_init=3,
            tol=1e-2,
            n_null=0,
            path=sizes.stored(f"clean-{FIRST_SEED_OF_K + i}"),
            progress=False,
        )
        rows.append({"data": FIRST_SEED_OF_K + i, "true": K, **found.suggested})
        print(f"  {rows[-1]}", flush=True)
    right = sum(row["n_components"] == row["true"] for row in rows)
    print(f"suggested K equals the true K in {right} of {sizes.sets} clean data sets (K = 2 to 5)")
    return {"right": right, "rows": rows}


def number_of_motifs_where_it_is_hard(out: Path, sizes: Sizes) -> dict[str, Any]:
    """Suggested K, of 1 to 6, in recordings of regimes.py; spikes smoothed by one bin."""
    rows = []
    first = FIRST_HARD_SEED
    for name in sizes.regimes:
        suggested = []
        for seed in range(first, first + sizes.hard_sets):
            X = regimes.make(name, seed).X
            if (np.round(X) == X).all():
                X = gaussian_filter1d(X, 1.0, axis=0)
            found = motifold.sweep(
                X,
                n_components=range(1, 7),
                n_lags=regimes.L,
                n_seeds=8,
                n_null=100,
                path=sizes.stored(f"{name}-{seed}"),
                progress=False,
            )
            suggested.append(found.suggested["n_components"])
        rows.append({"regime": name, "suggested": suggested})
        print(f"  {rows[-1]}", flush=True)
    return {"rows": rows}


def matched_events(found: np.ndarray, true: np.ndarray, tolerance: int = 2) -> int:
    """How many of the found bins have a true one of their own within the tolerance."""
    free = sorted(true.tolist())
    hits = 0
    for bin_ in sorted(found.tolist()):
        near = [t for t in free if abs(t - bin_) <= tolerance]
        if near:
            free.remove(min(near, key=lambda t: abs(t - bin_)))
            hits += 1
    return hits


def events_of(seed: int, noise: float, K: int = 3) -> tuple[int, int, int]:
    """Hits, found and true events of one data set."""
    X, motifs, H = plant(seed, K, noise)
    model = fit(X, K, seed, n_init=8)
    match = match_motifs(motifs, model.components_)
    events = find_events(model, threshold=0.3)
    hits = n_found = n_true = 0
    for k in range(K):
        found = events.where(motif=int(match.order[k]))["bin"].astype(int)
        # The fitted motif lies `shift` lags earlier than the true one: so much later it starts.
        found = found - match.shift[k]
        true = np.flatnonzero(H[:, k])
        # Beyond the ends a motif is cut off: no rule can tell its start.
        found, true = (bins[(bins >= 0) & (bins < len(X) - L)] for bins in (found, true))
        hits += matched_events(found, true)
        n_found, n_true = n_found + len(found), n_true + len(true)
    return hits, n_found, n_true


def event_table(out: Path, sizes: Sizes) -> dict[str, Any]:
    """Precision and recall over noise levels."""
    sets = range(sizes.sets)
    print(f"noise  precision  recall   ({len(sets)} data sets each, 3 motifs, within 2 bins)")
    rows = []
    for noise in sizes.noises:
        counts = Parallel(-1)(delayed(events_of)(FIRST_SEED + i, noise) for i in sets)
        hits, found, true = np.sum(counts, axis=0).tolist()
        rows.append({"noise": noise, "precision": hits / found, "recall": hits / true})
        print(f"{noise:5.1f}  {hits / found:9.3f}  {hits / true:6.3f}", flush=True)
    return {"rows": rows}


def shuffled(seed: int) -> np.ndarray:
    """Planted data with the bins of each feature in a random order of its own."""
    X, *_ = plant(seed, 3, noise=0.2)
    # To shift features as they are would not do: those of one motif fire alike, and some land near
    # enough to each other for a true sequence.
    return np.random.default_rng([seed, 1]).permuted(X, axis=0)


def unrelated(seed: int) -> np.ndarray:
    """Features that each rise and decay at times of their own, as calcium traces do."""
    rng = np.random.default_rng([seed, 1])
    events = rng.uniform(0.5, 1.5, (T, N)) * (rng.random((T, N)) < PROBABILITY)
    decay = np.exp(-np.arange(L) / 6)
    X = np.stack([np.convolve(h, decay)[:T] for h in events.T], axis=1)
    return np.maximum(X + 0.05 * rng.standard_normal(X.shape), 0)


def null_p_values(make: Callable[[int], np.ndarray], seed: int) -> list[float]:
    """p-values of 3 motifs that were fitted to half of data without sequences, on the other."""
    X = make(seed)
    model = fit(X[: T // 2], 3, seed, max_iter=30)
    nulls = np.random.default_rng([seed, 2])  # numbers that did not make the data
    return significance(X[T // 2 :], model, n_null=500, random_state=nulls).p_value.tolist()


def false_positives(out: Path, sizes: Sizes) -> dict[str, Any]:
    """Share of runs on data without sequences that have a significant motif.

    200 runs have a standard deviation of 3 in this number: 2000 more say what it is about.
    """
    rows = []
    for make, first, n_runs in (
        (shuffled, FIRST_SEED + 1000, sizes.null_runs),
        (shuffled, 20000, sizes.more_null_runs),
        (unrelated, FIRST_SEED + 1000, sizes.null_runs),
    ):
        seeds = range(first, first + n_runs)
        p_value = np.array(Parallel(-1)(delayed(null_p_values)(make, seed) for seed in seeds))
        rows.append(null_summary(make.__name__, p_value, sizes.null_runs))
        print(f"  {rows[-1]}", flush=True)
    return {"rows": rows}


def null_summary(name: str, p_value: np.ndarray, group: int) -> dict[str, Any]:
    """How often any motif of a run (row) is significant at 5 %, and how uniform p-values are."""
    # The smallest p-value decides whether any is found, by Bonferroni and by Holm alike.
    least, n_tested = np.nanmin(p_value, axis=1), (~np.isnan(p_value)).sum(axis=1)
    found = least <= 0.05 / n_tested
    scores = norm.isf(p_value[~np.isnan(p_value)] - 0.5 / 501)  # standard normal, if uniform
    return {
        "data": name,
        "runs": len(p_value),
        "hits": int(found.sum()),
        "fewest_hits": int(found.reshape(-1, group).sum(axis=1).min()),
        "most_hits": int(found.reshape(-1, group).sum(axis=1).max()),
        "motifs": float((p_value <= 0.05).sum() / n_tested.sum()),
        "mean_score": float(scores.mean()),
        "sd_score": float(scores.std()),
    }


def detected(seed: int, noise: float, K: int = 3) -> int:
    """How many motifs of a fit of planted data are significant."""
    X, *_ = plant(seed, K, noise)
    model = fit(X[: T // 2], K, seed, n_init=3, max_iter=300)
    nulls = np.random.default_rng([seed, 2])
    return int(significance(X[T // 2 :], model, n_null=500, random_state=nulls).significant.sum())


def power(out: Path, sizes: Sizes) -> dict[str, Any]:
    """Share of significant motifs over noise levels."""
    levels, runs = list(sizes.levels), sizes.sets
    shares = []
    print(f"noise  share of motifs significant   ({runs} runs each, 3 motifs)")
    for noise in levels:
        counts = Parallel(-1)(delayed(detected)(FIRST_SEED + i, noise) for i in range(runs))
        shares.append(sum(counts) / (3 * runs))
        print(f"{noise:5.1f}  {shares[-1]:.3f}", flush=True)
    return {"levels": levels, "shares": shares}


SWEEP = {"n_components": range(1, 11), "n_lags": 20, "n_seeds": 10}


def neural_sweep(out: Path, sizes: Sizes) -> dict[str, Any]:
    """10 values of K × 10 seeds on NEURAL: seconds, and the table after a kill and a resume."""
    from motifold.plots import plot_n_components

    X = fetch_songbird().neural
    load = os.getloadavg()[0]  # of whatever else is at work, in processes
    began = time.perf_counter()
    whole = motifold.sweep(X, **SWEEP, progress=False)
    seconds = time.perf_counter() - began
    print(
        f"10 K × 10 seeds on NEURAL: {seconds:.1f} s, {whole.suggested} by {whole.evidence}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sweep.jsonl"
        command = [sys.executable, __file__, "sweep-child", "--out", str(path)]
        process = subprocess.Popen(command, env=os.environ.copy())
        while not path.exists() or path.read_bytes().count(b"\n") < 40:
            time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        n_done = path.read_bytes().count(b"\n") - 1
        resumed = motifold.sweep(X, **SWEEP, path=path, progress=False)
    # Rows are in the order of the grid, whichever run ended first.
    same = sum(repr(a) == repr(b) for a, b in zip(whole.table, resumed.table, strict=True))
    print(f"killed after {n_done} of 100 runs, resumed: {same} of {len(whole.table)} rows the same")
    plot_n_components(whole).savefig(out / "findings-sweep.png", dpi=120)
    return {
        "seconds": seconds,
        "load": load,
        "suggested": whole.suggested,
        "evidence": whole.evidence,
        "killed": n_done,
        "same": same,
    }


def sweep_child(path: Path) -> None:
    """The sweep that is to be killed."""
    motifold.sweep(fetch_songbird().neural, **SWEEP, path=path, progress=False)


def song_fit(X: np.ndarray, seed: int) -> tuple[np.ndarray, float]:
    """Motifs and loss of one fit of SONG."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = CNMF(3, 50, random_state=seed, n_jobs=1).fit(X)
    return model.components_, float(model.loss_)


def song_consensus(out: Path, sizes: Sizes) -> dict[str, Any]:
    """What 50 fits of SONG agree on."""
    from motifold.plots import plot_consensus

    song = fetch_songbird()
    fits = Parallel(-1)(delayed(song_fit)(song.song, seed) for seed in range(sizes.fits))
    losses = [loss for _, loss in fits]
    consensus = find_consensus([motifs for motifs, _ in fits])
    print(f"consensus of {sizes.fits} fits of SONG (K = 3, L = 50)")
    print(consensus.table)
    model = consensus.fit(song.song, CNMF(3, 50))
    similarity = match_motifs(consensus.components[consensus.stable], model.components_).similarity
    print(
        f"a fit from its {len(similarity)} stable motifs: loss {model.loss_:.4f}, similarity to "
        f"them {np.round(similarity, 3).tolist()}; the single fits {min(losses):.4f} to "
        f"{max(losses):.4f}, median {np.median(losses):.4f}"
    )
    figure = plot_consensus(
        consensus,
        rate=song.song_rate,
        feature_axis=np.arange(song.song.shape[1]),
        feature_label="frequency bin",
    )
    figure.savefig(out / "findings-consensus.png", dpi=120)
    return {
        "rows": consensus.table.records,
        "loss": model.loss_,
        "fits": len(losses),
        "single_losses": {
            "lowest": min(losses),
            "median": float(np.median(losses)),
            "highest": max(losses),
        },
        "similarity": similarity.tolist(),
    }


SECTIONS: dict[str, Callable[[Path, Sizes], dict[str, Any]]] = {
    "k": number_of_motifs,
    "k-regimes": number_of_motifs_where_it_is_hard,
    "events": event_table,
    "false-positives": false_positives,
    "power": power,
    "sweep": neural_sweep,
    "consensus": song_consensus,
}
# They need the songbird data, and cannot be made small.
LARGE = {"sweep", "consensus"}


def main() -> None:
    """Measure the sections asked for, or write the page."""
    parser = harness.parser(__doc__, page=True)
    names = [*SECTIONS, "sweep-child"]
    parser.add_argument("sections", nargs="*", choices=[*names, []], metavar="section")
    parser.add_argument("--out", type=Path, default=Path("."))
    parser.add_argument("--store", type=Path, help="a folder")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    if options.sections == ["sweep-child"]:
        sweep_child(options.out)
        return
    if options.smoke:
        with tempfile.TemporaryDirectory() as folder:
            small = [name for name in SECTIONS if name not in LARGE]
            measure(small, Path(folder), SMOKE, Path(folder) / "findings.json")
        return
    measure(options.sections or list(SECTIONS), options.out, Sizes(store=options.store))


def measure(sections: list[str], out: Path, sizes: Sizes, kept: Path | None = None) -> None:
    """Measure the sections and keep what they found."""
    out.mkdir(parents=True, exist_ok=True)
    for name in sections:
        began = time.perf_counter()
        keep(name, SECTIONS[name](out, sizes), kept)
        print(f"  [{name}: {time.perf_counter() - began:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
