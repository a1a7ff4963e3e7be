"""Events as a person wants them counted: thresholds of each motif, merged, hidden, rejected."""

from __future__ import annotations

import copy
from bisect import bisect_left, insort
from typing import Any

import numpy as np

from motifold.estimator import CNMF
from motifold.findings.annotations import Annotations
from motifold.findings.events import columns_of, find_events
from motifold.findings.peaks import THRESHOLD, default_refractory, typical
from motifold.findings.table import Table

Records = list[dict[str, Any]]


def annotated_events(
    model: CNMF,
    activations: Any,
    annotations: Annotations,
    *,
    key: str | None = None,
    lengths: Any = None,
    rate: float = 1.0,
    threshold: float | None = None,
    refractory: float | None = None,
    fdr: float | None = None,
    **more: Any,
) -> Table:
    """The events of ``find_events`` under annotations.

    Each motif has its own threshold and refractory time, unless one is given for all. A motif that
    is merged into another counts as that one; of two events of theirs within the refractory time
    the stronger stays. Hidden motifs and rejected events are left out.

    Parameters
    ----------
    model, activations, lengths, rate, **more
        As in ``find_events``.
    annotations : Annotations
    key : str or None
        The recording's, by ``recording_key``; None means that of the fit.
    threshold, refractory : float or None
        For all motifs; None means as annotated.
    fdr : float or None
        A false discovery rate in place of the thresholds, and of refractory times that are
        annotated but for merged motifs.
    """
    verdicts = annotations.verdicts(key)
    rejected = frozenset() if verdicts is None else verdicts.rejected
    options: dict[str, Any] = {"lengths": lengths, "rate": rate, **more}
    options |= {"threshold": threshold, "refractory": refractory}
    if fdr is not None:  # of all motifs at once: activations of one depend on the others
        options["found"] = find_events(model, activations, fdr=fdr, **options)
    records = [
        {**record, "motif": k}
        for k in annotations.shown
        for record in group_events(model, activations, annotations, k, **options)
        if (record["motif"], record["bin"]) not in rejected
    ]
    records.sort(key=lambda record: (record["bin"], record["motif"]))
    columns = columns_of(with_data=more.get("X") is not None)
    return Table(records, columns if fdr is None else options["found"].columns)


def group_events(
    model: CNMF,
    activations: Any,
    annotations: Annotations,
    k: int,
    *,
    lengths: Any,
    rate: float,
    threshold: float | None = None,
    refractory: float | None = None,
    found: Table | None = None,
    **more: Any,
) -> Records:
    """Those of motif k and of the motifs merged into it, whatever was said of each.

    In each record ``motif`` is the motif that it is an event of. ``found``: the events of all
    motifs, where they are known.
    """
    members = annotations.members(k)
    records: Records = []
    for member in members:
        if found is not None:
            records += found.where(motif=member).records
            continue
        note = annotations.motifs[member]
        records += motif_events(
            model,
            activations,
            member,
            lengths=lengths,
            rate=rate,
            threshold=note.threshold if threshold is None else threshold,
            refractory=note.refractory if refractory is None else refractory,
            **more,
        ).records
    if len(members) == 1:
        return records
    rest = annotations.motifs[k].refractory if refractory is None else refractory
    if rest is not None:
        return apart(records, rest * rate)
    return apart(records, max(default_refractory(model.components_[member]) for member in members))


def motif_events(
    model: CNMF,
    activations: Any,
    k: int,
    *,
    lengths: Any,
    rate: float,
    threshold: float = THRESHOLD,
    refractory: float | None = None,
    **more: Any,
) -> Table:
    """Those of one motif, in the order of time."""
    alone = copy.copy(model)
    for name in ("components_", "scales_"):
        setattr(alone, name, getattr(model, name)[k : k + 1])
    for name in ("activations_", "observed_"):
        whole = getattr(model, name)
        setattr(alone, name, None if whole is None else whole[:, k : k + 1])
    h = None if activations is None else np.ascontiguousarray(np.asarray(activations)[:, k : k + 1])
    options: dict[str, Any] = {"rate": rate, "threshold": threshold, "refractory": refractory}
    found = find_events(alone, h, lengths=lengths, **options, **more)
    return Table([{**record, "motif": k} for record in found], found.columns)


def typical_strength(
    model: CNMF, activations: Any, k: int, *, lengths: Any, rate: float, refractory: float | None
) -> float:
    """The strength that the threshold of a motif is a share of, as ``find_events`` has it."""
    options: dict[str, Any] = {"lengths": lengths, "rate": rate, "refractory": refractory}
    found = motif_events(model, activations, k, threshold=0.0, **options)
    if not len(found):  # all are cut off by the end of a segment
        found = motif_events(model, activations, k, threshold=0.0, partial=True, **options)
    return typical(np.array(found["strength"], dtype=np.float64))


def apart(records: Records, gap: float) -> Records:
    """Records no two of which are nearer than ``gap`` bins in one segment; the stronger stay."""
    taken: dict[int, list[int]] = {}
    kept = []
    for record in sorted(records, key=lambda record: -record["strength"]):
        others, t = taken.setdefault(record["segment"], []), record["bin"]
        at = bisect_left(others, t)
        if all(abs(other - t) >= gap for other in others[max(0, at - 1) : at + 1]):
            insort(others, t)
            kept.append(record)
    return sorted(kept, key=lambda record: record["bin"])


def with_names(events: Table, annotations: Annotations) -> Table:
    """The table with a column ``name`` where a motif was given one."""
    if not any(note.name for note in annotations.motifs):
        return events
    names = [annotations.title(record["motif"]) for record in events]
    records = [{**record, "name": name} for record, name in zip(events, names, strict=True)]
    return Table(records, [*events.columns, "name"])


def events_csv(events: Table) -> str:
    """The table as CSV, of numbers alone but for names: what is true is 1."""
    records = [
        {
            name: int(cell) if isinstance(cell, bool | np.bool_) else cell
            for name, cell in row.items()
        }
        for row in events
    ]
    return Table(records, events.columns).to_csv()
