"""Are the findings right, and how fast are they? One section of numbers for each claim.

Run it as ``.venv/bin/python benchmarks/findings.py`` for all sections, or name some of ``k``,
``events``, ``false-positives``, ``power``, ``sweep`` and ``consensus``. The last two need the
songbird data (``MOTIFOLD_DATA``, or the network). Pictures go to the folder given by ``--out``.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF, find_consensus, find_events, significance
from motifold.datasets import fetch_songbird
from motifold.matching import match_motifs

N, T, L, MOTIF_LENGTH = 40, 1200, 24, 8
PROBABILITY = 0.01


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


def number_of_motifs(out: Path) -> None:
    """Suggested K against the true one."""
    right = 0
    for seed in range(20):
        K = 2 + seed % 4
        X, *_ = plant(seed, K, noise=0.0)
        found = motifold.sweep(
            X,
            n_components=range(1, K + 3),
            n_lags=L,
            n_seeds=8,
            n_init=3,
            tol=1e-2,
            n_null=0,
            progress=False,
        )
        suggested = found.suggested["n_components"]
        right += suggested == K
        if suggested != K:
            print(f"  data set {seed}: true K = {K}, suggested {suggested}")
    print(f"suggested K equals the true K in {right} of 20 clean data sets (K = 2 to 5)")


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
    events = find_events(model)
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


def event_table(out: Path) -> None:
    """Precision and recall over noise levels."""
    print("noise  precision  recall   (20 data sets each, 3 motifs, events within 2 bins)")
    for noise in (0.0, 0.1, 0.2, 0.3, 0.4):
        counts = Parallel(-1)(delayed(events_of)(seed, noise) for seed in range(20))
        hits, found, true = np.sum(counts, axis=0)
        print(f"{noise:5.1f}  {hits / found:9.3f}  {hits / true:6.3f}")


def false_positive(seed: int) -> tuple[bool, bool]:
    """Whether any motif of shuffled data is significant, by Bonferroni and by Holm."""
    X, *_ = plant(seed, 3, noise=0.2)
    rng = np.random.default_rng([seed, 1])  # numbers that made neither the data nor the nulls
    # Bins in a random order of each feature's own. To shift features as they are would not do:
    # those of one motif fire alike, and some land near enough to each other for a true sequence.
    X = rng.permuted(X, axis=0)
    model = fit(X[: T // 2], 3, seed, max_iter=30)
    nulls = np.random.default_rng([seed, 2])
    result = significance(X[T // 2 :], model, n_null=500, random_state=nulls)
    return bool(result.bonferroni.any()), bool(result.holm.any())


def false_positives(out: Path) -> None:
    """Share of runs on shuffled data with a significant motif."""
    hits = np.sum(Parallel(-1)(delayed(false_positive)(seed) for seed in range(200)), axis=0)
    print(
        f"false positives on shuffled data, 200 runs at alpha = 0.05 (10 expected at most): "
        f"{hits[0]} by Bonferroni, {hits[1]} by Holm"
    )


def detected(seed: int, noise: float, K: int = 3) -> int:
    """How many motifs of a fit of planted data are significant."""
    X, *_ = plant(seed, K, noise)
    model = fit(X[: T // 2], K, seed, n_init=3, max_iter=300)
    nulls = np.random.default_rng([seed, 2])
    return int(significance(X[T // 2 :], model, n_null=500, random_state=nulls).significant.sum())


def power(out: Path) -> None:
    """Share of significant motifs over noise levels, as numbers and as a curve."""
    levels, runs = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0], 20
    shares = []
    print("noise  share of motifs significant   (20 runs each, 3 motifs)")
    for noise in levels:
        counts = Parallel(-1)(delayed(detected)(seed, noise) for seed in range(runs))
        shares.append(sum(counts) / (3 * runs))
        print(f"{noise:5.1f}  {shares[-1]:.3f}")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(levels, shares, "o-", color="#0072B2")
    axes.axhline(0.05, color="0.5", linestyle=":")
    axes.set(
        xlabel="standard deviation of the noise (an entry of a motif is 0.5 to 1.5)",
        ylabel="power",
        ylim=(0, 1.02),
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out / "power.png", dpi=120)


SWEEP = {"n_components": range(1, 11), "n_lags": 20, "n_seeds": 10}


def neural_sweep(out: Path) -> None:
    """10 values of K × 10 seeds on NEURAL: seconds, and the table after a kill and a resume."""
    X = fetch_songbird().neural
    began = time.perf_counter()
    whole = motifold.sweep(X, **SWEEP, progress=False)
    print(f"10 K × 10 seeds on NEURAL: {time.perf_counter() - began:.1f} s, {whole.suggested}")
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
    print(f"killed after {n_done} of 100 runs, resumed: same table {resumed.table == whole.table}")


def sweep_child(path: Path) -> None:
    """The sweep that is to be killed."""
    motifold.sweep(fetch_songbird().neural, **SWEEP, path=path, progress=False)


def song_fit(X: np.ndarray, seed: int) -> np.ndarray:
    """Motifs of one fit of SONG."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return CNMF(3, 50, random_state=seed, n_jobs=1).fit(X).components_


def song_consensus(out: Path) -> None:
    """What 50 fits of SONG agree on."""
    from motifold.plots import plot_consensus

    song = fetch_songbird()
    fits = Parallel(-1)(delayed(song_fit)(song.song, seed) for seed in range(50))
    consensus = find_consensus(fits)
    print("consensus of 50 fits of SONG (K = 3, L = 50)")
    print(consensus.table)
    model = consensus.fit(song.song, CNMF(3, 50))
    similarity = match_motifs(consensus.components[consensus.stable], model.components_).similarity
    print(
        f"a fit from its {len(similarity)} stable motifs: loss {model.loss_:.4f}, similarity to "
        f"them {np.round(similarity, 3).tolist()}"
    )
    figure = plot_consensus(
        consensus,
        rate=song.song_rate,
        feature_axis=np.arange(song.song.shape[1]),
        feature_label="frequency bin",
    )
    figure.savefig(out / "consensus-song.png", dpi=120)


SECTIONS = {
    "k": number_of_motifs,
    "events": event_table,
    "false-positives": false_positives,
    "power": power,
    "sweep": neural_sweep,
    "consensus": song_consensus,
    "sweep-child": sweep_child,
}


def main() -> None:
    """Print the sections asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="section")
    parser.add_argument("--out", type=Path, default=Path("."))
    options = parser.parse_args()
    for name in options.sections or [name for name in SECTIONS if name != "sweep-child"]:
        began = time.perf_counter()
        SECTIONS[name](options.out)
        print(f"  [{name}: {time.perf_counter() - began:.0f} s]", flush=True)


if __name__ == "__main__":
    main()
