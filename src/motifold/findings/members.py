"""Which features make up each motif: the table of neurons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from motifold.findings.overlap import checked_motifs
from motifold.findings.profiles import sort_features
from motifold.findings.table import Table


def feature_table(
    components: Any,
    *,
    rate: float | None = None,
    names: Sequence[Any] | None = None,
    mask: Any = None,
) -> Table:
    """List which motif each feature (neuron, channel) belongs to, and when it peaks in it.

    Parameters
    ----------
    components : CNMF or array-like of shape (n_components, n_lags, n_features)
        A fitted model, or motifs.
    rate : float or None
        Time bins per second; given, the table has ``lag_seconds``.
    names : sequence of length n_features or None
        Names or ids of the features; None means those of the model or, where it has none, numbers.
    mask
        As in ``sort_features``.

    Returns
    -------
    Table
        A row for each feature, in the order of ``sort_features`` (by motif and lag; those in no
        motif last), with the columns ``feature`` (its column in X), ``name``, ``motif`` (the one in
        which it has most power, −1 for none), ``lag`` and ``lag_seconds`` (of its peak there; −1
        and NaN for none), ``weight`` (the motif's value at that peak) and ``share`` (of the
        feature's power in all motifs, how much is in this one: 1 if it is in no other).

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.findings import feature_table
    >>> motifs = np.zeros((2, 3, 3))
    >>> motifs[0, 2, 0] = motifs[1, 1, 1] = 1.0
    >>> table = feature_table(motifs, rate=10, names=["a1", "a2", "b1"])
    >>> table["name"].tolist(), table["motif"].tolist(), table["lag_seconds"].tolist()
    (['a1', 'a2', 'b1'], [0, 1, -1], [0.2, 0.1, nan])
    """
    motifs = checked_motifs(components)
    N = motifs.shape[2]
    if rate is not None and not rate > 0:
        raise ValueError(f"rate must be positive (time bins per second), not {rate}.")
    if names is None:
        names = getattr(components, "feature_names_in_", None)
    labels = [str(name) for name in (range(N) if names is None else names)]
    if len(labels) != N:
        raise ValueError(f"names must have one for each of the {N} features, not {len(labels)}.")
    found = sort_features(components, mask=mask)
    power = np.square(motifs).sum(axis=1)  # (K, N)
    total = power.sum(axis=0)
    records = []
    for n in found.order.tolist():
        k, lag = int(found.motif[n]), int(found.lag[n])
        record: dict[str, Any] = {"feature": n, "name": labels[n], "motif": k, "lag": lag}
        if rate is not None:
            record["lag_seconds"] = lag / rate if k >= 0 else float("nan")
        record["weight"] = float(motifs[k, lag, n]) if k >= 0 else 0.0
        record["share"] = float(power[k, n] / total[n]) if k >= 0 else 0.0
        records.append(record)
    return Table(records)
