"""The classic factor figure: motifs at the left, activations on top, the data and its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.image import AxesImage
from sklearn.utils.validation import check_is_fitted

from motifold.estimator import CNMF
from motifold.validation import is_list_of_segments, segment_lengths

# Okabe and Ito's colours, safe for the colour-blind; without yellow, which white drowns.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_SIZE = (12.8, 8.2)  # inches
_NAMED_FEATURES = 20  # up to so many features each has its own tick
_DARKEST = 99.5  # percentile of the data from which on it is drawn in the darkest shade


@dataclass(frozen=True)
class _View:
    """What is drawn: one stretch of time, features in the order of the picture."""

    motifs: npt.NDArray[Any]  # (K, L, N)
    activations: npt.NDArray[Any]  # (bins, K)
    ceiling: float  # the activation that fills its lane
    recordings: dict[str, npt.NDArray[Any]]  # "data" and "reconstruction", (bins, N)
    start: int  # the first bin
    breaks: npt.NDArray[Any]  # bins at which a new segment starts
    features: npt.NDArray[Any]  # (N,) names or numbers
    is_sorted: bool
    sampling_rate: float | None

    @property
    def span(self) -> tuple[float, float]:
        """Start and end on the time axis: bin t reaches from t to t + 1."""
        return self.to_time(self.start), self.to_time(self.start + len(self.activations))

    def to_time(self, bins: Any) -> Any:
        return bins / (self.sampling_rate or 1)

    def label(self, quantity: str) -> str:
        return f"{quantity} (bins)" if self.sampling_rate is None else f"{quantity} (s)"


def plot_factors(
    model: CNMF,
    X: Any = None,
    *,
    activations: Any = None,
    lengths: Any = None,
    figure: Figure | None = None,
    sampling_rate: float | None = None,
    time_range: tuple[float, float] | None = None,
    sort_features: bool = True,
) -> Figure:
    """Draw the factors of a fitted model beside the data they explain.

    Motifs are at the left, each in a colour of its own and on its own scale; on top, in the same
    colours, are the activations; then the data and, on the same scale, the reconstruction. All
    images share the axis of the features. Lanes of activations share a scale, set by the motifs
    that no segment's end cuts off; what exceeds it is drawn at the lane's top.

    No pyplot figure is made and nothing is shown: save the figure by ``savefig``, or give
    ``figure=plt.figure()``.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    X : array-like of shape (n_samples, n_features), list of such arrays, or None
        The recording; None leaves the data out. NaN is drawn blank.
    activations : array-like of shape (n_samples, n_components), list of such arrays, or None
        Those of X. None means those of the training data; for another recording give
        ``model.transform(X)``.
    lengths : sequence of int or None
        Rows of each segment of ``activations``; None means those of the fit, or one segment where
        ``activations`` is one array. Dotted lines mark where a segment starts.
    figure : matplotlib.figure.Figure or None
        Where to draw; None makes a new one.
    sampling_rate : float or None
        Time bins per second; given, axes are in seconds, else in bins.
    time_range : (float, float) or None
        Start and end of the stretch to draw, in the units of the time axis; None draws all.
    sort_features : bool, default=True
        Sort features by the motif that gives them most power, then by the lag of its peak, so
        that sequences show as diagonals.

    Returns
    -------
    matplotlib.figure.Figure
        Its axes are labelled (``get_label``) "motif 1", …, "activations", "data",
        "reconstruction" and "colorbar".

    Examples
    --------
    >>> from motifold import CNMF
    >>> from motifold.datasets import make_sequences
    >>> from motifold.plots import plot_factors
    >>> X = make_sequences(300, 20, 2, 8, random_state=0).X
    >>> model = CNMF(n_components=2, n_lags=8, random_state=0).fit(X)
    >>> figure = plot_factors(model, X, sampling_rate=100, time_range=(0.5, 2))
    >>> [axes.get_label() for axes in figure.axes]
    ['motif 1', 'motif 2', 'activations', 'data', 'reconstruction', 'colorbar']
    """
    check_is_fitted(model)
    if sampling_rate is not None and not sampling_rate > 0:
        raise ValueError(f"sampling_rate must be positive, not {sampling_rate}.")
    H, segments = _activations_and_segments(model, activations, lengths)
    start, stop = _bins(time_range, sampling_rate, H.shape[0])
    motifs = model.components_
    names = getattr(model, "feature_names_in_", np.arange(motifs.shape[2]))
    order = _feature_order(motifs, H) if sort_features else np.arange(len(names))
    recordings = {}
    if X is not None:
        recordings["data"] = _checked_data(X, (H.shape[0], len(names)))[start:stop, order]
    recordings["reconstruction"] = _reconstruction(model, H, segments, start, stop)[:, order]
    view = _View(
        motifs=motifs[:, :, order],
        activations=H[start:stop],
        ceiling=_ceiling(H, segments, motifs.shape[1], start, stop),
        recordings=recordings,
        start=start,
        breaks=start + 1 + np.flatnonzero(np.diff(segments[start:stop])),
        features=np.asarray(names)[order],
        is_sorted=sort_features,
        sampling_rate=sampling_rate,
    )
    return _draw(view, Figure(figsize=_SIZE) if figure is None else figure)


# --- what to draw ---------------------------------------------------------------------------


def _stacked(X: Any) -> npt.NDArray[Any]:
    if is_list_of_segments(X):
        return np.concatenate([np.asarray(part) for part in X])
    return np.asarray(X)


def _activations_and_segments(
    model: CNMF, activations: Any, lengths: Any
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """The activations (T, K) and the number of the segment of each row, (T,)."""
    if activations is None:
        activations = model.activations_
        lengths = model._lengths if lengths is None else lengths
    elif is_list_of_segments(activations) and lengths is None:
        lengths = [len(part) for part in activations]
    H = _stacked(activations)
    K = model.components_.shape[0]
    if H.ndim != 2 or H.shape[1] != K:
        raise ValueError(f"activations must have shape (n_samples, {K}), not {H.shape}.")
    sizes = segment_lengths(H.shape[0], lengths)
    return H, np.repeat(np.arange(len(sizes)), sizes)


def _checked_data(X: Any, shape: tuple[int, int]) -> npt.NDArray[Any]:
    data = _stacked(X)
    if data.shape != shape:
        raise ValueError(
            f"X must have shape (n_samples, n_features) = {shape}, as its activations have; it "
            f"has {data.shape}. For another recording than the training data give also "
            "activations=model.transform(X)."
        )
    return data


def _bins(
    time_range: tuple[float, float] | None, sampling_rate: float | None, T: int
) -> tuple[int, int]:
    """First and one past the last time bin of ``time_range``."""
    if time_range is None:
        return 0, T
    start, stop = (round(time * (sampling_rate or 1)) for time in time_range)
    if not 0 <= start < stop <= T:
        unit, end = ("bins", T) if sampling_rate is None else ("seconds", T / sampling_rate)
        raise ValueError(
            f"time_range must be (start, end) within the recording, 0 to {end} {unit}; it is "
            f"{time_range}."
        )
    return start, stop


def _feature_order(motifs: npt.NDArray[Any], H: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Features by (motif of largest power, lag of its peak); those in no motif come last."""
    K, _, N = motifs.shape
    power = np.square(motifs).sum(axis=1) * np.square(H).sum(axis=0)[:, None]
    motif = power.argmax(axis=0)
    lag = motifs.argmax(axis=1)[motif, np.arange(N)]
    motif[power.max(axis=0) == 0] = K
    return np.lexsort((lag, motif))


