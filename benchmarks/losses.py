"""Other losses than squared error: agreement, races, the cost of an iteration, planted sequences.

``.venv/bin/python benchmarks/losses.py [agreement race iteration planted] [--page]``; the first two
need torchnmf (``make .venv/.bench``), the first libnmfd, too (``pip install --no-deps libnmfd``).
Leave the machine alone meanwhile.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable

import harness
import numpy as np
from problems import SONGBIRD, SPEECH, Benchmark, load
from scipy import sparse

from motifold import CNMF, refit_events
from motifold.matching import match_motifs

KL = "kullback-leibler"
PARTS = ("agreement", "race", "iteration", "planted")
RESULTS = harness.ROOT / "benchmarks" / "losses.json"


def divergence(X: np.ndarray, X_hat: np.ndarray, beta: float) -> float:
    """Σ d_β(x | x̂) in float64, by its definition."""
    x, y = X.astype(np.float64), np.maximum(X_hat.astype(np.float64), 1e-12)
    if beta == 1:
        return float(np.sum(np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / y), 0) - x + y))
    if beta == 0:
        return float(np.sum(x / y - np.log(x / y) - 1))
    parts = x**beta + (beta - 1) * y**beta - beta * x * y ** (beta - 1)
    return float(np.sum(parts) / (beta * (beta - 1)))


def counts(T: int, N: int = 250, share: float | None = None) -> Benchmark:
    """Poisson counts of planted sequences, about 2 % of them not zero if ``share`` says so."""
    rng = np.random.default_rng(0)
    K, L = 5, 20
    motifs = rng.random((K, L, N)) ** 6
    activations = rng.exponential(1.0, (T, K)) * (rng.random((T, K)) < 0.1)
    rates = np.zeros((T, N))
    for lag in range(L):
        rates[lag:] += activations[: T - lag] @ motifs[:, lag]
    if share is not None:
        rates *= -np.log(1 - share) / rates.mean()
    X = rng.poisson(rates).astype(np.float32)
    return Benchmark(f"{T:,} × {N} counts", X, K, L)


# Agreement --------------------------------------------------------------------------------------


def torchnmf(problem: Benchmark, start: tuple[np.ndarray, np.ndarray], beta: float):  # type: ignore[no-untyped-def]
    """A function that makes iterations of torchnmf's NMFD, and one that gives X̂ (T, N)."""
    import torch
    from torchnmf.nmf import NMFD

    torch.set_num_threads(2)
    torch.set_default_dtype(torch.from_numpy(problem.X).dtype)
    V = torch.from_numpy(np.ascontiguousarray(problem.X.T))[None]
    W = torch.from_numpy(np.ascontiguousarray(start[0].transpose(2, 0, 1)))
    H = torch.from_numpy(np.ascontiguousarray(start[1][: len(problem.X) - problem.L + 1].T))[None]
    model = NMFD(W=W.clone(), H=H.clone())

    def fitted() -> np.ndarray:
        with torch.no_grad():
            return model()[0].numpy().T

    return lambda n=1: model.fit(V, beta=beta, tol=-np.inf, max_iter=n), fitted


def agreement(smoke: bool) -> dict[str, float]:
    """The largest relative difference of the two loss curves over 50 iterations, for each β."""
    if importlib.util.find_spec("torchnmf") is None:
        print("agreement: torchnmf is not installed (make .venv/.bench)")
        return {}
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 1.0, (60 if smoke else 600, 30)).astype(np.float64) + 0.1
    problem = Benchmark("gamma", X, 3, 7)
    W, H = rng.random((3, 7, 30)), rng.random((len(X), 3))
    H[len(X) - 6 :] = 0
    found = {}
    for beta in (1.0, 0.0, 0.5):
        ours: list[float] = []

        def note(state: object, ours: list[float] = ours) -> None:
            ours.append(state.objective)  # type: ignore[attr-defined]

        settings = {"max_iter": 50, "tol": 0, "boundary": "valid", "acceleration": None}
        model = CNMF(3, 7, solver="mu", beta_loss=beta, callback=note, **settings)
        model.fit(X, components_init=W, activations_init=H)
        step, fitted = torchnmf(problem, (W, H), beta)
        theirs = []
        for _ in range(50):
            step()
            theirs.append(divergence(X, fitted(), beta))
        found[f"{beta:g}"] = float(np.max(np.abs(np.array(ours) / np.array(theirs) - 1)))
        print(f"β = {beta:g}: curves differ by at most {found[f'{beta:g}']:.1e}", flush=True)
    return found


