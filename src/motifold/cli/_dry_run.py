"""``motifold fit --dry-run``: what the fit would take; nothing is written."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from motifold.cli._shared import print_json
from motifold.cli._terminal import say

if TYPE_CHECKING:
    from motifold.forecast import Estimate

dry_run_option = click.option(
    "--dry-run",
    is_flag=True,
    help="Do not fit: tell what a fit would take, time and memory, by a second of measured work.",
)


def tell_estimate(estimate: Estimate, as_json: bool) -> None:
    """Print it."""
    if as_json:
        print_json({**asdict(estimate), "fits": estimate.fits})
    else:
        say(str(estimate))
