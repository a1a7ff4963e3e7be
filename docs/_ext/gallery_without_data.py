"""Examples that need a recording are run where it lies on this machine, and shown all the same.

A build must not wait for a download. Where a recording is absent, its examples are not executed,
the build says so, and so does a note on their pages.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

_log = logging.getLogger(__name__)
# The function that an example calls, and the file that it then reads.
_FILES = {
    "fetch_songbird": "MackeviciusData.mat",
    "fetch_spoken_digits": "spoken_digits_two_speakers_8k.wav",
}
_NOTE = """
.. note::

   This example was not run where these pages were built, because its recording was absent there.
   Run it yourself: the recording is then downloaded.
"""
_idle: list[str] = []


def runnable_examples(folder: Path) -> str:
    """A pattern of the examples that can be run here, as sphinx-gallery wants it."""
    runnable = []
    for example in sorted(folder.glob("plot_*.py")):
        text = example.read_text()
        missing = [name for call, name in _FILES.items() if call in text and not _is_here(name)]
        (_idle if missing else runnable).append(example.stem)
    return "/(" + "|".join(map(re.escape, runnable)) + r")\.py$"


def _is_here(name: str) -> bool:
    given = os.environ.get("MOTIFOLD_DATA")
    if given:
        return (Path(given) / name).is_file()
    from motifold.datasets.download import cache_folder

    return any(cache_folder().rglob(name))


def _say_what_was_not_run(app: Sphinx) -> None:
    for name in _idle:
        _log.info("%s is shown but not run: its recording is not on this machine", name)


def _pages_to_read_again(app: Sphinx, env: BuildEnvironment, *sets: set[str]) -> list[str]:
    """The note is not in the source: a page that was read with its recording must be read anew."""
    return [page for page in map("gallery/{}".format, _idle) if page in env.all_docs]


def _add_note(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname.removeprefix("gallery/") in _idle:
        title = re.search(r"^.*\n={5,}\n", source[0], flags=re.MULTILINE)
        if title is not None:
            source[0] = source[0][: title.end()] + _NOTE + source[0][title.end() :]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _say_what_was_not_run)
    app.connect("env-get-outdated", _pages_to_read_again)
    app.connect("source-read", _add_note)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