def first_update() -> dict[str, float]:
    """The largest difference of the motifs, of norm 1, after one update, from libnmfd's.

    No further: its H takes the ratio from before the update of W, and its motifs are scaled to sum
    1 without their activations, so that its later iterations are others than the published ones.
    """
    if importlib.util.find_spec("libnmfd") is None:
        print("agreement: libnmfd is not installed (pip install --no-deps libnmfd==1.0.0)")
        return {}
    import libnmfd.core.nmfconv as library

    library.tnrange = lambda n, **_: range(n)  # its progress bar needs a notebook
    rng = np.random.default_rng(0)
    X = rng.gamma(2.0, 1.0, (600, 30)) + 0.1
    W, H = rng.random((3, 7, 30)), rng.random((len(X), 3))
    found = {}
    for beta in (1.0, 1.5):  # below 1 it has not the exponent with which the loss cannot rise
        sizes = {"num_comp": 3, "num_iter": 1, "num_template_frames": 7, "beta": beta - 1}
        theirs = library.nmf_conv(X.T.copy(), init_W=[w.T for w in W], init_H=H.T, **sizes)[0]
        settings = {"max_iter": 1, "tol": 0, "acceleration": None}
        model = CNMF(3, 7, solver="mu", beta_loss=beta, **settings)
        model.fit(X, components_init=W, activations_init=H)
        ours, theirs = (
            w / np.linalg.norm(w, axis=(1, 2), keepdims=True)
            for w in (model.components_, np.array([w.T for w in theirs]))
        )
        order = match_motifs(ours, theirs).order
        found[f"{beta:g}"] = float(np.max(np.abs(ours - theirs[order])))
    print("motifs after one update, from libnmfd's:", found, flush=True)
    return found


# Races ------------------------------------------------------------------------------------------


def race(smoke: bool, starts: int, seconds: float) -> list[dict[str, object]]:
    """How many times sooner torchnmf's KL after so many seconds is reached, from its start."""
    if importlib.util.find_spec("torchnmf") is None:
        print("race: torchnmf is not installed (make .venv/.bench)")
        return []
    if smoke:
        problems: list[Callable[[], Benchmark]] = [lambda: counts(400, 20)]
    else:
        problems = [lambda: counts(50_000), lambda: counts(50_000, share=0.02)]
        problems += [lambda: load("speech")] if SPEECH.exists() else []
        problems += [lambda: load("song")] if SONGBIRD.exists() else []
    rows = []
    for make in problems:
        problem = make()
        filled = float(np.mean(problem.X > 0))
        matrix = sparse.csr_array(problem.X) if filled < 0.1 else None
        for X in (problem.X, *([] if matrix is None else [matrix])):  # compiles all there is
            CNMF(problem.K, problem.L, beta_loss=KL, max_iter=6, tol=0).fit(X)
        times: dict[str, list[float]] = {"dense": [], "sparse": []}
        for seed in range(starts):
            W, H = problem.start(seed)
            H[len(H) - problem.L + 1 :] = 0
            goal, step_seconds = _torch_after(problem, (W, H), seconds)
            forms = {"dense": problem.X} | ({} if matrix is None else {"sparse": matrix})
            for form, X in forms.items():
                reached = _seconds_to(problem, X, (W, H), goal, seconds)
                times[form].append(seconds / reached)
        for form, ratios in times.items():
            if ratios:
                name = problem.name + (", sparse" if form == "sparse" else "")
                row = {"problem": name, "filled": filled, "step_ms": 1e3 * step_seconds}
                rows.append(row | {"goal": goal, "ratios": ratios})
                print(name, row, "times sooner:", np.round(ratios, 1), flush=True)
    return rows


