"""What all pictures share: colours, line styles, scales, and how time and features are labelled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, LinearSegmentedColormap, ListedColormap, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.gridspec import SubplotSpec
from matplotlib.image import AxesImage
from matplotlib.ticker import FuncFormatter, MaxNLocator

from motifold.plots.printed import size_of

# Okabe and Ito's colours, safe for the colour-blind; without yellow, which white drowns. Then
# others, as far as can be from those before, also for a deuteranope (in Lab, at least 25).
PALETTE = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"),
    *("#5A4B00", "#0F2DA5", "#D2A578", "#780069", "#692D2D", "#8787FF", "#4B962D"),
    *("#4B6969", "#B4B44B", "#C31E4B", "#D23CB4", "#1E3C87", "#FF7896"),
)
# Second and third signs to tell lines apart, for print in grey.
LINE_STYLES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), ":", (0, (8, 3)), (0, (1, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_NAMED_FEATURES = 20  # up to so many features each has its own tick
_MARKED_SEGMENTS = 100
_MISSING = "0.78"  # the grey of entries that are NaN: no shade of the map is grey
# Frequencies of a sound go up to so many Hz at least, are so many at least, and have so many rows.
_HEARD, _LEAST_OF_SOUND, _ROWS_OF_SOUND = 1000, 65, 400
_DARKEST = 99.5  # percentile of the values from which on they are drawn in the darkest shade


def _image_map() -> Colormap:
    """Magma from light to dark, its pale yellow end turned white: zero leaves the paper blank.

    Lightness falls all along and nearly evenly, so that grey print keeps the order of values.
    """
    shades = colormaps["magma_r"](np.linspace(0, 1, 256))
    fade = np.clip(np.linspace(0, 5, 256), 0, 1)[:, None]  # over the first fifth
    return ListedColormap(1 - fade * (1 - shades), name="motifold").with_extremes(bad=_MISSING)


IMAGE_MAP = _image_map()


def _signed_map() -> Colormap:
    """The same above zero; below it from white to dark blue, as dark at the same distance."""
    below = LinearSegmentedColormap.from_list("below", ["#00224e", "#0072B2", "#9ecae9", "white"])
    shades = np.concatenate([below(np.linspace(0, 1, 256)), IMAGE_MAP(np.linspace(0, 1, 256))])
    return ListedColormap(shades, name="motifold signed").with_extremes(bad=_MISSING)


SIGNED_MAP = _signed_map()


def colour(k: int) -> str:
    """The colour of motif or curve k."""
    return PALETTE[k % len(PALETTE)]


def motif_map(k: int) -> Colormap:
    """From white to the colour of motif k."""
    return LinearSegmentedColormap.from_list("motif", ["white", colour(k)])


def scale(values: npt.NDArray[Any]) -> Normalize:
    """From zero to nearly the largest value, so that a few outliers do not pale the rest.

    Where there are values below zero, as far below it as above: zero is in the middle.
    """
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Normalize(0, 1)
    if values.min() < 0:
        sizes = np.abs(values)
        reach = float(np.percentile(sizes, _DARKEST)) or float(sizes.max())
        return Normalize(-reach, reach)
    return Normalize(0, float(np.percentile(values, _DARKEST)) or float(values.max()) or 1)


def shades(norm: Normalize) -> dict[str, Any]:
    """How images on that scale are drawn: the scale, and its map."""
    return {"norm": norm, "cmap": SIGNED_MAP if _is_signed(norm) else IMAGE_MAP}


def _is_signed(norm: Any) -> bool:
    return norm.vmin is not None and float(norm.vmin) < 0


def prepared_figure(figure: Figure | SubFigure | None, size: tuple[float, float]) -> Figure:
    """The given figure or a new one of ``size`` inches, which lays itself out.

    A SubFigure passes for a Figure here: it is drawn upon alike, its parent lays it out.
    """
    if figure is None:
        figure = Figure(figsize=size_of(size))
    if isinstance(figure, Figure) and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    return cast(Figure, figure)


def inches_of(axes: Axes) -> tuple[float, float]:
    """Width and height of axes, about: what stands beside them takes a little of it."""
    box = axes.get_window_extent()
    dpi = cast(Figure, axes.get_figure(root=True)).dpi
    return 0.85 * float(box.width / dpi), 0.85 * float(box.height / dpi)


def draw_colorbar(
    figure: Figure, image: AxesImage, cell: SubplotSpec, label: str = "value (data units)"
) -> None:
    """The scale of the recordings, beside them; what exceeds it is in the darkest shade."""
    bar = figure.add_subplot(cell)
    extend: Literal["both", "max"] = "both" if _is_signed(image.norm) else "max"
    figure.colorbar(image, cax=bar, extend=extend, label=label)
    bar.set_label("colorbar")


# --- time -----------------------------------------------------------------------------------


def check_rate(rate: float | None) -> None:
    """Refuse a sampling rate that is not positive."""
    if rate is not None and not rate > 0:
        raise ValueError(f"rate must be positive (time bins per second), not {rate}.")


def in_time(bins: Any, rate: float | None) -> Any:
    """Bins in the units of the time axis."""
    return bins / (rate or 1)


def time_label(quantity: str, rate: float | None) -> str:
    """The label of an axis of time or lags."""
    return f"{quantity} (bins)" if rate is None else f"{quantity} (s)"


def mark_segments(axes: Axes, breaks: npt.NDArray[Any], rate: float | None) -> None:
    """Dotted lines at the bins where a segment starts; none where they would hide the data."""
    if not 0 < len(breaks) <= _MARKED_SEGMENTS:
        return
    x = np.repeat(in_time(breaks, rate), 3)
    y = np.tile([0, 1, np.nan], len(breaks))  # one artist for all: a thousand would be slow
    axes.plot(
        x,
        y,
        color="black",
        linewidth=1,
        linestyle=":",
        transform=axes.get_xaxis_transform(),
        scalex=False,
        scaley=False,
    )


def mark_unknown(
    axes: Axes, unknown: npt.NDArray[np.bool_], view: Any, floor: float, height: float = 0.95
) -> None:
    """Grey in a lane of activations, labelled "unknown", where they rest on little.

    unknown (bins,), of the view.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], unknown, [False]]).astype(np.int8)))
    if len(edges) == 0:
        return
    starts, stops = (in_time(view.start + edges[i::2], view.rate) for i in (0, 1))
    spans = list(zip(starts.tolist(), (stops - starts).tolist(), strict=True))
    axes.broken_barh(
        spans, (floor, height), facecolors=_MISSING, linewidth=0, zorder=0, label="unknown"
    )


