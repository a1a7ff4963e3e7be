"""Sounds of single motifs, where the recording is a sound: as waveforms and as wav files."""

from __future__ import annotations

import io
import os
import wave
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from motifold.data.refused import check_model
from motifold.estimator import CNMF
from motifold.files import check_writable, refuse_replacing, write_whole
from motifold.findings.decomposition import Decomposition
from motifold.findings.times import bins_of
from motifold.findings.unseen import prepared_recording
from motifold.io import Options, Recording
from motifold.io.reading import READERS
from motifold.prepare import ScaleFeatures, SquareRoot
from motifold.sound import Separation
from motifold.sound.masks import masks_of

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

    At every time and frequency the motif has a share of the recording: that of its part of the
    reconstruction, squared, in those of all motifs (a Wiener mask). The file has the level and the
    length of the recording, in 32-bit floats, which do not clip: the files of all motifs, and of
    the background if there is one, add up to it. It has one channel, that which was read
    (``motifold.sound.separate`` keeps all of them).

    Parameters
    ----------
    path : str or path
        The wav file; it appears whole or not at all.
    model : CNMF
        A fitted model.
    recording : Recording
        From ``motifold.io.read`` of a sound file, which must still be there.
    motif : int, default=0
        Which one: its position in ``components_``. Where the model has a background,
        ``n_components`` is that.
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
    check_model(model)
    refuse_replacing(path, recording.source)
    check_writable(path)
    K = len(model.components_)
    last = K - (model.background_ is None)
    if not 0 <= motif <= last:
        raise ValueError(f"motif must be from 0 to {last}, a position in components_: {motif}.")
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
        prepared = prepared_recording(model, recording.checked(memory_limit=float("inf")))
        activations = model.transform(prepared.X, lengths=lengths, mask=prepared.mask)
    H = np.asarray(activations)
    if H.shape != (T, K):
        raise ValueError(f"activations must have shape {(T, K)}, not {H.shape}.")
    fit = Decomposition.of(model, None, H, lengths)
    from motifold.io.audio import write_waveform

    file = io.BytesIO()
    write_waveform(file, clip(fit, sound, motif, start, stop), sound.rate)
    write_whole(path, file.getvalue())


def clip(fit: Decomposition, sound: Sound, k: int, start: int, stop: int) -> npt.NDArray[Any]:
    """What motif k has of the sound in time bins start to stop, (samples,)."""
    return sound.masked(lambda a, b: masks_of(fit, a, b)[k], start, stop)


def there(sound: Sound, start: int, stop: int) -> npt.NDArray[Any]:
    """The sound itself of time bins start to stop."""
    begin, end = sound.samples(start, stop)
    return sound.waveform[begin:end]


def excerpts(apart: Separation, start: int, stop: int) -> tuple[dict[str, bytes], float]:
    """Wav files of the recording and of each part in time bins start to stop, and their gain."""
    spectrogram = apart.spectrogram
    hop, n = spectrogram.transform.hop, len(spectrogram.waveform)
    samples = slice(start * hop, n if stop >= len(spectrogram.X) else stop * hop)
    gain = _LOUDNESS / (float(np.abs(spectrogram.waveform).max(initial=0)) or 1.0)
    sounds = {"the recording": spectrogram.waveform, **apart.parts}
    files = {
        name: wav(sound[samples].reshape(len(sound[samples]), -1), spectrogram.sr, gain)
        for name, sound in sounds.items()
    }
    return files, gain


def gain_of(sound: Sound) -> float:
    """By how much all clips of a page are raised: the recording's peak is at 0.8 then."""
    return _LOUDNESS / (float(np.abs(sound.waveform).max(initial=0)) or 1.0)


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


def wav(waveform: npt.NDArray[Any], rate: float, gain: float = 1.0) -> bytes:
    """A wav file of 16-bit samples (n,) or (n, channels); what exceeds them is cut off."""
    samples = np.round(np.clip(waveform * gain, -1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        writer.setsampwidth(2)
        writer.setframerate(round(rate))
        writer.writeframes(samples.tobytes())
    return file.getvalue()
