"""Data to try the package on: the paper's generator and its two recordings."""

from motifold.datasets.recordings import (
    Songbird,
    SpokenDigits,
    fetch_songbird,
    fetch_spoken_digits,
)
from motifold.datasets.synthetic import Sequences, make_sequences

__all__ = [
    "Sequences",
    "Songbird",
    "SpokenDigits",
    "fetch_songbird",
    "fetch_spoken_digits",
    "make_sequences",
]
