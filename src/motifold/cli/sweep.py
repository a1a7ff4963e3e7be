"""``motifold sweep``."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import click

from motifold.cli._fitting import SweepingCommand, given_parameters, model_options
from motifold.cli._numbers import IntRange
from motifold.cli._options import (
    file_argument,
    n_components_option,
    n_jobs_option,
    n_lags_option,
    n_null_option,
    output_option,
    store_option,
)
from motifold.cli._outputs import TABLE, beside, check_ending, check_outputs, keep_text
from motifold.cli._preparing import given_preparation, preparing_options
from motifold.cli._shared import (
    friendly,
    on_a_terminal,
    print_json,
    reading_options,
    text_width,
    whole_recording_of,
)
from motifold.cli._terminal import ended, say

_LONGEST = 1000  # range of numbers of motifs: more is a slip


@click.command("sweep", cls=SweepingCommand)
@file_argument
@n_components_option(required=True, type=str, metavar="LIST", help="Motifs: 1,2,3 or 1-6 or both.")
@n_lags_option(metavar="LIST", help="Lengths: 10,20 (bins) or 0.2s,0.4s.")
@click.option(
    "--seeds",
    type=IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Starts of each.",
)
@click.option(
    "--test",
    type=click.Choice(["blocks", "entries", "none"]),
    default="blocks",
    show_default=True,
    help="What the error is measured on: a stretch of time that the fit does not see, a tenth of "
    "the entries, or nothing.",
)
@n_null_option(0, help="Shuffled copies for the test of significance; 0 leaves it out.")
@n_jobs_option("Processes")
@output_option("sweep.csv", metavar="CSV", help="The table of runs.")
@store_option(help="Finished runs.  [default: OUTPUT.runs]")
@preparing_options
@model_options
@reading_options
def command(
    file: Path,
    n_components: str,
    n_lags: str,
    seeds: int,
    test: Literal["blocks", "entries", "none"],
    n_null: int,
    n_jobs: int | None,
    output: Path,
    store: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Suggest how many motifs, how long, and how strong a penalty.

    Fits every number and length of motifs, and every weight of the penalties, from several starts.
    Writes one row for each run: loss, error on held-out data, motifs that are significant there,
    agreement of the starts. Missing entries (--missing mask) count nowhere, but for the test of
    significance, in which they are zero. After Ctrl-C the same command goes on with the runs that
    are missing.

    \b
    Examples:
      motifold sweep counts.npy -k 1-6 -l 20
      motifold sweep speech.wav -k 2,4,8 -l 0.2s,0.4s --seeds 3 -o speech.csv
      motifold sweep counts.npy -k 8 -l 20 --x-ortho 0,0.001,0.01,0.1
    """
    with friendly():
        from motifold.findings import sweep

        grid = given_parameters(options)
        store = store or beside(output, ".runs")
        check_outputs(
            {"--output": output, "--store": store},
            {"the recording": file},
            folders={"the folder of --store": beside(store, ".fits")},
        )
        check_ending("--output", output, TABLE)
        recording = whole_recording_of(file, options)
        if recording.signed:
            grid["allow_negative"] = True
        preparation = given_preparation(options, recording)
        try:
            found = sweep(
                recording.X,
                lengths=recording.lengths,
                mask=recording.mask,
                preparation=preparation,
                n_components=_whole_numbers(n_components),
                n_lags=[recording.bins(text) for text in n_lags.split(",")],
                n_seeds=seeds,
                test=None if test == "none" else test,
                n_null=n_null,
                n_jobs=n_jobs,
                path=store,
                progress=on_a_terminal(),
                **grid,
            )
        except KeyboardInterrupt as interrupt:
            raise ended(interrupt, f"Finished runs are in {store}: do the same again.") from None
        table = found.table
        keep_text(output, table.to_csv(), "The table")
    if as_json:
        told = {"suggested": found.suggested, "evidence": found.evidence, "notes": found.notes}
        print_json({"output": output, "runs": table.records, **told})
        return
    say(table.text(text_width(), keys=_which(table.columns)))
    for name, value in found.suggested.items():
        answer = "no clear answer" if value is None else value
        say(f"Suggested {name}: {answer} (by {found.evidence[name]})")
    for note in found.notes:
        say(f"Note: {note}", err=True)
    say(f"{len(table)} runs: {output}")


def _which(columns: list[str]) -> list[str]:
    """The columns that tell runs apart: what was varied, and the start."""
    return columns[: columns.index("seed") + 1]


def _whole_numbers(text: str) -> list[int]:
    """``1,2,5-7`` as [1, 2, 5, 6, 7]."""
    try:
        numbers: list[int] = []
        for part in text.split(","):
            first, _, last = part.partition("-")
            if int(last or first) - int(first) >= _LONGEST:
                raise ValueError
            numbers += range(int(first), int(last or first) + 1)
        if not numbers or min(numbers) < 1:
            raise ValueError
    except ValueError:
        raise click.UsageError(f"-k: {text!r} is no list such as 1,2,3 or 1-6.") from None
    return numbers
