"""The estimate itself: numbers, and how they are told."""

from __future__ import annotations

from dataclasses import dataclass

from motifold.data.memory import told


@dataclass(frozen=True)
class Estimate:
    """What a fit will take, by about a second of measured work on excerpts; ``str`` tells it.

    Attributes
    ----------
    n_samples, n_features, n_segments : int
        Time bins, features and segments of the recording.
    n_components, n_lags : int
        Motifs and their lags.
    dtype : str
        The precision of the fit, "float32" or "float64".
    engine : str
        What computes, and where.
    n_threads : int or None
        Threads that it will use; None where that is not known here.
    iteration_seconds : float
        Of one iteration on the whole recording.
    n_iter : int
        Iterations of a typical start: those that excerpts needed, or a limit that comes first.
    n_starts : int
        Starts of the fit (``n_init``).
    fit_seconds : float
        Of the fit, all starts together. Later starts may be given up early: then it takes less.
    memory : int
        Bytes of this machine's memory beside X, at most.
    available : int
        Bytes that are available now.
    device_memory : int or None
        Bytes on the GPU, X included, where the fit is there.
    read : int
        Bytes of X that one iteration goes through, wherever X is.
    read_from_disk : int
        Those of them that come from the disk.
    measured_samples : int
        Bins of the longest excerpt that was measured.
    measured_seconds : float
        What measuring took.
    notes : tuple of str
        What else is to be known, and what to do.

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(3000, 20, 2, 8, random_state=0).X
    >>> estimate = CNMF(n_components=2, n_lags=8, random_state=0).estimate(X, seconds=0.1)
    >>> str(estimate).splitlines()[0]
    'recording  3,000 bins × 20 features, float64'
    >>> estimate.n_starts, estimate.fit_seconds > estimate.iteration_seconds
    (1, True)
    """

    n_samples: int
    n_features: int
    n_segments: int
    n_components: int
    n_lags: int
    dtype: str
    engine: str
    n_threads: int | None
    iteration_seconds: float
    n_iter: int
    n_starts: int
    fit_seconds: float
    memory: int
    available: int
    device_memory: int | None
    read: int
    read_from_disk: int
    measured_samples: int
    measured_seconds: float
    notes: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether the memory that is available is enough."""
        return self.memory <= self.available

    def __str__(self) -> str:
        """Some lines, a thing in each."""
        segments = f" in {self.n_segments} segments" if self.n_segments > 1 else ""
        starts = f" for each of {self.n_starts} starts" if self.n_starts > 1 else ""
        threads = {None: "", 1: ", 1 thread"}.get(self.n_threads, f", {self.n_threads} threads")
        disk = f", {told(self.read_from_disk)} of it from the disk" if self.read_from_disk else ""
        device = "" if self.device_memory is None else f"; on the GPU {told(self.device_memory)}"
        free = told(self.available) + (" are available" if self.fits else " are all there is")
        return "\n".join(
            [
                f"recording  {self.n_samples:,} bins × {self.n_features:,} features{segments}, "
                f"{self.dtype}",
                f"model      {self.n_components} motifs of {self.n_lags} lags",
                f"engine     {self.engine}{threads}",
                f"iteration  {duration(self.iteration_seconds)}",
                f"fit        about {duration(self.fit_seconds)} (some {self.n_iter} iterations"
                f"{starts})",
                f"memory     up to {told(self.memory)} beside X{device}; {free}",
                f"reads      {told(self.read)} of X an iteration{disk}",
                f"measured   {duration(self.measured_seconds)} of work, on "
                f"{self.measured_samples:,} bins at most",
                *(f"note       {note}" for note in self.notes),
            ]
        )


def duration(seconds: float) -> str:
    """Seconds for people, two digits of them.

    Examples
    --------
    >>> from motifold.forecast.estimate import duration
    >>> duration(0.0123), duration(4.21), duration(125), duration(9000)
    ('12 ms', '4.2 s', '2.1 min', '2.5 h')
    """
    for unit, size, largest in (("ms", 1e-3, 1), ("s", 1, 99.5), ("min", 60, 5970)):
        if seconds < largest:
            return f"{_rounded(seconds / size)} {unit}"
    return f"{_rounded(seconds / 3600)} h"


def _rounded(number: float) -> str:
    return f"{number:.2g}" if number < 99.5 else f"{number:.0f}"
