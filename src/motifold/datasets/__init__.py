"""Data to try the package on."""

from motifold.datasets.synthetic import Sequences, make_sequences

__all__ = ["Sequences", "make_sequences"]
