"""One call for MATLAB's ``py.``: seqNMF's arrays in and out."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.exports.factors import seqnmf_layout
from motifold.model import Array


def fit_seqnmf(X: Any, K: Any, L: Any, **options: Any) -> dict[str, Array | float]:
    """Fit data in seqNMF's layout and give back its W and H.

    Parameters
    ----------
    X : array-like of shape (N, T)
        Features by time, as seqNMF has it. (From MATLAB: ``py.numpy.array(X)``.)
    K, L : number
        Motifs, and bins of each. MATLAB's numbers are doubles: 3.0 is taken as 3.
    **options
        Parameters of ``CNMF``, as ``pyargs('random_state', int32(0))``; whole numbers may come as
        doubles.

    Returns
    -------
    dict
        ``W`` (N, K, L), ``H`` (K, T), ``X_hat`` (N, T) and ``loss`` (relative).

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.exports import fit_seqnmf
    >>> X = np.random.default_rng(0).random((4, 60))
    >>> found = fit_seqnmf(X, 2.0, 5.0, random_state=0.0)
    >>> found["W"].shape, found["H"].shape
    ((4, 2, 5), (2, 60))
    """
    given = {name: _whole(value) for name, value in options.items()}
    model = CNMF(_whole(K), _whole(L), **given)
    data = np.asarray(X)
    if data.ndim != 2:
        raise ValueError(f"X must be a matrix, features by time, not of shape {data.shape}.")
    model.fit(np.ascontiguousarray(data.T))
    W, H = seqnmf_layout(model)
    X_hat = np.ascontiguousarray(model.inverse_transform(model.activations_).T)
    return {"W": W, "H": H, "X_hat": X_hat, "loss": float(model.loss_)}


def _whole(value: Any) -> Any:
    """A double that is a whole number, as that; parameters that are fractions take both."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
