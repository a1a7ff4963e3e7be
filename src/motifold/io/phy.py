"""Folders of phy and Kilosort: spike times in samples, the cluster of each, what clusters are.

``params.py``, which phy executes, is parsed here: plain values are taken from it, nothing is run.
"""

from __future__ import annotations

import ast
import csv
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.io import npy
from motifold.io.guards import RecordingError, guard
from motifold.io.reading import Options
from motifold.io.recording import Recording
from motifold.io.spike_lists import counted
from motifold.io.spikes import Spikes
from motifold.io.unit_filters import chosen_units, conditions_of

OPTIONS = {"bin_size", "units", "t_start", "t_stop"}
_CLUSTERS = ("spike_clusters.npy", "spike_templates.npy")  # the second before anybody curated
_LABELS = ("group", "KSLabel")  # by a person, by Kilosort: the first that there is counts
_GOOD = "good"
_MOST_TEXT = 2**24  # bytes of a table of clusters, or of params.py


def read(path: Path, options: Options) -> Recording:
    """Counts of the spikes of the clusters that are good, or that ``units`` says."""
    if options.rate is not None:
        raise RecordingError(
            f"{path}: the rate of the bins follows from bin_size; leave rate out. The sampling "
            "rate is in params.py."
        )
    with guard(path, "a folder of phy"):
        samples = _column(path, "spike_times.npy")
        name = next((name for name in _CLUSTERS if (path / name).is_file()), None)
        if name is None:
            raise RecordingError(f"{path}: there is no {_CLUSTERS[0]}: which spike is whose?")
        clusters = _column(path, name)
        if len(samples) != len(clusters):
            raise RecordingError(
                f"{path}: spike_times.npy has {len(samples)} spikes, {name} {len(clusters)}: they "
                "are not of one folder. Copy both again."
            )
        times = samples / _sample_rate(path)
        ids, which = np.unique(clusters, return_inverse=True)
        kept, hints = _chosen(path, ids, options.units)
        order = np.argsort(which, kind="stable")
        parts = np.split(times[order], np.cumsum(np.bincount(which))[:-1])
        names = tuple(str(ids[i]) for i in kept)
        spikes = Spikes(names, tuple(parts[i] for i in kept), str(path), hints)
        return counted(spikes, options)


def _column(path: Path, name: str) -> npt.NDArray[Any]:
    """A file of whole numbers in a row."""
    file = path / name
    with guard(file, "a NumPy file"):
        array = npy.mapped(file)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim != 1 or array.dtype.kind not in "iu" or len(array) == 0:
        raise RecordingError(
            f"{file}: it has shape {array.shape} and type {array.dtype}; it must be a row of whole "
            "numbers, samples or clusters, and not empty."
        )
    return np.asarray(array).astype(np.int64)


def _sample_rate(path: Path) -> float:
    """From an assignment of a plain number in params.py."""
    file = path / "params.py"
    advice = f"Write one with a line such as sample_rate = 30000. into {file}."
    if not file.is_file():
        raise RecordingError(
            f"{path}: there is no params.py, which has the sampling rate. {advice}"
        )
    try:
        tree = ast.parse(_text(file))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RecordingError(f"{file}: it is not Python that can be parsed. {advice}") from error
    rate: Any = None
    for node in tree.body:
        if isinstance(node, ast.Assign) and [
            target.id for target in node.targets if isinstance(target, ast.Name)
        ] == ["sample_rate"]:
            try:
                rate = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                rate = None  # a formula: it is not run
    if type(rate) not in (int, float) or not (np.isfinite(rate) and rate > 0):
        raise RecordingError(f"{file}: it has no number sample_rate. {advice}")
    return float(rate)


def _text(file: Path) -> str:
    if file.stat().st_size > _MOST_TEXT:
        raise RecordingError(f"{file}: it has {file.stat().st_size} bytes, too many to be one.")
    return file.read_text(encoding="utf-8-sig")


def _chosen(
    path: Path, ids: npt.NDArray[Any], units: str | None
) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    """Places of the clusters that are wanted, and what was done."""
    columns = _columns(path, ids)
    label = next((name for name in _LABELS if name in columns), None)
    if units is not None:
        kept = chosen_units(path, conditions_of(path, units), columns, len(ids))
        return kept, (f"{len(kept)} of {len(ids)} clusters are taken: {units}.",)
    if label is None:
        return np.arange(len(ids)), (
            f"All {len(ids)} clusters are taken: no table says which are good.",
        )
    text = f"{label}={_GOOD}"
    kept = chosen_units(path, conditions_of(path, text), columns, len(ids))
    told = f'{len(kept)} of {len(ids)} clusters are taken: {text} (units="all" takes all).'
    return kept, (told,)


def _columns(path: Path, ids: npt.NDArray[Any]) -> dict[str, list[str]]:
    """Columns of all tables of clusters; of a cluster that a table lacks the cell is empty."""
    place = {str(cluster): i for i, cluster in enumerate(ids)}
    columns: dict[str, list[str]] = {}
    files = [*sorted(path.glob("cluster_*.tsv")), *sorted(path.glob("cluster_*.csv"))]
    for file in files:
        # Old versions of phy write tabs into files that end in csv.
        lines = _text(file).splitlines()
        delimiter = "\t" if lines and "\t" in lines[0] else ","
        for row in csv.DictReader(lines, delimiter=delimiter):
            cluster = (row.get("cluster_id") or row.get("id") or "").strip()
            for name, cell in row.items():
                if cluster in place and name and isinstance(cell, str):
                    cells = columns.setdefault(name, [""] * len(ids))
                    cells[place[cluster]] = cell or cells[place[cluster]]
    return {name: cells for name, cells in columns.items() if name not in ("cluster_id", "id")}
