"""What the penalties and the mask are for, in numbers.

``.venv/bin/python benchmarks/penalties.py [PART ...] [--page]``, the parts being:

- centring: how many starts come near the lowest loss, with ``center=True`` and without;
- duplicates: planted motifs, K set too high; how many motifs repeat another one, and how many of
  the true ones are found, with and without ``x_ortho``;
- speed: ``x_ortho`` with HALS and ANLS against MU: seconds to MU's final objective, same starts;
- hidden: 10 % of SONG's entries hidden, singly, in patches or as whole bins; error of their
  prediction against NMF with as many parameters;
- mask: what 5 % of missing entries cost per iteration (``masked.py``).

``--page`` writes what was measured to docs/benchmarks.md.
"""

from __future__ import annotations

import time
import warnings

import harness
import numpy as np
from masked import FORMS, measure
from problems import SONGBIRD
from scipy.io import loadmat
from sklearn.exceptions import ConvergenceWarning

from motifold import CNMF

L, N, T, TRUE, TOO_MANY = 12, 30, 1500, 3, 6
SAME, ALIVE = 0.6, 0.005


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


def duplicates(seeds: int = 20, weight: float = 1e-3) -> str:
    """Both counts, over seeds that were not looked at when the weight was chosen."""
    lines = [
        f"**Duplicated motifs.** {TRUE} planted motifs, K = {TOO_MANY}, {seeds} data sets:",
        "",
        "| penalty | motifs that repeat another one | true motifs found |",
        "|---|---:|---:|",
    ]
    for name, settings in [("none", {}), (f"x_ortho = {weight}", {"x_ortho": weight})]:
        counts = [count(*plant(seed), **settings) for seed in range(100, 100 + seeds)]
        repeated, found = np.sum(counts, axis=0)
        lines.append(f"| {name} | {repeated} | {found} of {TRUE * seeds} |")
    return "\n".join(lines)


