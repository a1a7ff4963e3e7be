"""The short-time Fourier transform, centred and padded, in blocks; and its exact inverse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_SECONDS = 0.04  # of a window, at least: two periods of 50 Hz
_BLOCK_BYTES = 2**24  # of a transform at a time
_ALIGNED = 64  # frames


def window_for(rate: float) -> int:
    """Samples of the usual window: the smallest power of two that has 40 ms.

    Examples
    --------
    >>> from motifold.spectra import window_for
    >>> window_for(44100), window_for(8000)
    (2048, 512)
    """
    return 1 << max(1, int(np.ceil(np.log2(_SECONDS * rate))))


@dataclass(frozen=True)
class Transform:
    """Hann windows whose middle is at the times 0, hop, 2·hop, …; beyond the ends is silence.

    A sound of n samples has 1 + n // hop *rows*, the frames whose middle lies in it (librosa's
    ``center=True``). A few *frames* more, before the first and after the last row, touch it as
    well: with them the inverse is exact to the last sample. Magnitudes are those of the sound: a
    sine of amplitude a has a/2.

    Parameters
    ----------
    window, hop : samples
    rate : samples per second

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.spectra import Transform
    >>> sound = np.random.default_rng(0).standard_normal(1000)
    >>> transform = Transform(window=128, hop=32, rate=8000.0)
    >>> S = transform.rows(sound)
    >>> S.shape
    (32, 65)
    >>> bool(np.allclose(transform.inverse(transform.frames(sound), len(sound)), sound))
    True
    """

    window: int
    hop: int
    rate: float

    @cached_property
    def _stft(self) -> Any:
        from scipy.signal import ShortTimeFFT
        from scipy.signal.windows import hann

        window = hann(self.window, sym=False)
        return ShortTimeFFT(
            window, self.hop, self.rate, mfft=self.window, scale_to="magnitude", phase_shift=None
        )

    @cached_property
    def _dual(self) -> Array:
        return np.asarray(self._stft.dual_win)

    @property
    def frequencies(self) -> Array:
        """Hz of every feature, (window // 2 + 1,)."""
        return np.fft.rfftfreq(self.window, 1 / self.rate)

    def n_rows(self, n_samples: int) -> int:
        """Frames whose middle lies in a sound of so many samples."""
        return 1 + n_samples // self.hop

    def touching(self, n_samples: int) -> tuple[int, int]:
        """The first frame that touches a sound of so many samples, and the first one after it."""
        middle = self.window // 2
        return (middle - self.window) // self.hop + 1, -(-(n_samples + middle) // self.hop)

    def rows(self, waveform: Array, a: int = 0, b: int | None = None) -> Array:
        """Frames a to b × frequencies, complex; without b all rows from a on."""
        b = self.n_rows(len(waveform)) if b is None else b
        middle = self.window // 2
        begin, end = a * self.hop - middle, (b - 1) * self.hop - middle + self.window
        n = len(waveform)
        inside = waveform[min(max(begin, 0), n) : min(max(end, 0), n)].astype(np.float64)
        samples = np.pad(inside, (min(max(-begin, 0), end - begin), 0))
        samples = np.pad(samples, (0, end - begin - len(samples)))
        return np.asarray(self._stft.stft(samples, 0, b - a, k_offset=middle).T)

    def frames(self, waveform: Array) -> Array:
        """All frames that touch the sound; ``inverse`` takes them."""
        return self.rows(waveform, *self.touching(len(waveform)))

    def blocks(self, n_samples: int, *, whole: bool = False) -> Iterator[tuple[int, int]]:
        """The rows of a sound, or all frames that touch it (``whole``), some at a time."""
        first, last = self.touching(n_samples) if whole else (0, self.n_rows(n_samples))
        bins = 16 * (self.window // 2 + 1)
        # Whole lots of frames: so that a block has the bits that it has in a transform of all.
        step = max(_ALIGNED, _BLOCK_BYTES // bins // _ALIGNED * _ALIGNED)
        for a in range(first, last, step):
            yield a, min(a + step, last)

    def add(self, S: Array, first: int, out: Array, origin: int = 0) -> None:
        """Add the sound of frames S, the first of which is ``first``, to samples from origin on."""
        pieces = np.fft.irfft(S, self.window, axis=1) * self._dual
        begin, n = first * self.hop - self.window // 2 - origin, len(out)
        for p, piece in enumerate(pieces):
            a = begin + p * self.hop
            lost = max(0, -a)
            kept = piece[lost : max(lost, n - a)]
            out[a + lost : a + lost + len(kept)] += kept

    def inverse(self, S: Array, n_samples: int) -> Array:
        """The sound of all frames that touch it, (n_samples,)."""
        out = np.zeros(n_samples)
        self.add(S, self.touching(n_samples)[0], out)
        return out
