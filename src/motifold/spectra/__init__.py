"""Spectrograms of sound: the one transform there is, its exact inverse, and scales."""

from motifold.spectra.scales import NOISE_FLOOR, SCALES, Scale, remove_floor
from motifold.spectra.transform import Transform, window_for

__all__ = ["NOISE_FLOOR", "SCALES", "Scale", "Transform", "remove_floor", "window_for"]
