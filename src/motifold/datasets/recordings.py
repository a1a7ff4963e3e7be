"""The paper's two recordings: a songbird's song, and speech of the kind it used."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.datasets import download
from motifold.files import written_whole
from motifold.fit.progress import work_bar

Floats = npt.NDArray[np.float64]

_SONG_REPOSITORY = "FeeLab/seqNMF"
_SONG_COMMIT = "229b9b19ac3a34b8378945ec7f9e331e004bb777"
_SONG_FILE = "MackeviciusData.mat"
_SONG_SHA256 = "6d37559649f5ea03e23c4a8b80ce8edeb55fe8b559c586b06785bfde2a7ee112"

_DIGITS_REPOSITORY = "Jakobovski/free-spoken-digit-dataset"
_DIGITS_COMMIT = "26eb9aaf76e81b692f806f9140c2d2777410d7a1"
_DIGITS_FOLDER = "recordings"
_DIGITS_FILE = "spoken_digits_two_speakers_8k.wav"
# Of the samples as little-endian 16-bit integers: the single files have no published checksums.
_DIGITS_SHA256 = "cb00bc21ba26309dd1c7c094c802c6bb29c181b4398179f2a64fdf8cf334013e"
_N_SAMPLES = 2_579_456
_RATE = 8000
_SPEAKERS = ("jackson", "nicolas")
_TAKES = 50
_WINDOW, _OVERLAP = 512, 384
_CONNECTIONS = 8


@dataclass(frozen=True)
class Songbird:
    """A songbird's song and, at the same time, the activity of neurons in its brain.

    Attributes
    ----------
    song : ndarray of shape (4440, 141)
        Spectrogram: time × frequency, values 0 to 1.
    neural : ndarray of shape (666, 75)
        Deconvolved calcium traces: time × neurons.
    song_rate, neural_rate : float
        Time bins per second: 200 and 30.
    song_times, neural_times : ndarrays of shape (4440,) and (666,)
        Seconds. (The file has no frequency axis.)

    Examples
    --------
    Made up here; ``fetch_songbird`` gets the real one.

    >>> import numpy as np
    >>> from motifold.datasets import Songbird
    >>> bird = Songbird(np.ones((400, 141)), np.ones((60, 75)), song_rate=200.0, neural_rate=30.0)
    >>> float(bird.song_times[-1]), len(bird.neural_times)
    (1.995, 60)
    """

    song: Floats
    neural: Floats
    song_rate: float
    neural_rate: float

    @property
    def song_times(self) -> Floats:
        """Start of each time bin of the song, in seconds."""
        return np.arange(len(self.song)) / self.song_rate

    @property
    def neural_times(self) -> Floats:
        """Start of each time bin of the traces, in seconds."""
        return np.arange(len(self.neural)) / self.neural_rate


@dataclass(frozen=True)
class SpokenDigits:
    """Two men speaking digits in turn: the waveform and the paper's spectrogram of it.

    Attributes
    ----------
    waveform : ndarray of shape (2579456,)
        Samples, −1 to 1.
    rate : float
        Samples per second of the waveform: 8000.
    spectrogram : ndarray of shape (20149, 257)
        Log magnitude shifted to be nonnegative: time × frequency.
    frame_rate : float
        Time bins per second of the spectrogram: 62.5.
    times : ndarray of shape (20149,)
        Centre of each time bin's window, in seconds.
    frequencies : ndarray of shape (257,)
        In Hz.

    Examples
    --------
    >>> from motifold.datasets import fetch_spoken_digits
    >>> speech = fetch_spoken_digits()  # doctest: +SKIP
    >>> X = speech.spectrogram[: int(40 * speech.frame_rate)]  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (2500, 257)
    """

    waveform: Floats
    rate: float
    spectrogram: Floats
    frame_rate: float
    times: Floats
    frequencies: Floats


def fetch_songbird(
    *, data_home: str | os.PathLike[str] | None = None, progress: bool = True
) -> Songbird:
    """Get the songbird data of the paper's section IV-B.

    It comes with seqNMF (Mackevicius et al. 2019; MIT licence). It is downloaded once (1.5 MB),
    checked, and kept in the operating system's cache; a download that broke off is continued.

    Parameters
    ----------
    data_home : path or None, default=None
        A folder that has ``MackeviciusData.mat``: nothing is downloaded. None takes the folder in
        the environment variable ``MOTIFOLD_DATA``, if there is one.
    progress : bool, default=True
        Show a progress bar while downloading.

    Returns
    -------
    Songbird

    Examples
    --------
    >>> from motifold.datasets import fetch_songbird
    >>> bird = fetch_songbird()  # doctest: +SKIP
    >>> bird.song.shape, bird.song_rate  # doctest: +SKIP
    ((4440, 141), 200.0)
    """
    from scipy.io import loadmat

    folder = _given_folder(data_home)
    path = _download_song(progress) if folder is None else _song_in(folder)
    content = loadmat(path, variable_names=["SONG", "NEURAL", "SONGfs", "VIDEOfs"])
    return Songbird(
        song=np.ascontiguousarray(content["SONG"].T, dtype=np.float64),
        neural=np.ascontiguousarray(content["NEURAL"].T, dtype=np.float64),
        song_rate=float(content["SONGfs"].item()),
        neural_rate=float(content["VIDEOfs"].item()),
    )


def fetch_spoken_digits(
    *, data_home: str | os.PathLike[str] | None = None, progress: bool = True
) -> SpokenDigits:
    """Get speech of the size and kind of the paper's section IV-C.

    The paper's recording was never published. This one is put together from the Free Spoken Digit
    Dataset (CC BY-SA 4.0) so that the spectrogram has the paper's shape. Several hundred small
    files are downloaded once, put together, checked, and kept in the operating system's cache; a
    set that is incomplete is completed by the next call.

    Parameters
    ----------
    data_home : path or None, default=None
        A folder that has ``spoken_digits_two_speakers_8k.wav``, or the data set's folder
        ``recordings``: nothing is downloaded. None takes the folder in the environment variable
        ``MOTIFOLD_DATA``, if there is one.
    progress : bool, default=True
        Show a progress bar while downloading.

    Returns
    -------
    SpokenDigits

    Examples
    --------
    >>> from motifold.datasets import fetch_spoken_digits
    >>> speech = fetch_spoken_digits()  # doctest: +SKIP
    >>> speech.spectrogram.shape, speech.frame_rate  # doctest: +SKIP
    ((20149, 257), 62.5)
    """
    folder = _given_folder(data_home)
    samples = _download_digits(progress) if folder is None else _digits_in(folder)
    waveform = samples / 32768
    frequencies, times, spectrogram = _spectrogram(waveform)
    return SpokenDigits(
        waveform=waveform,
        rate=float(_RATE),
        spectrogram=spectrogram,
        frame_rate=_RATE / (_WINDOW - _OVERLAP),
        times=times,
        frequencies=frequencies,
    )


def _spectrogram(waveform: Floats) -> tuple[Floats, Floats, Floats]:
    """Frequencies, times, and log magnitude shifted to be nonnegative, (time, frequency)."""
    from scipy.signal import stft

    frequencies, times, S = stft(
        waveform,
        fs=_RATE,
        window="hann",
        nperseg=_WINDOW,
        noverlap=_OVERLAP,
        boundary=None,
        padded=False,
    )
    X = np.log(np.abs(S).T + 1e-6)
    X -= X.min()
    return frequencies, times, np.ascontiguousarray(X)


# --- from a folder --------------------------------------------------------------------------


def _given_folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    """The folder of the argument or the environment; None means the network."""
    source = "data_home" if data_home is not None else "MOTIFOLD_DATA"
    name = os.fspath(data_home) if data_home is not None else os.environ.get("MOTIFOLD_DATA")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{source} is {str(folder)!r}, which is not a folder. Give the folder that has the "
            "data, or none to download it."
        )
    return folder


def _song_in(folder: Path) -> Path:
    path = folder / _SONG_FILE
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {_SONG_FILE}. {_how_to_get_song()}")
    if hashlib.sha256(path.read_bytes()).hexdigest() != _SONG_SHA256:
        raise ValueError(
            f"{path} is not the file it should be: its sha256 is not {_SONG_SHA256}. "
            f"{_how_to_get_song()}"
        )
    return path


def _digits_in(folder: Path) -> npt.NDArray[np.int16]:
    path, parts = folder / _DIGITS_FILE, folder / _DIGITS_FOLDER
    if path.is_file():
        samples = _read_wav(path)
    elif parts.is_dir():
        samples = _assemble(lambda take: [_existing(parts / name) for name in _names(take)])
    else:
        raise FileNotFoundError(
            f"{folder} has neither {_DIGITS_FILE} nor {_DIGITS_FOLDER}/. {_how_to_get_digits()}"
        )
    if not _are_the_digits(samples):
        raise ValueError(
            f"The samples in {folder} are not those they should be: their sha256 is not "
            f"{_DIGITS_SHA256}. {_how_to_get_digits()}"
        )
    return samples


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no {path.name}. {_how_to_get_digits()}")
    return path


def _how_to_get_song() -> str:
    return (
        f"Get {_SONG_FILE} from {download.address(_SONG_REPOSITORY, _SONG_COMMIT, _SONG_FILE)}, "
        "put it into a folder, and give the folder by data_home=... or by MOTIFOLD_DATA in the "
        "environment."
    )


def _how_to_get_digits() -> str:
    return (
        f"Get the folder {_DIGITS_FOLDER}/ of github.com/{_DIGITS_REPOSITORY} at commit "
        f"{_DIGITS_COMMIT}, and give the folder it is in by data_home=... or by MOTIFOLD_DATA in "
        "the environment."
    )


# --- from the network -----------------------------------------------------------------------


def _download_song(progress: bool) -> Path:
    url = download.address(_SONG_REPOSITORY, _SONG_COMMIT, _SONG_FILE)
    folder = download.cache_folder()
    shown = progress and not (folder / _SONG_FILE).exists()
    with download.quietly(), work_bar(1, _SONG_FILE, "B", shown=shown) as bar:

        def show(done: int, total: int) -> None:
            bar.unit_scale = True
            bar.total = total or None
            bar.update(done - bar.n)

        try:
            return download.download(url, folder, sha256=_SONG_SHA256, on_bytes=show)
        except download.DownloadError as error:
            raise download.DownloadError(f"{error}\n{_how_to_get_song()}") from error


def _download_digits(progress: bool) -> npt.NDArray[np.int16]:
    folder = download.cache_folder()
    path = folder / _DIGITS_FILE
    if path.is_file():
        samples = _read_wav(path)
        if _are_the_digits(samples):
            return samples
    parts = folder / "spoken_digits"
    with (
        download.quietly(),
        work_bar(_N_SAMPLES, "spoken digits", " samples", shown=progress) as bar,
        ThreadPoolExecutor(_CONNECTIONS) as pool,
    ):

        def paths_of(take: int) -> list[Path]:
            return list(pool.map(lambda name: _download_digit(name, parts), _names(take)))

        try:
            samples = _assemble(paths_of, lambda n: bar.update(n - bar.n))
        except ValueError:  # a file that is no recording, such as a proxy's page
            samples = np.zeros(0, np.int16)
    if not _are_the_digits(samples):
        shutil.rmtree(parts)
        raise download.DownloadError(
            "The spoken digits that were downloaded are not those they should be (wrong sha256), "
            f"so they were thrown away. Try again. {_how_to_get_digits()}"
        )
    _write_wav(path, samples)
    shutil.rmtree(parts)
    return samples


def _download_digit(name: str, folder: Path) -> Path:
    url = download.address(_DIGITS_REPOSITORY, _DIGITS_COMMIT, f"{_DIGITS_FOLDER}/{name}")
    try:
        return download.download(url, folder)
    except download.DownloadError as error:
        raise download.DownloadError(
            f"{error}\nThe files that came are kept; call again to go on from there. "
            f"{_how_to_get_digits()}"
        ) from error


# --- putting the digits together ------------------------------------------------------------


def _names(take: int) -> Iterator[str]:
    return (f"{digit}_{speaker}_{take}.wav" for digit in range(10) for speaker in _SPEAKERS)


def _assemble(
    paths_of: Callable[[int], list[Path]], tell: Callable[[int], Any] = lambda n: None
) -> npt.NDArray[np.int16]:
    """Take after take, until there are enough samples; ``tell`` hears how many there are."""
    pieces: list[npt.NDArray[np.int16]] = []
    count = 0
    for take in range(_TAKES):
        for path in paths_of(take):
            pieces.append(_read_wav(path))
            count += len(pieces[-1])
        tell(min(count, _N_SAMPLES))
        if count >= _N_SAMPLES:
            break
    return np.concatenate(pieces)[:_N_SAMPLES]


def _read_wav(path: Path) -> npt.NDArray[np.int16]:
    from scipy.io import wavfile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wavfile.WavFileWarning)  # chunks other than the samples
        _, samples = wavfile.read(path)
    return np.asarray(samples, dtype=np.int16)


def _write_wav(path: Path, samples: npt.NDArray[np.int16]) -> None:
    from scipy.io import wavfile

    with written_whole(path) as file:
        wavfile.write(file, _RATE, samples)


def _are_the_digits(samples: npt.NDArray[np.int16]) -> bool:
    return hashlib.sha256(samples.astype("<i2").tobytes()).hexdigest() == _DIGITS_SHA256
