"""Examples on recordings are run where these lie on this machine; elsewhere they are left out.

A build must not wait for a download, and a page without its pictures would be a placeholder. The
gallery's text names the scripts, and the build says what it left out.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
# The function that an example calls, and the file that it then reads.
_FILES = {
    "fetch_songbird": "MackeviciusData.mat",
    "fetch_spoken_digits": "spoken_digits_two_speakers_8k.wav",
}
_idle: list[str] = []
# What a newcomer looks for comes first, what needs a machine of its own last.
_ORDER = ["figure1", "spectrogram", "counts", "calcium", "trials", "gaps", "behaviour", "discover"]


class OrderOfReading:
    """Sorts the files of a section, as sphinx-gallery wants it: a class that is called."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem.removeprefix("plot_")
        known = _ORDER.index(name) if name in _ORDER else len(_ORDER)
        return known + (name == "elsewhere"), name

    def __repr__(self) -> str:
        return "<OrderOfReading>"


def runnable_examples(folder: Path) -> str:
    """A pattern of the examples that can be run here, as sphinx-gallery wants it."""
    runnable = []
    for example in sorted(folder.rglob("plot_*.py")):
        text = example.read_text()
        missing = [name for call, name in _FILES.items() if call in text and not _is_here(name)]
        (_idle if missing else runnable).append(example.stem)
    return "/(" + "|".join(map(re.escape, runnable)) + r")\.py$"


def left_out() -> str:
    """A pattern of the examples that the gallery does without; after ``runnable_examples``."""
    return r"(^|/)(" + "|".join(["__init__", *map(re.escape, _idle)]) + r")\.py$"


def _is_here(name: str) -> bool:
    given = os.environ.get("MOTIFOLD_DATA")
    if given:
        return (Path(given) / name).is_file()
    from motifold.datasets.download import cache_folder

    return any(cache_folder().rglob(name))


def _say_what_was_not_run(app: Sphinx) -> None:
    for name in _idle:
        _log.info("%s is left out: its recording is not on this machine", name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _say_what_was_not_run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
