"""Colours that survive grey print, and axes that tell frequencies."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from motifold.plots.style import (
    IMAGE_MAP,
    LINE_STYLES,
    MARKERS,
    PALETTE,
    Features,
    check_rate,
    mark_segments,
)


def luminance(rgb: np.ndarray) -> np.ndarray:
    """Relative luminance as the WCAG defines it."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_the_image_map_darkens_all_along_from_white_to_black() -> None:
    shades = luminance(np.asarray(IMAGE_MAP(np.arange(IMAGE_MAP.N)))[:, :3])
    assert np.all(np.diff(shades) < 0)
    assert shades[0] == pytest.approx(1)
    assert shades[-1] < 0.01


def test_lines_differ_in_more_than_colour() -> None:
    assert len(PALETTE) >= 20  # motifs before a colour comes again
    assert len(LINE_STYLES) == len(MARKERS)
    for signs in (PALETTE, LINE_STYLES, MARKERS):
        assert len(set(signs)) == len(signs)
    on_white = [1.05 / (luminance(np.array(to_rgb(shade))) + 0.05) for shade in PALETTE]
    assert min(on_white) > 2


def drawn_ticks(features: Features) -> dict[str, float]:
    axes = Figure(layout="constrained").add_subplot()
    features.draw_image(axes, np.zeros((5, len(features.names))), (0, 5))
    features.draw_labels(axes)
    axes.figure.draw_without_rendering()
    low, high = sorted(axes.get_ylim())
    ticks = zip(axes.get_yticklabels(), axes.get_yticks(), strict=True)
    return {label.get_text(): tick for label, tick in ticks if low <= tick <= high}


@pytest.mark.parametrize("power", [1, 2])
def test_ticks_are_round_frequencies_in_their_places(power: int) -> None:
    frequencies = 800 * (np.arange(257) / 256) ** power  # evenly spaced, and not
    ticks = drawn_ticks(Features.from_options(257, frequencies, None))
    assert {"0", "200", "400", "600", "800"} <= set(ticks)
    for label, tick in ticks.items():
        assert tick == pytest.approx(256 * (float(label) / 800) ** (1 / power), abs=0.1)


def test_greater_values_are_drawn_higher() -> None:
    rising = Features.from_options(3, [10, 20, 30], None)
    falling = Features.from_options(3, [30, 20, 10], None)
    assert (rising.limits, falling.limits) == ((-0.5, 2.5), (2.5, -0.5))
    assert Features.from_options(3, None, None).limits == (2.5, -0.5)


def test_labels() -> None:
    assert Features.from_options(3, [1, 2, 3], None).label == "frequency (Hz)"
    assert Features.from_options(3, [1, 2, 3], "depth (mm)").label == "depth (mm)"
    assert Features.from_options(3, None, None).label == "feature"
    assert list(drawn_ticks(Features.from_options(2, None, None, ["left", "right"]))) == [
        "left",
        "right",
    ]


@pytest.mark.parametrize("axis", [[1, 2], [[1, 2, 3]], [1, 3, 2], [1, 1, 2], ["a", "b", "c"]])
def test_a_bad_feature_axis_is_refused(axis: list) -> None:
    with pytest.raises(ValueError, match="feature_axis must"):
        Features.from_options(3, axis, None)


@pytest.mark.parametrize("rate", [0, -1, float("nan")])
def test_a_bad_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="rate must be positive"):
        check_rate(rate)


def test_many_segments_are_one_artist_or_none() -> None:
    axes = Figure().add_subplot()
    mark_segments(axes, np.arange(10, 60, 10), None)
    (line,) = axes.lines
    assert sorted(set(line.get_xdata())) == [10, 20, 30, 40, 50]
    mark_segments(axes, np.arange(1000), None)
    assert len(axes.lines) == 1


def test_frequencies_of_a_sound_are_drawn_by_octaves():
    """A kick at 60 Hz among 1025 frequencies is no line of one pixel; high ones are not lost."""
    frequencies = np.fft.rfftfreq(2048, 1 / 44100)
    features = Features.from_options(1025, frequencies, None)
    image = np.zeros((5, 1025))
    image[:, 3] = 1.0  # 65 Hz
    image[:, 900] = 2.0  # 19.4 kHz
    axes = Figure().add_subplot()
    drawn = np.asarray(features.draw_image(axes, image, (0, 1)).get_array())
    bottom, top = axes.get_ylim()
    assert bottom < top
    assert np.count_nonzero(drawn[:, 0] == 1) > 0.02 * len(drawn)
    assert np.count_nonzero(drawn[:, 0] == 2) >= 1
    features.draw_labels(axes)
    labels = {features._value_at(p): p for p in axes.yaxis.get_major_locator()()}
    assert {"50", "100", "1000", "10000"} <= {*labels}
    rows = sorted(labels.values())
    assert np.argmax(drawn[:, 0] == 1) > rows[0]  # above the tick of 50 Hz
    assert rows[-2] < np.argmax(drawn[:, 0] == 2) < rows[-1]  # between 10 and 20 kHz


def test_other_axes_stay_as_they_are():
    for values, label in [
        (np.linspace(0, 200, 64), None),  # of a field potential
        (np.geomspace(20, 20000, 64), None),
        (np.linspace(0, 8000, 64), "depth (µm)"),
    ]:
        assert Features.from_options(64, values, label).bands is None