# --- features -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Features:
    """The axis of the features: positions 0 … N−1, labelled by names or by values."""

    names: npt.NDArray[Any]  # (N,) names or numbers
    label: str
    values: npt.NDArray[Any] | None = None  # (N,) monotone, in the units of the label
    order: npt.NDArray[np.intp] | None = None  # (N,) in which features are drawn; None: as they are
    bands: npt.NDArray[np.intp] | None = None  # first feature of each row, where a row has several
    upwards: bool = False  # the first at the bottom, also without values
    own: npt.NDArray[Any] | None = None  # (N,) values of the features, where rows are not those

    @classmethod
    def from_options(
        cls, N: int, feature_axis: Any, feature_label: str | None, names: Any = None
    ) -> Features:
        """From what the user gave; a feature axis is of frequencies unless its label says not."""
        if feature_axis is None:
            names = np.arange(N) if names is None else np.asarray(names)
            return cls(names, feature_label or "feature")
        values = np.asarray(feature_axis)
        if values.shape != (N,) or values.dtype.kind not in "fiu":
            raise ValueError(
                f"feature_axis must hold one number for each of the {N} features; it has shape "
                f"{values.shape} and dtype {values.dtype}."
            )
        steps = np.diff(values.astype(np.float64))
        if not (np.all(steps > 0) or np.all(steps < 0)):
            raise ValueError(
                "feature_axis must rise or fall all along, as frequencies do: sort the features, "
                "or leave it out."
            )
        label = feature_label or "frequency (Hz)"
        return (
            cls._of_sound(values, label) if _is_sound(values, label) else cls(values, label, values)
        )

    @classmethod
    def _of_sound(cls, values: npt.NDArray[Any], label: str) -> Features:
        """Frequencies as the ear has them: every octave is as high as every other.

        Low ones are drawn over several rows, of several high ones a row has the largest.
        """
        rows = np.geomspace(values[1], values[-1], min(len(values), _ROWS_OF_SOUND))
        edges = np.r_[rows[0], np.sqrt(rows[1:] * rows[:-1])]
        bands = np.clip(np.rint(edges / values[1]), 1, len(values) - 1).astype(np.intp)
        return cls(rows, label, rows, bands=bands, own=values)

    def reordered(self, order: npt.NDArray[np.intp]) -> Features:
        """The same features in another order, in which values no longer make an axis."""
        return Features(self.each[order], f"{self.label} (sorted)", order=order)

    @property
    def each(self) -> npt.NDArray[Any]:
        """Name or number of each feature, (N,), also where a row has several."""
        return self.names if self.own is None else self.own

    @property
    def axis(self) -> npt.NDArray[Any] | None:
        """The value of each feature, (N,), also where a row has several; None without values."""
        return self.values if self.own is None else self.own

    @property
    def limits(self) -> tuple[float, float]:
        """Bottom and top: rows run downwards as in a matrix, values upwards."""
        N = len(self.names)
        upwards = self.upwards
        if self.values is not None:
            upwards = N == 1 or bool(self.values[0] < self.values[-1])
        return (-0.5, N - 0.5) if upwards else (N - 0.5, -0.5)

    def draw_image(
        self, axes: Axes, image: npt.NDArray[Any], span: tuple[float, float], **options: Any
    ) -> AxesImage:
        """Draw ``image`` (time, features) with time from left to right over ``span``."""
        image = image if self.order is None else image[:, self.order]
        if self.bands is not None:
            image = np.maximum.reduceat(image, self.bands, axis=1)
        drawn = axes.imshow(
            image.T, aspect="auto", extent=(*span, image.shape[1] - 0.5, -0.5), **options
        )
        axes.set_ylim(self.limits)
        return drawn

    def draw_labels(self, axes: Axes, *, shown: bool = True) -> None:
        """Ticks and the label of the axis, at the left."""
        axes.tick_params(labelleft=shown)
        if self.values is not None and len(self.values) > 1:
            locator = _ValueLocator if self.bands is None else _OctaveLocator
            axes.yaxis.set_major_locator(locator(self.values))
            axes.yaxis.set_major_formatter(FuncFormatter(self._value_at))
        elif len(self.names) <= _NAMED_FEATURES and shown:
            labels = [str(name) for name in self.names]
            # A dollar sign in a name is no formula.
            axes.set_yticks(range(len(self.names)), labels=labels, parse_math=False)
            axes.tick_params(axis="y", labelsize="small")
        if shown:
            axes.set_ylabel(self.label)

    def _value_at(self, position: float, _: Any = None) -> str:
        assert self.values is not None
        if self.bands is not None:
            logs = np.log(self.values)
            return f"{np.exp(_interpolate(position, np.arange(len(logs)), logs)):.5g}"
        return f"{_interpolate(position, np.arange(len(self.values)), self.values):.6g}"