def _torch_after(
    problem: Benchmark, start: tuple[np.ndarray, np.ndarray], seconds: float
) -> tuple[float, float]:
    """Torchnmf's KL after so many seconds, and seconds of one of its iterations."""
    step, fitted = torchnmf(problem, start, 1.0)
    began, steps = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        step(5)  # a call looks at the loss once more, which is not to count much
        steps += 5
    taken = (time.perf_counter() - began) / steps
    return divergence(problem.X, fitted(), 1.0), taken


def _seconds_to(
    problem: Benchmark, X: object, start: tuple[np.ndarray, np.ndarray], goal: float, limit: float
) -> float:
    """Seconds until our KL is not above the goal; infinite if it never is."""
    reached = [np.inf]

    def note(state: object) -> bool:
        if state.objective > goal:  # type: ignore[attr-defined]
            return False
        reached[0] = state.seconds  # type: ignore[attr-defined]
        return True

    settings = {"tol": 0, "max_iter": 10**6, "max_time": limit}
    model = CNMF(problem.K, problem.L, beta_loss=KL, callback=note, **settings)
    model.fit(X, components_init=start[0], activations_init=start[1])
    return reached[0]


# One iteration ----------------------------------------------------------------------------------


def iteration(smoke: bool, rounds: int) -> dict[str, float]:
    """Milliseconds of one KL iteration (published) and of its four bare products, two threads."""
    problem = counts(400 if smoke else 50_000, 20 if smoke else 250)
    products = harness.bare_products(problem.X, problem.K, problem.L, 2)

    def four() -> None:
        products()
        products()

    with harness.inner_threads(2) as workers:
        once = harness.ratio_iteration(problem.X, problem.K, problem.L, problem.start(0), workers)
        found = harness.median_milliseconds({"KL iteration": once, "four products": four}, rounds)
    ratio = found["KL iteration"] / found["four products"]
    print({name: round(value, 1) for name, value in found.items()}, f"ratio {ratio:.2f}")
    return found | {"ratio": ratio}


# Planted sequences ------------------------------------------------------------------------------


def planted(smoke: bool, sets: int) -> list[dict[str, object]]:
    """Share of true motifs found (cosine ≥ 0.9) in counts, by share of spikes in sequences.

    As a fit leaves them, which is blurred, and sharpened by ``refit_events``.
    """
    T, N, K, L = (300, 20, 2, 10) if smoke else (2000, 60, 3, 25)
    models = {
        "squared error": {},
        "KL": {"beta_loss": KL},
        "KL and background": {"beta_loss": KL, "background": True},
    }
    rows = []
    for share in (0.6, 0.3, 0.15):
        hits = {name: {"fitted": 0, "sharpened": 0} for name in models}
        for seed in range(sets):
            X, motifs = sequences(np.random.default_rng([17, seed]), T, N, K, L, share)
            for name, settings in models.items():
                model = CNMF(K, L, random_state=0, n_init=2, max_iter=200, tol=2e-3, **settings)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model.fit(X)
                    sharp = refit_events(model, X, random_state=0).motifs
                for form, those in (("fitted", model.components_), ("sharpened", sharp)):
                    similarity = np.asarray(match_motifs(motifs, those).similarity)
                    hits[name][form] += int(np.sum(similarity >= 0.9))
        row = {
            name: {form: hit / (K * sets) for form, hit in forms.items()}
            for name, forms in hits.items()
        }
        rows.append({"share": share, "sets": sets} | row)
        print(f"{share:.0%} of spikes in sequences:", row, flush=True)
    return rows


