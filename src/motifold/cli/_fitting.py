"""The options of ``fit`` and ``sweep`` that are parameters of ``CNMF``.

None of them has a default here: what the user does not say, ``CNMF`` decides.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import click

from motifold.cli._memory import MEMORY_HELP, MemorySize
from motifold.cli._numbers import FloatRange, IntRange
from motifold.cli._shared import FileCommand

_MODEL = "The model"
_SHORT_LOSSES = {"kl": "kullback-leibler", "is": "itakura-saito"}


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


class _BetaLoss(click.ParamType):
    """A loss by its name, a short one, or its β."""

    name = "loss"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | float:
        """The name or the number that ``CNMF`` takes, or a complaint in click's way."""
        from motifold.model.losses import loss_of

        found: str | float = _SHORT_LOSSES.get(value, value)
        if isinstance(found, str):
            with contextlib.suppress(ValueError):
                found = float(found)
        try:
            loss_of(found)
        except ValueError:
            names = ", ".join(("frobenius", "kullback-leibler (kl)", "itakura-saito (is)"))
            self.fail(f"{value!r} is no loss: give {names} or a number β.", param, ctx)
        return found


class FittingCommand(FileCommand):
    """A command with the parameters of ``CNMF``.

    There is an option for every penalty there is, made when the command is asked for: only then is
    it known what penalties there are. ``lists``: several weights for each.
    """

    lists = False

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The options, those of the penalties among them."""
        from motifold.model.penalties import PENALTIES

        penalties = [_option(penalty.name, penalty.help, self.lists) for penalty in PENALTIES]
        return [*super().get_params(ctx), *penalties]


class SweepingCommand(FittingCommand):
    """The same, to go through several weights."""

    lists = True


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the parameters of ``CNMF`` that are no penalties."""
    for option in reversed(_parameters()):
        command = option(command)
    return command


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """What the user said of the model, taken out of the options."""
    from motifold.model.penalties import PENALTIES

    names = ("solver", "beta_loss", "boundary", "background", "center", "max_iter", "tol", "n_init")
    penalties = (penalty.name for penalty in PENALTIES)
    machine = ("device", "memory_limit")
    given = {name: options.pop(name) for name in (*names, *machine, *penalties)}
    return {name: value for name, value in given.items() if value is not None}


def _parameters() -> list[Callable[..., Any]]:
    common: dict[str, Any] = {"cls": SectionedOption, "section": _MODEL}
    return [
        click.option(
            "--solver",
            type=click.Choice(["auto", "hals", "anls", "mu"]),
            help="The algorithm: hals or anls for squared error, mu for any loss.  [default: auto, "
            "hals or mu]",
            **common,
        ),
        click.option(
            "--loss",
            "beta_loss",
            type=_BetaLoss(),
            metavar="LOSS",
            help="How the model is compared with the data: frobenius (squared error), "
            "kullback-leibler or kl (counts), itakura-saito or is (power spectra), or the number β "
            "of a β-divergence.  [default: frobenius]",
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
            "--background/--no-background",
            default=None,
            help="Learn a constant of every feature beside the motifs: ongoing activity, a noise "
            "floor.  [default: no-background]",
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
            type=IntRange(1),
            metavar="N",
            help="Iterations of a start at most.  [default: 1000]",
            **common,
        ),
        click.option(
            "--tol",
            type=FloatRange(0),
            metavar="X",
            help="Converged when the KKT residual is below.  [default: 0.001]",
            **common,
        ),
        click.option(
            "--n-init",
            type=IntRange(1),
            metavar="N",
            help="Starts of a fit; the best is kept.  [default: 1]",
            **common,
        ),
        click.option(
            "--device",
            metavar="DEVICE",
            help="Where to compute: cpu, cuda, or cuda:1 for the second GPU.  [default: cpu]",
            **common,
        ),
        click.option(
            "--memory-limit", type=MemorySize(), metavar="SIZE", help=MEMORY_HELP, **common
        ),
    ]


def _option(name: str, help: str, lists: bool) -> click.Option:
    """An option such as ``--l1-h``, which may be written ``--l1-H`` as well."""
    spelling = f"--{name.replace('_', '-')}"
    several = "; several are tried, as 0,0.01,0.1" if lists else ""
    return SectionedOption(
        [*dict.fromkeys((spelling.lower(), spelling)), name],
        type=_Weights() if lists else FloatRange(0),
        metavar="LIST" if lists else "X",
        help=help,
        section=f"Penalties (weights{several})",
    )
