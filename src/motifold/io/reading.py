"""``read``: the reader of a file is found by its ending, or by the kind the user names."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from motifold.io.guards import RecordingError
from motifold.io.isolation import read_isolated
from motifold.io.matrices import Orientation
from motifold.io.recording import Missing, Negatives, Recording, orientation_hints

# Ending of the name to the module that reads it. A reader has OPTIONS, the options it understands,
# and read(path, options).
READERS = {
    ".npy": "npy",
    ".npz": "npy",
    ".mat": "mat",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".hdf": "hdf5",
    ".zarr": "zarr_store",
    ".csv": "tables",
    ".tsv": "tables",
    ".txt": "tables",
    ".parquet": "tables",
    ".wav": "audio",
    ".flac": "audio",
    ".ogg": "audio",
    ".nwb": "nwb",
}
_FOR_ALL = {"kind", "rate", "negatives", "missing", "max_bytes"}
_CHOICES = {
    "orientation": ("time_first", "features_first"),
    "negatives": ("error", "clip", "shift", "keep"),
    "missing": ("error", "mask"),
    "scale": ("magnitude", "power", "log"),
}


@dataclass(frozen=True)
class Options:
    """How to read a file; what is None is not said. ``read`` explains each.

    Examples
    --------
    >>> from motifold.io import Options
    >>> Options(key="SONG", orientation="features_first").given
    {'key': 'SONG', 'orientation': 'features_first'}
    """

    kind: str | None = None
    key: str | None = None
    orientation: Orientation | None = None
    rate: float | str | None = None
    negatives: Negatives | None = None
    missing: Missing | None = None
    max_bytes: int | None = None
    time: str | None = None
    bin_size: float | None = None
    epochs: str | None = None
    window: int | None = None
    hop: int | None = None
    scale: str | None = None
    channel: int | None = None

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value is not None and value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}.")
        for name in ("bin_size", "window", "hop", "max_bytes"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be positive, not {value}.")

    @property
    def given(self) -> dict[str, Any]:
        """The options that say something."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def read(path: str | os.PathLike[str], *, isolate: bool = False, **options: Any) -> Recording:
    """Read a recording from a file.

    Nothing in the file is executed, and nothing but the file is read. Large data stays on disk:
    npy files, uncompressed npz members and contiguous HDF5 datasets are mapped into memory; other
    HDF5 and zarr data is read when it is needed, by a fit into one array, a block at a time.

    Parameters
    ----------
    path : str or path
        ``.npy``, ``.npz``, ``.mat`` (v5 and v7.3), ``.h5``/``.hdf5``, ``.zarr``, ``.csv``,
        ``.tsv``, ``.parquet``, ``.wav``, ``.flac``, ``.ogg`` or ``.nwb``.
    isolate : bool, default=False
        Read the file in a process of its own, for files from elsewhere: the libraries that read
        HDF5, MATLAB and parquet files can crash, hang or swell at damaged ones. There it is an
        error that names the file. It costs about a second; values go from process to process.
    **options
        kind : str
            The ending that the name should have had, such as "wav".
        key : str
            The variable (npz, mat), the dataset's path (HDF5, zarr) or the time series (NWB).
        orientation : {"time_first", "features_first"}
            How the table lies in the file. Time first is the rule; of a ``.mat`` file, where there
            is none, it must be said. It is never guessed.
        rate : float or str
            Time bins per second; of a ``.mat`` file also the name of the variable that has it.
        negatives : {"error", "clip", "shift", "keep"}
            What becomes of negative values: an error, zero, all values up by the same, or they
            stay as they are, for a model with ``allow_negative=True``.
        missing : {"error", "mask"}
            What NaN is, and what the file declares to be missing by ``_FillValue`` or
            ``missing_value``: an error, or a missing entry (``Recording.mask``). With "mask" empty
            cells of a table are missing too.
        max_bytes : int
            How many bytes the data, or a chunk of it, may take. Without it 256 MiB (a chunk 64
            MiB), or 200 times what the file has.
        time : str
            The column of a table that has the time in seconds; it gives the rate.
        bin_size : float
            Seconds of a time bin in which the spikes of an NWB file are counted.
        epochs : str
            Intervals of an NWB file, such as "trials", which become segments.
        window, hop : int
            Samples of the window of a sound's spectrogram, and from one to the next.
        scale : {"log", "magnitude", "power"}
            Of the spectrogram; "log" is ``log(|S| + 1e-6)`` less its minimum.
        channel : int
            Of a sound, from 0; without it the mean of all is taken.

    Returns
    -------
    Recording

    Raises
    ------
    RecordingError
        If the file cannot be used as it is; the message names the file and the fix.
    ImportError
        If a library is missing; the message names the extra to install.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from motifold.io import read
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "counts.npy")
    ...     np.save(path, np.ones((1000, 8)))
    ...     recording = read(path, rate=100.0)
    >>> recording.shape, recording.seconds
    ((1000, 8), 10.0)
    """
    try:
        chosen = Options(**options)
    except TypeError:
        known = {f.name for f in fields(Options)}
        unknown = ", ".join(sorted(set(options) - known))
        told = f"read has no option {unknown}; it has {', '.join(sorted(known))}."
        raise TypeError(told) from None
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file.")
    reader = reader_of(file, chosen)
    recording: Recording
    recording = read_isolated(file, chosen.given) if isolate else reader.read(file, chosen)
    signed = chosen.negatives == "keep"
    recording = replace(recording, missing=chosen.missing or "error", signed=signed)
    if chosen.negatives in ("clip", "shift"):
        recording = recording.checked(chosen.negatives)
    hints = (*orientation_hints(recording.shape), *recording.hints)
    return replace(recording, options=chosen.given, hints=hints)


def reader_of(path: Path, options: Options) -> Any:
    """The module that reads the file, if the options say something about such files."""
    ending = path.suffix.lower() if options.kind is None else "." + options.kind.lower().lstrip(".")
    if ending not in READERS:
        raise RecordingError(
            f"{path}: no reader for {ending or 'a name without ending'!r}. Name one of "
            f"{', '.join(sorted(e.lstrip('.') for e in READERS))} with kind."
        )
    reader = import_module(f"motifold.io.{READERS[ending]}")
    idle = sorted(options.given.keys() - reader.OPTIONS - _FOR_ALL)
    if idle:
        raise RecordingError(
            f"{path}: {', '.join(idle)} says nothing about a {ending} file; leave it out."
        )
    if isinstance(options.rate, str) and reader.__name__ != "motifold.io.mat":
        raise RecordingError(
            f"{path}: the rate {options.rate!r} is no number. Only a .mat file has a variable for "
            "it; give a number with rate."
        )
    return reader
