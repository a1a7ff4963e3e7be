"""Motifs and activations as files that other programs read without motifold."""

from __future__ import annotations

import csv
import io
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from scipy.io import savemat

from motifold.data.refused import check_model
from motifold.engines.cuda.place import on_host
from motifold.estimator import CNMF
from motifold.exports.axes import Axes
from motifold.files import write_npz, written_whole
from motifold.model import Array

MOTIFS, ACTIVATIONS = "motifs.csv", "activations.csv"


def seqnmf_layout(model: CNMF) -> tuple[Array, Array]:
    """W of shape (N, K, L) and H of shape (K, T), as seqNMF has them."""
    W = on_host(model.components_).transpose(2, 0, 1)
    return np.ascontiguousarray(W), np.ascontiguousarray(on_host(model.activations_).T)


def export_mat(model: CNMF, path: str | PathLike[str]) -> None:
    """Write a MATLAB file (version 5) in seqNMF's layout, so that its plots run.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    path : str or path
        The file, which is replaced only when it has been written whole.

    Notes
    -----
    ``W`` is N × K × L and ``H`` K × T: ``helper.reconstruct(W, H)`` of seqNMF is X̂ less
    ``background`` (N × 1, zeros where none was learnt). Beside them ``loss`` (relative),
    ``lengths`` (bins of each segment, 1 × S), ``rate`` (bins per second, NaN if not known) and
    ``features``, a cell array of names.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.io
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from motifold import CNMF
    >>> from motifold.exports import export_mat
    >>> X = np.random.default_rng(0).random((40, 3))
    >>> model = CNMF(2, 4, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.mat"
    ...     export_mat(model, path)
    ...     scipy.io.loadmat(path)["W"].shape
    (3, 2, 4)
    """
    check_model(model)
    axes = Axes.of(model)
    W, H = seqnmf_layout(model)
    background = _background(model)
    content = {
        "W": W,
        "H": H,
        "background": background[:, np.newaxis],
        "loss": float(model.loss_),
        "lengths": np.asarray(model.lengths_, np.float64)[np.newaxis],
        "rate": np.nan if axes.rate is None else axes.rate,
        "features": np.array([str(name) for name in axes.features], object),
    }
    with written_whole(Path(path)) as file:
        savemat(file, content, do_compression=True)


def export_npz(model: CNMF, path: str | PathLike[str]) -> None:
    """Write plain arrays by name: ``components``, ``activations``, and what their axes are.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    path : str or path
        The file, which ``numpy.load`` reads. (``motifold.load`` reads what ``model.save`` writes.)

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from motifold import CNMF
    >>> from motifold.exports import export_npz
    >>> X = np.random.default_rng(0).random((40, 3))
    >>> model = CNMF(2, 4, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "arrays.npz"
    ...     export_npz(model, path)
    ...     np.load(path)["components"].shape
    (2, 4, 3)
    """
    check_model(model)
    axes = Axes.of(model)
    arrays: dict[str, Any] = {
        "components": on_host(model.components_),
        "activations": on_host(model.activations_),
        "background": _background(model),
        "loss": np.float64(model.loss_),
        "lags": axes.lags,
        "lengths": np.asarray(model.lengths_, np.int64),
        "rate": np.float64(np.nan if axes.rate is None else axes.rate),
        "features": axes.features.astype(str),
    }
    if axes.times is not None:
        arrays["times"] = axes.times
    with written_whole(Path(path)) as file:
        write_npz(file, arrays)


def export_csv(model: CNMF, folder: str | PathLike[str]) -> None:
    """Write two tables into a folder: ``motifs.csv`` and ``activations.csv``.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    folder : str or path
        It is made if there is none; tables of those names are replaced.

    Notes
    -----
    Motifs are a long table (motif, lag, time, feature, value) of what is above zero; of
    activations each row is a time bin (bin, segment, time, then one column for each motif). Times
    are seconds where the rate is known, else bins.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from motifold import CNMF
    >>> from motifold.exports import export_csv
    >>> X = np.random.default_rng(0).random((40, 3))
    >>> model = CNMF(2, 4, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tables"
    ...     export_csv(model, path)
    ...     (path / "activations.csv").read_text().split()[0]
    'bin,segment,time,motif0,motif1'
    """
    check_model(model)
    place, axes = Path(folder), Axes.of(model)
    place.mkdir(parents=True, exist_ok=True)
    components, H = on_host(model.components_), on_host(model.activations_)

    def motifs(file: TextIO) -> None:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["motif", "lag", "time", "feature", "value"])
        for k, lag, n in np.argwhere(components > 0):
            value = float(components[k, lag, n])
            rows.writerow([k, lag, f"{axes.lags[lag]:.9g}", axes.features[n], f"{value:.9g}"])

    def activations(file: TextIO) -> None:
        rows = csv.writer(file, lineterminator="\n")
        names = [f"motif{k}" for k in range(H.shape[1])]
        rows.writerow(["bin", "segment", "time", *names])
        for t, values in enumerate(H):
            time = "" if axes.times is None else f"{axes.times[t]:.9g}"
            rows.writerow([t, axes.segments[t], time, *(f"{value:.9g}" for value in values)])

    for name, write in ((MOTIFS, motifs), (ACTIVATIONS, activations)):
        with written_whole(place / name) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="")
            write(text)
            text.detach()  # which flushes, and leaves the file open


def _background(model: CNMF) -> Array:
    if model.background_ is None:
        return np.zeros(model.components_.shape[2], model.components_.dtype)
    return on_host(model.background_)
