"""``motifold discover``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from motifold.cli._numbers import SHARE, IntRange, alpha_option, n_jobs_option, seed_option
from motifold.cli._outputs import PAGE, TABLE, check_ending, check_outputs, keep, keep_text
from motifold.cli._said import command_line
from motifold.cli._shared import (
    FILE,
    FileCommand,
    friendly,
    on_a_terminal,
    output_option,
    print_json,
    reading_options,
    recording_of,
)
from motifold.cli._terminal import exit_code, say


@click.command(
    "discover",
    cls=FileCommand,
    short_help="Find motifs, tell sequences from synchrony, list events.",
)
@click.argument("file", type=FILE)
@click.option(
    "-l", "--n-lags", required=True, metavar="LENGTH", help="Of a motif: 20 (bins) or 0.4s."
)
@click.option("-k", "--n-components", type=IntRange(1), metavar="N", help="Motifs; else found out.")
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
@click.option("--report", type=FILE, metavar="HTML", help="Write a page with everything there.")
@click.option("--save", type=FILE, metavar="MODEL", help="Write the plain fit there (.npz).")
@click.option("--store", type=FILE, metavar="NPZ", help="Keep stages there, to go on after Ctrl-C.")
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
        # All of it: it is gone through again and again, and in other processes.
        recording = recording_of(file, options).checked(memory_limit=float("inf"))
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
            if store is not None:
                say(f"\nInterrupted. Finished stages are in {store}: do the same again.", err=True)
            raise SystemExit(exit_code(interrupt)) from None
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
