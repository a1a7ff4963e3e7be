"""``motifold explore``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._numbers import IntRange
from motifold.cli._options import FILE, model_argument
from motifold.cli._shared import (
    FileCommand,
    friendly,
    load_model,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say


@click.command(
    "explore",
    cls=FileCommand,
    short_help="Look at a fit in the browser: zoom, listen, judge events.",
)
@model_argument
@click.argument("recording", type=FILE)
@click.option("--compare", type=FILE, metavar="MODEL", help="Another fit, to see side by side.")
@click.option(
    "--port",
    type=IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Of the page; without it any that is free.",
)
@click.option("--browser/--no-browser", default=True, help="Open the page, or only tell where.")
@reading_options
def command(
    model: Path,
    recording: Path,
    compare: Path | None,
    port: int,
    browser: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Look at a fit in the browser: zoom, set thresholds, name motifs, judge events.

    The page is on this machine alone (127.0.0.1), for whoever has the token in its address;
    nothing leaves the machine. A long recording stays on disk. All that is said of motifs and
    events is kept beside the model, in MODEL.explore.json, where the commands events and report
    heed it. Ctrl-C ends it.

    \b
    Examples:
      motifold explore model.npz counts.npy
      motifold explore speech.npz speech.wav --compare another.npz
    """
    with friendly():
        from motifold.explorer import make_page, served

        fitted = load_model(model)  # told of before the recording is read
        read = recording_of(recording, options, fitted)
        if not as_json:
            say("Reading the recording …", err=True)
        page = make_page(model, read, compare=compare)
        window = served(page, f"{model.name} on {recording.name}", port)
        try:
            if as_json:
                print_json({"url": window.url})
            else:
                say(f"The explorer: {window.url}")
                say("Ctrl-C ends it.", err=True)
            if browser:
                from motifold.explorer.serving import open_browser

                open_browser(window.url)
            window.wait()
        finally:
            window.stop()
