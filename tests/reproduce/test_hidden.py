"""The demo's story: sequences that are hidden are found, and what is drawn is what was found."""

from __future__ import annotations

import numpy as np
import pytest

from motifold.findings import Table
from motifold.reproduce.hidden import Found, Hidden, find_sequences, hide_sequences, n_found
from motifold.reproduce.pictures import draw_story, owners


@pytest.fixture(scope="module")
def story() -> tuple[Hidden, Found]:
    hidden = hide_sequences(1000, 0)
    return hidden, find_sequences(hidden, 0)


def test_neurons_are_shuffled_and_nothing_stands_out() -> None:
    hidden = hide_sequences(2000, 0)
    rates = hidden.counts.mean(axis=0)
    assert rates.max() < 3 * rates.min()
    together = hidden.counts.sum(axis=1)
    assert together.max() < 16  # of 100 neurons: no moment in which many fire


def test_the_sequences_are_found(story: tuple[Hidden, Found]) -> None:
    hits, there, false = n_found(*story)
    assert there > 20
    assert hits >= 0.9 * there
    assert false <= 0.2 * there


def test_counting_needs_neither_names_nor_lags() -> None:
    hidden = Hidden(np.zeros((200, 4)), [np.array([20, 60, 120]), np.array([40, 90])])
    rows = [(1, 18), (1, 58), (1, 118), (0, 43), (0, 93), (0, 170)]
    events = Table([{"motif": k, "bin": b} for k, b in rows])
    found = Found(None, None, events, np.empty(0))  # type: ignore[arg-type]
    assert n_found(hidden, found) == (5, 5, 1)


def test_spikes_have_the_colour_of_their_sequence(story: tuple[Hidden, Found]) -> None:
    hidden, found = story
    bins, neurons = np.nonzero(hidden.counts)
    motif = owners(hidden, found)[bins, neurons]
    own = found.order.motif[neurons]
    coloured = motif >= 0
    assert 0.1 < coloured.mean() < 0.4  # about 600 of 3500 spikes were planted
    assert (motif == own)[coloured].all()
    for k in range(3):  # and only where its sequence was found
        first = found.events.where(motif=k)["bin"].astype(int)
        behind = bins[motif == k][:, None] - first
        assert ((behind >= 0) & (behind < 40)).any(axis=1).all()


def test_the_picture_has_its_parts(story: tuple[Hidden, Found]) -> None:
    figure = draw_story(*story)
    labels = [axes.get_label() for axes in figure.axes]
    assert labels == ["as recorded", "sorted", "motif 0", "motif 1", "motif 2", "numbers"]
    before, after = figure.axes[:2]
    spikes = len(before.collections[0].get_paths())
    assert (
        spikes == len(after.collections[0].get_paths()) == np.count_nonzero(story[0].counts[:600])
    )
    assert len({tuple(shade) for shade in after.collections[0].get_colors()}) == 4  # grey, motifs
