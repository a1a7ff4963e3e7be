"""One accelerated iteration over the number of threads, with the bare products beside it.

``.venv/bin/python benchmarks/threads.py [--threads 1 2 4 8 16] [--million] [--page]``. It needs no
network and no recordings: where speech is absent, made-up data of its shape stands for it. The mark
is that of the bits of both factors after the iteration; it is the same for all numbers of threads.
``--million`` adds a million bins (3 GB).
"""

from __future__ import annotations

import os
from typing import Any

import harness
from problems import Benchmark, load, shaped

PROBLEMS = ["synthetic-50000", "speech-shape"]
# So many iterations come first, so that activations have their zeros.
AFTER = 6


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure(benchmark: Benchmark, threads: int, rounds: int, after: int) -> dict[str, Any]:
    """Milliseconds of the bare products and of one iteration, their ratio, and the mark."""
    X, K, L = benchmark.X, benchmark.K, benchmark.L
    W, H = benchmark.start(0)
    with harness.inner_threads(threads) as workers:
        problem = harness.inner_problem(X, K, L)
        step = harness.iteration(problem, W, H, workers, accelerated=True, after=after)
        rivals = {"products": harness.bare_products(X, K, L, threads), "iteration": step}
        times = harness.median_milliseconds(rivals, rounds)
        mark = harness.fingerprint(step())
    ratio = times["iteration"] / times["products"]
    return {"problem": benchmark.name, "threads": threads, **times, "ratio": ratio, "mark": mark}


def as_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The table, and whether the bits are the same."""
    cells = [
        (
            row["problem"],
            row["threads"],
            f"{row['products']:.1f}",
            f"{row['iteration']:.1f}",
            f"{row['ratio']:.2f}",
            f"`{row['mark']}`",
        )
        for row in rows
    ]
    marks: dict[str, set[str]] = {}
    for row in rows:
        marks.setdefault(row["problem"], set()).add(row["mark"])
    differ = [name for name, found in marks.items() if len(found) > 1]
    said = f"Bits differ on {', '.join(differ)}." if differ else "The bits are the same."
    header = ("problem", "threads", "products", "iteration", "ratio", "bits")
    return [*harness.table(header, cells), "", said]


def main() -> None:
    """Print the table, write the section."""
    parser = harness.parser(__doc__, page=True)
    at_most = cores()
    some = [n for n in (1, 2, 4, 8, 16) if n <= at_most]
    parser.add_argument("--threads", type=int, nargs="+", default=some)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    names = options.problems + ["million"] * options.million
    after = AFTER
    if options.smoke:
        names, options.rounds, after = [""], 1, 1
    rows = []
    for name in names:
        benchmark = load(name) if name else shaped(400, 8, 2, 5)
        for threads in options.threads:
            rows.append(measure(benchmark, threads, options.rounds, after))
            print(
                "  ".join(f"{key} {_short(value)}" for key, value in rows[-1].items()), flush=True
            )
    lines = as_lines(rows)
    print("\n".join(["", *lines]))
    if options.page and not options.smoke:
        info = harness.machine()
        head = (
            f"Measured by `benchmarks/threads.py --page` at commit {info['commit']} on "
            f"{at_most} cores: milliseconds of one accelerated iteration, and of the two bare "
            "matrix products with as many BLAS threads, single precision."
        )
        harness.write_section("threads", ["## Threads", "", head, "", *lines])


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
