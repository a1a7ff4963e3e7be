"""The paper's three experiments: their data and the sizes of their models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from motifold.datasets import fetch_songbird, fetch_spoken_digits, make_sequences
from motifold.io import Recording


@dataclass(frozen=True)
class DataSet:
    """One recording of an experiment; ``weight`` is its part of the experiment's time.

    ``feature_label``: what the features are, if not frequencies in Hz.
    """

    name: str
    title: str
    K: int
    L: int
    load: Callable[[Path | None], Recording]
    weight: float = 1.0
    feature_label: str | None = None


@dataclass(frozen=True)
class Experiment:
    """Some data sets that stand in one figure; ``time_limit``: seconds, unless told otherwise."""

    name: str
    title: str
    time_limit: float
    data_sets: tuple[DataSet, ...]


def _sequences(T: int, N: int, K: int, L: int, _: Path | None) -> Recording:
    return Recording(make_sequences(T, N, K, L, preset="figures", random_state=0).X, "sequences")


def _song(data_home: Path | None) -> Recording:
    bird = fetch_songbird(data_home=data_home)
    axis = np.arange(bird.song.shape[1])
    return Recording(bird.song, "songbird", bird.song_rate, feature_axis=axis)


def _speech(data_home: Path | None) -> Recording:
    speech = fetch_spoken_digits(data_home=data_home)
    return Recording(
        speech.spectrogram, "spoken digits", speech.frame_rate, feature_axis=speech.frequencies
    )


def _synthetic(T: int) -> DataSet:
    # Longer recordings take more time, but far from in proportion: they need fewer iterations, and
    # the updates of W cost the same.
    N, K, L = 250, 5, 20
    load: Any = partial(_sequences, T, N, K, L)
    return DataSet(f"T{T}", f"T = {T}", K, L, load, weight=T**0.25)


EXPERIMENTS = {
    "synthetic": Experiment(
        "synthetic",
        "Synthetic data",
        600.0,
        tuple(_synthetic(T) for T in (500, 2500, 10000, 50000)),
    ),
    "songbird": Experiment(
        "songbird",
        "Songbird spectrogram",
        120.0,
        (DataSet("song", "songbird", 3, 50, _song, feature_label="frequency bin"),),
    ),
    "speech": Experiment(
        "speech", "Speech", 600.0, (DataSet("digits", "spoken digits", 20, 12, _speech),)
    ),
}
