"""The options that prepare a recording before the fit, and what they make of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._fitting import SectionedOption

if TYPE_CHECKING:
    from motifold.data.held_out import HoldOut
    from motifold.io import Recording
    from motifold.prepare import Preparation

_SECTION = "Preparation (done in this order, and again to new data)"


class _Smoothing(click.ParamType):
    """``20ms``, ``0.02s``, ``2`` (bins), and with ``,causal`` after it."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, bool, bool]:
        """The number, whether it is seconds, and whether the kernel is causal."""
        if isinstance(value, tuple):
            return value
        text, comma, kind = str(value).partition(",")
        text, kind = text.strip().lower(), kind.strip()
        factor = 1e-3 if text.endswith("ms") else 1.0 if text.endswith("s") else None
        try:
            number = float(text.removesuffix("s").removesuffix("m") if factor else text)
        except ValueError:
            number = math.nan
        known = kind in ("causal", "symmetric") if comma else True
        if not known or not 0 < number < math.inf:
            self.fail(f"{value!r} is no kernel such as 20ms, 0.5s, 2 (bins) or 20ms,causal.",
                      param, ctx)  # fmt: skip
        return number * (factor or 1.0), factor is not None, kind == "causal"


class _Baseline(click.ParamType):
    """``median``, or a quantile."""

    name = "quantile"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """A number from 0 to 1."""
        try:
            found = 0.5 if value == "median" else float(value)
        except ValueError:
            found = math.nan
        if not 0 <= found <= 1:
            self.fail(f"{value!r} is neither median nor a quantile from 0 to 1.", param, ctx)
        return found


def preparing_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options (``given_preparation`` takes them)."""
    common: dict[str, Any] = {"cls": SectionedOption, "section": _SECTION}
    options = [
        click.option(
            "--baseline",
            type=_Baseline(),
            metavar="QUANTILE",
            help="Subtract the median of every feature, or a quantile (0.2), and cut off at zero.",
            **common,
        ),
        click.option(
            "--sqrt/--no-sqrt", default=False, help="Take the square root: for counts.", **common
        ),
        click.option(
            "--smooth",
            type=_Smoothing(),
            metavar="TIME",
            help="Smooth over time by a Gaussian of this standard deviation: 20ms, 0.5s, 2 (bins); "
            "20ms,causal takes the half that looks back.",
            **common,
        ),
        click.option(
            "--scale-features",
            type=click.Choice(["none", "std", "mean-variance", "max"]),
            default="none",
            help="Divide every feature by its standard deviation, its root mean square or its "
            "largest value.",
            **common,
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def given_preparation(options: dict[str, Any], recording: Recording) -> Preparation | None:
    """What the user said of it, taken out of the options; not fitted."""
    from motifold.io import RecordingError
    from motifold.prepare import Preparation

    baseline, root, smooth, scale = (
        options.pop(name) for name in ("baseline", "sqrt", "smooth", "scale_features")
    )
    amount, in_seconds, causal = smooth or (None, False, False)
    if in_seconds and recording.rate is None:
        raise RecordingError(
            f"{recording.source}: --smooth {amount:g}s needs the number of time bins per second, "
            "which the file does not tell. Give it with --rate, or give the width in bins."
        )
    rate = (recording.rate or 1.0) if in_seconds else 1.0
    return Preparation.of(
        baseline=baseline,
        square_root=root,
        smooth=amount,
        causal=causal,
        rate=rate,
        scale=None if scale == "none" else scale,
    )


@dataclass(frozen=True)
class FittedPart:
    """What is fitted: the recording, or the part of it that is not held out, prepared."""

    X: Any
    lengths: tuple[int, ...] | None
    mask: Any


def part_to_fit(
    recording: Recording, preparation: Preparation | None, held: HoldOut | None
) -> FittedPart:
    """The part; the preparation, if there is one, is fitted to it alone."""
    from motifold.data import Segments
    from motifold.findings.unseen import matrix_of, refuse_on_disk

    X, lengths = recording.X, recording.lengths
    if held is not None:
        X = matrix_of(X)[held.train]
        lengths = tuple(Segments.of(X.shape[0], segments=held.train_segments).lengths)
    if preparation is not None:
        refuse_on_disk(recording, "prepared")
        X = preparation.fit_transform(matrix_of(X), lengths=lengths)
    mask = None
    if recording.mask is not None:
        mask = recording.mask if held is None else recording.mask[held.train]
        if not mask.any():
            raise ValueError("Nothing is observed of the part that is fitted: hold out less.")
    return FittedPart(X, lengths, mask)
