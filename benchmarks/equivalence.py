"""Final losses of this version against those of an older one, start by start.

``.venv/bin/python benchmarks/equivalence.py --old PATH [--starts 20] [--page]``, where PATH is the
source folder of the older version or the Python of an environment that has it. Both fit the same
data from the same ``random_state`` in turn, each in a process of its own that uses public names
only. Asked for are medians within 0.1 %, and no start that is worse by 1 %. The raw numbers go to
benchmarks/equivalence.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

# Rows: the problem, and what differs from the defaults of CNMF. To converge, speech would take too
# long: it is compared after as many iterations, and after as many seconds.
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "song": ("song", {}),
    "speech, 60 iterations": ("speech", {"max_iter": 60}),
    "speech, 4 s": ("speech", {"max_time": 4.0}),
    "synthetic-2500": ("synthetic-2500", {}),
    "sparse-10000": ("sparse-10000", {}),
}
MEDIAN, WORST = 1e-3, 1e-2
# The loss to reach is that of the older version's end, and so much more.
NEAR = 0.01


def serve() -> None:
    """Answer requests, one a line, as {"path", "K", "L", "seed", "settings"}, until they end."""
    from motifold import CNMF

    warnings.simplefilter("ignore")
    kept: dict[str, np.ndarray] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["path"] not in kept:
            kept = {asked["path"]: np.load(asked["path"])}
        X = kept[asked["path"]]
        settings = {"random_state": asked["seed"], **asked["settings"]}
        curve: list[tuple[float, float]] = []
        began = time.perf_counter()

        def note(state: Any, began: float = began, curve: Any = curve) -> bool:
            curve.append((time.perf_counter() - began, float(state.loss)))
            return False

        model = CNMF(asked["K"], asked["L"], callback=note, **settings).fit(X)
        answer = {
            "loss": float(model.loss_),
            "iterations": int(model.n_iter_),
            "reason": model.stop_reason_,
            "seconds": time.perf_counter() - began,
            "curve": curve,
        }
        print(json.dumps(answer), flush=True)


class Version:
    """A process that fits with one version of the package."""

    def __init__(self, path: Path | None) -> None:
        environment, python = os.environ.copy(), sys.executable
        if path is not None and path.is_dir():
            environment["PYTHONPATH"] = str(path.resolve())
        elif path is not None:
            # Not resolved: an environment's python is a link, and what it is called tells it where.
            python = str(path.absolute())
            environment.pop("PYTHONPATH", None)
        command = [python, __file__, "--serve"]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def fit(self, **asked: Any) -> dict[str, Any]:
        """The course of one fit."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("A version ended: its message is above.")
        return json.loads(answer)

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(
    row: str, versions: dict[str, Version], benchmark: Any, settings: dict[str, Any], starts: int
) -> dict[str, Any]:
    """The courses of both versions from every start, fits in turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.npy")
        np.save(path, benchmark.X)
        asked = {"path": path, "K": benchmark.K, "L": benchmark.L}
        for version in versions.values():  # compiles
            version.fit(**asked, seed=0, settings={"max_iter": 3})
        runs: dict[str, list[dict[str, Any]]] = {name: [] for name in versions}
        for seed in range(starts):
            for name, version in versions.items():
                runs[name].append(version.fit(**asked, seed=seed, settings=settings))
    return {"problem": row, "settings": settings, **runs}


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Medians, the worst start, and how much sooner the loss of the older version is near."""
    from harness import time_to

    old, new = result["old"], result["new"]
    ratios = [n["loss"] / o["loss"] for o, n in zip(old, new, strict=True)]
    sooner = []
    for o, n in zip(old, new, strict=True):
        aim = (1 + NEAR) * o["loss"]
        before, after = (time_to([*run["curve"], _end(run)], aim) for run in (o, n))
        sooner.append(before / after)
    old_median, new_median = (median(run["loss"] for run in runs) for runs in (old, new))
    return {
        "problem": result["problem"],
        "old": old_median,
        "new": new_median,
        "ratio": new_median / old_median,
        "worst": max(ratios),
        "worse": sum(ratio > 1 + WORST for ratio in ratios),
        "sooner": median(sooner),
        "missed": sum(value == 0 for value in sooner),
        "holds": new_median <= (1 + MEDIAN) * old_median and max(ratios) <= 1 + WORST,
    }


def _end(run: dict[str, Any]) -> tuple[float, float]:
    return run["seconds"], run["loss"]


def as_lines(rows: list[dict[str, Any]], starts: int) -> list[str]:
    """The table and what it is about."""
    from harness import table

    header = ("problem", "median before", "now", "now / before", "worst start", "starts worse")
    header += ("times sooner", "not reached", "holds")
    cells = [
        (
            row["problem"],
            f"{row['old']:.5f}",
            f"{row['new']:.5f}",
            f"{row['ratio']:.4f}",
            f"{row['worst']:.4f}",
            f"{row['worse']} of {starts}",
            f"{row['sooner']:.2f}",
            row["missed"],
            "yes" if row["holds"] else "no",
        )
        for row in rows
    ]
    about = (
        f"Worse: by more than {WORST:.0%}, from the same start. Times sooner: to {NEAR:.0%} above "
        f"the earlier version's last loss. Holds: the median within {MEDIAN:.1%}, no start worse."
    )
    return [*table(header, cells), "", about]


def main() -> None:
    """Compare, print, save."""
    if "--serve" in sys.argv:  # before anything that an older version may not have
        serve()
        return
    import harness
    from problems import SONGBIRD, SPEECH, load, shaped

    parser = harness.parser(__doc__, page=True)
    parser.add_argument("--old", type=Path, help="source folder or Python of the older version")
    parser.add_argument("--starts", type=int, default=20)
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    options = parser.parse_args()
    if not (options.old or options.smoke):
        parser.error("--old: which version to compare with?")
    absent = {"song": not SONGBIRD.exists(), "speech": not SPEECH.exists()}
    versions = {"old": Version(options.old), "new": Version(None)}
    try:
        if options.smoke:
            results = [compare("small", versions, shaped(200, 8, 2, 5), {"max_iter": 5}, 2)]
            print("\n".join(as_lines([summary(result) for result in results], 2)))
            return
        results = []
        for row in [row for row in options.rows if not absent.get(ROWS[row][0])]:
            name, settings = ROWS[row]
            results.append(compare(row, versions, load(name), settings, options.starts))
            print(summary(results[-1]), flush=True)
    finally:
        for version in versions.values():
            version.close()
    lines = as_lines([summary(result) for result in results], options.starts)
    print("\n".join(["", *lines]))
    for result in results:
        for run in [*result["old"], *result["new"]]:
            del run["curve"]
    harness.save(options.out, {"machine": harness.machine(), "results": results})
    if options.page:
        said = (
            f"Measured by `benchmarks/equivalence.py` at commit {harness.machine()['commit']} "
            f"against 0.1.0: {options.starts} starts, default settings but for the limits named."
        )
        harness.write_section("equivalence", ["## The same losses", "", said, "", *lines])


if __name__ == "__main__":
    main()
