"""Typical mistakes with preparation and hold-out, and the message that each gets."""

from __future__ import annotations

import numpy as np
import pytest
from commands import run

from motifold.datasets import make_sequences

X = make_sequences(300, 8, 2, 6, activation_probability=0.05, random_state=0).X
FIT = ("fit", "x.npy", "-k", 2, "-l", 6, "--tol", 0.1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mistakes")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        np.save("x.npy", X)
        np.save("other.npy", X[::-1] + 1)
        assert run(*FIT, "-o", "plain.npz").exit_code == 0
        assert run(*FIT, "-o", "held.npz", "--test-fraction", 0.3).exit_code == 0
    return folder


MISTAKES = {
    "a time without a rate": (
        (*FIT, "--smooth", "20ms"), 3,
        "--smooth 0.02s needs the number of time bins per second, which the file does not tell.",
    ),
    "no duration": ((*FIT, "--smooth", "soon"), 2, "'soon' is no kernel such as 20ms, 0.5s"),
    "no such kernel": ((*FIT, "--smooth", "2,acausal"), 2, "or 20ms,causal"),
    "a kernel below a bin": (
        (*FIT, "--rate", 10, "--smooth", "2ms", "-o", "a.npz"), 0,
        "0.02 time bins, which changes next to nothing",
    ),
    "the wrong scale": (
        (*FIT, "--scale", "std"), 2, "'std' scales features: --scale-features std.",
    ),
    "no baseline": (
        (*FIT, "--baseline", "mean"), 2, "'mean' is neither median nor a quantile from 0 to 1",
    ),
    "percent": (
        (*FIT, "--test-fraction", 30), 2, "30.0 is out of range: it must be between 0 and 1",
    ),
    "too little to test on": (
        (*FIT, "--test-fraction", 0.02), 1, "too few for motifs of 6 lags. Hold out more",
    ),
    "in sample": (
        ("significance", "plain.npz"), 1,
        "a p-value on what the motifs were found in means nothing. Fit with --test-fraction 0.3",
    ),
    "in sample, declared new": (
        ("significance", "plain.npz", "--data", "x.npy", "--new-data"), 1,
        "fitted to all of this recording",
    ),
    "not declared": (
        ("significance", "plain.npz", "--data", "other.npy"), 2,
        "If the fit has seen nothing of it, say so with --new-data.",
    ),
    "another recording than that of the hold-out": (
        ("significance", "held.npz", "--data", "other.npy"), 2,
        "it is not the recording of the fit, of which stretches were held out",
    ),
    "declared new, but it is that of the fit": (
        ("significance", "held.npz", "--data", "x.npy", "--new-data"), 2,
        "x.npy is the recording of the fit. Leave it out",
    ),
    "too few copies": (
        ("significance", "held.npz", "--n-null", 10), 1, "raise --n-null to at least 40",
    ),
    "times of a part": (
        ("events", "held.npz"), 2, "was fitted to a part of its recording",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message(mistake, folder, monkeypatch):
    monkeypatch.chdir(folder)
    arguments, code, told = MISTAKES[mistake]
    answer = run(*arguments)
    shown = " ".join(answer.output.replace("│", " ").split())
    assert told in shown
    assert answer.exit_code == code
    assert "Traceback" not in answer.output
