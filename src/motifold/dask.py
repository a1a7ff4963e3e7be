"""CNMF on a Dask cluster: recordings longer than any one machine holds.

``motifold.dask.CNMF`` has the parameters, methods and results of ``motifold.CNMF``. Its activations
are dask arrays, which stay on the workers; the model that it saves is that of one machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone

from motifold.data import Data, Facts
from motifold.data.given import Given, unpacked
from motifold.data.validation import recording_of
from motifold.engines.cuda.place import Place
from motifold.engines.dask.cluster import DaskCrew, client_of
from motifold.engines.dask.crew import Crew, Lost
from motifold.engines.dask.engine import ClusterEngine
from motifold.engines.dask.plan import Cutting
from motifold.engines.dask.remote import Handle
from motifold.engines.dask.store import Store
from motifold.engines.demand import Demand
from motifold.estimator import CNMF as LocalCNMF
from motifold.fit.clock import Clock
from motifold.fit.state import LoopState, SearchState
from motifold.forecast.excerpts import Whole
from motifold.forecast.foretelling import Where
from motifold.io import read

__all__ = ["CNMF"]

# Copies of the activations: not more often than so many seconds, and than takes this share of the
# time. Losses of workers without an iteration between them, before the fit gives up.
_SECONDS, _SHARE, _LOSSES = 1.0, 0.05, 10
_COPIES_HERE = 4  # of the activations, at most: two states of two
_NOTHING = 100  # bytes of a file that may be read here, the least there may be: workers read it


class CNMF(LocalCNMF):
    """Convolutive nonnegative matrix factorisation on a Dask cluster.

    The recording is cut into shards of time, whose number depends on its shape alone. Each worker
    reads the shards that it is given (of zarr and parquet by its path, of a dask array from other
    workers; what is in memory here, or in HDF5, is sent), and keeps them and their activations in
    memory; the motifs are updated in the client. Results are those of ``motifold.CNMF`` but for
    rounding, and the same bit by bit for any number of workers. A worker that is lost costs the
    reading of its shards and the iterations since the last copy of the activations, which is kept
    in the client; one that joins is given shards at the next copy.

    Parameters
    ----------
    n_components : int
        Number of motifs, K.
    n_lags : int
        Length of a motif in time bins, L.
    client : distributed.Client or None, default=None
        None: the one that is active.
    **params
        All others of ``motifold.CNMF``, by name. ``n_jobs`` is the number of threads of each worker
        (None: as many as it has). Squared error only, with the solvers "hals" and "mu"; no
        ``device``.

    Attributes
    ----------
    activations_ : dask.array.Array of shape (n_samples, n_components)
        On the workers, in one chunk for each shard.

    See Also
    --------
    motifold.CNMF : the same on one machine, where all parameters and attributes are described.

    Examples
    --------
    >>> from distributed import Client
    >>> from motifold.dask import CNMF
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> with Client(processes=False, n_workers=2, dashboard_address=":0") as client:
    ...     model = CNMF(2, 8, random_state=0, client=client).fit(X)
    ...     activations = model.activations_.compute()
    >>> activations.shape, model.stop_reason_
    ((300, 2), 'converged')
    """

    def __init__(
        self, n_components: int, n_lags: int, *, client: Any = None, **params: Any
    ) -> None:
        super().__init__(n_components, n_lags, **params)
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """Those of the local one: a client is no setting of a model."""
        return LocalCNMF._get_param_names()

    def __sklearn_clone__(self) -> CNMF:
        """A clone works with the same client."""
        params = {name: clone(p, safe=False) for name, p in self.get_params(deep=False).items()}
        return type(self)(client=self.client, **params)

    def __getstate__(self) -> dict[str, Any]:
        """A pickle holds the activations, and no client."""
        state = {**super().__getstate__(), "client": None}
        if hasattr(state.get("activations_"), "compute"):
            state["activations_"] = state["activations_"].compute()
        return state

    def to_local(self) -> LocalCNMF:
        """The fitted model as one of this machine, its activations in memory.

        Returns
        -------
        motifold.CNMF
            With the same parameters and attributes.
        """
        local = LocalCNMF(**self.get_params(deep=False))
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_")}
        if hasattr(fitted.get("activations_"), "compute"):
            there = client_of(self.client)
            fitted["activations_"] = there.compute(fitted["activations_"]).result()
        for name, value in fitted.items():
            setattr(local, name, value)
        return local

    def _place(self, X: Any, device: str | None = None) -> Place:
        self._refuse_what_cannot_be()
        return ClusterPlace(lambda: DaskCrew(client_of(self.client), self.n_jobs), self)

    def _unpacked(self, X: Any, lengths: Any, segments: Any, mask: Any) -> Given:
        """What the user gave; a file, or a list of them, is opened, and stays where it is."""
        signed, X = bool(self.allow_negative), self._opened(X)
        return unpacked(X, lengths, segments, mask, signed=signed, memory_limit=_NOTHING)

    def _opened(self, X: Any) -> Any:
        if _is_path(X):
            return read(X)
        if isinstance(X, (list, tuple)) and X and all(map(_is_path, X)):
            return [_rows_of(path, bool(self.allow_negative)) for path in X]
        return X

    def _recording(self, given: Any, place: Place) -> Data:
        return place.recording_of(*given.data)

    def _demand(self, given: Given, place: Place) -> None:
        """Nothing to speak of: the workers have it."""

    def _where(self, whole: Whole) -> Where:
        """On the workers, who take what one machine would; copies of the activations are here."""
        self._refuse_what_cannot_be()
        members = client_of(self.client).scheduler_info()["workers"].values()
        there = super()._where(whole)
        threads = sum(int(member["nthreads"]) for member in members)
        size = whole.T * int(self.n_components) * whole.dtype.itemsize
        return Where(
            f"Dask cluster, {len(members)} workers, {self._solver_name()}",
            threads if self.n_jobs is None else len(members) * max(1, int(self.n_jobs)),
            Demand(_COPIES_HERE * size, rest=there.demand.rest),
            local=False,
        )

    def _refuse_what_cannot_be(self) -> None:
        """Raise, by name, where a parameter asks for what workers cannot do."""
        if self._loss().by_ratios:
            raise ValueError(
                f"beta_loss={self.beta_loss!r} does not run on a cluster yet: squared error does. "
                "Fit on one machine with motifold.CNMF."
            )
        if self.device not in (None, "cpu"):
            raise ValueError(
                f"device={self.device!r} does not run on a cluster yet: workers compute on their "
                "CPUs. Leave device out."
            )

    def partial_fit(self, *args: Any, **kwargs: Any) -> CNMF:
        """Not on a cluster: a stream is followed by one process.

        Raises
        ------
        NotImplementedError
            Always; use ``motifold.CNMF``.
        """
        raise NotImplementedError(
            "partial_fit follows one stream in one process: use motifold.CNMF for it."
        )


def _is_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike))


def _rows_of(path: Any, signed: bool) -> Any:
    """The matrix of a file that is one segment of several."""
    found = unpacked(read(path), signed=signed, memory_limit=_NOTHING)
    X, lengths, _, mask = found.data
    if lengths is not None and len(lengths) > 1:
        raise ValueError(
            f"{path} has {len(lengths)} segments of its own: a file in a list is one segment. Fit "
            "it by itself, or cut it into files."
        )
    if mask is not None:
        raise ValueError(f"{path} has missing entries, which files in a list may not: use mask.")
    return X


class ClusterPlace(Place):
    """Where a fit takes place: on the workers of a crew.

    Parameters
    ----------
    hired : gives the crew, when it is first needed
    parameters : of the model
    """

    def __init__(self, hired: Callable[[], Crew], parameters: LocalCNMF) -> None:
        super().__init__(None, None, None)
        self._hired, self._parameters = hired, parameters
        self._store: Store | None = None
        self._copies: Copies | None = None
        self._at_work = False

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._store is None or not (self._at_work or error is not None):
            return
        if error is not None and self._copies is not None:
            with suppress(Lost):
                self._copies.rescue()
        self._store.crew.close()

    def recording_of(
        self, X: Any, lengths: Any, segments: Any, mask: Any, limit: int | None = None
    ) -> Data:
        """The recording, of which nothing on disk is read here."""
        return recording_of(X, lengths, segments, mask)

    def look_for(self, parameters: Any) -> Callable[..., Facts]:
        """The workers look at their shards when they get them."""
        model = parameters
        shape = int(model.n_lags), int(model.n_components), model.boundary
        cutting = Cutting(*shape, wide=model.x_ortho > 0)

        def look(data: Data, width: int, *, nonnegative: bool) -> Facts:
            self._store = Store.sent(self._hired(), data, cutting, signed=not nonnegative)
            return self._store.facts

        return look

    def engine(self, problem: Any, workers: Any, solver: Any = None) -> Any:
        """The engine for a problem; with a solver, an error where it does not run there."""
        assert self._store is not None
        self._at_work = True
        engine = ClusterEngine(problem, workers, self._store)
        if solver is not None:
            engine.check_solver(solver, self._parameters.acceleration is not None)
        return engine

    def watched(self, engine: Any, record: SearchState, callback: Any, kept: bool = False) -> Any:
        """The callback, with copies of the state on the way."""
        copies = self._copies = Copies(engine, record, kept)

        def watch(state: LoopState) -> bool:
            copies(state)
            return bool(callback(state))

        return watch

    def safely(self, engine: Any, work: Callable[[], Any]) -> Any:
        """What the work gives; after a loss of workers it goes on from the last copy."""
        store, copies = self._store, self._copies
        assert store is not None
        losses, reached, whole = 0, -1, True
        while True:
            try:
                if not whole:
                    store.recover()
                    engine.forget()
                    if copies is not None:
                        copies.restore()
                return work()
            except Lost as loss:
                whole = False
                done = -1 if copies is None else copies.n_taken
                losses, reached = (losses + 1 if done == reached else 1), done
                if losses > _LOSSES:
                    raise RuntimeError(
                        f"Workers were lost {losses} times in a row without an iteration between "
                        f"({loss}). If they run out of memory, give them more, or use more of them."
                    ) from loss

    def back(self, array: Any) -> Any:
        """A result as it is."""
        return array


class Copies:
    """Copies of a fit's activations in this process, from which it goes on after a loss.

    What is copied is the iterate before the last, as in checkpoints: of that one it is known that
    the loop went on from it. The way from there is the same again, bit by bit.

    Parameters
    ----------
    engine : has the activations
    record : of the fit, which ``restore`` sets back
    wanted : whether somebody will ask for the state of a fit that was broken off
    """

    def __init__(self, engine: ClusterEngine, record: SearchState, wanted: bool = False) -> None:
        self._engine, self._record, self._wanted = engine, record, wanted
        self._kept = replace(record)
        self._candidate: SearchState | None = None
        self._confirmed: SearchState | None = None
        self._clock, self._due = Clock(), 0.0
        self._arrays: list[tuple[Any, np.ndarray]] = []
        self.n_taken = 0

    def __call__(self, state: LoopState) -> None:
        """Note an iteration; copy the one before, if it is time; use workers that have joined."""
        last = self._candidate
        if last is not None and last.index == self._record.index:
            self._confirmed = last
        else:
            self._confirmed = replace(self._record, current=None)
        self._candidate = replace(self._record, current=state)
        if self._clock.seconds < self._due:
            return
        began = self._clock.seconds
        self._kept = self._copied(self._confirmed)
        self.n_taken += 1
        now = self._clock.seconds
        self._due = now + max(_SECONDS, (now - began) / _SHARE)
        crew = self._engine.crew
        n_shards = len(self._engine.store.plan.shards)
        newcomers = getattr(crew, "newcomers", list)
        if n_shards > len(crew.members) and newcomers():
            raise Lost("others have joined")

    def restore(self) -> None:
        """Set the record of the fit back to the last copy."""
        record, kept = self._record, self._kept
        record.index, record.best, record.losses = kept.index, kept.best, kept.losses
        # The clock of the fit has counted the seconds already.
        record.current = None if kept.current is None else replace(kept.current, seconds=0.0)
        self._candidate = self._confirmed = None

    def rescue(self) -> None:
        """Fetch what a checkpoint of the fit will ask for when the workers have been let go."""
        record = self._confirmed if self._wanted else None
        for state in () if record is None else (record.best, record.current):
            for H in () if state is None else (state.now.H, state.before[1]):
                if isinstance(H, Handle):
                    H.array = self._engine.gather(H)

    def _copied(self, record: SearchState) -> SearchState:
        """The record with arrays in place of handles; none is copied twice."""
        arrays: list[tuple[Any, np.ndarray]] = []

        def array(H: Any) -> Any:
            if not isinstance(H, Handle):
                return H
            for handle, known in [*self._arrays, *arrays]:
                if handle is H:
                    arrays.append((H, known))
                    return known
            arrays.append((H, self._engine.gather(H)))
            return arrays[-1][1]

        def state(old: LoopState | None) -> LoopState | None:
            if old is None:
                return None
            W, H = old.before
            now = replace(old.now, H=array(old.now.H))
            return replace(old, now=now, before=(W, array(H)))

        copied = replace(record, best=state(record.best), current=state(record.current))
        self._arrays = arrays
        return copied
