"""``motifold warmup``."""

from __future__ import annotations

from typing import Any

import click

from motifold.cli._numbers import IntRange
from motifold.cli._options import json_option
from motifold.cli._shared import friendly, print_json
from motifold.cli._terminal import say


@click.command("warmup")
@click.option(
    "--device",
    metavar="DEVICE",
    help="cpu, cuda, or cuda:1 for the second GPU.  [default: cpu, and cuda if there is a GPU]",
)
@click.option(
    "-k",
    "--n-components",
    type=IntRange(1),
    default=5,
    show_default=True,
    metavar="N",
    help="Motifs that kernels of a GPU are compiled for.",
)
@click.option(
    "-l",
    "--n-lags",
    type=IntRange(1),
    default=20,
    show_default=True,
    metavar="N",
    help="Lags that they are compiled for.",
)
@json_option
def command(device: str | None, n_components: int, n_lags: int, as_json: bool) -> None:
    """Compile everything now, so that no fit has to wait for it.

    The inner loops are compiled when they are first used, and kept on disk (motifold doctor tells
    where). This uses all of them once, on next to no data: after an installation, or in the image
    of a container. Kernels of a GPU are compiled for a number of motifs and lags: say which.

    \b
    Examples:
      motifold warmup
      motifold warmup --device cuda -k 8 -l 40
    """
    with friendly():
        from motifold.cli._warming import warm_cpu, warm_gpu
        from motifold.engines.cuda import Census

        told: dict[str, Any] = {}
        wanted = [device] if device else ["cpu", *(["cuda"] if "cupy" in Census().facts else [])]
        for name in wanted:
            warmed = warm_cpu() if name == "cpu" else warm_gpu(name, n_components, n_lags)
            told[name] = vars(warmed)
            if not as_json:
                say(f"{name}: {warmed}")
        if as_json:
            print_json(told)
