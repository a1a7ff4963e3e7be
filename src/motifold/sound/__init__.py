"""Sound taken apart by its motifs: spectrograms and the way back, masks, templates and scores."""

from motifold.sound.representations import Spectrogram, from_audio
from motifold.sound.scores import read_score, support_of
from motifold.sound.separation import Separation, separate

__all__ = [
    "Separation",
    "Spectrogram",
    "from_audio",
    "read_score",
    "separate",
    "support_of",
]
