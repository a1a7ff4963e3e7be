"""``motifold events``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._following import check_following, follow_events, live_events_options
from motifold.cli._midi import ENDINGS, keep_midi
from motifold.cli._numbers import FloatRange
from motifold.cli._options import FILE, data_option, model_argument, notes_option, output_option
from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep, keep_text
from motifold.cli._shared import (
    FileCommand,
    friendly,
    json_text,
    load_model,
    notes_input,
    notes_of,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.findings import Table
    from motifold.findings.annotations import Annotations

_LABELS = ("audacity", "raven", "mne")
_ENDINGS = {"csv": TABLE, "json": (".json",), "pynapple": (".npz",), "nwb": (".nwb",)}
_ENDINGS |= {"midi": ENDINGS, **dict.fromkeys(_LABELS, (".txt",))}


@click.command("events", cls=FileCommand)
@model_argument
@live_events_options
@data_option
@output_option(None, metavar="CSV", help="Write there, else to the screen.")
@click.option(
    "--fdr",
    type=FloatRange(0, 1, min_open=True, max_open=True),
    help="With --data: share of the events that may be false.  [default: 0.1]",
)
@click.option(
    "--threshold",
    type=FloatRange(0),
    help="Instead: least strength, in units of the motif's typical one.  [default without --data: "
    "0.3, or as noted]",
)
@click.option(
    "--refractory",
    type=FloatRange(0),
    metavar="S",
    help="Seconds between two.  [default: where the motif no longer resembles itself]",
)
@click.option(
    "--partial", is_flag=True, help="Tell also events that the end of a segment cuts off."
)
@click.option(
    "--to",
    "kind_of_output",
    type=click.Choice(list(_ENDINGS)),
    default="csv",
    show_default=True,
    help="What to write: a table, JSON, a pynapple TsGroup (npz), intervals in an NWB file, a MIDI "
    "file of drums (motif k is note 36 + k; needs mido), or labels of Audacity, Raven or MNE.",
)
@click.option(
    "--session",
    type=FILE,
    metavar="NWB",
    help="With --to nwb: write a copy of this file, with the intervals added.",
)
@notes_option
@reading_options
def command(
    model: Path,
    data: Path | None,
    output: Path | None,
    fdr: float | None,
    threshold: float | None,
    refractory: float | None,
    partial: bool,
    kind_of_output: str,
    session: Path | None,
    notes: bool,
    as_json: bool,
    source: Path | None,
    follow: bool,
    latency: int | None,
    idle: float | None,
    **options: Any,
) -> None:
    """List when each motif occurs, as CSV.

    The columns are motif (from 0, as in components_), segment (from 0), time (of the motif's first
    lag), bin, strength, start (the same from the start of the segment), peak (of the motif's
    strongest lag), with --data explained (share of the recording's power there), observed (share of
    the motif that was), partial (1 if the end cuts it off) and, with --data, q_value. Times are in
    seconds where the rate is known, else in bins; time and peak are on the recording's clock.
    Events of which less than half was observed are left out, and without --partial those that the
    end of a segment cuts off.

    With --data an event is kept where copies of the recording, in which each feature is shifted in
    time by itself, have no more than a share --fdr as many of its strength or above; q_value is the
    least such share. Without it, or with --threshold, strength alone decides.

    What was said in the explorer is heeded: thresholds of each motif (unless --fdr is given),
    motifs that were merged or hidden, events that were rejected, and names, in a column more
    (--no-notes leaves it aside).

    With --follow rows are taken as they come, from standard input (-) or a csv or npy file that is
    being written, one time bin on a line; each event is printed as JSON on a line of its own as
    soon as it is final. Its certainty, 0 to 1, tells how far it can be relied on with a short
    --latency. What was said in the explorer does not count there.

    \b
    Examples:
      motifold events model.npz
      motifold events model.npz --data another.npy -o events.csv
      motifold events model.npz --data another.npy --threshold 0.3
      motifold events model.npz --to pynapple -o events.npz
      motifold events model.npz --to nwb -o events.nwb --session session.nwb
      motifold events drums.npz --to midi -o drums.mid
      motifold events song.npz --to audacity -o labels.txt
      rig | motifold events model.npz - --follow
    """
    with friendly():
        if follow or source is not None:
            others: dict[str, Any] = {"--data": data, "--output": output, "--session": session}
            others |= {"--partial": partial or None, "--fdr": fdr}
            others |= {"--to": None if kind_of_output == "csv" else kind_of_output}
            check_following(follow, others)
            settings: dict[str, Any] = {"threshold": threshold, "refractory": refractory}
            settings |= {"latency": latency, "idle": idle, "rate": options.get("rate")}
            follow_events(model, source, **settings)
            return
        inputs = {"the model": model, "the recording": data, "the session": session}
        inputs |= notes_input(model)
        check_outputs({"--output": output}, inputs)
        _check_kind(kind_of_output, output, session)
        _check_rule(fdr, threshold, data)
        fitted = load_model(model)
        if data is None and fitted.held_out_ is not None:
            read_from = (fitted.origin_ or {}).get("source") or "FILE"
            raise click.UsageError(
                f"{model} was fitted to a part of its recording, so its own activations do not "
                f"tell times: give the recording, --data {read_from}."
            )
        rule = {"fdr": fdr, "threshold": threshold, "refractory": refractory, "partial": partial}
        found, rate = _found(fitted, data, options, notes_of(model, fitted, notes), rule)
        if output is not None:
            if rate is None and kind_of_output in _LABELS:
                raise click.UsageError(f"--to {kind_of_output} has times in seconds: give --rate.")
            duration = fitted.n_lags / (rate or 1.0)
            _write(found, kind_of_output, output, session, duration)
        if as_json or (kind_of_output == "json" and output is None):
            print_json({"events": found.records})
        elif output is None:
            say(_csv(found), nl=False)
        else:
            say(f"{len(found)} events: {output}")


def _check_kind(kind: str, output: Path | None, session: Path | None) -> None:
    check_ending("--output", output, _ENDINGS[kind])
    if kind not in ("csv", "json") and output is None:
        raise click.UsageError(f"--to {kind} needs a file: give --output.")
    if session is not None and kind != "nwb":
        raise click.UsageError("--session goes with --to nwb alone.")


def _check_rule(fdr: float | None, threshold: float | None, data: Path | None) -> None:
    if fdr is not None and threshold is not None:
        raise click.UsageError("--fdr and --threshold are two rules for one thing: give one.")
    if fdr is not None and data is None:
        raise click.UsageError("--fdr compares with shifted copies of the recording: give --data.")


def _found(
    fitted: CNMF,
    data: Path | None,
    options: dict[str, Any],
    said: Annotations | None,
    rule: dict[str, Any],
) -> tuple[Table, float | None]:
    """The events, counted as was said in the explorer, and the rate where it is known."""
    from motifold.findings import find_events
    from motifold.findings.annotated import annotated_events, with_names
    from motifold.findings.annotations import recording_key
    from motifold.findings.unseen import prepared_recording

    origin = fitted.origin_ or {}
    rate, key = origin.get("rate") or options.get("rate"), None
    of_the_data: dict[str, Any] = {"starts": origin.get("starts")}
    if data is not None:
        recording = recording_of(data, options, fitted).checked()
        key = None if said is None else recording_key(recording.X)
        recording = prepared_recording(fitted, recording)
        activations = fitted.transform(recording.X, lengths=recording.lengths, mask=recording.mask)
        rate = recording.rate
        of_the_data = {
            "activations": activations,
            "lengths": recording.lengths,
            "X": recording.X,
            "mask": recording.mask,
            "starts": recording.starts,
        }
    rate = None if rate is None else float(rate)
    if rate is None:
        of_the_data["starts"] = None  # bins are not counted in seconds
    if said is None:
        return find_events(fitted, rate=rate or 1.0, **rule, **of_the_data), rate
    activations = of_the_data.pop("activations", None)
    counted = {"rate": rate or 1.0, **rule, **of_the_data}
    found = annotated_events(fitted, activations, said, key=key, **counted)
    return with_names(found, said), rate


def _csv(table: Table) -> str:
    """What is true is 1, so that any reader takes it."""
    from motifold.findings.annotated import events_csv

    return events_csv(table)


def _write(table: Table, kind: str, output: Path, session: Path | None, duration: float) -> None:
    from motifold.exports import write_labels
    from motifold.io.events import events_to_nwb, save_pynapple

    if kind == "csv":
        keep_text(output, _csv(table), "The list")
    elif kind == "json":
        keep_text(output, json_text({"events": table.records}) + "\n", "The list")
    elif kind in _LABELS:
        called = {row["motif"]: row["name"] for row in table.records if row.get("name")}
        labels: dict[str, Any] = {"duration": duration, "names": called}
        keep(output, lambda place: write_labels(table, place, kind, **labels), "The list")
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