def _ceiling(
    H: npt.NDArray[Any], segments: npt.NDArray[Any], L: int, start: int, stop: int
) -> float:
    """The largest activation drawn of a motif that the end of its segment does not cut off.

    Of the others the data shows but the first lags, so that they can be huge and mean nothing.
    """
    bins = np.arange(start, stop)
    whole = np.searchsorted(segments, segments[bins], side="right") - bins >= L
    return float(H[bins[whole]].max(initial=0)) or float(H[bins].max()) or 1.0


def _reconstruction(
    model: CNMF, H: npt.NDArray[Any], segments: npt.NDArray[Any], start: int, stop: int
) -> npt.NDArray[Any]:
    """X̂ of the bins from start to stop alone: only the L − 1 bins before them reach in."""
    first = max(0, start - model.components_.shape[1] + 1)
    X_hat = model.inverse_transform(H[first:stop], segments=segments[first:stop])
    return np.asarray(X_hat)[start - first :]


# --- drawing --------------------------------------------------------------------------------


def _draw(view: _View, figure: Figure) -> Figure:
    K, n_images = len(view.motifs), len(view.recordings)
    n_columns = -(-K // n_images)  # motifs wrap onto as many rows as there are images of data
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    grid = GridSpec(
        1 + n_images,
        n_columns + 2,
        figure=figure,
        width_ratios=[1] * n_columns + [max(8, 1.5 * n_columns), 0.2],
        height_ratios=[min(1, 0.2 + 0.08 * K)] + [1] * n_images,
    )
    motifs = _draw_motifs(figure, grid, view)
    top = figure.add_subplot(grid[0, n_columns], label="activations")
    _draw_activations(top, view)
    image = _draw_recordings(figure, grid, view, top, motifs[0])
    bar = figure.add_subplot(grid[1:, n_columns + 1])
    figure.colorbar(image, cax=bar, extend="max", label="value (data units)")
    bar.set_label("colorbar")
    return figure


def _colour(k: int) -> str:
    return _PALETTE[k % len(_PALETTE)]


def _draw_motifs(figure: Figure, grid: GridSpec, view: _View) -> list[Axes]:
    """One image per motif, in the columns at the left; only the outer ones bear labels."""
    n_columns = grid.ncols - 2
    last_row = (len(view.motifs) - 1) // n_columns
    drawn: list[Axes] = []
    for k, motif in enumerate(view.motifs):
        row, column = divmod(k, n_columns)
        shared = drawn[0] if drawn else None
        axes = figure.add_subplot(
            grid[1 + row, column], sharex=shared, sharey=shared, label=f"motif {k + 1}"
        )
        drawn.append(axes)
        _draw_motif(axes, motif, _colour(k), view.to_time(len(motif)))
        axes.set_title(f"motif {k + 1}", color=_colour(k), fontweight="bold", fontsize="medium")
        _label_features(axes, view, shown=column == 0)
        lowest = row == last_row
        axes.tick_params(labelbottom=lowest)
        if lowest:
            axes.set_xlabel(view.label("lag"))
    return drawn


def _draw_motif(axes: Axes, motif: npt.NDArray[Any], colour: str, duration: float) -> None:
    axes.imshow(
        motif.T,
        cmap=LinearSegmentedColormap.from_list("motif", ["white", colour]),
        norm=Normalize(0, motif.max() or 1),
        aspect="auto",
        extent=(0, duration, motif.shape[1] - 0.5, -0.5),
    )
    axes.set_xticks([0, duration], labels=["0", f"{duration:.3g}"])
    first, last = axes.get_xticklabels()  # inwards, so that neighbours do not collide
    first.set_horizontalalignment("left")
    last.set_horizontalalignment("right")


def _label_features(axes: Axes, view: _View, *, shown: bool) -> None:
    axes.tick_params(labelleft=shown)
    if not shown:
        return
    axes.set_ylabel("feature (sorted)" if view.is_sorted else "feature")
    if len(view.features) <= _NAMED_FEATURES:
        axes.set_yticks(range(len(view.features)), labels=[str(name) for name in view.features])
        axes.tick_params(axis="y", labelsize="small")


def _draw_activations(axes: Axes, view: _View) -> None:
    """One lane per motif, the first on top, all on one scale."""
    n_bins, K = view.activations.shape
    times = view.to_time(view.start + 0.5 + np.arange(n_bins))
    heights = 0.95 * np.minimum(view.activations / view.ceiling, 1)
    floors = np.arange(K)[::-1]
    for k, floor in enumerate(floors):
        trace = floor + heights[:, k]
        axes.fill_between(times, floor, trace, color=_colour(k), linewidth=0, alpha=0.3)
        axes.plot(times, trace, color=_colour(k), linewidth=1)
    axes.set_ylim(-0.05, K)
    axes.set_yticks(floors, labels=[str(k + 1) for k in range(K)])
    for k, label in enumerate(axes.get_yticklabels()):
        label.set(color=_colour(k), fontweight="bold", verticalalignment="bottom")
    axes.set_ylabel("motif")
    axes.set_title("activations", fontsize="medium")
    axes.tick_params(labelbottom=False)
    axes.spines[["top", "right"]].set_visible(False)
    _mark_segments(axes, view)


def _draw_recordings(
    figure: Figure, grid: GridSpec, view: _View, top: Axes, left: Axes
) -> AxesImage:
    """The data and the reconstruction on one scale, below each other."""
    norm = _scale(next(iter(view.recordings.values())))
    for row, (name, recording) in enumerate(view.recordings.items(), start=1):
        axes = figure.add_subplot(grid[row, grid.ncols - 2], sharex=top, sharey=left, label=name)
        image = axes.imshow(
            recording.T,
            cmap="Greys",
            norm=norm,
            aspect="auto",
            extent=(*view.span, recording.shape[1] - 0.5, -0.5),
        )
        axes.set_title(name, fontsize="medium")
        axes.tick_params(labelbottom=row == len(view.recordings))
        _label_features(axes, view, shown=row > len(view.motifs))  # no motif at the left does it
        _mark_segments(axes, view)
    axes.set_xlabel(view.label("time"))
    return image


def _mark_segments(axes: Axes, view: _View) -> None:
    for edge in view.to_time(view.breaks):
        axes.axvline(edge, color="black", linewidth=1, linestyle=":")


def _scale(values: npt.NDArray[Any]) -> Normalize:
    """From zero to nearly the largest value, so that a few outliers do not pale the rest."""
    values = values[np.isfinite(values)]
    if values.size == 0:
        return Normalize(0, 1)
    return Normalize(0, float(np.percentile(values, _DARKEST)) or float(values.max()) or 1)
