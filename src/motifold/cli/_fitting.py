"""The options of ``fit`` and ``sweep`` that are parameters of ``CNMF``.

None of them has a default here: what the user does not say, ``CNMF`` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click

_MODEL = "The model"
_PENALTIES = {
    "x_ortho": "Against motifs that explain the same events (seqNMF's).",
    "ortho_H": "Against motifs that are active at the same time.",
    "ortho_W": "Against motifs that share features.",
    "l1_H": "On the activations' sum: fewer events.",
    "l1_W": "On the motifs' sum: fewer entries.",
    "l2_H": "On the activations' squares.",
    "l2_W": "On the motifs' squares.",
}


class SectionedOption(click.Option):
    """An option that stands in a section of its own of the help (``FileCommand``)."""

    def __init__(self, *args: Any, section: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.section = section


class _Weights(click.ParamType):
    """``0,0.01,0.1``: weights of a penalty to go through."""

    name = "weights"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[float]:
        """The numbers, or a complaint in click's way."""
        if isinstance(value, list):
            return value
        try:
            weights = [float(part) for part in value.split(",")]
        except ValueError:
            weights = [math.nan]
        if not all(0 <= weight < math.inf for weight in weights):
            self.fail(f"{value!r} is no list of weights such as 0,0.01,0.1.", param, ctx)
        return weights


def model_options(*, lists: bool = False) -> Callable[..., Any]:
    """Add the parameters of ``CNMF``; with ``lists``, several weights for each penalty."""
    options = [*_parameters(), *(_penalty(name, lists) for name in _PENALTIES)]

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """What the user said of the model, taken out of the options."""
    names = ("solver", "boundary", "center", "max_iter", "tol", "n_init", *_PENALTIES)
    given = {name: options.pop(name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _parameters() -> list[Callable[..., Any]]:
    common: dict[str, Any] = {"cls": SectionedOption, "section": _MODEL}
    return [
        click.option(
            "--solver",
            type=click.Choice(["hals", "anls", "mu"]),
            help="The algorithm.  [default: hals]",
            **common,
        ),
        click.option(
            "--boundary",
            type=click.Choice(["zero", "valid"]),
            help="Whether the end of a segment may cut a motif off (zero), or not (valid).  "
            "[default: zero]",
            **common,
        ),
        click.option(
            "--center/--no-center",
            default=None,
            help="Move motifs to the middle of their windows during the fit.  [default: no-center]",
            **common,
        ),
        click.option(
            "--max-iter",
            type=click.IntRange(1),
            metavar="N",
            help="Iterations of a start at most.  [default: 1000]",
            **common,
        ),
        click.option(
            "--tol",
            type=click.FloatRange(0),
            metavar="X",
            help="Converged when the KKT residual is below.  [default: 0.001]",
            **common,
        ),
        click.option(
            "--n-init",
            type=click.IntRange(1),
            metavar="N",
            help="Starts of a fit; the best is kept.  [default: 1]",
            **common,
        ),
    ]


def _penalty(name: str, lists: bool) -> Callable[..., Any]:
    """An option such as ``--l1-h``, which may be written ``--l1-H`` as well."""
    spelling = f"--{name.replace('_', '-')}"
    return click.option(
        *dict.fromkeys((spelling.lower(), spelling)),
        name,
        type=_Weights() if lists else click.FloatRange(0),
        metavar="LIST" if lists else "X",
        help=_PENALTIES[name],
        cls=SectionedOption,
        section="Penalties (weights; several are tried, as 0,0.01,0.1)"
        if lists
        else "Penalties (weights)",
    )
