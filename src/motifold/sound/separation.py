"""``separate``: a sound taken apart by motifs, into sounds that add up to it."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from motifold.estimator import CNMF
from motifold.files import same_file, write_whole
from motifold.findings.decomposition import Decomposition
from motifold.io.audio import write_waveform
from motifold.sound.masks import EXPONENT, masks_of
from motifold.sound.representations import Spectrogram, from_audio
from motifold.sound.scores import Score, read_score, support_of
from motifold.sound.templates import Sounds, motif_of, named

Array = npt.NDArray[Any]

_STARTS = 10  # random ones; they differ by many decibels, and the objective tells them apart
_TOL = 1e-2


@dataclass(frozen=True)
class Separation:
    """A sound taken apart.

    Attributes
    ----------
    parts : dict
        Name to sound, of each motif in their order, then of the "background" if there is one;
        float32, in the shape of the waveform, to which they add up.
    model : CNMF
        What was fitted.
    activations : ndarray of shape (n_samples, n_components)
        When each motif occurs; times are ``arange(n_samples) / spectrogram.rate``.
    spectrogram : Spectrogram
        The sound, and what of it was factorised.
    exponent : float
        Of the masks.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from motifold.sound import separate
    >>> y = np.random.default_rng(0).standard_normal(8000) / 10
    >>> apart = separate(y, 8000, n_components=2, n_lags=3, n_init=1, tol=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [os.path.basename(path) for path in apart.write(folder)]
    ['motif-0.wav', 'motif-1.wav']
    """

    parts: dict[str, Array]
    model: CNMF
    activations: Array
    spectrogram: Spectrogram
    exponent: float

    @property
    def names(self) -> list[str]:
        """Of the parts."""
        return list(self.parts)

    @property
    def fit(self) -> Decomposition:
        """The spectrogram taken apart."""
        return Decomposition.of(self.model, self.spectrogram.X, self.activations)

    def paths(self, folder: str | os.PathLike[str], kind: Literal["wav", "flac"] = "wav") -> Any:
        """The file of each part, by name."""
        return {name: Path(folder) / f"{_file_name(name)}.{kind}" for name in self.parts}

    def write(
        self, folder: str | os.PathLike[str], kind: Literal["wav", "flac"] = "wav"
    ) -> list[Path]:
        """Write each part into a file of its own, named after it.

        Parameters
        ----------
        folder : str or path
            It is made if it is not there.
        kind : {"wav", "flac"}, default="wav"
            wav files have 32-bit floats, which do not clip; flac files 24 bits, and a part that
            goes beyond full scale is refused before anything is written.

        Returns
        -------
        list of path
        """
        paths = self.paths(folder, kind)
        for path in paths.values():
            if os.path.exists(self.spectrogram.source) and same_file(path, self.spectrogram.source):
                raise ValueError(f"{path} is the sound itself: give another folder.")
        files = {name: self._file(part, kind) for name, part in self.parts.items()}
        Path(folder).mkdir(parents=True, exist_ok=True)
        for name, path in paths.items():
            write_whole(path, files[name])
        return list(paths.values())

    def _file(self, part: Array, kind: str) -> bytes:
        file = io.BytesIO()
        write_waveform(file, part, self.spectrogram.sr, kind=kind)
        return file.getvalue()


def separate(
    y: Any,
    sr: float | None = None,
    *,
    n_components: int | None = None,
    n_lags: int | str = "150ms",
    model: CNMF | None = None,
    templates: Sounds | None = None,
    fix: bool = False,
    score: str | os.PathLike[str] | Mapping[str, Any] | None = None,
    tolerance: float = 0.05,
    ring: float = 0.4,
    exponent: float = EXPONENT,
    representation: Mapping[str, Any] | None = None,
    **parameters: Any,
) -> Separation:
    """Take a sound apart: a motif for each sound that recurs, and what it has of the recording.

    A model is fitted to the spectrogram. At every time and frequency each motif has a share (its
    part of the reconstruction to the power α, in the sum of all: a Wiener mask), and what is under
    it, with the phase of the recording, is its sound. The parts have the length, the level and the
    channels of the recording, and add up to it.

    Parameters
    ----------
    y : array-like of shape (samples,) or (samples, channels), or a path
        A waveform, or a sound file.
    sr : float
        Samples per second; a file tells its own.
    n_components : int
        Number of motifs; not needed with ``model``, ``templates`` or ``score``.
    n_lags : int or str, default="150ms"
        Length of a motif: time bins, or time.
    model : CNMF or None
        A fitted one: its motifs are used as they are. The sound must be represented as its was.
    templates : mapping of names to sounds, or sequence of paths
        What the first motifs start from: folders of samples, sound files, or waveforms.
    fix : bool, default=False
        Keep these motifs as they are.
    score : path or mapping of names to seconds
        When each sound begins (``read_score``): elsewhere its motif does not start.
    tolerance : float, default=0.05
        Seconds by which the score may be wrong.
    ring : float, default=0.4
        Seconds that a sound goes on after its onset in the score.
    exponent : float, default=2
        α.
    representation : mapping or None
        Options of ``from_audio``, such as ``{"n_fft": 1024, "kind": "mel"}``.
    **parameters
        Of ``CNMF``, such as ``background=True``, ``random_state`` or ``n_init`` (10 by default, 1
        with templates or a score; ``tol`` is 0.01).

    Returns
    -------
    Separation

    Examples
    --------
    A low and a high note, in turns.

    >>> import numpy as np
    >>> from motifold.sound import separate
    >>> t = np.arange(800) / 8000
    >>> low, high = (np.sin(2 * np.pi * f * t) * np.hanning(800) for f in (300, 2000))
    >>> y = np.concatenate([np.r_[low, 0 * t, high, 0 * t]] * 5)
    >>> apart = separate(y, 8000, n_components=2, n_lags="100ms", random_state=0)
    >>> apart.names
    ['motif-0', 'motif-1']
    >>> bool(np.allclose(sum(apart.parts.values()), y, atol=1e-5))
    True
    """
    given = {} if representation is None else dict(representation)
    spectrogram = from_audio(y, sr, **given)
    if model is not None:
        fitted, names = model, [f"motif-{k}" for k in range(len(model.components_))]
        _check_model(model, spectrogram)
        activations = np.asarray(model.transform(_plain(spectrogram.X)))
    else:
        fitted, names = _fitted(
            spectrogram, n_components, n_lags, templates, fix, score, (tolerance, ring), parameters
        )
        activations = fitted.activations_
    if fitted.background_ is not None:
        names = [*names, "background"]
    fit = Decomposition.of(fitted, None, activations, [len(activations)])
    sounds = spectrogram.sounds(lambda a, b: masks_of(fit, a, b, exponent))
    parts = dict(zip(names, sounds, strict=True))
    return Separation(parts, fitted, activations, spectrogram, exponent)


def _fitted(
    spectrogram: Spectrogram,
    K: int | None,
    n_lags: int | str,
    templates: Sounds | None,
    fix: bool,
    score: Any,
    around: tuple[float, float],
    parameters: dict[str, Any],
) -> tuple[CNMF, list[str]]:
    """A model of the spectrogram, and the names of its motifs."""
    sounds = {} if templates is None else named(templates)
    found: Score = {}
    if score is not None:
        found = dict(score) if isinstance(score, Mapping) else read_score(score)
    names = [*sounds, *(name for name in found if name not in sounds)]
    K = len(names) if K is None else K
    if max(1, len(names)) > K:
        raise ValueError(
            f"n_components is {K}, and there are {len(names)} templates and sounds of the score."
            if names
            else "n_components, the number of motifs, is needed without templates or a score."
        )
    if fix and not sounds:
        raise ValueError("fix keeps templates as they are, and there are none.")
    recording = spectrogram.recording
    X = _plain(recording.X)
    L = recording.bins(n_lags)
    given: dict[str, Any] = {}
    if found:
        times = {"tolerance": around[0], "ring": around[1]}
        given["activation_support"] = support_of(
            found, len(X), rate=spectrogram.rate, **times, names=names, n_components=K
        )
    defaults = {"random_state": 0, "tol": _TOL, "n_init": 1 if names else _STARTS}
    parameters = {**defaults, **parameters}
    if sounds:
        given["components_init"] = _start(spectrogram, sounds, K, L, parameters["random_state"])
        if fix:
            parameters["fixed_components"] = list(range(len(sounds)))
    model = CNMF(K, L, **parameters).fit(X, **given)
    return model, [*names, *(f"motif-{k}" for k in range(len(names), K))]


def _start(spectrogram: Spectrogram, sounds: dict[str, Any], K: int, L: int, seed: Any) -> Array:
    """The templates, then motifs that begin as noise, (K, L, N)."""
    motifs = [motif_of(sound, spectrogram, L) for sound in sounds.values()]
    rng = np.random.default_rng(seed if isinstance(seed, (int, np.integer)) else None)
    level = spectrogram.X.mean(axis=0)
    for _ in range(len(motifs), K):
        motif = rng.random((L, len(level))) * level
        motifs.append(motif / (np.linalg.norm(motif) or 1))
    return np.array(motifs)


def _plain(X: Array) -> Array:
    """Single precision: what sounds hold, at half the time and memory."""
    return X.astype(np.float32)


def _check_model(model: CNMF, spectrogram: Spectrogram) -> None:
    N, found = model.n_features_in_, spectrogram.X.shape[1]
    if found != N:
        raise ValueError(
            f"The model has {N} features, the sound is represented by {found}. Give the n_fft and "
            "the kind of representation that it was fitted to."
        )


def _file_name(name: str) -> str:
    """A name without what file systems do not like."""
    return "".join(c if c.isalnum() or c in "-_ ." else "_" for c in name).strip(" .") or "part"