class _ValueLocator(MaxNLocator):
    """Ticks at round values, on an axis whose positions are the numbers of the features."""

    def __init__(self, values: npt.NDArray[Any]) -> None:
        super().__init__(nbins=6, steps=[1, 2, 2.5, 5, 10])
        self._values = values.astype(np.float64)

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Positions of the round values between positions ``vmin`` and ``vmax``."""
        positions = np.arange(len(self._values))
        ends = sorted(_interpolate(end, positions, self._values) for end in (vmin, vmax))
        ticks = np.asarray(super().tick_values(*ends))
        inside = ticks[(ticks >= ends[0]) & (ticks <= ends[1])]
        rising = np.argsort(self._values)
        return np.interp(inside, self._values[rising], positions[rising]).tolist()


class _OctaveLocator(_ValueLocator):
    """The same where the values are those of a logarithmic axis: 50, 100, 200, 500, …"""

    def tick_values(self, vmin: float, vmax: float) -> list[float]:
        """Positions of the round values between positions ``vmin`` and ``vmax``."""
        positions = np.arange(len(self._values))
        logs = np.log(self._values)
        ends = sorted(_interpolate(end, positions, logs) for end in (vmin, vmax))
        ticks = np.log([m * 10.0**e for e in range(6) for m in (1, 2, 5)])
        inside = ticks[(ticks >= ends[0]) & (ticks <= ends[1])]
        return np.interp(inside, logs, positions).tolist()


def round_ticks(values: npt.NDArray[Any], bottom: float, top: float) -> list[tuple[float, str]]:
    """Positions, and what to write there, of round values among those of positions 0 … N−1."""
    positions = _ValueLocator(values).tick_values(bottom, top)
    numbers = np.arange(len(values))
    return [(p, f"{_interpolate(p, numbers, values):.6g}") for p in positions]


def _is_sound(values: npt.NDArray[Any], label: str) -> bool:
    """Whether they are the frequencies of a transform of sound: evenly spaced from zero, in Hz."""
    if "Hz" not in label or len(values) < _LEAST_OF_SOUND or values[0] != 0:
        return False
    steps = np.diff(values.astype(np.float64))
    return bool(values[-1] >= _HEARD and np.allclose(steps, steps[0], rtol=1e-3))


def _interpolate(x: float, xs: npt.NDArray[Any], ys: npt.NDArray[Any]) -> float:
    """Linear interpolation that goes on beyond the ends (half a pixel of the image does)."""
    i = int(np.clip(np.searchsorted(xs, x) - 1, 0, len(xs) - 2))
    return float(ys[i] + (x - xs[i]) * (ys[i + 1] - ys[i]) / (xs[i + 1] - xs[i]))
