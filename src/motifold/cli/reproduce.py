"""``motifold reproduce``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import click

from motifold.cli._numbers import POSITIVE, IntRange
from motifold.cli._options import json_option
from motifold.cli._shared import EXIT_CODES, friendly, print_json, text_width
from motifold.cli._terminal import ended, say

_EXPERIMENTS = ("synthetic", "songbird", "speech")


@click.command("reproduce", epilog=EXIT_CODES)
@click.argument("experiment", type=click.Choice([*_EXPERIMENTS, "all"]))
@click.option(
    "--time-limit",
    type=POSITIVE,
    default=None,
    metavar="S",
    help="Seconds of fitting for each experiment in all, divided over its data sets, starts, and "
    "three algorithms in two forms.  [default: synthetic 600, songbird 120, speech 600]",
)
@click.option(
    "--seeds",
    type=IntRange(1),
    default=3,
    show_default=True,
    metavar="N",
    help="Random starts, the same for each algorithm.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduce_output"),
    show_default=True,
    metavar="DIR",
    help="Where figures, curves and claims go, and the finished fits.",
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder that has the recordings; without it, that in MOTIFOLD_DATA, else they are "
    "downloaded.",
)
@json_option
def command(
    experiment: str,
    time_limit: float | None,
    seeds: int,
    out: Path,
    data: Path | None,
    as_json: bool,
) -> None:
    """Run the paper's experiments.

    MU, HALS and ANLS, each as published and accelerated. Draws the counterparts of the paper's
    Figures 2 (synthetic), 3 (songbird), 4 and 5 (speech), and writes all curves (curves.csv) and
    the paper's claims beside what was measured (claims.md). After Ctrl-C the same command goes on
    with the fits that are missing.

    \b
    Example:
      motifold reproduce songbird --time-limit 60
    """
    from motifold.reproduce import reproduce

    names = _EXPERIMENTS if experiment == "all" else (experiment,)

    def tell(line: str) -> None:
        say(line, err=as_json)

    with friendly():
        try:
            written = reproduce(
                names, out, time_limit=time_limit, seeds=seeds, data_home=data, tell=tell
            )
        except KeyboardInterrupt as interrupt:
            kept = "Finished fits are kept; the same command goes on."
            raise ended(interrupt, kept) from None
    if as_json:
        print_json({"written": list(written)})
        return
    say(_in_lines((out / "claims.md").read_text(encoding="utf-8"), text_width()))
    say("Written: " + ", ".join(str(path) for path in written))


def _in_lines(markdown: str, width: int) -> str:
    """The text for a terminal: a table that is too wide for it is told row by row."""
    lines: list[str] = []
    for is_table, group in groupby(markdown.splitlines(), lambda line: line.startswith("| ")):
        told = list(group)
        if is_table:
            lines += _table_in_lines(told, width)
        else:
            lines += [click.wrap_text(line, width) if len(line) > width else line for line in told]
    return "\n".join(lines)


def _table_in_lines(rows: list[str], width: int) -> list[str]:
    from motifold.findings.table import aligned

    head, _, *body = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]
    beside = aligned([head, *body], left=range(len(head)))
    if max(map(len, beside)) <= width:
        return beside
    blocks = []
    for first, *others in body:
        block = [click.wrap_text(first, width, "- ", "  ")]
        for name, cell in zip(head[1:], others, strict=True):
            block.append(click.wrap_text(f"{name}: {cell}", width, "    ", "    "))
        blocks.append("\n".join(block))
    return "\n".join(blocks).splitlines()
