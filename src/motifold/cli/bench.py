"""``motifold bench``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click


@click.command("bench")
@click.option("--quick", is_flag=True, help="Small problems, under 3 minutes.")
def command(quick: bool) -> None:
    """Measure motifold against other programs.

    As docs/benchmarks.md does. Needs the source checkout, since neither the benchmarks nor the
    rivals are part of the package; `make bench` there installs what it takes.

    \b
    Example:
      motifold bench --quick
    """
    import motifold

    script = Path(motifold.__file__).parents[2] / "benchmarks" / "run.py"
    if not script.is_file():
        raise click.ClickException(
            "The benchmarks are in the source checkout only, not in the installed package. Get "
            "the sources and run `make bench` there."
        )
    arguments = [sys.executable, str(script), *(["--quick"] if quick else [])]
    raise SystemExit(subprocess.run(arguments, check=False).returncode)
