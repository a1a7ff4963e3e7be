"""From a recording to findings that hold, in one call."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from motifold.data.given import takes_recordings
from motifold.estimator import CNMF
from motifold.files import fingerprint_of_all
from motifold.findings.discovering import PARTS, Work
from motifold.findings.matching import match_motifs
from motifold.findings.overlap import Floats
from motifold.findings.prepared import Prepared
from motifold.findings.profiles import motif_extent
from motifold.findings.pursuit import Train
from motifold.findings.refit import event_table
from motifold.findings.sequences import (
    Verdict,
    verdicts_of,
)
from motifold.findings.stages import Arrays, Stages
from motifold.findings.table import Table
from motifold.fit.progress import work_bar

_LEAST_MOTIFS = 2  # lengths of a motif that each part of a recording must have


@dataclass(frozen=True)
class Discovery:
    """What a recording holds: motifs, whether each is a sequence, and when it occurs.

    Attributes
    ----------
    model : CNMF or None
        A plain fit of the recording, started from ``motifs``: its ``components_`` are in the same
        order, but blurred as those of a fit are. None where nothing was found.
    motifs : ndarray of shape (K, n_lags, n_features)
        Sharpened motifs, in the units of X at an event of strength 1.
    background : ndarray of shape (n_features,)
        What each feature does besides.
    p_recurrence, p_order : ndarray of shape (K,)
        On each quarter of the recording, by motifs of the other three; all four together.
    n_places : ndarray of int, shape (K,)
        Places at which order was compared, in all quarters.
    n_starts : ndarray of int, shape (K,)
        Starts (of 3) that found the motif.
    alpha, fdr : float
        Level of the verdicts, and false discovery rate of the events.
    rate : float or None
        Time bins per second.
    shape : tuple of int
        Of the recording.

    Examples
    --------
    >>> import motifold
    >>> from motifold.datasets import make_sequences
    >>> data = make_sequences(
    ...     1200, 30, 2, 12, activation_probability=0.02, noise=0.1, random_state=0
    ... )
    >>> found = motifold.discover(data.X, n_lags=12, random_state=0, n_jobs=1, progress=False)
    >>> found.n_components, found.verdicts
    (2, ['sequence', 'sequence'])
    """

    model: CNMF | None
    motifs: Floats
    background: Floats
    p_recurrence: Floats
    p_order: Floats
    n_places: Any
    n_starts: Any
    train: Train
    q: Floats
    lengths: list[int]
    alpha: float
    fdr: float
    rate: float | None
    shape: tuple[int, int]
    left: float

    @property
    def verdicts(self) -> list[Verdict]:
        """A word for each motif: "sequence", "synchrony" or "not significant"."""
        return verdicts_of(self.p_recurrence, self.p_order, self.alpha)

    @property
    def n_components(self) -> int:
        """How many of the motifs are sequences; none is an answer."""
        return self.verdicts.count("sequence")

    @cached_property
    def events(self) -> Table:
        """Events of all motifs that are sequences or synchrony, in the order of time.

        ``time`` is that of the motif's lag 0 and ``centre`` that of its centre of mass, both from
        the start of the segment, in seconds or, without a rate, in bins; ``bin`` the row of lag 0;
        ``strength`` the amplitude; ``score`` the match with the motif of all other events, in
        units of the noise; ``q_value`` the false discovery rate at which it is kept.
        """
        told = [k for k, verdict in enumerate(self.verdicts) if verdict != "not significant"]
        return event_table(self.train, self.q, self.motifs, self.lengths, self.rate or 1.0, told)

    @cached_property
    def table(self) -> Table:
        """One row for each motif: verdict, p-values, events, features, length, starts."""
        K = len(self.motifs)
        counts = self.train.counts(K)
        extent = motif_extent(self.motifs) if K else None
        records = [
            {
                "motif": k,
                "verdict": verdict,
                "p_recurrence": float(self.p_recurrence[k]),
                "p_order": float(self.p_order[k]),
                "n_places": int(self.n_places[k]),
                "n_events": int(counts[k]),
                "n_features": self._n_features(k),
                "length": int(extent.length[k]) if extent is not None else 0,
                "n_starts": int(self.n_starts[k]),
            }
            for k, verdict in enumerate(self.verdicts)
        ]
        columns = ["motif", "verdict", "p_recurrence", "p_order", "n_places", "n_events"]
        return Table(records, [*columns, "n_features", "length", "n_starts"])

    def to_pandas(self) -> Any:
        """The table of motifs as a ``pandas.DataFrame``."""
        return self.table.to_pandas()

    def summary(self) -> str:
        """Sentences for a paper, every number of them computed, and what they do not say."""
        from motifold.findings.telling import sentences_of

        return "\n".join(sentences_of(self))

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        recording_name: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML page with the summary, the motifs, the table and the events.

        Parameters
        ----------
        path : str or path
            The file; it appears whole or not at all.
        recording_name : str or None, default=None
            What the recording is called, in the page's title and in the names of its tables.
        command : str or None, default=None
            How the page was made, for its heading.
        """
        from motifold.report.discovered import write_discovery

        write_discovery(path, self, recording_name=recording_name, command=command)

    def __repr__(self) -> str:
        return f"Discovery of {self.n_components} sequences\n{self.table!r}"

    def _n_features(self, k: int) -> int:
        """Features that have a tenth of the strongest one's mass, at least."""
        mass = self.motifs[k].sum(axis=0)
        return int((mass > 0.1 * mass.max()).sum()) if mass.any() else 0


