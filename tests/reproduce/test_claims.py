"""Measures and verdicts, from fits whose courses are known."""

from __future__ import annotations

import numpy as np
import pytest
from courses import make_fits, make_run

from motifold.reproduce.claims import (
    Verdict,
    claims_of,
    judge_growth,
    judge_ratio,
    judge_similar,
)
from motifold.reproduce.measures import (
    Ratio,
    Runs,
    harmonicity,
    median_ratio,
    near_loss,
    progress_when_near,
    similarities,
    time_to,
    times_slower,
)

NEAR = 0.95
TAU = -np.log(1 - NEAR)  # time constants until an exponential descent is nearly done


def test_near_loss_and_the_time_to_it():
    run = make_run(time_constant=0.5)
    assert near_loss(run) == pytest.approx(0.1 + 0.05 * 0.9, abs=1e-6)
    assert time_to(run, near_loss(run)) == pytest.approx(0.5 * TAU, abs=0.011)
    assert time_to(run, 0.05) == np.inf
    assert time_to(run, 1.0) == 0


def test_times_slower():
    quick = make_run(time_constant=0.5)
    assert times_slower(make_run(time_constant=1.5), quick).value == pytest.approx(3, rel=0.02)
    assert times_slower(quick, quick) == Ratio(1.0)
    never = times_slower(make_run(time_constant=50), quick)
    assert never.at_least
    assert never.value == pytest.approx(10 / (0.5 * TAU), rel=0.02)
    assert str(never).startswith("more than 6.")


def test_median_of_ratios_keeps_bounds():
    at_least = Ratio(2.0, at_least=True)
    assert median_ratio([at_least, Ratio(3.0), Ratio(4.0)]) == Ratio(4.0)
    assert median_ratio([at_least, at_least, Ratio(4.0)]) == at_least
    assert median_ratio([Ratio(1.0), Ratio(5.0)]) == Ratio(1.0)


def test_progress_of_the_slow_one():
    quick, slow = make_run(time_constant=0.5), make_run(time_constant=1.5)
    assert progress_when_near(slow, quick) == pytest.approx(1 - np.exp(-TAU / 3), abs=0.01)


def test_settled():
    assert Runs([make_run(time_constant=1.0)]).settled("HALS")
    assert not Runs([make_run(time_constant=5.0)]).settled("HALS")


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(3.0), Verdict.HOLDS),
        (Ratio(2.1), Verdict.HOLDS),
        (Ratio(1.5), Verdict.CHANGED),
        (Ratio(9.0), Verdict.CHANGED),
        (Ratio(1.0), Verdict.FAILS),
        (Ratio(0.2), Verdict.FAILS),
        (Ratio(9.0, at_least=True), Verdict.CHANGED),
        (Ratio(3.0, at_least=True), Verdict.SHORT),
        (Ratio(1.1, at_least=True), Verdict.SHORT),
    ],
)
def test_a_factor_of_about_three(ratio, verdict):
    assert judge_ratio(ratio, 2.0, 4.5) is verdict


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(2.5), Verdict.HOLDS),
        (Ratio(250, at_least=True), Verdict.HOLDS),
        (Ratio(1.5), Verdict.CHANGED),
        (Ratio(1.5, at_least=True), Verdict.SHORT),
        (Ratio(1.0), Verdict.FAILS),
    ],
)
def test_clearly_slower(ratio, verdict):
    assert judge_ratio(ratio, 2.0, np.inf) is verdict


def test_bounds_leave_similarity_and_growth_open():
    bound = Ratio(1.8, at_least=True)
    assert judge_similar([Ratio(0.6), Ratio(1.9)]) is Verdict.HOLDS
    assert judge_similar([Ratio(0.4)]) is Verdict.FAILS
    assert judge_similar([Ratio(1.0), bound]) is Verdict.SHORT
    assert judge_similar([Ratio(2.5, at_least=True), bound]) is Verdict.FAILS
    assert judge_growth(Ratio(1.0), bound) is Verdict.HOLDS
    assert judge_growth(Ratio(1.7), bound) is Verdict.SHORT
    assert judge_growth(bound, Ratio(9.0)) is Verdict.SHORT
    assert judge_growth(Ratio(1.7), Ratio(1.8)) is Verdict.FAILS


def verdicts(experiment: str, runs) -> list[Verdict]:
    return [claim.verdict for claim in claims_of(experiment, runs)]


def test_songbird_as_in_the_paper():
    runs = make_fits({"MU": 1.5, "HALS": 0.5, "ANLS": 0.55})
    claims = claims_of("songbird", runs)
    assert [claim.verdict for claim in claims] == [Verdict.HOLDS] * 4
    assert "MU takes 3× the time of HALS" in claims[0].measured
    assert "MU gets there in 3 of 3 fits" in claims[0].measured
    assert "MU 10 ms, HALS 10 ms, ANLS 10 ms" in claims[0].measured
    assert "MU 1.00 (1.00), ANLS 1.00 (1.00)" in claims[2].measured
    assert "3 of 3 starts" in claims[3].measured


