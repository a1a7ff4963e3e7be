"""Made-up fits, whose courses are known."""

from __future__ import annotations

import numpy as np

from motifold.reproduce.runs import ACCELERATIONS, ALGORITHMS, Run


def course(time_constant: float, *, end: float = 10.0, first: float = 1.0, last: float = 0.1):
    """Seconds and loss of an exponential descent from ``first`` towards ``last``."""
    seconds = np.arange(0, end + 1e-9, 0.01)
    return seconds, last + (first - last) * np.exp(-seconds / time_constant)


def make_run(
    algorithm="HALS",
    time_constant=1.0,
    *,
    data="song",
    acceleration="published",
    seed=0,
    components=None,
    **options,
) -> Run:
    seconds, loss = course(time_constant, **options)
    if components is None:
        components = np.eye(6)[:3, None, :].repeat(2, axis=1)
    return Run(
        "songbird",
        data,
        algorithm,
        acceleration,
        seed,
        np.arange(len(loss)),
        seconds,
        loss,
        np.asarray(components, dtype=np.float32),
    )


def make_fits(constants: dict[str, float], *, data="song", seeds=3, **options) -> list[Run]:
    """A fit for each algorithm, form and seed; ``constants`` in the order of ALGORITHMS."""
    return [
        make_run(
            name,
            constants[name] * (1 + 0.05 * seed),
            data=data,
            acceleration=form,
            seed=seed,
            **options,
        )
        for name in ALGORITHMS
        for form in ACCELERATIONS
        for seed in range(seeds)
    ]
