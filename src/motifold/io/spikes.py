"""Spike times, counted in bins: from lists, dictionaries, and whatever reads them from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csc_array, csr_array, issparse

from motifold.io.binning import BinSize, suggest_bin_size
from motifold.io.guards import RecordingError, allowed_bytes
from motifold.io.recording import Recording

Times = npt.NDArray[np.float64]

_SMALL = 2**24  # bytes up to which counts are an array, whatever is in it
_SPARSE = 0.05  # of the entries, beyond which a sparse matrix is no faster to fit
_SAVING = 4  # times the memory of a sparse matrix that an array has to take
_EDGE = 1e-6  # of a bin, by which a spike may lie before its edge: times are rounded


@dataclass(frozen=True)
class Stretch:
    """A stretch of time that is cut into bins: it becomes a segment."""

    start: float
    n_bins: int


@dataclass(frozen=True)
class Spikes:
    """Spike times of units, checked.

    Attributes
    ----------
    units : names
    times : one array of seconds for each
    source : what messages call it
    hints : what was done on the way
    """

    units: tuple[str, ...]
    times: tuple[Times, ...]
    source: str
    hints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not any(len(part) for part in self.times):
            raise RecordingError(f"{self.source}: there are no spikes, of {len(self.units)} units.")
        for unit, part in zip(self.units, self.times, strict=True):
            bad = np.flatnonzero(~np.isfinite(part))
            if bad.size:
                raise RecordingError(
                    f"{self.source}: spike {bad[0]} of unit {unit} has no time ({part[bad[0]]}). "
                    "Remove such spikes."
                )

    @property
    def n_spikes(self) -> int:
        return sum(map(len, self.times))

    @property
    def ends(self) -> tuple[float, float]:
        """First and last time of all spikes."""
        filled = [part for part in self.times if len(part)]
        return min(float(part.min()) for part in filled), max(float(part.max()) for part in filled)

    def suggested(self) -> BinSize:
        """A length for the bins, from the data."""
        return suggest_bin_size(self.times)

    def needed_bin_size(self, bin_size: float | None) -> float:
        """It, or an error that suggests one."""
        if bin_size is None:
            found = self.suggested()
            raise RecordingError(
                f"{self.source}: spikes are counted in bins: set bin_size, in seconds. From the "
                f"data: bin_size={found.seconds:g} ({found.reason})."
            )
        if not (np.isfinite(bin_size) and bin_size > 0):
            raise RecordingError(f"{self.source}: bin_size must be positive, not {bin_size}.")
        return float(bin_size)

    def stretch(self, bin_size: float, t_start: float | None, t_stop: float | None) -> Stretch:
        """From ``t_start`` to ``t_stop``; what is not said is where the spikes begin and end.

        Then it begins at a whole number of bins, so that files of one clock have the same bins.
        """
        first, last = self.ends
        start = np.floor(first / bin_size + _EDGE) * bin_size if t_start is None else t_start
        stop = last if t_stop is None else t_stop
        if not (np.isfinite(start) and np.isfinite(stop) and stop >= start):
            raise RecordingError(
                f"{self.source}: there is nothing from t_start {start:g} to t_stop {stop:g} s; "
                f"the spikes are from {first:g} to {last:g} s."
            )
        bins = (stop - start) / bin_size
        # The last spike has a bin; a stop that is said ends the last whole one.
        return Stretch(float(start), int(np.floor(bins + _EDGE)) + (t_stop is None))

    def counted(
        self,
        bin_size: float,
        stretches: Sequence[Stretch],
        *,
        sparse: bool | None = None,
        max_bytes: int | None = None,
    ) -> Recording:
        """The recording of counts; memory for it is looked at before it is taken."""
        T = sum(stretch.n_bins for stretch in stretches)
        if T < 1:
            raise RecordingError(
                f"{self.source}: the time to be cut is shorter than one bin of {bin_size:g} s."
            )
        sparse = self._is_sparse(T) if sparse is None else sparse
        self._check_size(T, bin_size, sparse, max_bytes)
        X = self._sparse(bin_size, stretches) if sparse else self._dense(bin_size, stretches)
        inside, hints = int(X.sum(dtype=np.float64)), self.hints
        if inside < self.n_spikes:
            hints += (f"{self.n_spikes - inside} of {self.n_spikes} spikes lie outside the bins.",)
        if inside == 0:
            first, last = self.ends
            raise RecordingError(
                f"{self.source}: no spike lies in the bins; they are from {first:g} to {last:g} s."
            )
        lengths = tuple(stretch.n_bins for stretch in stretches)
        return Recording(
            X,
            self.source,
            1 / bin_size,
            self.units,
            lengths if len(lengths) > 1 else None,
            hints=hints,
            starts=tuple(stretch.start for stretch in stretches),
        )

    def _is_sparse(self, T: int) -> bool:
        dense, held = 4 * T * len(self.units), 4 * T + 8 * self.n_spikes
        few = self.n_spikes <= _SPARSE * T * len(self.units)
        return dense > _SMALL and few and _SAVING * held <= dense

    def _check_size(self, T: int, bin_size: float, sparse: bool, max_bytes: int | None) -> None:
        needed = 8 * T + 12 * self.n_spikes if sparse else 4 * T * len(self.units)
        limit = allowed_bytes(8 * self.n_spikes, max_bytes)
        if needed > limit:
            first, last = self.ends
            raise RecordingError(
                f"{self.source}: {self.n_spikes} spikes of {len(self.units)} units from {first:g} "
                f"to {last:g} s in bins of {bin_size:g} s take {T} bins, {needed} bytes "
                f"({needed / 2**30:.1f} GiB), more than the {limit} allowed. Are the times in "
                "seconds, and all of them right? If so, take longer bins (bin_size), a part "
                f"(t_start, t_stop), or set max_bytes to {needed} or more."
            )

    def _places(
        self, part: Times, bin_size: float, stretches: Sequence[Stretch]
    ) -> npt.NDArray[np.int64]:
        """The rows in which spikes of a unit fall."""
        rows, first = [], 0
        for stretch in stretches:
            bins = np.floor((part - stretch.start) / bin_size + _EDGE)
            inside = bins[(bins >= 0) & (bins < stretch.n_bins)]
            rows.append(first + inside.astype(np.int64))
            first += stretch.n_bins
        return np.concatenate(rows)

    def _dense(self, bin_size: float, stretches: Sequence[Stretch]) -> npt.NDArray[np.float32]:
        T = sum(stretch.n_bins for stretch in stretches)
        X = np.zeros((T, len(self.units)), np.float32)
        for n, part in enumerate(self.times):
            np.add.at(X[:, n], self._places(part, bin_size, stretches), 1)
        return X

    def _sparse(self, bin_size: float, stretches: Sequence[Stretch]) -> Any:
        T = sum(stretch.n_bins for stretch in stretches)
        found = [
            np.unique(self._places(part, bin_size, stretches), return_counts=True)
            for part in self.times
        ]
        ends = np.r_[0, np.cumsum([len(rows) for rows, _ in found])]
        rows, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
        shape = (T, len(self.units))
        return csc_array((counts.astype(np.float32), rows, ends), shape=shape).tocsr()


def from_spikes(
    spikes: Any,
    *,
    bin_size: float | None = None,
    t_start: float | None = None,
    t_stop: float | None = None,
    units: Sequence[Any] | None = None,
    sparse: bool | None = None,
    max_bytes: int | None = None,
) -> Recording:
    """Count spikes in bins: a recording of times × units.

    Parameters
    ----------
    spikes : list of array-like, dict, or pynapple.TsGroup
        Spike times in seconds, in any order: of each unit, or ``{unit: times}``.
    bin_size : float or None
        Seconds of a bin. Without it, the error suggests one.
    t_start, t_stop : float or None
        Where the first bin begins and the last one ends, in seconds; spikes outside are left out,
        which ``hints`` tells. None: the whole bin before the first spike, and the last spike (of a
        ``TsGroup`` its epochs).
    units : sequence or None
        Which units, in which order; what is not in a dict has no spikes. None takes all.
    sparse : bool or None
        Whether X is a sparse matrix; None makes it one where it is long and at most 5 % is not
        zero.
    max_bytes : int or None
        How much memory the counts may take; None means 256 MiB, or 200 times what the spikes do.

    Returns
    -------
    Recording
        ``starts`` has the clock, ``feature_names`` the units.

    Examples
    --------
    >>> from motifold.io import from_spikes
    >>> recording = from_spikes({"a": [10.0, 10.3], "b": [10.11]}, bin_size=0.1)
    >>> recording.feature_names, recording.starts, recording.X.tolist()
    (('a', 'b'), (10.0,), [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    """
    if type(spikes).__name__ == "TsGroup":
        from motifold.io.pynapple_objects import from_pynapple

        if units is not None or t_start is not None or t_stop is not None:
            raise ValueError(
                "units, t_start and t_stop are not for a TsGroup: take group[units] or "
                "group.restrict(IntervalSet(t_start, t_stop))."
            )
        return from_pynapple(spikes, bin_size=bin_size, sparse=sparse, max_bytes=max_bytes)
    given = _named(spikes)
    if units is not None:
        unknown = [] if isinstance(spikes, Mapping) else [u for u in units if str(u) not in given]
        if unknown:
            raise ValueError(f"units: there is no {unknown[0]!r} among {len(given)} lists.")
        given = {str(unit): given.get(str(unit), np.empty(0)) for unit in units}
    found = Spikes(tuple(given), tuple(given.values()), "the spikes")
    bins = found.needed_bin_size(bin_size)
    stretch = found.stretch(bins, t_start, t_stop)
    recording = found.counted(bins, [stretch], sparse=sparse, max_bytes=max_bytes)
    return replace(recording, hints=recording.hints + ends_told(recording, t_start, t_stop))


def with_units(recording: Recording, units: Any) -> Recording:
    """Counts of these units, in their order: those of which a file has no spikes are silent.

    What are no counts of spikes, or has units that are not among these, stays as it is.
    """
    have = recording.feature_names
    if units is None or have is None or "bin_size" not in recording.options:
        return recording
    names = tuple(str(unit) for unit in units)
    if have == names or not set(have) < set(names):
        return recording
    places = [names.index(name) for name in have]
    T = recording.shape[0]
    X: Any
    if issparse(recording.X):
        entries = recording.X.tocoo()
        columns = np.asarray(places)[entries.coords[1]]
        X = csr_array((entries.data, (entries.coords[0], columns)), shape=(T, len(names)))
    else:
        X = np.zeros((T, len(names)), recording.X.dtype)
        X[:, places] = recording.X
    silent = len(names) - len(have)
    told = f"{silent} of the {len(names)} units of the model have no spikes here: they are silent."
    return replace(recording, X=X, feature_names=names, hints=(*recording.hints, told))


def ends_told(recording: Recording, t_start: float | None, t_stop: float | None) -> tuple[str, ...]:
    """Where the bins begin and end, if the spikes alone say so."""
    if t_start is not None and t_stop is not None:
        return ()
    times = recording.times
    first, last = times[0], times[-1] + 1 / (recording.rate or 1)
    which = "end" if t_start is not None else "begin" if t_stop is not None else "begin and end"
    return (
        f"Bins are from {first:.10g} to {last:.10g} s: they {which} with the spikes. Give t_start "
        "and t_stop if the recording did not.",
    )


def _named(spikes: Any) -> dict[str, Times]:
    """Times of each unit by its name."""
    if isinstance(spikes, Mapping):
        listed = {str(unit): part for unit, part in spikes.items()}
        if len(listed) < len(spikes):
            raise ValueError("Two units have the same name, as text: give each its own.")
    elif isinstance(spikes, (list, tuple)):
        listed = {str(n): part for n, part in enumerate(spikes)}
    else:
        raise TypeError(
            "from_spikes takes a list of arrays of spike times, a dict {unit: times} or a TsGroup, "
            f"not {type(spikes).__name__}. Of a table of (unit, time) make one: "
            "{u: time[unit == u] for u in np.unique(unit)}."
        )
    return {unit: _times_of(unit, part) for unit, part in listed.items()}


def _times_of(unit: str, part: Any) -> Times:
    array = np.asarray(part.index if hasattr(part, "time_support") else part)
    if array.size == 0:
        return np.empty(0)
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise TypeError(
            f"The spike times of unit {unit} must be numbers in a row, in seconds; they have shape "
            f"{array.shape} and type {array.dtype}."
        )
    return array.astype(np.float64)