@takes_recordings
def discover(
    X: Any,
    *,
    n_lags: int,
    n_components: int | None = None,
    rate: float | None = None,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    alpha: float = 0.05,
    fdr: float = 0.1,
    smooth: Any = "auto",
    path: str | os.PathLike[str] | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Discovery:
    """Find motifs, tell sequences from synchrony, and list when they occur.

    1. Fits from three starts with more motifs than are expected (5, doubled while all are real).
    2. Events of each motif by matching pursuit, at the false discovery rate ``fdr``; the motifs
       by least squares on these events, with a background; in turn. Motifs with few events, and
       those that are others once more, are given up.
    3. The same without each quarter of the recording in turn; its motifs are tested on that
       quarter, for recurrence and for order (``sequence_test``), and all four are put together.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features), list of such, or Recording
        Not negative. It is held in memory, dense, a few times.
    n_lags : int
        Length of the window of a motif, in bins: longer than the motifs.
    n_components : int or None, default=None
        Number of motifs to look for; None finds it out.
    rate : float or None, default=None
        Time bins per second, for times in seconds.
    lengths, segments, mask
        As in ``CNMF.fit``.
    alpha : float, default=0.05
        Level of the verdicts, for all motifs together.
    fdr : float, default=0.1
        Share of the listed events that may be false.
    smooth : float or "auto", default="auto"
        Width in bins by which X is smoothed to find events; "auto" is 1 for spike counts, else 0.
    path : path or None, default=None
        A file (.npz) that keeps what is done: the same call goes on from there.
    random_state : int or None
        Seed of everything; needed to go on from ``path``.
    n_jobs : int or None, default=None
        Threads of the fits, as in ``CNMF``.
    progress : bool, default=True
        Show a bar over the stages.

    Returns
    -------
    Discovery

    Examples
    --------
    >>> import numpy as np
    >>> import motifold
    >>> X = np.random.default_rng(0).poisson(0.05, (800, 20))
    >>> found = motifold.discover(X, n_lags=10, random_state=0, n_jobs=1, progress=False)
    >>> found.n_components
    0
    """
    recording = Prepared.of(X, lengths=lengths, segments=segments, mask=mask, smooth=smooth)
    _check(recording, n_lags, n_components, rate, alpha, fdr)
    if path is not None and random_state is None:
        raise ValueError("path needs random_state: without a seed there is nothing to go on with.")
    work = Work(
        recording=recording,
        n_lags=n_lags,
        n_components=n_components,
        alpha=alpha,
        fdr=fdr,
        seeds=np.random.SeedSequence(random_state).generate_state(4 + 2 * PARTS).tolist(),
        n_jobs=n_jobs,
    )
    stages = Stages(path, _identity(work, random_state))
    last = PARTS + 2  # stages after the events: each part, tests, model
    with work_bar(2 + last, "discover", "stage", shown=progress) as bar:

        def stage(name: str, compute: Callable[[], Arrays]) -> Arrays:
            bar.set_postfix_str(name)
            found = stages(name, compute)
            bar.update()
            if name.startswith("events"):  # there are more if the first two are done again
                bar.total = bar.n + last
            return found

        whole, events = work.whole(stage)
        trained = [
            stage(f"without quarter {part + 1}", partial(work.without, part, len(events["motifs"])))
            for part in range(PARTS)
        ]
        tests = stage("tests", lambda: work.tests(events, trained))
        bar.set_postfix_str("model")
        found = _in_order_of_the_model(work, whole, events, tests, rate)
        bar.update()
    return found


def _identity(work: Work, random_state: int | None) -> str:
    """What stages that were kept must have been made with."""
    recording = work.recording
    data = [recording.X] if recording.observed is None else [recording.X, recording.observed]
    settings = {
        "n_lags": work.n_lags,
        "n_components": work.n_components,
        "alpha": work.alpha,
        "fdr": work.fdr,
        "smooth": recording.width,
        "random_state": random_state,
        "lengths": list(map(int, recording.segments.lengths)),
        "data": fingerprint_of_all(data),
    }
    return json.dumps(settings, sort_keys=True)


def _in_order_of_the_model(
    work: Work, starts: Arrays, events: Arrays, tests: Arrays, rate: float | None
) -> Discovery:
    """Everything in the order of the components of a plain fit from the sharpened motifs."""
    motifs, recording = events["motifs"], work.recording
    model = work.model(motifs)
    order = np.arange(len(motifs))
    if model is not None:
        order = match_motifs(model.components_, motifs).order
    train = Train(
        events["bins"],
        np.argsort(order)[events["train"]],
        events["amplitudes"],
        events["strengths"],
    )
    return Discovery(
        model=model,
        motifs=motifs[order],
        background=events["background"],
        p_recurrence=tests["recurrence"][order],
        p_order=tests["order"][order],
        n_places=tests["n_places"][order],
        n_starts=work.agreement(starts["motifs"], motifs[order]),
        train=train,
        q=events["q"],
        lengths=[int(n) for n in recording.segments.lengths],
        alpha=work.alpha,
        fdr=work.fdr,
        rate=rate,
        shape=(recording.X.shape[0], recording.X.shape[1]),
        left=float(events["variance"][-1]) if len(events["variance"]) else 1.0,
    )


def _check(
    recording: Prepared,
    n_lags: int,
    n_components: int | None,
    rate: float | None,
    alpha: float,
    fdr: float,
) -> None:
    """Raise for what cannot be asked for."""
    if n_lags < 2:
        raise ValueError(f"n_lags must be 2 or greater, not {n_lags}: order needs lags.")
    if n_components is not None and n_components < 1:
        raise ValueError(f"n_components must be 1 or greater, or None, not {n_components}.")
    if rate is not None and not rate > 0:
        raise ValueError(f"rate must be positive (time bins per second), not {rate}.")
    for name, value in (("alpha", alpha), ("fdr", fdr)):
        if not 0 < value < 1:
            raise ValueError(f"{name} must be between 0 and 1, not {value}.")
    T = len(recording.X)
    needed = PARTS * _LEAST_MOTIFS * n_lags
    if needed > T:
        raise ValueError(
            f"X has {T} bins: each quarter is tested by the others and must hold {_LEAST_MOTIFS} "
            f"windows of n_lags={n_lags}. Give at least {needed} bins, or fewer lags."
        )
