"""The report of a fit: one HTML file with all that it needs inside.

Made with a few lines of our own (``markup.py``) upon the standard library's ``html.escape``: every
text is escaped unless the module itself made it, so that no name from a file becomes markup, and
no template library is needed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from motifold.estimator import CNMF
from motifold.files import check_writable, refuse_replacing, write_whole
from motifold.io import Recording
from motifold.report.clips import write_sound

if TYPE_CHECKING:
    from motifold.findings.annotations import Annotations

__all__ = ["write_report", "write_sound"]


def write_report(
    path: str | os.PathLike[str],
    model: CNMF,
    recording: Recording,
    *,
    sort: bool | None = None,
    notes: Annotations | None = None,
    model_name: str | None = None,
    command: str | None = None,
) -> None:
    """Write a report: data, motifs, activations, reconstruction, events, significance, the fit.

    Parameters
    ----------
    path : str or path
        The HTML file; it appears whole or not at all.
    model : CNMF
        A fitted model.
    recording : Recording
        The recording of the fit, or another one with the same features. Of a sound file the
        motifs can be listened to.
    sort : bool or None, default=None
        Sort the features in the pictures by motif and lag of their peak. None sorts them unless
        they have an order of their own, as in ``plot_factors``; the page says what was done.
    notes : Annotations or None, default=None
        What was said of the motifs and events in the explorer: names, thresholds, what was hidden,
        merged or rejected. ``motifold report`` reads it from the file beside the model.
    model_name : str or None, default=None
        What the model is called, in the page's title; ``motifold report`` has its file's name.
    command : str or None, default=None
        How the page was made, for its heading.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.io import Recording
    >>> from motifold.report import write_report
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "report.html"
    ...     write_report(path, model, Recording(X, "sequences", rate=10.0))
    ...     "<h2>Motifs</h2>" in path.read_text(encoding="utf-8")
    True
    """
    from motifold.findings.facts import Facts
    from motifold.report.heading import Origin
    from motifold.report.page import page

    refuse_replacing(path, recording.source)
    check_writable(path)
    checked = recording.checked(
        "keep" if model.allow_negative else None, memory_limit=model.memory_limit
    )
    facts = Facts.gather(model, checked, sort, notes)
    write_whole(path, page(facts, Origin(command, model_name)))
