"""``motifold significance``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._options import (
    alpha_option,
    data_option,
    memory_option,
    model_argument,
    n_null_option,
    output_option,
)
from motifold.cli._outputs import TABLE, check_ending, check_outputs, keep_text
from motifold.cli._shared import (
    FileCommand,
    friendly,
    load_model,
    print_json,
    reading_options,
    recording_of,
    text_width,
)
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.estimator import CNMF
    from motifold.findings.unseen import Unseen
    from motifold.io import Recording


@click.command(
    "significance",
    cls=FileCommand,
    short_help="Test whether motifs recur in data the fit has not seen.",
)
@model_argument
@data_option
@click.option(
    "--new-data", is_flag=True, help="It is a recording of which the fit has seen nothing."
)
@n_null_option(1, help="Shuffled copies of each motif.")
@alpha_option("the test")
@output_option(None, metavar="CSV", help="Write the table there as well.")
@memory_option
@reading_options
def command(
    model: Path,
    data: Path | None,
    new_data: bool,
    n_null: int,
    alpha: float,
    output: Path | None,
    as_json: bool,
    memory_limit: str | None,
    **options: Any,
) -> None:
    """Test whether motifs recur by more than chance, on data that their fit has not seen.

    Does the order of the features matter? Each motif is compared with copies of it in which every
    feature is shifted by a random lag. On data that the motifs were found in the test means
    nothing, and is refused: the stretches are used that motifold fit --test-fraction held out, or
    another recording, which you declare with --new-data.

    \b
    Examples:
      motifold significance model.npz --data counts.npy
      motifold significance model.npz --data another-day.npy --new-data -o significance.csv
    """
    with friendly():
        fitted = load_model(model).set_params(memory_limit=memory_limit)
        data = data or _recording_of_the_fit(fitted, model)
        check_outputs({"--output": output}, {"the model": model, "the recording": data})
        check_ending("--output", output, TABLE)
        recording = recording_of(data, options, fitted).checked(memory_limit=memory_limit)
        unseen = _unseen(fitted, recording, new_data)
        try:
            found = unseen.tested(fitted, n_null=n_null, alpha=alpha)
        except ValueError as error:
            raise ValueError(str(error).replace("n_null=", "--n-null ").replace(
                "raise n_null", "raise --n-null")) from error  # fmt: skip
        where = _where(unseen, fitted, recording)
        table = found.table
        if output is not None:
            keep_text(output, table.to_csv(), "The table")
    n_tested, n_found = int(found.tested.sum()), int(found.significant.sum())
    if as_json:
        print_json(
            {
                "tested_on": unseen.kind,
                "data": str(data),
                "time_bins": unseen.X.shape[0],
                "n_null": n_null,
                "alpha": alpha,
                "motifs": table.records,
                "significant": n_found,
                "output": output,
            }
        )
        return
    say(table.text(text_width(), keys=["motif"]))
    say(
        f"{n_found} of {n_tested} motifs tested are significant (level {alpha:g} for all together, "
        f"Bonferroni's correction, {n_null} shuffled copies), {where}."
    )
    if output is not None:
        say(f"Table: {output}")


def _recording_of_the_fit(fitted: CNMF, model: Path) -> Path:
    source = Path((fitted.origin_ or {}).get("source", ""))
    if not source.is_file():
        raise click.UsageError(
            f"{model} does not say where its recording is, or it is not there: give --data FILE."
        )
    return source


def _unseen(fitted: CNMF, recording: Recording, new_data: bool) -> Unseen:
    """What is tested on; a complaint where the fit has seen it, or nobody says that it has not."""
    from motifold.findings.unseen import Unseen

    unseen, held = Unseen.of(fitted, recording), fitted.held_out_
    if unseen is None:
        raise ValueError(
            f"{recording.source}: the model was fitted to all of this recording, and a p-value on "
            "what the motifs were found in means nothing. Fit with --test-fraction 0.3, or test on "
            "another recording (--data FILE --new-data)."
        )
    if unseen.kind == "held out":
        if new_data:
            raise click.UsageError(
                f"--new-data: {recording.source} is the recording of the fit. Leave it out, and "
                "the stretches that were held out are used."
            )
        return unseen
    if not new_data:
        what = "it is not the recording of the fit, of which stretches were held out."
        if held is None:
            what = (
                "the model was fitted without a hold-out, so a test might be on what it has seen."
            )
        raise click.UsageError(
            f"{recording.source}: {what} If the fit has seen nothing of it, say so with --new-data."
        )
    return unseen


def _where(unseen: Unseen, fitted: CNMF, recording: Recording) -> str:
    bins = unseen.X.shape[0]
    long = f"{bins} time bins" if recording.rate is None else f"{bins / recording.rate:.3g} s"
    if unseen.kind == "other":
        return f"in {recording.source} ({long}), declared as new data"
    assert fitted.held_out_ is not None
    n = len(fitted.held_out_.stretches)
    several = "one stretch that was" if n == 1 else f"{n} stretches that were"
    return f"in {several} held out of the fit ({long}, {100 * fitted.held_out_.share:.0f}%)"