def sequences(
    rng: np.random.Generator, T: int, N: int, K: int, L: int, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """Counts (T, N) of which a share is in sequences, and the motifs (K, L, N) of unit norm."""
    motifs = np.zeros((K, L, N))
    lags = np.arange(L)
    for k in range(K):
        for n in rng.permutation(N)[: N // K]:
            motifs[k, :, n] = np.exp(-0.5 * (lags - rng.integers(2, L - 2)) ** 2)
    activations = (rng.random((T, K)) < 0.015).astype(float)
    rates = np.zeros((T, N))
    for lag in range(L):
        rates[lag:] += activations[: T - lag] @ motifs[:, lag]
    ongoing = rng.gamma(2.0, 0.5, N)
    ongoing *= rates.sum() * (1 - share) / share / (T * ongoing.sum())
    norms = np.linalg.norm(motifs.reshape(K, -1), axis=1)[:, None, None]
    return rng.poisson(rates + ongoing).astype(float), motifs / norms


# The page ---------------------------------------------------------------------------------------


def page(found: dict[str, object]) -> list[str]:
    """The section of the page of benchmarks."""
    said = (
        f"By `python benchmarks/losses.py --page` at commit {harness.commit_of(found)}, two cores."
    )
    lines = ["## Other losses", "", said]
    if found.get("race"):
        rows = [
            (
                row["problem"],
                f"{row['filled']:.0%}",
                f"{row['step_ms']:.0f}",
                f"{np.median(row['ratios']):.0f}",
                f"{min(row['ratios']):.0f}–{max(row['ratios']):.0f}",
            )
            for row in found["race"]  # type: ignore[attr-defined]
        ]
        head = ("problem", "not zero", "torchnmf, ms an iteration", "times sooner", "of the starts")
        lines += ["", "Kullback-Leibler: how many times sooner the loss is reached that torchnmf"]
        lines += ["has after 20 s, from the same start.", "", *harness.table(head, rows)]
        if any(min(row["ratios"]) == 0 for row in found["race"]):  # type: ignore[attr-defined]
            lines += ["", "0: not reached within 20 s, in a minimum higher than torchnmf's."]
    if found.get("agreement"):
        said = ", ".join(f"{gap:.0e} (β = {beta})" for beta, gap in found["agreement"].items())  # type: ignore[attr-defined]
        lines += ["", "Published multiplicative updates against torchnmf's, same start, double"]
        lines += [f"precision, 50 iterations: the loss curves differ by at most {said}."]
    if found.get("first update"):
        said = ", ".join(f"{gap:.0e} (β = {beta})" for beta, gap in found["first update"].items())  # type: ignore[attr-defined]
        lines += [f"The first update of motifs differs from libnmfd's by at most {said}; its later"]
        lines += ["ones are not the published ones (H by the ratio from before the update of W)."]
    if found.get("iteration"):
        one = found["iteration"]
        lines += ["", f"One iteration of KL takes {one['ratio']:.2f} times its four bare products"]  # type: ignore[index]
        lines += [f"({one['KL iteration']:.0f} against {one['four products']:.0f} ms)."]  # type: ignore[index]
    if found.get("planted"):
        names = ("squared error", "KL", "KL and background")
        rows = [
            (
                f"{row['share']:.0%}",
                *(f"{row[name]['fitted']:.0%}, {row[name]['sharpened']:.0%}" for name in names),
            )
            for row in found["planted"]  # type: ignore[attr-defined]
        ]
        sets = found["planted"][0]["sets"]  # type: ignore[index]
        lines += [
            "",
            f"Planted sequences in Poisson counts (2000 × 60, three motifs, {sets} data sets",
        ]
        lines += [
            "a row, better of two starts): share of true motifs found, cosine ≥ 0.9, as a fit"
        ]
        lines += ["leaves them, and sharpened by `refit_events`.", ""]
        lines += harness.table(("spikes in sequences", *names), rows)
    return lines


def main() -> None:
    """Measure what is asked for, and write it down."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}: all")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    options.parts = options.parts or PARTS
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {sorted(unknown)}")
    if options.smoke:
        options.starts, options.seconds, options.sets, options.rounds = 1, 0.2, 1, 1
    found: dict[str, object] = {"machine": harness.machine()}
    if RESULTS.exists() and not options.smoke:
        import json

        found = json.loads(RESULTS.read_text()) | found
    if "agreement" in options.parts:
        found["agreement"] = agreement(options.smoke)
        found["first update"] = first_update()
    if "race" in options.parts:
        found["race"] = race(options.smoke, options.starts, options.seconds)
    if "iteration" in options.parts:
        found["iteration"] = iteration(options.smoke, options.rounds)
    if "planted" in options.parts:
        found["planted"] = planted(options.smoke, options.sets)
    if options.page:
        harness.save(RESULTS, found)
        harness.write_section("losses", page(found))


if __name__ == "__main__":
    main()
