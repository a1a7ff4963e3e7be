"""``motifold export``."""

from __future__ import annotations

from pathlib import Path

import click

from motifold.cli._options import model_argument, output_option
from motifold.cli._outputs import check_ending, check_outputs, keep
from motifold.cli._shared import EXIT_CODES, friendly, load_model
from motifold.cli._terminal import say

_ENDINGS = {"mat": (".mat",), "npz": (".npz",)}


@click.command("export", epilog=EXIT_CODES)
@model_argument
@click.option(
    "--to",
    "kind",
    type=click.Choice(["mat", "npz", "csv"]),
    required=True,
    help="MATLAB in seqNMF's layout, plain NumPy arrays, or a folder of two tables.",
)
@output_option(None, metavar="PATH", help="The file, or with --to csv the folder.", required=True)
def command(model: Path, kind: str, output: Path) -> None:
    """Write motifs and activations for another program.

    mat: W (N x K x L) and H (K x T) as seqNMF has them, so that its plots run, with background,
    loss, lengths, rate and features. npz: components (K, L, N) and activations (T, K) by name, for
    numpy.load. csv: motifs.csv (a long table) and activations.csv (a row for each time bin) in a
    folder. Events have a command of their own: motifold events.

    \b
    Examples:
      motifold export model.npz --to mat -o model.mat
      motifold export model.npz --to csv -o tables/
    """
    with friendly():
        from motifold import exports

        is_folder = kind == "csv"
        folders = {"--output": output} if is_folder else {}
        check_outputs(
            {} if is_folder else {"--output": output}, {"the model": model}, folders=folders
        )
        if is_folder and output.exists() and not output.is_dir():
            raise click.UsageError(f"--output: {output} is a file, and tables go into a folder.")
        check_ending("--output", None if is_folder else output, _ENDINGS.get(kind, ()))
        fitted = load_model(model)
        write = {"mat": exports.export_mat, "npz": exports.export_npz, "csv": exports.export_csv}
        keep(output, lambda place: write[kind](fitted, place), "What was exported")
        K, L, N = fitted.components_.shape
        say(f"{K} motifs of {L} bins and {N} features: {output}")
