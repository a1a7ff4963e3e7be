"""``motifold report``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._options import (
    FILE,
    memory_option,
    model_argument,
    notes_option,
    output_option,
    sort_option,
)
from motifold.cli._outputs import PAGE, check_ending, check_outputs, keep
from motifold.cli._said import command_line
from motifold.cli._shared import (
    FileCommand,
    friendly,
    load_model,
    notes_input,
    notes_of,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say


@click.command("report", cls=FileCommand)
@model_argument
@click.option("--data", type=FILE, required=True, metavar="FILE", help="The recording.")
@output_option("report.html", metavar="HTML", help="The page.")
@sort_option
@notes_option
@memory_option
@reading_options
def command(
    model: Path,
    data: Path,
    output: Path,
    sort: bool | None,
    notes: bool,
    as_json: bool,
    memory_limit: str | None,
    **options: Any,
) -> None:
    """Write a report: one HTML file that needs nothing else.

    It has the data, motifs, activations, reconstruction, events, significance, the course of the
    fit, parameters and versions; of a sound file the motifs can be listened to. The file is read
    as the one of the fit was, unless options say otherwise. With another recording than that of
    the fit, activations are found anew and the test of significance is a fair one.

    \b
    Examples:
      motifold report model.npz --data counts.npy
      motifold report speech.npz --data speech.wav -o speech.html
    """
    with friendly():
        from motifold.report import write_report

        inputs = {"the model": model, "the recording": data, **notes_input(model)}
        check_outputs({"--output": output}, inputs)
        check_ending("--output", output, PAGE)
        fitted = load_model(model).set_params(memory_limit=memory_limit)
        recording = recording_of(data, options, fitted)
        said = notes_of(model, fitted, notes)
        told: dict[str, Any] = {"model_name": model.name, "command": command_line()}
        told |= {"sort": sort, "notes": said}
        keep(output, lambda place: write_report(place, fitted, recording, **told), "The page")
    if as_json:
        print_json({"report": output, "bytes": output.stat().st_size})
    else:
        say(f"Report: {output}")
