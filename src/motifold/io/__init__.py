"""Recordings as people have them: files and objects in, one ``Recording`` out.

A reader is one file of this folder with ``OPTIONS`` and ``read(path, options)``, and a line in
``reading.READERS``; it is imported, and its library with it, when a file asks for it.
"""

from motifold.io.binning import BinSize, suggest_bin_size
from motifold.io.events import events_to_nwb, events_to_pynapple
from motifold.io.frames import from_frame
from motifold.io.guards import RecordingError
from motifold.io.labelled import from_xarray
from motifold.io.pynapple_objects import from_pynapple, to_pynapple
from motifold.io.reading import Options, read
from motifold.io.recording import Recording
from motifold.io.spikes import from_spikes

__all__ = [
    "BinSize",
    "Options",
    "Recording",
    "RecordingError",
    "events_to_nwb",
    "events_to_pynapple",
    "from_frame",
    "from_pynapple",
    "from_spikes",
    "from_xarray",
    "read",
    "suggest_bin_size",
    "to_pynapple",
]
