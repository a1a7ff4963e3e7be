"""What the penalties and the mask are for, in numbers.

``.venv/bin/python benchmarks/penalties.py [duplicates] [speed] [hidden]``:

- duplicates: planted motifs, K set too high; how many motifs repeat another one, and how many of
  the true ones are found, with and without ``x_ortho``;
- speed: ``x_ortho`` with HALS and ANLS against MU: seconds to MU's final objective, same starts;
- hidden: 10 % of SONG's entries hidden; error of their prediction against plain NMF with as many
  parameters.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from problems import DATA
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF

L, N, T, TRUE, TOO_MANY = 12, 30, 1500, 3, 6
SAME, ALIVE = 0.6, 0.005
# Of the fits to SONG with hidden entries: motifs and lags.
SIZES = [(3, 50), (5, 10), (10, 5), (20, 5)]


def plant(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """X (T, N) with noise and its true motifs (TRUE, L, N): one random lag per feature."""
    rng = np.random.default_rng(seed)
    motifs = np.zeros((TRUE, L, N))
    for feature in range(N):
        motifs[feature % TRUE, 2 + rng.integers(L - 4), feature] = 1.0
    activations = rng.exponential(1.0, (T, TRUE)) * (rng.random((T, TRUE)) < 0.02)
    X = 0.1 * rng.random((T, N))
    for lag in range(L):
        X[lag:] += activations[: T - lag] @ motifs[:, lag]
    return X, motifs


def best_match(true: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Cosine of every true motif with every found one, best over shifts, (TRUE, K)."""
    scores = np.zeros((len(true), len(found)))
    for i in range(len(true)):
        for j in range(len(found)):
            pair = _padded(true[i]), _padded(found[j])
            norms = np.linalg.norm(pair[0]) * np.linalg.norm(pair[1])
            if norms > 0:
                shifts = range(1 - L, L)
                scores[i, j] = max(np.sum(pair[0] * np.roll(pair[1], s, 0)) for s in shifts) / norms
    return scores


def _padded(motif: np.ndarray) -> np.ndarray:
    return np.concatenate([motif, np.zeros_like(motif)])


def count(X: np.ndarray, motifs: np.ndarray, **settings: float) -> tuple[int, int]:
    """Motifs that repeat another one, and true motifs that were found."""
    model = CNMF(TOO_MANY, L, random_state=0, n_jobs=1, max_iter=300, **settings).fit(X)
    power = [float(np.sum(part**2)) for part in model.reconstruct_components()]
    alive = np.array(power) > ALIVE * np.sum(X**2)
    matches = best_match(motifs, model.components_[alive])
    closest = matches.argmax(axis=0)[matches.max(axis=0) > SAME]
    found = int(np.sum(matches.max(axis=1, initial=0) > SAME))
    return len(closest) - len(set(closest.tolist())), found


def duplicates(seeds: int = 20, weight: float = 1e-3) -> None:
    """Print both counts over the seeds."""
    totals = {}
    for name, settings in [("plain", {}), (f"x_ortho={weight}", {"x_ortho": weight})]:
        counts = [count(*plant(seed), **settings) for seed in range(seeds)]
        totals[name] = np.sum(counts, axis=0)
        repeated, found = totals[name]
        print(f"{name:>14}: {repeated} duplicates, {found} of {TRUE * seeds} true motifs found")


def speed(starts: int = 10, seconds: float = 1.0, weight: float = 1e-3) -> None:
    """Print the time to MU's final objective, medians over starts."""
    content = loadmat(DATA / "MackeviciusData.mat")
    for name, lags in [("NEURAL", 20), ("SONG", 50)]:
        X = content[name].T.astype(np.float32)
        times: dict[str, list[float]] = {"hals": [], "anls": []}
        own = []
        for seed in range(starts):
            options = {"random_state": seed, "tol": 0, "max_iter": 10**6, "x_ortho": weight}
            rival = CNMF(3, lags, solver="mu", max_time=4 * seconds, **options).fit(X).history_
            aim = rival.objective[-1]
            own.append(rival.seconds[np.argmax(rival.objective <= aim * 1.0001)])
            for solver, reached in times.items():
                course = CNMF(3, lags, solver=solver, max_time=seconds, **options).fit(X).history_
                there = course.objective <= aim
                reached.append(course.seconds[np.argmax(there)] if there.any() else np.inf)
        print(f"{name}: MU {np.median(own):.2f} s (ended at {4 * seconds} s)", end="")
        for solver, reached in times.items():
            share = np.mean(np.isfinite(reached))
            print(f"; {solver} {np.median(reached):.2f} s, {share:.0%} of starts", end="")
        print(flush=True)


def hidden(share: float = 0.1) -> None:
    """Print the relative error of hidden entries."""
    X = loadmat(DATA / "MackeviciusData.mat")["SONG"].T.astype(np.float32)
    mask = np.random.default_rng(0).random(X.shape) >= share
    rows, features = X.shape
    for K, lags in SIZES:
        plain = max(1, round(K * (lags * features + rows) / (features + rows)))
        for size in [(K, lags), (plain, 1)]:
            _predict(X, mask, size)


def _predict(X: np.ndarray, mask: np.ndarray, size: tuple[int, int]) -> None:
    """Print the errors of one fit."""
    began = time.perf_counter()
    model = CNMF(*size, random_state=0, max_time=5).fit(X, mask=mask)
    error = (X - model.inverse_transform(model.activations_))[~mask]
    loss = np.linalg.norm(error) / np.linalg.norm(X[~mask])
    took = time.perf_counter() - began
    seen = model.loss_
    sizes = f"K={size[0]} L={size[1]}"
    print(f"{sizes}: hidden {loss:.4f}, seen {seen:.4f}, {took:.0f} s", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in sys.argv[1:] or ["duplicates", "speed", "hidden"]:
        {"duplicates": duplicates, "speed": speed, "hidden": hidden}[part]()
