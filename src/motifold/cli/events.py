"""``motifold events``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._midi import ENDINGS, keep_midi
from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep, keep_text
from motifold.cli._shared import (
    FILE,
    FileCommand,
    csv_text,
    friendly,
    load_model,
    model_argument,
    output_option,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.findings import Table

_ENDINGS = {"csv": TABLE, "pynapple": (".npz",), "nwb": (".nwb",), "midi": ENDINGS}


@click.command("events", cls=FileCommand)
@model_argument
@click.option("--data", type=FILE, metavar="FILE", help="A recording; without it, that of the fit.")
@output_option(None, metavar="CSV", help="Write there, else to the screen.")
@click.option(
    "--threshold",
    type=click.FloatRange(0),
    default=0.3,
    show_default=True,
    help="Least strength, in units of the motif's typical one.",
)
@click.option(
    "--refractory",
    type=click.FloatRange(0),
    metavar="S",
    help="Seconds between two.  [default: where the motif no longer resembles itself]",
)
@click.option(
    "--partial", is_flag=True, help="Tell also events that the end of a segment cuts off."
)
@click.option(
    "--to",
    "kind_of_output",
    type=click.Choice(["csv", "pynapple", "nwb", "midi"]),
    default="csv",
    show_default=True,
    help="What to write: a table, a pynapple TsGroup (npz), intervals in an NWB file, or a MIDI "
    "file of drums (motif k is note 36 + k; needs mido).",
)
@click.option(
    "--session",
    type=FILE,
    metavar="NWB",
    help="With --to nwb: write a copy of this file, with the intervals added.",
)
@reading_options
def command(
    model: Path,
    data: Path | None,
    output: Path | None,
    threshold: float,
    refractory: float | None,
    partial: bool,
    kind_of_output: str,
    session: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """List when each motif occurs, as CSV.

    The columns are motif (from 0, as in components_), segment (from 0), time (of the motif's first
    lag), bin, strength, start (the same from the start of the segment), peak (of the motif's
    strongest lag), with --data explained (share of the recording's power there), observed (share of
    the motif that was) and partial (1 if the end cuts it off). Times are in seconds where the rate
    is known, else in bins; time and peak are on the recording's clock. Events of which less than
    half was observed are left out, and without --partial those that the end of a segment cuts off.

    \b
    Examples:
      motifold events model.npz
      motifold events model.npz --data another.npy -o events.csv
      motifold events model.npz --to pynapple -o events.npz
      motifold events model.npz --to nwb -o events.nwb --session session.nwb
      motifold events drums.npz --to midi -o drums.mid
    """
    with friendly():
        inputs = {"the model": model, "the recording": data, "the session": session}
        check_outputs({"--output": output}, inputs)
        _check_kind(kind_of_output, output, session)
        fitted = load_model(model)
        if data is None and fitted.held_out_ is not None:
            source = (fitted.origin_ or {}).get("source") or "FILE"
            raise click.UsageError(
                f"{model} was fitted to a part of its recording, so its own activations do not "
                f"tell times: give the recording, --data {source}."
            )
        found, rate = _found(fitted, data, options, threshold, refractory, partial)
        if output is not None:
            duration = fitted.n_lags / (rate or 1.0)
            _write(found, kind_of_output, output, session, duration)
        if as_json:
            print_json({"events": found.records})
        elif output is None:
            say(_csv(found), nl=False)
        else:
            say(f"{len(found)} events: {output}")


def _check_kind(kind: str, output: Path | None, session: Path | None) -> None:
    check_ending("--output", output, _ENDINGS[kind])
    if kind != "csv" and output is None:
        raise click.UsageError(f"--to {kind} needs a file: give --output.")
    if session is not None and kind != "nwb":
        raise click.UsageError("--session goes with --to nwb alone.")


def _found(
    fitted: CNMF,
    data: Path | None,
    options: dict[str, Any],
    threshold: float,
    refractory: float | None,
    partial: bool,
) -> tuple[Table, float | None]:
    """The events, and the rate where it is known."""
    from motifold.findings import find_events
    from motifold.findings.unseen import prepared_recording

    origin = fitted.origin_ or {}
    rate = origin.get("rate") or options.get("rate")
    of_the_data: dict[str, Any] = {"starts": origin.get("starts")}
    if data is not None:
        recording = prepared_recording(fitted, recording_of(data, options, fitted).checked())
        activations = fitted.transform(recording.X, lengths=recording.lengths, mask=recording.mask)
        rate = recording.rate
        of_the_data = {
            "activations": activations,
            "lengths": recording.lengths,
            "X": recording.X,
            "starts": recording.starts,
        }
    rate = None if rate is None else float(rate)
    if rate is None:
        of_the_data["starts"] = None  # bins are not counted in seconds
    rule: dict[str, Any] = {"threshold": threshold, "refractory": refractory, "partial": partial}
    return find_events(fitted, rate=rate or 1.0, **rule, **of_the_data), rate


def _csv(table: Table) -> str:
    """Numbers alone, so that any reader takes it: what is true is 1."""
    rows = [[row[name] for name in table.columns] for row in table]
    plain = [[int(cell) if isinstance(cell, bool) else cell for cell in row] for row in rows]
    return csv_text(table.columns, plain)


def _write(table: Table, kind: str, output: Path, session: Path | None, duration: float) -> None:
    from motifold.io.events import events_to_nwb, save_pynapple

    if kind == "csv":
        keep_text(output, _csv(table), "The list")
    elif kind == "midi":
        keep_midi(output, table)
    elif kind == "pynapple":
        keep(output, lambda place: save_pynapple(table, place), "The list")
    else:
        keep(
            output,
            lambda place: events_to_nwb(table, place, duration=duration, session=session),
            "The list",
        )
