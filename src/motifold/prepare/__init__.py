"""Preparation of recordings: smoothing, scaling, square root, baseline; as transformers."""

from motifold.prepare.base import Step
from motifold.prepare.baseline import SubtractBaseline
from motifold.prepare.preparation import Preparation, from_pipeline, to_pipeline
from motifold.prepare.scaling import ScaleFeatures
from motifold.prepare.smoothing import Smooth
from motifold.prepare.square_root import SquareRoot

STEPS: dict[str, type[Step]] = {
    "baseline": SubtractBaseline,
    "square_root": SquareRoot,
    "smooth": Smooth,
    "scale": ScaleFeatures,
}

__all__ = [
    "Preparation",
    "ScaleFeatures",
    "Smooth",
    "SquareRoot",
    "SubtractBaseline",
    "from_pipeline",
    "to_pipeline",
]
