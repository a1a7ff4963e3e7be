"""Checkpoints: a long fit that was stopped goes on as if nothing had happened."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import warnings
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from motifold.data.sources import is_stored, stored_source
from motifold.data.sources.stored import float_dtype
from motifold.data.validation import is_list_of_segments
from motifold.engines.cuda.place import on_host
from motifold.estimator import CNMF, fit_watched
from motifold.files import check_writable, fingerprint, same_file, write_npz, written_whole
from motifold.files.archive import read_npz
from motifold.fit.clock import Every
from motifold.fit.state import LoopState, SearchState
from motifold.model.losses import SQUARED, loss_of

# What may differ between a fit and its continuation: none of these changes the iterates.
_FREE = {"max_iter", "max_time", "n_jobs", "verbose", "callback", "warm_start"}
_FREE |= {"device", "precision", "device_memory", "memory_limit"}  # a fit may go on elsewhere

# Of data on disk: bytes of which all are looked at; of larger data so many stretches of rows.
_LOOKED_AT, _PLACES, _ROWS = 2**28, 64, 16
_FIRST_MEMBER, _NAME_STARTS = b"identity.npy", 30  # of the archive: its name, after a zip header


def fit_with_checkpoint(
    model: CNMF,
    X: Any,
    path: str | os.PathLike[str],
    *,
    every: float = 60.0,
    resume: bool = True,
    **fit_arguments: Any,
) -> CNMF:
    """Fit a model, and keep its state in a file: if it is stopped, the same call goes on.

    The file is written every ``every`` seconds and when the fit is interrupted (Ctrl-C, or any
    other exception), always whole: after a power cut or SIGKILL it has the state of the last time.
    A fit that goes on ends with the same result as one that was never stopped, bit by bit. When
    the fit is done the file is removed; ``model.save`` keeps the result. Where the file cannot be
    written on the way, on a full disk, the fit goes on and a warning tells.

    Parameters
    ----------
    model : CNMF
        The model to fit. Its ``random_state`` may be None: the file has the seeds.
    X : array-like or sparse matrix of shape (n_samples, n_features), or a list of such
        As in ``CNMF.fit``.
    path : str or path
        The file. There need not be one.
    every : float, default=60
        Seconds between two writes.
    resume : bool, default=True
        Go on from the file, if there is one. False: start anew and replace it.
    **fit_arguments
        ``lengths``, ``segments``, ``mask``, ``components_init``, ``activations_init`` or
        ``activation_support`` of ``fit``.

    Returns
    -------
    CNMF
        The model, fitted.

    Raises
    ------
    ValueError
        If the file is of other data, arguments or parameters. ``max_iter``, ``max_time``,
        ``n_jobs``, ``verbose`` and ``callback`` may differ. Also if ``warm_start`` is set, since
        the factors it starts from are no part of the file; or if X is mapped from ``path``.
    OSError
        Before the fit, if no file can be written there.

    Examples
    --------
    A fit that is interrupted in its fifth iteration, and goes on.

    >>> import os, tempfile
    >>> from motifold import CNMF, fit_with_checkpoint
    >>> from motifold.datasets import make_sequences
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> def interrupt(state):
    ...     if state.iteration == 5:
    ...         raise KeyboardInterrupt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.checkpoint")
    ...     try:
    ...         fit_with_checkpoint(CNMF(2, 8, random_state=0, callback=interrupt), X, path)
    ...     except KeyboardInterrupt:
    ...         print("interrupted:", os.listdir(folder))
    ...     model = fit_with_checkpoint(CNMF(2, 8, random_state=0), X, path)
    ...     print(model.stop_reason_ + ":", os.listdir(folder))
    interrupted: ['fit.checkpoint']
    converged: []
    """
    if model.warm_start:
        raise ValueError(
            "warm_start: the factors of the last fit are no part of a checkpoint. Set it to False, "
            "and give components_init and activations_init."
        )
    for part in X if is_list_of_segments(X) else [X]:
        mapped = getattr(part, "filename", None)  # of a numpy.memmap
        if isinstance(mapped, (str, os.PathLike)) and same_file(mapped, path):
            raise ValueError(f"{os.fspath(path)} is the file of X itself: give another path.")
    check_writable(path)
    checkpoint = Checkpoint(Path(path), identity_of(model, X, **fit_arguments), every=every)
    if resume and checkpoint.path.exists():
        checkpoint.restore("Give another path, or start anew with resume=False.")
    checkpoint.fit(model, X, **fit_arguments)
    checkpoint.remove()
    return model


class Checkpoint:
    """The record of a fit in a file, which is the old one or the new one but never half of one.

    It watches a ``fit``: it sees every iteration, and writes when ``every`` seconds have passed,
    ``write`` is called or the fit is broken off. What it writes is the iterate before
    the last: of that one it is known that the loop went on from it, so a fit that goes on from
    there takes the same course. A fit is worth more than its record: where it cannot be written
    that is a warning.

    Parameters
    ----------
    path : path
        The file.
    identity : dict
        What the fit is of, from ``identity_of``: a checkpoint of another fit is refused.
    every : float
        Seconds between two writes.
    """

    def __init__(self, path: Path, identity: dict[str, Any], *, every: float = 60.0) -> None:
        self.path = Path(path)
        self._identity = identity
        self._due = Every(every)
        self._record: SearchState | None = None
        self._candidate: SearchState | None = None
        self._confirmed: SearchState | None = None
        self._restored: SearchState | None = None
        self._failing = False

    def fit(self, model: CNMF, X: Any, **fit_arguments: Any) -> None:
        """Fit the model and watch it; what is broken off, by whatever, is written."""
        try:
            fit_watched(model, self, X, **fit_arguments)
        except BaseException as error:
            try:
                self.write()
            except (OSError, MemoryError) as failure:  # must not hide what broke it off
                error.add_note(f"{self.path} could not be written: {_told(failure)}")
            raise

    def restore(self, advice: str = "") -> int:
        """Let the fit go on from the file; the number of iterations it has.

        ``advice`` ends the message of the error, if the file is of no use.
        """
        record = _read(self.path, self._identity, advice)
        self._restored = record
        return record.current.iteration if record.current is not None else 0

    def begin(self, record: SearchState) -> SearchState:
        """The record that the fit shall use: the given one, or the one that was restored."""
        if self._restored is not None:
            record = self._confirmed = self._restored
        self._record = record
        return record

    def __call__(self, state: LoopState) -> None:
        """Note an iteration; write if it is time."""
        record = self._record
        assert record is not None
        last = self._candidate
        if last is not None and last.index == record.index:
            self._confirmed = last
        elif self._confirmed is None or self._confirmed.index != record.index:
            self._confirmed = replace(record, current=None)
        self._candidate = replace(record, current=state)
        if self._due():
            self._write_if_possible()

    def _write_if_possible(self) -> None:
        try:
            self.write()
            self._failing = False
        except (OSError, MemoryError) as failure:
            if not self._failing:  # told once, until it goes well again
                warnings.warn(
                    f"{self.path} could not be written: {_told(failure)}. The fit goes on, and "
                    "tries again; if it is stopped before, it can only go on from an older one.",
                    UserWarning,
                    stacklevel=2,
                )
            self._failing = True

    def write(self) -> bool:
        """Write the last iterate that is certain; False if there is none yet."""
        if self._confirmed is None:
            return False
        arrays = self._confirmed.to_arrays()
        text = json.dumps(self._identity).encode()
        with written_whole(self.path) as file:
            write_npz(file, {"identity": np.frombuffer(text, np.uint8), **arrays})
        return True

    def remove(self) -> None:
        """Take the file away: the fit is done. What does not go is told, and left."""
        try:
            self.path.unlink(missing_ok=True)
        except OSError as failure:
            warnings.warn(
                f"{self.path} could not be removed: {_told(failure)}. It is of no use any more.",
                UserWarning,
                stacklevel=2,
            )


def is_checkpoint(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as checkpoints do; it may be damaged further on."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        beginning = file.read(_NAME_STARTS + len(_FIRST_MEMBER))
        return beginning.startswith(b"PK") and beginning[_NAME_STARTS:] == _FIRST_MEMBER
    return False


def _told(failure: OSError | MemoryError) -> str:
    return str(failure).rstrip(".") or type(failure).__name__


def identity_of(model: CNMF, X: Any, **given: Any) -> dict[str, Any]:
    """What makes a fit this one: its parameters, and checksums of the arguments of ``fit``."""
    values = {**model.get_params(deep=False), "beta_loss": loss_of(model.beta_loss).name}
    params = {name: repr(value) for name, value in values.items() if name not in _FREE}
    if not isinstance(model.random_state, Integral):
        del params["random_state"]  # the seeds that were drawn are in the checkpoint
    arguments = {name: on_host(value) for name, value in {"X": X, **given}.items()}
    return {
        "params": params,
        "arguments": {
            name: [
                stored_fingerprint(part) if is_stored(part) else fingerprint(part)
                for part in (value if is_list_of_segments(value) else [value])
            ]
            for name, value in arguments.items()
            if value is not None
        },
    }


def stored_fingerprint(X: Any) -> list[Any]:
    """Of a matrix on disk. A large one is looked at in places: reading all of it takes long.

    Of a smaller one it is that of an array of the same numbers.
    """
    dtype = float_dtype(np.dtype(X.dtype))
    T, N = X.shape
    if isinstance(X, np.ndarray) or T * N * dtype.itemsize <= _LOOKED_AT:
        return fingerprint(X if isinstance(X, np.ndarray) else np.asarray(X).astype(dtype))
    step = T // _PLACES
    rows = stored_source(X, limit=_LOOKED_AT)
    parts = [rows.rows(a, a + min(step, _ROWS)) for a in range(0, T - step + 1, step)]
    return [[T, N], f"{dtype} in places", fingerprint(np.concatenate(parts))[2]]


def _read(path: Path, identity: dict[str, Any], advice: str) -> SearchState:
    try:
        with open(path, "rb") as file:
            arrays = read_npz(file)
        found = json.loads(arrays.pop("identity").tobytes())
        record = SearchState.from_arrays(arrays)
        differing = _differing(_completed(found["params"]), _completed(identity["params"]))
        differing += _differing(found["arguments"], identity["arguments"])
    except FileNotFoundError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: it is no checkpoint of motifold ({error}). {advice}") from error
    if differing:
        what = ", ".join(sorted(differing))
        raise ValueError(f"{path}: it is the checkpoint of another fit: {what} differs. {advice}")
    return record


def _completed(params: dict[str, str]) -> dict[str, str]:
    """The parameters with those that an earlier version had not, and the solver that was taken."""
    known = inspect.signature(CNMF).parameters
    defaults = {
        name: repr(parameter.default)
        for name, parameter in known.items()
        if parameter.default is not parameter.empty and name not in {*_FREE, "random_state"}
    }
    params = {**defaults, **params}
    if params["solver"] == repr("auto"):  # in 0.1 the default was "hals", by its name
        params["solver"] = repr("hals" if params["beta_loss"] == repr(SQUARED.name) else "mu")
    return params


def _differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [name for name in {*old, *new} if old.get(name) != new.get(name)]
