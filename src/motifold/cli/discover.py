"""``motifold discover``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._numbers import SHARE
from motifold.cli._options import (
    FILE,
    alpha_option,
    file_argument,
    n_components_option,
    n_jobs_option,
    n_lags_option,
    output_option,
    report_option,
    seed_option,
    store_option,
)
from motifold.cli._outputs import (
    PAGE,
    TABLE,
    check_ending,
    check_no_other_ending,
    check_outputs,
    keep,
    keep_text,
)
from motifold.cli._said import command_line
from motifold.cli._shared import (
    FileCommand,
    friendly,
    on_a_terminal,
    print_json,
    reading_options,
    whole_recording_of,
)
from motifold.cli._terminal import ended, say


@click.command(
    "discover",
    cls=FileCommand,
    short_help="Find motifs, tell sequences from synchrony, list events.",
)
@file_argument
@n_lags_option()
@n_components_option(help="Motifs; else found out.")
@alpha_option("the verdicts")
@click.option(
    "--fdr",
    type=SHARE,
    default=0.1,
    show_default=True,
    metavar="X",
    help="Share of the listed events that may be false.",
)
@seed_option("seed", help="Of starts, shifts and signs.")
@n_jobs_option()
@output_option(None, metavar="CSV", help="Write the events there.")
@report_option(help="Write a page with everything there.")
@click.option("--save", type=FILE, metavar="MODEL", help="Write the plain fit there (.npz).")
@store_option(metavar="NPZ", help="Keep stages there, to go on after Ctrl-C.")
@reading_options
def command(
    file: Path,
    n_lags: str,
    n_components: int | None,
    alpha: float,
    fdr: float,
    seed: int,
    n_jobs: int | None,
    output: Path | None,
    report: Path | None,
    save: Path | None,
    store: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Find motifs, tell sequences from synchrony, and list when they occur.

    Chooses the number of motifs (none is an answer), tests on quarters that are held out in turn
    whether each recurs and whether it does in its order, sharpens the motifs and lists their
    events at a false discovery rate. Prints what was found in sentences.

    \b
    Examples:
      motifold discover counts.npy -l 25
      motifold discover counts.csv --time seconds -l 0.5s -o events.csv --report found.html
    """
    with friendly():
        from motifold.findings import discover

        outputs = {"--output": output, "--report": report, "--save": save, "--store": store}
        check_outputs(outputs, {"the recording": file})
        check_ending("--output", output, TABLE)
        check_ending("--report", report, PAGE)
        if save is not None:
            check_no_other_ending("--save", save, ".npz")
        recording = whole_recording_of(file, options)
        try:
            found = discover(
                recording.X,
                n_lags=recording.bins(n_lags),
                n_components=n_components,
                rate=recording.rate,
                lengths=recording.lengths,
                mask=recording.mask,
                alpha=alpha,
                fdr=fdr,
                path=store,
                random_state=seed,
                n_jobs=n_jobs,
                progress=on_a_terminal(),
            )
        except KeyboardInterrupt as interrupt:
            kept = "" if store is None else f"Finished stages are in {store}: do the same again."
            raise ended(interrupt, kept) from None
        if output is not None:
            keep_text(output, found.events.to_csv(), "The list")
        if report is not None:
            said = {"recording_name": file.name, "command": command_line()}
            keep(report, lambda place: found.report(place, **said), "The page")
        if save is not None and found.model is not None:
            keep(save, found.model.save, "The model")
    if as_json:
        print_json(
            {
                "n_components": found.n_components,
                "motifs": found.table.records,
                "events": found.events.records,
            }
        )
        return
    say(found.summary())
    if save is not None and found.model is None:
        say(f"There is no model to write to {save}.", err=True)
