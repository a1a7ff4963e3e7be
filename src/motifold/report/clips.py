"""Sounds of single motifs, where the recording is a sound: as waveforms and as wav files."""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from motifold.estimator import CNMF
from motifold.files import check_writable, refuse_replacing, write_whole
from motifold.findings.decomposition import Decomposition
from motifold.findings.times import bins_of
from motifold.findings.unseen import prepared_recording
from motifold.io import Options, Recording
from motifold.io.reading import READERS
from motifold.prepare import ScaleFeatures, SquareRoot

if TYPE_CHECKING:
    from motifold.io.audio import Sound

_LOUDNESS = 0.8


def write_sound(
    path: str | os.PathLike[str],
    model: CNMF,
    recording: Recording,
    motif: int = 0,
    *,
    time_range: tuple[float, float] | None = None,
    activations: Any = None,
) -> None:
    """Write the part of a sound that one motif explains, as a wav file.

    The part of the spectrogram that the motif explains is turned into sound with the phase of the
    recording. The file is as loud as 16 bits allow without clipping, however loud the motif is.

    Parameters
    ----------
    path : str or path
        The wav file; it appears whole or not at all.
    model : CNMF
        A fitted model.
    recording : Recording
        From ``motifold.io.read`` of a sound file, which must still be there.
    motif : int, default=0
        Which one: its position in ``components_``.
    time_range : (float, float) or None, default=None
        Start and end in seconds; None means the whole recording.
    activations : array-like of shape (n_samples, n_components) or None, default=None
        Those of the recording. None finds them with ``model.transform``; of the recording of the
        fit, ``model.activations_`` saves the time.

    Examples
    --------
    A tone that comes three times, in some noise.

    >>> import os, tempfile
    >>> import numpy as np
    >>> import soundfile
    >>> from motifold import CNMF
    >>> from motifold.io import read
    >>> from motifold.report import write_sound
    >>> waveform = 0.01 * np.random.default_rng(0).standard_normal(8000)
    >>> for start in (1000, 3500, 6000):
    ...     waveform[start : start + 800] += np.sin(0.8 * np.arange(800))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, target = (os.path.join(folder, name) for name in ("in.wav", "motif-0.wav"))
    ...     soundfile.write(source, waveform, 4000)
    ...     recording = read(source, window=128, scale="magnitude")
    ...     model = CNMF(1, recording.bins("0.25s"), random_state=0).fit(recording.X)
    ...     write_sound(target, model, recording, motif=0, time_range=(0.5, 1.5))
    ...     clip, rate = soundfile.read(target)
    >>> rate, round(len(clip) / rate, 1)
    (4000, 1.0)
    """
    check_is_fitted(model)
    refuse_replacing(path, recording.source)
    check_writable(path)
    K = len(model.components_)
    if not 0 <= motif < K:
        raise ValueError(f"motif must be from 0 to {K - 1}, a position in components_: {motif}.")
    sound = sound_of(recording)
    if sound is None:
        raise ValueError(
            f"{recording.source}: it is no sound file, or not there any more. Only the motifs of "
            "a sound file can be heard."
        )
    if not is_audible(model):
        assert model.preparation_ is not None
        raise ValueError(
            "The motifs are not those of a spectrogram any more, since the data was prepared "
            f"({model.preparation_.describe()}): they cannot be heard."
        )
    T, lengths = recording.shape[0], recording.lengths
    start, stop = bins_of(time_range, recording.rate, T, cut=True)
    if activations is None:
        prepared = prepared_recording(model, recording.checked())
        activations = model.transform(prepared.X, lengths=lengths, mask=prepared.mask)
    H = np.asarray(activations)
    if H.shape != (T, K):
        raise ValueError(f"activations must have shape {(T, K)}, not {H.shape}.")
    fit = Decomposition.of(model, None, H, lengths)
    waveform = sound.invert(fit.part(motif, start, stop), start)
    write_whole(path, wav(waveform, sound.rate))


def is_audible(model: CNMF) -> bool:
    """Whether motifs are in the units of the spectrogram: neither scaled nor roots of it."""
    steps = [] if model.preparation_ is None else model.preparation_.steps_
    return not any(isinstance(step, (ScaleFeatures, SquareRoot)) for step in steps)


def sound_of(recording: Recording) -> Sound | None:
    """The sound that the recording was read from; None where there is none."""
    path = Path(recording.source)
    ending = "." + str(recording.options.get("kind", path.suffix)).lstrip(".").lower()
    if READERS.get(ending) != "audio" or not path.is_file():
        return None
    from motifold.io.audio import read_sound

    return read_sound(path, Options(**recording.options))


def wav(waveform: npt.NDArray[Any], rate: float) -> bytes:
    """A wav file: 16-bit samples, each as loud as the others."""
    peak = float(np.abs(waveform).max(initial=0)) or 1.0
    samples = np.round(waveform * (_LOUDNESS * 32767 / peak)).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(round(rate))
        writer.writeframes(samples.tobytes())
    return file.getvalue()
