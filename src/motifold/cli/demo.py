"""``motifold demo``."""

from __future__ import annotations

from pathlib import Path

import click

from motifold.cli._numbers import SEED
from motifold.cli._shared import friendly
from motifold.cli._terminal import ended


@click.command("demo")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo_output"),
    metavar="DIR",
    show_default=True,
    help="Where the pictures go.",
)
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Of data and starts.",
)
@click.option("--quick", is_flag=True, help="Smaller problems, less time.")
def command(output: Path, seed: int, quick: bool) -> None:
    """Find hidden sequences, race the algorithms, draw both.

    Sequences of neurons are found in spikes that show nothing; then the three algorithms get the
    same time on the paper's synthetic problem, from the same starts.

    \b
    Example:
      motifold demo --quick
    """
    from motifold.reproduce.demo import run

    arguments = ["--output", str(output), "--seed", str(seed), *(["--quick"] if quick else [])]
    with friendly():
        try:
            raise SystemExit(run(arguments))
        except KeyboardInterrupt as interrupt:
            raise ended(interrupt, "The demo ends here.") from None