def speed(starts: int = 10, seconds: float = 1.0, weight: float = 1e-3) -> str:
    """The time to MU's final objective, medians over starts.

    MU has four times ``seconds``. HALS and ANLS begin where it does; a start that ends above MU's
    objective is followed by another one, as ``n_init`` does, until the time is over.
    """
    content = loadmat(SONGBIRD)
    lines = [
        f"**x_ortho = {weight} by HALS and ANLS against MU**, all ours, single precision: seconds "
        f"to the objective that MU has after {4 * seconds:.0f} s, medians over {starts} starts. A "
        "start that ends above it is followed by another one, and the time goes on.",
        "",
        "| data | solver | seconds | times sooner | starts that get there | with the first start |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, lags in [("NEURAL", 20), ("SONG", 50)]:
        X = content[name].T.astype(np.float32)
        options = {"n_components": 3, "n_lags": lags, "x_ortho": weight, "max_iter": 10**6}
        times: dict[str, list[float]] = {"MU": [], "hals": [], "anls": []}
        at_once: dict[str, list[bool]] = {"hals": [], "anls": []}
        for seed in range(starts):
            rival = CNMF(
                solver="mu", max_time=4 * seconds, tol=0, random_state=seed, **options
            ).fit(X)
            course = rival.history_
            aim = course.objective[-1]
            times["MU"].append(course.seconds[np.argmax(course.objective <= aim * 1.0001)])
            for solver, first in at_once.items():
                reached, start = _time_to(X, aim, seed, seconds, solver=solver, **options)
                times[solver].append(reached)
                first.append(start == 0)
        own = np.median(times.pop("MU"))
        lines.append(f"| {name} | MU (within 0.01 %) | {own:.3f} | | | |")
        for solver, reached in times.items():
            median, share = np.median(reached), np.mean(np.isfinite(reached))
            lines.append(
                f"| {name} | {solver.upper()} | {median:.3f} | {own / median:.1f} | {share:.0%} | "
                f"{np.mean(at_once[solver]):.0%} |"
            )
    return "\n".join(lines)


def _time_to(
    X: np.ndarray, aim: float, seed: int, seconds: float, **options: object
) -> tuple[float, int]:
    """Seconds until J ≤ aim, and how many starts had ended above it; (inf, −1) if never."""
    began = time.perf_counter()
    for start in range(1000):
        left = began + seconds - time.perf_counter()
        if left <= 0:
            break
        model = CNMF(
            tol=1e-4,
            max_time=left,
            random_state=seed + 1000 * start,
            callback=lambda state: state.objective <= aim,
            **options,
        ).fit(X)
        if model.stop_reason_ == "callback":
            return time.perf_counter() - began, start
    return np.inf, -1


def hidden(patterns: list[tuple[str, int, int]] | None = None, limit: int = 150) -> str:
    """The relative error of hidden entries, motifs against NMF with as many parameters.

    The weight of the penalties (``l1_H`` = ``l2_W``) is chosen for each on other hidden entries.
    ``limit``: iterations of each fit.
    """
    X = loadmat(SONGBIRD)["SONG"].T.astype(np.float32)
    rows, features = X.shape
    lines = [
        "**Hidden entries.** 10 % of SONG hidden: relative error of their prediction, three masks "
        "each, by motifs and by NMF with at least as many parameters. *Entries*: single ones. "
        "*Patches*: half the frequencies for 10 bins. *Gaps*: 5 whole bins. The weight of "
        "`l1_H = l2_W` was chosen for each model on another mask.",
        "",
        "| hidden | K × L | weight | errors | NMF with K | weight | errors |",
        "|---|---|---:|---|---:|---:|---|",
    ]
    for pattern, K, lags in patterns or [
        ("entries", 3, 50),
        ("entries", 20, 3),
        ("patches", 3, 50),
        ("gaps", 3, 50),
    ]:
        plain = -(-K * (lags * features + rows) // (features + rows))
        cells = []
        for size in [(K, lags), (plain, 1)]:
            trial = _hide(X.shape, pattern, 0)
            errors = {w: _error(X, trial, size, w, limit) for w in (0.0, 0.1, 1.0, 3.0, 10.0)}
            weight = min(errors, key=lambda w: errors[w])
            masks = [_hide(X.shape, pattern, seed) for seed in (1, 2, 3)]
            found = [_error(X, mask, size, weight, limit) for mask in masks]
            cells.append((weight, ", ".join(f"{error:.3f}" for error in found)))
        (own_weight, own), (weight, rival) = cells
        motifs = f"{K} × {lags} | {own_weight:g} | {own}"
        lines.append(f"| {pattern} | {motifs} | {plain} | {weight:g} | {rival} |")
    return "\n".join(lines)


def _hide(shape: tuple[int, int], pattern: str, seed: int) -> np.ndarray:
    """A mask that hides a tenth: single entries, half the features for 10 bins, or 5 whole bins."""
    rng = np.random.default_rng(seed)
    if pattern == "entries":
        return rng.random(shape) >= 0.1
    rows, features = shape
    length, width = (10, features // 2) if pattern == "patches" else (5, features)
    mask = np.ones(shape, dtype=bool)
    share = 0.1 * features / width
    for block in rng.choice(rows // length, int(share * rows / length), replace=False):
        first = rng.integers(features - width + 1)
        mask[block * length : (block + 1) * length, first : first + width] = False
    return mask


def _error(
    X: np.ndarray, mask: np.ndarray, size: tuple[int, int], weight: float, limit: int
) -> float:
    """Relative error of the hidden entries."""
    model = CNMF(*size, random_state=0, max_time=6, max_iter=limit, l1_H=weight, l2_W=weight)
    model.fit(X, mask=mask)
    error = (X - model.inverse_transform(model.activations_))[~mask]
    return float(np.linalg.norm(error) / np.linalg.norm(X[~mask]))


def mask_cost(T: int = 50_000, rounds: int = 15) -> str:
    """What 5 % of missing entries cost per iteration."""
    lines = [
        "**Cost of a mask.** One iteration with 5 % of the entries missing against one without "
        f"(T = {T:,}, N = 250, K = 5, L = 20, single precision); medians of three runs, and "
        "between what they were:",
        "",
        "| threads | as published | accelerated |",
        "|---:|---:|---:|",
    ]
    for threads in (1, 2):
        runs = [measure(T, 0.05, threads, rounds) for _ in range(3)]
        cells = []
        for form in FORMS:
            ratios = [run[f"{form} masked"] / run[f"{form} whole"] for run in runs]
            cells.append(f"{np.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})")
        lines.append(f"| {threads} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def centring(sets: int = 5, starts: int = 6) -> str:
    """How many starts come near the lowest loss, with ``center`` and without."""
    lines = [
        f"**Centring.** Starts that end within 1 % of the lowest loss of all {2 * starts}, with "
        f"`center=True` and without, {TRUE} planted motifs of {L - 4} bins in windows of {L} and "
        f"{2 * L}, {sets} data sets:",
        "",
        "| lags | without | with `center=True` |",
        "|---:|---:|---:|",
    ]
    for lags in (L, 2 * L):
        near = np.zeros(2, dtype=int)
        for seed in range(200, 200 + sets):
            X, _ = plant(seed)
            losses = np.array(
                [
                    [
                        CNMF(TRUE, lags, random_state=i, center=move).fit(X).loss_
                        for i in range(starts)
                    ]
                    for move in (False, True)
                ]
            )
            near += (losses < 1.01 * losses.min()).sum(axis=1)
        total = sets * starts
        lines.append(f"| {lags} | {near[0]} of {total} | {near[1]} of {total} |")
    return "\n".join(lines)


PARTS = {
    "centring": centring,
    "duplicates": duplicates,
    "speed": speed,
    "hidden": hidden,
    "mask": mask_cost,
}
# What each is given to be over soon, and those that need the songbird data.
SMOKE: dict[str, dict[str, object]] = {
    "centring": {"sets": 1, "starts": 1},
    "duplicates": {"seeds": 1},
    "speed": {"starts": 1, "seconds": 0.05},
    "hidden": {"patterns": [("entries", 2, 3)], "limit": 2},
    "mask": {"T": 400, "rounds": 1},
}
OF_SONG = {"speed", "hidden"}


def main() -> None:
    """Print the parts asked for; write the page's section if all were."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="part")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    texts = []
    for part in options.parts or PARTS:
        if options.smoke and part in OF_SONG and not SONGBIRD.exists():
            continue
        texts.append(PARTS[part](**SMOKE[part] if options.smoke else {}))  # type: ignore[operator]
        print(texts[-1], end="\n\n", flush=True)
    if options.page and not options.smoke:
        commit = harness.machine()["commit"]
        said = f"Measured by `benchmarks/penalties.py --page` at commit {commit}."
        head = f"## Penalties and missing entries\n\n{said}"
        harness.write_section("penalties", ["\n\n".join([head, *texts])])


if __name__ == "__main__":
    main()