def test_songbird_otherwise():
    assert verdicts("songbird", make_fits({"MU": 0.5, "HALS": 0.5, "ANLS": 1.5})) == [
        Verdict.FAILS,  # MU is no slower
        Verdict.FAILS,  # ANLS and HALS differ
        Verdict.HOLDS,
        Verdict.FAILS,
    ]
    assert (
        verdicts("songbird", make_fits({"MU": 8.0, "HALS": 4.0, "ANLS": 4.0}))
        == [Verdict.SHORT] * 4
    )


def test_components_that_differ():
    runs = make_fits({"MU": 1.5, "HALS": 0.5, "ANLS": 0.5})
    other = np.eye(6)[3:, None, :].repeat(2, axis=1)
    differing = [
        make_run("ANLS", 0.5, seed=run.seed, acceleration=run.acceleration, components=other)
        if run.algorithm == "ANLS"
        else run
        for run in runs
    ]
    claim = claims_of("songbird", differing)[2]
    assert claim.verdict is Verdict.FAILS
    assert "ANLS 0.00 (0.00)" in claim.measured


def test_similarities_have_a_scale():
    components = np.zeros((2, 3, 4))
    components[0, 0, 0] = components[1, 2, 0] = 1  # the same motif, but for a shift
    runs = [make_run(components=components)]
    found = similarities(runs, runs)
    assert found.median == pytest.approx(1)
    assert found.neighbour == pytest.approx(1)


def synthetic(constants_by_size: dict[int, dict[str, float]]):
    return [
        run
        for T, constants in constants_by_size.items()
        for run in make_fits(constants, data=f"T{T}")
    ]


def test_synthetic_as_in_the_paper():
    same = {"MU": 0.5, "HALS": 0.5, "ANLS": 0.5}
    runs = synthetic(
        {
            500: same,
            2500: same,
            10000: {"MU": 1.5, "HALS": 0.5, "ANLS": 0.5},
            50000: {"MU": 100.0, "HALS": 0.5, "ANLS": 0.5},
        }
    )
    assert verdicts("synthetic", runs) == [Verdict.HOLDS] * 6


def test_synthetic_with_a_fast_mu():
    runs = synthetic(
        {
            500: {"MU": 2.0, "HALS": 0.5, "ANLS": 0.5},
            2500: {"MU": 2.0, "HALS": 0.5, "ANLS": 0.5},
            10000: {"MU": 0.8, "HALS": 0.5, "ANLS": 0.5},
            50000: {"MU": 1.6, "HALS": 0.5, "ANLS": 0.5},
        }
    )
    found = claims_of("synthetic", runs)
    assert [claim.verdict for claim in found] == [
        Verdict.FAILS,
        Verdict.FAILS,
        Verdict.CHANGED,
        Verdict.CHANGED,
        Verdict.FAILS,
        Verdict.HOLDS,
    ]
    assert "6 of 6 starts (T = 10000 and 50000)" in found[-1].measured
    assert "MU gets there in 3 of 3" in found[3].measured


FREQUENCIES = np.linspace(0, 4000, 257)


def stack(pitch: float) -> np.ndarray:
    """Harmonics of a pitch, under a formant."""
    bands = np.cos(2 * np.pi * FREQUENCIES / pitch).clip(0) ** 2
    return np.tile(bands * np.exp(-(((FREQUENCIES - 500) / 400) ** 2)), (12, 1))


@pytest.mark.parametrize("pitch", [95, 120, 170])
def test_a_harmonic_stack(pitch):
    assert harmonicity(stack(pitch), FREQUENCIES) > 0.5


def test_what_is_no_stack():
    noise = np.random.default_rng(0).random((20, 12, 257)) * np.exp(-FREQUENCIES / 1000)
    assert max(harmonicity(motif, FREQUENCIES) for motif in noise) < 0.4
    hump = np.tile(np.exp(-(((FREQUENCIES - 1200) / 500) ** 2)), (12, 1))
    assert harmonicity(hump, FREQUENCIES) < 0.1
    assert harmonicity(np.zeros((12, 257)), FREQUENCIES) == 0


def test_speech_claims():
    motifs = np.stack([stack(pitch) for pitch in (100, 120, 140)])
    constants = {"MU": 2.5, "HALS": 0.5, "ANLS": 0.5}
    runs = make_fits(constants, data="digits", components=motifs, end=40)
    assert verdicts("speech", runs)[::2] == [Verdict.HOLDS, Verdict.HOLDS]
    flat = make_fits(constants, data="digits", components=np.ones((3, 12, 257)), end=40)
    assert verdicts("speech", flat)[2] is Verdict.FAILS
