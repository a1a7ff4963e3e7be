"""The facts of a fit: counted without matplotlib, also where there is nothing to count."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from motifold import CNMF, explained_power
from motifold.findings.facts import Facts
from motifold.io import Recording


def test_counting_needs_no_matplotlib():
    code = """
import sys
sys.modules["matplotlib"] = None
import numpy as np
from motifold import CNMF
from motifold.findings.facts import Facts
from motifold.io import Recording
X = np.random.default_rng(0).random((60, 4))
facts = Facts.gather(CNMF(2, 3, random_state=0, tol=0.1).fit(X), Recording(X, "made up", 10.0))
print(len(facts.shares), facts.is_training, facts.excerpt, len(facts.per_minute))
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.split() == ["2", "True", "None", "2"]


def test_silence_is_the_recording_of_its_fit():
    X = np.zeros((300, 4))
    facts = Facts.gather(CNMF(2, 3, random_state=0).fit(X), Recording(X, "silence"))
    assert facts.is_training
    assert (facts.loss, facts.explained, facts.shares.tolist()) == (0.0, 1.0, [0, 0])
    assert facts.extremes == (0, 0, 0)
    assert facts.dead == [0, 1]
    assert facts.excerpt == (0, 200)


def test_an_activation_at_the_end_does_not_claim_the_features():
    """The last bin has one of 1000, of a motif of which next to nothing is left there."""
    motifs = np.zeros((2, 4, 10))
    motifs[0, [0, 1, 2, 3, 1], range(5)] = motifs[1, 2, 5:] = 1.0
    motifs[1, 3, :5] = 0.8
    H = np.zeros((300, 2))
    H[5:290:20, 0] = H[15:290:20, 1] = 1.0
    H[299, 1] = H[149, 1] = 1000.0
    model = CNMF(2, 4, random_state=0, tol=0, max_iter=2)
    model.fit(np.ones((300, 10)), lengths=[150, 150])
    model.components_, model.activations_ = motifs, H
    X = model.inverse_transform(H, lengths=[150, 150])
    model.loss_ = 0.0
    recording = Recording(X, "made up", lengths=(150, 150))
    facts = Facts.gather(model, recording)
    assert facts.is_training
    assert facts.order.tolist() == [0, 1, 4, 2, 3, 5, 6, 7, 8, 9]
    np.testing.assert_allclose(
        facts.shares, explained_power(model, X, H, lengths=[150, 150]), rtol=1e-12
    )
    assert facts.loss < 1e-12
