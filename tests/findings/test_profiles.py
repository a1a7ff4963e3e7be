"""Order of features, onset and effective length."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from motifold.findings import motif_extent, sort_features


def test_features_by_motif_and_lag_of_peak():
    motifs = np.zeros((2, 5, 6))
    motifs[1, 3, 0] = 1.0
    motifs[0, 4, 1] = 1.0
    motifs[0, 0, 2] = 1.0
    motifs[1, 0, 3] = 0.5
    motifs[:, 2, 4] = [0.5, 0.6]  # more power in the second
    found = sort_features(motifs)
    assert found.order.tolist() == [2, 1, 3, 4, 0, 5]
    assert found.motif.tolist() == [1, 0, 0, 1, 1, -1]
    assert found.lag.tolist() == [3, 4, 0, 0, 2, -1]
    # A motif that occurs more often claims the shared feature.
    assert sort_features(motifs, weights=[4, 1]).motif[4] == 0
    with pytest.raises(ValueError, match="weights"):
        sort_features(motifs, weights=[1])


def test_extent_of_motifs():
    motifs = np.zeros((4, 20, 2))
    motifs[0, 5:15] = 1.0
    motifs[1, 0, 0] = 1.0
    motifs[2, :, 1] = 1.0
    extent = motif_extent(motifs)
    assert extent.onset.tolist() == [5, 0, 0, 0]
    assert extent.length.tolist() == [10, 1, 20, 0]
    # 90 %: a tenth of the power of twenty equal lags is one lag at either end.
    extent = motif_extent(motifs, share=0.9)
    assert (extent.onset[2], extent.length[2]) == (1, 18)


def test_what_the_end_cuts_off_does_not_weigh():
    """One activation of 1000 in the last bin, of a motif that begins with nothing there."""
    motifs = np.zeros((2, 4, 6))
    motifs[0, 1, :3] = motifs[1, 2, 3:] = 1.0
    motifs[1, 2, :3] = 0.8
    activations = np.zeros((50, 2))
    activations[[5, 15, 25], 0] = activations[[10, 20, 30], 1] = 1.0
    model = SimpleNamespace(components_=motifs, activations_=activations)
    before = sort_features(model).motif.tolist()
    activations[-1, 1] = 1000.0
    assert sort_features(model).motif.tolist() == before == [0, 0, 0, 1, 1, 1]
    # So it is at the end of every segment.
    model.lengths_ = [23, 27]
    activations[22, 1] = 1000.0
    assert sort_features(model).motif.tolist() == before
