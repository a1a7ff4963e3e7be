"""The paper's claims, each beside what the fits show. Every verdict is computed from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from motifold.reproduce.measures import (
    Ratio,
    Runs,
    is_harmonic,
    near_loss,
    progress_when_near,
    seconds_per_iteration,
    similarities,
    time_to,
    times_slower,
)
from motifold.reproduce.runs import ALGORITHMS, Run

_SIMILAR = 2.0  # times apart, up to which two algorithms count as similarly fast
_SLOWER = 1.2  # times, from which on one counts as slower at all
_CLEARLY = 2.0  # times, from which on it counts as clearly slower
_LITTLE = 0.25  # of the way: "little to no progress"
_ALIKE = 0.8  # median similarity of motifs that count as alike
_MOST = 0.5  # of the motifs, that are to be harmonic stacks
_HIGHEST_HZ = 4000.0  # of the speech spectrogram

# How the verdicts are reached, for the reader of the table.
RULES = (
    f"Times are *similar* up to a factor of {_SIMILAR:g}; MU is *clearly slower* from {_CLEARLY:g} "
    f"times on, and *slower* at all from {_SLOWER:g}; *about* a factor is from two thirds of it to "
    f"one and a half; *little progress* is up to {_LITTLE:.0%} of the way. Motifs are *alike* if "
    "their median similarity (cosine at the best shift, matched one to one) is at least "
    f"{_ALIKE:g} and above that of different motifs of one fit. The paper does not "
    "define these words: the limits are ours, set with first runs at hand, and factors depend on "
    "what counts as nearly converged."
)

RunsOf = dict[str, Runs]  # by the name of the data set


class Verdict(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    CHANGED = "changed"
    FAILS = "does not hold here"
    SHORT = "too short to tell"


@dataclass(frozen=True)
class Claim:
    """A row of the table: what the paper says, what was measured, the verdict."""

    experiment: str
    claim: str
    measured: str
    verdict: Verdict


def claims_of(experiment: str, runs: Sequence[Run]) -> list[Claim]:
    """The claims about one experiment, judged by its fits."""
    names = list(dict.fromkeys(run.data for run in runs))
    fits = {name: Runs([run for run in runs if run.data == name]) for name in names}
    return [Claim(experiment, *judge(fits)) for judge in _JUDGES[experiment]]


Judgement = tuple[str, str, Verdict]


# --- how to judge ---------------------------------------------------------------------------


def judge_ratio(ratio: Ratio, low: float, high: float) -> Verdict:
    """Whether MU is slower by a factor from ``low`` to ``high``; "changed" if by another one."""
    if ratio.value < _SLOWER and not ratio.at_least:
        return Verdict.FAILS
    if ratio.value > high or (ratio.value >= low and (not ratio.at_least or high == np.inf)):
        return Verdict.HOLDS if ratio.value <= high else Verdict.CHANGED
    # A bound below the range: the true factor may lie anywhere above it.
    return Verdict.SHORT if ratio.at_least else Verdict.CHANGED


def judge_similar(ratios: Sequence[Ratio]) -> Verdict:
    """Whether the times are alike, up to a factor."""
    if any(not 1 / _SIMILAR <= ratio.value <= _SIMILAR for ratio in ratios):
        return Verdict.FAILS
    return Verdict.SHORT if any(ratio.at_least for ratio in ratios) else Verdict.HOLDS


def judge_growth(first: Ratio, last: Ratio) -> Verdict:
    """Whether the last factor is larger than the first; a bound may leave it open."""
    if first.at_least:
        return Verdict.SHORT
    if last.value > _SLOWER * first.value:
        return Verdict.HOLDS
    return Verdict.SHORT if last.at_least else Verdict.FAILS


def _slowness(fits: Runs) -> tuple[Ratio, Ratio, str]:
    """How much slower MU is than HALS and than ANLS, and both as text."""
    hals, anls = fits.slower("MU", "HALS"), fits.slower("MU", "ANLS")
    return hals, anls, f"MU takes {hals} the time of HALS and {anls} that of ANLS"


def _worse(a: Verdict, b: Verdict) -> Verdict:
    order = (Verdict.HOLDS, Verdict.CHANGED, Verdict.SHORT, Verdict.FAILS)
    return max(a, b, key=order.index)


def _settled(fits: Runs, algorithms: Sequence[str] = ("HALS", "ANLS")) -> bool:
    return all(fits.settled(algorithm) for algorithm in algorithms)


def _about(factor: float) -> tuple[float, float]:
    """What still counts as "about" a factor: from two thirds of it to one and a half."""
    return factor / 1.5, factor * 1.5


# --- synthetic ------------------------------------------------------------------------------


def _similar_at(T: int) -> Callable[[RunsOf], Judgement]:
    def judge(fits: RunsOf) -> Judgement:
        of = fits[f"T{T}"]
        hals, anls, measured = _slowness(of)
        verdict = judge_similar((hals, anls))
        if not _settled(of):
            verdict = Verdict.SHORT
        return f"T = {T}: all three algorithms perform similarly", measured, verdict

    return judge


def _slower_at_10000(fits: RunsOf) -> Judgement:
    of = fits["T10000"]
    hals, anls, measured = _slowness(of)
    verdict = _worse(*(judge_ratio(ratio, _CLEARLY, np.inf) for ratio in (hals, anls)))
    if not _settled(of):
        verdict = Verdict.SHORT
    return "T = 10000: MU takes significantly longer to converge", measured, verdict


def _far_behind_at_50000(fits: RunsOf) -> Judgement:
    of = fits["T50000"]
    hals, anls, measured = _slowness(of)
    made = {
        quick: median(
            progress_when_near(slow, fast)
            for slow, fast in zip(of.of("MU"), of.of(quick), strict=True)
        )
        for quick in ("HALS", "ANLS")
    }
    measured += (
        f"; it has made {made['HALS']:.0%} of the way when HALS has nearly converged, and "
        f"{made['ANLS']:.0%} when ANLS has. {_mu_arrives(of)}"
    )
    little = max(made.values()) <= _LITTLE
    arrives = all(time_to(mu, _near_of(of, mu.seed)) < np.inf for mu in of.of("MU"))
    slower = min(hals.value, anls.value) >= _CLEARLY
    verdict = Verdict.FAILS
    if little and not arrives:
        verdict = Verdict.HOLDS
    elif slower:  # behind, but it gets there
        verdict = Verdict.CHANGED
    if not _settled(of):
        verdict = Verdict.SHORT
    claim = (
        "T = 50000: MU makes little to no progress in the time allotted (1000 s), while HALS and "
        "ANLS rapidly converge"
    )
    return claim, measured, verdict


def _near_of(fits: Runs, seed: int) -> float:
    """The loss at which HALS, from this start, has nearly converged."""
    (run,) = (run for run in fits.of("HALS") if run.seed == seed)
    return near_loss(run)


def _mu_arrives(fits: Runs) -> str:
    """When MU gets to where HALS has nearly converged, and what its iterations cost."""
    times = [time_to(run, _near_of(fits, run.seed)) for run in fits.of("MU")]
    arrived = [seconds for seconds in times if seconds < np.inf]
    if arrived:
        text = f"MU gets there in {len(arrived)} of {len(times)} fits, after {min(arrived):.2g}"
        text += f" to {max(arrived):.2g} s" if len(arrived) > 1 else " s"
    else:
        limit = median(float(run.seconds[-1]) for run in fits.of("MU"))
        text = f"MU does not get there in its {limit:.2g} s"
    costs = ", ".join(
        f"{name} {1000 * seconds_per_iteration(fits.of(name)):.3g} ms" for name in ALGORITHMS
    )
    return f"{text} (one iteration: {costs})"


def _grows_with_size(fits: RunsOf) -> Judgement:
    names = ("T500", "T2500", "T10000", "T50000")
    ratios = [fits[name].slower("MU", "HALS") for name in names]
    listed = ", ".join(f"{ratio} at {name[1:]}" for ratio, name in zip(ratios, names, strict=True))
    verdict = judge_growth(ratios[0], ratios[-1])
    if not all(_settled(fits[name]) for name in (names[0], names[-1])):
        verdict = Verdict.SHORT
    claim = "The advantage of HALS and ANLS over MU grows with the size of the data"
    return claim, f"MU takes, in times of HALS: {listed}", verdict


# --- songbird and speech --------------------------------------------------------------------


def _factor(data: str, factor: float, claim: str) -> Callable[[RunsOf], Judgement]:
    def judge(fits: RunsOf) -> Judgement:
        of = fits[data]
        hals, anls, measured = _slowness(of)
        verdict = _worse(*(judge_ratio(ratio, *_about(factor)) for ratio in (hals, anls)))
        if not _settled(of):
            verdict = Verdict.SHORT
        return claim, f"{measured}. {_mu_arrives(of)}", verdict

    return judge


def _hals_and_anls(data: str) -> Callable[[RunsOf], Judgement]:
    def judge(fits: RunsOf) -> Judgement:
        of = fits[data]
        ratio = of.slower("ANLS", "HALS")
        verdict = judge_similar((ratio,))
        if not _settled(of):
            verdict = Verdict.SHORT
        return "HALS and ANLS perform similarly", f"ANLS takes {ratio} the time of HALS", verdict

    return judge


def _alike(data: str) -> Callable[[RunsOf], Judgement]:
    def judge(fits: RunsOf) -> Judgement:
        of = fits[data]
        found = {name: similarities(of.of(name), of.of("HALS")) for name in ("MU", "ANLS")}
        measured = "similarity to the motifs of HALS, median (least): " + ", ".join(
            f"{name} {score.median:.2f} ({score.matched.min():.2f})"
            for name, score in found.items()
        )
        neighbour = found["MU"].neighbour
        measured += f"; of a motif to the likest other of its own fit: {neighbour:.2f}"
        alike = all(score.median >= max(_ALIKE, neighbour) for score in found.values())
        verdict = Verdict.HOLDS if alike else Verdict.FAILS
        if not _settled(of, ALGORITHMS):
            verdict = Verdict.SHORT
        return "All algorithms find perceptually similar components", measured, verdict

    return judge


def _harmonic_stacks(fits: RunsOf) -> Judgement:
    shares = {}
    for name in ALGORITHMS:
        motifs = np.concatenate([run.components for run in fits["digits"].of(name)])
        frequencies = np.linspace(0, _HIGHEST_HZ, motifs.shape[2])
        shares[name] = float(np.mean([is_harmonic(motif, frequencies) for motif in motifs]))
    listed = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    verdict = Verdict.HOLDS if min(shares.values()) >= _MOST else Verdict.FAILS
    if not _settled(fits["digits"], ALGORITHMS):
        verdict = Verdict.SHORT
    claim = "The components are harmonic stacks: horizontal bands, the harmonics of speech"
    return claim, f"motifs whose spectrum repeats at a man's pitch: {listed}", verdict


def _consistent(*names: str) -> Callable[[RunsOf], Judgement]:
    def judge(fits: RunsOf) -> Judgement:
        ahead = [
            min(times_slower(mu, quick).value for quick in quicks) > 1
            for name in names
            for mu, *quicks in zip(
                *(fits[name].of(algorithm) for algorithm in ALGORITHMS), strict=True
            )
        ]
        where = f" (T = {' and '.join(name[1:] for name in names)})" if len(names) > 1 else ""
        measured = f"HALS and ANLS are both ahead of MU in {sum(ahead)} of {len(ahead)} starts"
        verdict = Verdict.HOLDS if all(ahead) else Verdict.FAILS
        if not all(_settled(fits[name]) for name in names):
            verdict = Verdict.SHORT
        claim = "The effect occurs consistently regardless of random initialisation"
        return claim, measured + where, verdict

    return judge


_JUDGES: dict[str, tuple[Callable[[RunsOf], Judgement], ...]] = {
    "synthetic": (
        _similar_at(500),
        _similar_at(2500),
        _slower_at_10000,
        _far_behind_at_50000,
        _grows_with_size,
        _consistent("T10000", "T50000"),
    ),
    "songbird": (
        _factor(
            "song",
            3,
            "HALS and ANLS have nearly converged when MU needs about three times as long for the "
            "same loss, and does not converge in 60 s",
        ),
        _hals_and_anls("song"),
        _alike("song"),
        _consistent("song"),
    ),
    "speech": (
        _factor("digits", 5, "HALS and ANLS converge about five times faster than MU"),
        _alike("digits"),
        _harmonic_stacks,
        _consistent("digits"),
    ),
}
