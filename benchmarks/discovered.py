"""What ``motifold.discover`` says of recordings with a known answer (regimes.py).

``python benchmarks/discovered.py runs.jsonl --sets 20`` measures, one recording after another, and
goes on where it was stopped; ``--design`` takes seeds on which rules may be chosen. What they come
to is kept in ``findings.json``, of which ``findings.py --page`` makes the table.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import regimes
from findings_page import keep
from scipy.optimize import nnls

import motifold
from motifold.matching import match_motifs

_TOLERANCE = 3  # bins
_SAME = 0.5  # similarity from which a motif counts as the planted one


def matched(found: np.ndarray, true: np.ndarray) -> int:
    """How many found bins have a true one of their own nearby."""
    free, hits = sorted(true.tolist()), 0
    for bin_ in sorted(found.tolist()):
        near = [t for t in free if abs(t - bin_) <= _TOLERANCE]
        if near:
            free.remove(min(near, key=lambda t: abs(t - bin_)))
            hits += 1
    return hits


def least_squares(made: regimes.Made) -> list[float]:
    """Similarity of motifs by least squares with the true times to the planted ones."""
    (T, N), (K, L, _) = made.X.shape, made.motifs.shape
    D = np.zeros((T, K * L + 1))
    D[:, -1] = 1  # a background
    for k, bins in enumerate(made.events):
        for lag in range(L):
            D[bins + lag, k * L + lag] = 1
    G = D.T @ D
    R = np.linalg.cholesky(G + 1e-3 * np.trace(G) / len(G) * np.eye(len(G)))
    Q = np.linalg.solve(R, D.T @ made.X)
    W = np.stack([nnls(R.T, Q[:, n])[0] for n in range(N)], axis=1)
    return match_motifs(made.motifs, W[:-1].reshape(K, L, N)).similarity.tolist()


def measure(name: str, seed: int) -> dict[str, Any]:
    """One recording: verdicts and, where motifs were planted, how they and their events match."""
    made = regimes.make(name, seed)
    began, cpu = time.perf_counter(), time.process_time()
    found = motifold.discover(made.X, n_lags=regimes.L, random_state=seed, n_jobs=1, progress=False)
    row: dict[str, Any] = {
        "regime": name,
        "seed": seed,
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "verdicts": found.verdicts,
        "n_components": found.n_components,
        "p_order": found.p_order.tolist(),
    }
    if not made.events:
        return row
    K = len(made.events)
    events = found.events
    hits, n_found, n_true = 0, len(events), sum(map(len, made.events))
    similarity, sequences = [0.0] * K, 0
    if len(found.motifs):
        match = match_motifs(made.motifs, found.motifs)
        similarity = match.similarity.tolist()
        for k, j in enumerate(match.order):
            if j < 0 or similarity[k] < _SAME:
                continue
            sequences += found.verdicts[j] == "sequence"
            bins = events.where(motif=int(j))["bin"].astype(int) - match.shift[k]
            hits += matched(bins, made.events[k])
    row |= {
        "sequences": sequences,
        "similarity": similarity,
        "least_squares": least_squares(made),
        "hits": hits,
        "found": n_found,
        "true": n_true,
    }
    return row


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One record for each regime."""
    out = []
    for name in (*regimes.PLANTED, *regimes.NULLS):
        mine = [row for row in rows if row["regime"] == name]
        if not mine:
            continue
        record: dict[str, Any] = {
            "regime": name,
            "sets": len(mine),
            "planted": name in regimes.PLANTED,
            "seconds": float(np.median([row["cpu_seconds"] for row in mine])),
        }
        if name in regimes.PLANTED:
            K = len(mine[0]["similarity"])
            good = [
                all(
                    a >= 0.9 * b
                    for a, b in zip(row["similarity"], row["least_squares"], strict=True)
                )
                for row in mine
            ]
            hits, n_found, n_true = (
                sum(row[key] for row in mine) for key in ("hits", "found", "true")
            )
            record |= {
                "sequences": sum(row["sequences"] for row in mine),
                "motifs": K * len(mine),
                "k_right": sum(row["n_components"] == K for row in mine),
                "shapes": sum(good),
                "similarity": float(np.mean([row["similarity"] for row in mine])),
                "least_squares": float(np.mean([row["least_squares"] for row in mine])),
                "precision": hits / max(n_found, 1),
                "recall": hits / n_true,
            }
        else:
            record |= {
                "false_runs": sum(row["n_components"] > 0 for row in mine),
                "synchrony": sum("synchrony" in row["verdicts"] for row in mine),
            }
        out.append(record)
    return out


def main() -> None:
    """Measure what is missing, and write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="?", default=Path("discover.jsonl"))
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--design", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="two recordings, nothing written")
    options = parser.parse_args()
    if options.smoke:
        print(summary([measure("independent", 0), measure("noise .1", 0)]))
        return
    rows = []
    if options.runs.exists():
        rows = [json.loads(line) for line in options.runs.read_text().splitlines()]
    done = {(row["regime"], row["seed"]) for row in rows}
    first = 0 if options.design else regimes.REPORT
    for i in range(options.sets):  # all regimes grow together
        for name in (*regimes.NULLS, *regimes.PLANTED):
            if (name, first + i) not in done:
                rows.append(measure(name, first + i))
                with options.runs.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
    if not options.design:
        seconds = [record["seconds"] for record in summary(rows)]
        keep("discover", {"rows": summary(rows), "seconds": [min(seconds), max(seconds)]})
    for record in summary(rows):
        print(record)


if __name__ == "__main__":
    main()
