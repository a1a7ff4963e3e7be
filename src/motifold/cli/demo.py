"""``motifold demo``."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("demo")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo_output"),
    metavar="DIR",
    show_default=True,
    help="Where the picture goes.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Of data and start.",
)
@click.option("--quick", is_flag=True, help="A small problem.")
def command(output: Path, seed: int, quick: bool) -> None:
    """Fit synthetic data, and draw the result.

    It is the paper's synthetic problem, fitted with the three algorithms.

    \b
    Example:
      motifold demo --quick
    """
    from motifold.reproduce.demo import main

    arguments = ["--output", str(output), "--seed", str(seed), *(["--quick"] if quick else [])]
    raise SystemExit(main(arguments))
