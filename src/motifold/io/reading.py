"""``read``: the reader of a file is found by its ending, or by the kind the user names."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse

from motifold.data.spike_lists import FEWEST, looks_like_spikes
from motifold.io.guards import RecordingError
from motifold.io.isolation import read_isolated
from motifold.io.matrices import Orientation
from motifold.io.recording import Missing, Negatives, Recording, orientation_hints
from motifold.io.spike_lists import (
    counted_rows,
    has_spikes,
    told_of_spikes,
)
from motifold.spectra.scales import SCALES

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
    ".parquet": "parquet",
    ".wav": "audio",
    ".flac": "audio",
    ".ogg": "audio",
    ".mp3": "audio",
    ".aiff": "audio",
    ".aif": "audio",
    ".m4a": "audio",
    ".nwb": "nwb",
    ".phy": "phy",  # a folder, which is known by what is in it
}
_MATRICES = {f"motifold.io.{name}" for name in ("npy", "mat", "hdf5", "zarr_store")}
_MOST_SPIKES = 10**8  # rows of two columns that are looked at
_FOR_ALL = {"kind", "rate", "negatives", "missing", "max_bytes"}
_CHOICES = {
    "orientation": ("time_first", "features_first"),
    "negatives": ("error", "clip", "shift", "keep"),
    "missing": ("error", "mask"),
    "scale": SCALES,
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
    unit: str | None = None
    units: str | None = None
    t_start: float | None = None
    t_stop: float | None = None
    window: int | None = None
    hop: int | None = None
    scale: str | None = None
    noise_floor: float | None = None
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

        if self.noise_floor is not None and not 0 <= self.noise_floor < 1:
            raise ValueError(f"noise_floor must be from 0 to below 1, not {self.noise_floor}.")

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
        ``.tsv``, ``.txt``, ``.parquet``, ``.nwb``, a sound (``.wav``, ``.flac``, ``.ogg``,
        ``.mp3``, ``.aiff``), or a folder of phy or Kilosort. Tables may have a row for each spike
        (see ``bin_size``).
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
            The column of a table that has the time in seconds, or dates; it gives the rate and the
            clock. Times may be rounded, to a unit of at most half a step; at gaps a segment ends,
            which ``hints`` tells. Of a table of spikes: the column of their times.
        bin_size : float
            Seconds of a time bin in which spikes are counted: of tables with a row for each spike,
            of phy folders and NWB files. Without it the error suggests one, from the data.
        unit : str
            The column (or its number, where there are no names) of a table of spikes that says
            which unit fired.
        units : str
            Which units of a phy folder or an NWB file: conditions on columns of theirs, such as
            "quality=good", "group=good|mua, firing_rate>=0.5" or "all". Of phy "group=good", if
            nothing is said.
        t_start, t_stop : float
            Seconds at which the bins of spikes begin and end; without them with the spikes (of an
            NWB file at 0).
        epochs : str
            Intervals of an NWB file, such as "trials", which become segments.
        window, hop : int
            Samples of the window of a sound's spectrogram, and from one to the next. Without them
            the power of two that has 40 ms or more, and a quarter of it. The middle of window t is
            at t · hop samples.
        scale : {"sqrt", "magnitude", "power", "log1p", "log"}
            Of the spectrogram: ``√|S|`` (the default), ``|S|``, ``|S|²``, ``log(1 + 1000·|S|)``, or
            the paper's ``log(|S| + 1e-6)`` less its minimum.
        noise_floor : float
            Of every frequency the level that it does not exceed in this share of the time is taken
            off, and what is below becomes zero: hiss and hum are no motifs. 0 switches it off.
            Without it 0.1 for "sqrt" and "log1p", 0 for the others.
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
    if has_spikes(chosen) and reader.__name__ in _MATRICES:
        recording = counted_rows(recording, chosen)
    signed = chosen.negatives == "keep"
    recording = replace(recording, missing=chosen.missing or "error", signed=signed)
    if chosen.negatives in ("clip", "shift"):
        recording = recording.checked(chosen.negatives)
    turned = "orientation" in reader.OPTIONS  # a sound tells its own
    hints = (*(orientation_hints(recording.shape) if turned else ()), *recording.hints)
    hints = (*_spikes_in(recording, chosen), *hints)
    return replace(recording, options={**recording.options, **chosen.given}, hints=hints)


def _spikes_in(recording: Recording, options: Options) -> tuple[str, ...]:
    """Refuse what is a list of spikes, unless it is said to be time × features.

    Of a file in which that must be said in any case, it is but a hint.
    """
    T, N = recording.shape
    if 2 not in (T, N) or options.time is not None or has_spikes(options):
        return ()
    if issparse(recording.X) or not FEWEST <= max(T, N) <= _MOST_SPIKES:
        return ()
    table, names = np.asarray(recording.X), recording.feature_names
    turned = N != 2
    columns = looks_like_spikes(table.T if turned else table)
    if columns is None:
        return ()
    told = told_of_spikes(
        recording.source, table.T if turned else table, None if turned else names, columns
    )
    if turned:
        told += ' Rows and columns are interchanged: orientation="features_first" as well.'
    if options.orientation is None:
        raise RecordingError(told)
    return (told,) if recording.source.endswith(".mat") else ()


def _check_for_spikes(path: Path, options: Options, reader: str) -> None:
    """Options of spikes where there are none, and those of clocks where there is no table."""
    has_them = has_spikes(options) or reader in ("motifold.io.nwb", "motifold.io.phy")
    for name in ("t_start", "t_stop"):
        if getattr(options, name) is not None and not has_them:
            raise RecordingError(f"{path}: {name} is for spikes; leave it out, or set bin_size.")
    if reader in _MATRICES and options.time is not None and not has_them:
        raise RecordingError(
            f"{path}: time says nothing about a matrix without names, unless its rows are spikes "
            "(unit, bin_size); leave time out, and give rate."
        )


def reader_of(path: Path, options: Options) -> Any:
    """The module that reads the file, if the options say something about such files."""
    ending = path.suffix.lower() if options.kind is None else "." + options.kind.lower().lstrip(".")
    if options.kind is None and (path / "spike_times.npy").is_file():
        ending = ".phy"
    if ending not in READERS:
        raise RecordingError(
            f"{path}: no reader for {ending or 'a name without ending'!r}. Name one of "
            f"{', '.join(sorted(e.lstrip('.') for e in READERS))} with kind."
        )
    reader = import_module(f"motifold.io.{READERS[ending]}")
    _check_for_spikes(path, options, reader.__name__)
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
