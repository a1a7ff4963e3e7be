"""From measured excerpts to the whole: a small cost model, fitted by about a second of work.

An iteration takes ``a + b·T`` seconds: sweeps of the motifs, Grams and calls do not grow with T,
all else does. Both are fitted to excerpts of several lengths, by their relative errors. How many
iterations a fit needs hardly depends on T, so that excerpts which are fitted to the end tell it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from motifold.data.memory import available_bytes, told
from motifold.data.sources import is_stored
from motifold.engines.cpu.spectral import slower
from motifold.engines.demand import Demand, is_mapped
from motifold.fit.clock import Clock
from motifold.forecast.estimate import Estimate
from motifold.forecast.excerpts import Whole, taken
from motifold.forecast.pilots import Pilot, probe, whole_fit

# The shortest excerpt: lags, and bins. Bytes of the longest.
_LEAST_LAGS, _LEAST_BINS, _MOST_BYTES = 20, 500, 2**28
# Excerpts grow so many times at most; whole fits have this share of the time.
_GROWTH, _TO_THE_END = 4, 0.5
# What a probe takes, in iterations: the first with its start on a part, and some more.
_PROBE = 12
# Bytes that are read to see how fast that is, and passes over X in an iteration.
_READ, _PASSES = 2**25, 2
# Bytes of the room for rows on disk that those which are read ahead take, or half of it.
_AHEAD = 2**27
# Of its limit of time, what a fit may take beyond it for its last solve.
_GRACE = 1.1


@dataclass(frozen=True)
class Where:
    """Where a fit takes place.

    Attributes
    ----------
    engine : in words
    n_threads : of it, None where that is not known
    demand : of this machine's memory
    room : bytes for rows of a recording on disk
    device_memory, device_room : bytes that it takes on a GPU, and that X may take there
    local : whether threads of this process compute
    """

    engine: str
    n_threads: int | None
    demand: Demand
    room: int | None = None
    device_memory: int | None = None
    device_room: int | None = None
    local: bool = True


def foretold(model: Any, whole: Whole, where: Where, seconds: float) -> Estimate:
    """The estimate for ``model.fit`` of all this; ``seconds`` of work are measured, about."""
    T, L = whole.T, int(model.n_lags)
    least = min(T, max(_LEAST_LAGS * L, _LEAST_BINS))
    probe(model, whole.excerpt(least, L), 0.0)  # loads what is compiled, or compiles it
    clock = Clock(seconds)
    pilots = _to_the_end(model, whole, least, Clock(_TO_THE_END * seconds))
    probes = _at_length(model, whole, pilots[-1], clock)
    measured_seconds = clock.seconds
    if pilots[-1].n_samples >= T and pilots[-1].end is not None:
        pilots = pilots[-1:]  # it was the fit itself
    found = [*pilots, *probes]
    longest = max(found, key=lambda pilot: pilot.n_samples)
    iteration = _iteration(model, whole, where, found, longest)
    reading, from_disk = _reading(whole, where, iteration)
    n_iter = _iterations(model, found)
    # The start of a fit and its last solve grow like its iterations.
    ends = [pilot.end / pilot.iteration for pilot in pilots if pilot.end is not None]
    beside = longest.first / longest.iteration + (ends[-1] if ends else 0.0)
    uneven = max(1.0, pilots[-1].mean / pilots[-1].iteration)
    start = (beside + (n_iter - 1) * uneven) * iteration + n_iter * reading
    fit = start * int(model.n_init)
    notes = list(_notes(whole, where, found, from_disk))
    if model.max_time is not None and fit > model.max_time:
        fit = min(fit, _GRACE * model.max_time)
        notes.append(f"max_time ends it; {model.max_time:g} s are its limit.")
    available = available_bytes()
    if where.demand.total > available:
        notes.append(where.demand.advice)
    return Estimate(
        n_samples=T,
        n_features=whole.N,
        n_segments=len(whole.lengths),
        n_components=model.n_components,
        n_lags=L,
        dtype=str(whole.dtype),
        engine=where.engine,
        n_threads=where.n_threads,
        iteration_seconds=iteration + reading,
        n_iter=n_iter,
        n_starts=int(model.n_init),
        fit_seconds=fit,
        memory=where.demand.total,
        available=available,
        device_memory=where.device_memory,
        read=int(_PASSES * whole.entries * (whole.dtype.itemsize + 4 * whole.sparse)),
        read_from_disk=from_disk,
        measured_samples=longest.n_samples,
        measured_seconds=measured_seconds,
        notes=tuple(notes),
    )


# --- measuring ----------------------------------------------------------------------------------


def _to_the_end(model: Any, whole: Whole, least: int, clock: Clock) -> list[Pilot]:
    """Fits of longer and longer excerpts while there is time."""
    L, bins, found = int(model.n_lags), least, []
    while True:
        found.append(whole_fit(model, whole.excerpt(bins, L), clock.left))
        ended = found[-1].end is not None
        bins = min(whole.T, max(bins + 1, min(_GROWTH * bins, _affordable(found[-1], clock))))
        if not ended or clock.expired or found[-1].n_samples >= bins or bins < 1.5 * least:
            return found
        least = bins


def _affordable(pilot: Pilot, clock: Clock) -> int:
    """Bins of a fit that takes the time that is left, if its time grows as they do."""
    return int(pilot.n_samples * clock.left / max(pilot.total, 1e-6))


def _at_length(model: Any, whole: Whole, last: Pilot, clock: Clock) -> list[Pilot]:
    """Some iterations of longer and longer excerpts while there is time."""
    most = max(last.n_samples, int(_MOST_BYTES / (whole.N * whole.dtype.itemsize)))
    found: list[Pilot] = []
    while True:
        cost = _PROBE * last.iteration
        growth = min(_GROWTH**2, clock.left / max(cost, 1e-6))
        if not found:  # two lengths are needed
            growth = max(growth, 2)
        bins = min(whole.T, most, int(growth * last.n_samples))
        if bins <= (1 if growth == 2 else 1.5) * last.n_samples:
            return found
        last = probe(model, whole.excerpt(bins, int(model.n_lags)), 0.5 * clock.left)
        found.append(last)


# --- the cost model -----------------------------------------------------------------------------


def _iteration(
    model: Any, whole: Whole, where: Where, pilots: list[Pilot], longest: Pilot
) -> float:
    """Seconds of an iteration on all of the recording."""
    fixed, each = _line(pilots)
    iteration = fixed + each * whole.T
    if where.local and not whole.sparse and model.beta_loss == "frobenius":
        K = int(model.n_components) + bool(model.background)
        shape = K, int(model.n_lags), whole.dtype.itemsize
        more = slower(whole.N, whole.T, longest.n_samples, *shape) / (where.n_threads or 1)
        iteration = max(iteration + whole.T * more, 0.5 * iteration)
    return iteration


def _line(pilots: list[Pilot]) -> tuple[float, float]:
    """Seconds of an iteration: those that do not depend on T, and those of each bin."""
    bins, taken_for_one = np.array([[pilot.n_samples, pilot.iteration] for pilot in pilots]).T
    columns = np.column_stack([1 / taken_for_one, bins / taken_for_one])
    sizes = columns.max(axis=0)
    found, _ = nnls(columns / sizes, np.ones(len(bins)))
    fixed, each = found / sizes
    return float(fixed), float(each)


def _iterations(model: Any, pilots: list[Pilot]) -> int:
    """Of a typical start: the geometric mean over excerpts that came to their end, or over all.

    As far as ``max_iter`` lets it go.
    """
    if model.tol <= 0:
        return int(model.max_iter)
    ended = [pilot for pilot in pilots if pilot.end is not None]
    known = [pilot.n_iter for pilot in ended or pilots if pilot.n_iter is not None]
    known = [min(n, model.max_iter) for n in known] or [model.max_iter]
    return max(1, round(math.exp(np.mean(np.log(np.maximum(known, 1))))))


def _reading(whole: Whole, where: Where, computing: float) -> tuple[float, int]:
    """Seconds that reading adds to an iteration, and the bytes that it reads from the disk.

    Rows are read ahead, while others are computed with, as far as there are cores for both.
    """
    seconds = nbytes = 0.0
    for X in whole.stored:
        T, N = X.shape
        size = np.dtype(X.dtype).itemsize
        kept = min(size, whole.dtype.itemsize)
        room = (where.room or 0) / len(whole.stored)
        room -= min(0.5 * room, _AHEAD)
        share = max(0.0, 1 - room / (T * N * kept))
        seconds += _PASSES * share * T * _seconds_of_a_row(X) if share else 0.0
        nbytes += _PASSES * share * T * N * size
    if not where.local:
        return 0.0, 0  # each worker has its part in memory
    together = max(computing, seconds) + min(computing, seconds) / (where.n_threads or 1)
    return together - computing, int(nbytes)


def _seconds_of_a_row(X: Any) -> float:
    """To read it, in whole chunks from the middle."""
    T, N = X.shape
    chunks = getattr(X, "shards", None) or getattr(X, "chunks", None)
    chunk = chunks[0] if chunks and isinstance(chunks[0], int) else 1
    rows = max(1, int(_READ / (N * np.dtype(X.dtype).itemsize)) // chunk) * chunk
    first = T // 2 // chunk * chunk
    clock = Clock()
    taken(X, first, min(T, first + rows))
    return clock.seconds / (min(T, first + rows) - first)


def _notes(whole: Whole, where: Where, pilots: list[Pilot], from_disk: int) -> Iterator[str]:
    if not any(pilot.end is not None for pilot in pilots):
        yield (
            "no excerpt was fitted to its end in this time: the number of iterations is a guess. "
            "Give more seconds."
        )
    available = available_bytes()
    mapped = sum(part.nbytes for part in whole.parts if not is_stored(part) and is_mapped(part))
    if mapped > available:
        yield (
            f"X is mapped and larger ({told(mapped)}) than what is available: it is read from the "
            "disk in every pass, whose time is not in these numbers."
        )
    nbytes = whole.entries * whole.dtype.itemsize
    if where.device_room is not None and nbytes > where.device_room:
        yield (
            f"X ({told(nbytes)}) does not fit into the {told(where.device_room)} that it may take "
            "on the GPU: it is streamed from the host, whose time is not in these numbers."
        )
    if from_disk:
        yield "reading was timed once, and what was read lately may be in memory still."
