"""``--follow``: rows as they come, from standard input or a file that grows."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._numbers import FloatRange, IntRange
from motifold.cli._shared import load_model
from motifold.cli._terminal import exit_code, say

if TYPE_CHECKING:
    from motifold.io.rows import RowReader


def follow_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--follow`` and ``--idle``."""
    options: list[Any] = [
        click.option(
            "--idle",
            type=FloatRange(0),
            metavar="S",
            help="With --follow of a file: end when nothing was written for so long.  [default: "
            "wait for ever]",
        ),
        click.option(
            "--follow",
            is_flag=True,
            help="Take rows as they come, from standard input (-) or a csv or npy file that grows.",
        ),
    ]
    for option in options:
        command = option(command)
    return command


def live_events_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what ``events --follow`` takes."""
    latency: Any = click.option(
        "--latency",
        type=IntRange(0),
        metavar="BINS",
        help="With --follow: time bins that an activation waits for.  [default: 2 motifs]",
    )
    source: Any = click.argument("source", required=False, type=click.Path(path_type=Path))
    return follow_option(source(latency(command)))


def check_following(follow: bool, idle_options: dict[str, Any]) -> None:
    """Raise where the options do not go together."""
    if not follow:
        raise click.UsageError("Rows from a pipe or a growing file are taken with --follow.")
    for name, value in idle_options.items():
        if value is not None:
            raise click.UsageError(f"{name} does not go with --follow.")


def reader_of(source: Path, idle: float | None, **settings: Any) -> RowReader:
    """Rows of standard input (``-``), or of a file that grows."""
    from motifold.io.rows import RowReader

    if str(source) == "-":
        return RowReader(sys.stdin.buffer, "standard input", **settings)
    return RowReader.open(source, idle=idle, **settings)


def follow_events(
    model: Path,
    source: Path | None,
    *,
    latency: int | None,
    idle: float | None,
    rate: Any,
    threshold: float | None,
    refractory: float | None,
) -> None:
    """Print events as JSON, one on a line, as soon as they are final."""
    if source is None:
        raise click.UsageError("--follow needs rows: give - (standard input) or a file.")
    from motifold.findings.peaks import THRESHOLD

    fitted = load_model(model)
    if fitted.preparation_ is not None:
        raise click.UsageError(
            f"{model} was fitted to a recording that was prepared, which rows as they come are "
            "not: give the recording, --data FILE, without --follow."
        )
    threshold = THRESHOLD if threshold is None else threshold
    origin = fitted.origin_ or {}
    bins_per_second = float(rate or origin.get("rate") or 1.0)
    stream = fitted.stream(latency)
    events = stream.events(threshold=threshold, refractory=refractory, rate=bins_per_second)

    def tell() -> None:
        for event in events.take():
            say(json.dumps(event))  # click flushes every line

    try:
        with reader_of(source, idle, signed=bool(fitted.allow_negative)) as reader:
            for rows in reader:
                for row in rows.values:  # one at a time: a bad one takes no good ones with it
                    stream.push(row)
                tell()
    except KeyboardInterrupt as interrupt:
        raise SystemExit(exit_code(interrupt)) from None
    finally:  # whatever ended it: what came before is told
        stream.flush()
        tell()
