"""Loss against time: runs, medians, scales."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure

from motifold import CNMF
from motifold.plots import plot_loss


def history(seconds: list, loss: list) -> SimpleNamespace:
    return SimpleNamespace(seconds=np.array(seconds), loss=np.array(loss))


RUNS = [
    history([0.0, 1.0, 2.0], [1.0, 0.5, 0.4]),
    history([0.0, 1.0, 2.0, 3.0], [1.0, 0.7, 0.6, 0.5]),
    history([0.5, 2.0], [0.9, 0.3]),
]


def test_thin_runs_and_a_bold_median() -> None:
    ax = plot_loss({"MU": RUNS}, log=None)
    *runs, median = ax.lines
    assert len(runs) == 3
    assert max(run.get_linewidth() for run in runs) < median.get_linewidth()
    for run, given in zip(runs, RUNS, strict=True):
        np.testing.assert_array_equal(run.get_xydata(), np.c_[given.seconds, given.loss])


def test_the_median_starts_with_the_last_run_and_holds_what_has_ended() -> None:
    median = plot_loss({"MU": RUNS}, log=None).lines[-1]
    np.testing.assert_allclose(median.get_xdata(), [0.5, 1, 2, 3])
    # At 0.5: 0.75, 0.85, 0.9; at 1: 0.5, 0.7, 0.7; at 2: 0.4, 0.6, 0.3; at 3: 0.4, 0.5, 0.3.
    np.testing.assert_allclose(median.get_ydata(), [0.85, 0.7, 0.4, 0.4])


def test_one_run_is_its_own_curve() -> None:
    ax = plot_loss({"MU": RUNS[0], "HALS": [RUNS[1]]}, log=None)
    assert len(ax.lines) == 2
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), RUNS[0].loss)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MU", "HALS"]


def test_labels_differ_in_colour_style_and_marker() -> None:
    ax = plot_loss(dict.fromkeys("abcdefg", RUNS[0]), log=None)
    for sign in ("get_color", "get_marker"):
        assert len({getattr(line, sign)() for line in ax.lines}) == 7
    assert len({str(line._dash_pattern) for line in ax.lines}) >= 6


def test_a_curve_alone_has_no_marks_to_wonder_at() -> None:
    assert plot_loss(RUNS[0]).lines[-1].get_marker() == "None"
    assert plot_loss({"MU": RUNS}).lines[-1].get_marker() == "None"


def test_time_begins_at_zero() -> None:
    late = history([0.9, 1.0, 2.0], [1.0, 0.5, 0.4])
    assert plot_loss(late, log=None).get_xlim()[0] == 0
    assert plot_loss(late, log="x").get_xlim()[0] > 0


def test_the_axis_says_which_loss() -> None:
    X = np.random.default_rng(0).random((40, 3))
    settings = {"max_iter": 3, "tol": 0, "random_state": 0}
    kl, other, squared = (CNMF(1, 2, beta_loss=b, **settings).fit(X) for b in (1, 0.5, 2))
    assert plot_loss({"a": [kl, kl]}).get_ylabel() == "relative deviance (Kullback-Leibler)"
    assert plot_loss({"a": other}).get_ylabel() == "relative deviance (β = 0.5)"
    assert plot_loss({"a": kl, "b": squared}).get_ylabel() == "relative loss"
    assert plot_loss({"a": kl.history_}).get_ylabel() == "relative loss"


def test_a_fitted_model_is_a_history(model: CNMF) -> None:
    ax = plot_loss({"HALS": model}, title="hals")
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == (
        "hals",
        "time (s)",
        "relative loss",
    )
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), model.history_.loss)


@pytest.mark.parametrize(
    ("seconds", "loss", "scales"),
    [
        ([0.1, 1, 2], [0.9, 0.6, 0.5], ("linear", "linear")),
        ([0.0, 0.01, 2], [0.9, 0.6, 0.5], ("log", "linear")),
        ([0.1, 1, 2], [0.9, 0.1, 0.01], ("linear", "log")),
        ([0.1], [0.9], ("linear", "linear")),
    ],
)
def test_axes_are_logarithmic_where_values_spread(seconds: list, loss: list, scales: tuple) -> None:
    ax = plot_loss({"a": history(seconds, loss)})
    ax.figure.draw_without_rendering()
    assert (ax.get_xscale(), ax.get_yscale()) == scales


def test_a_logarithmic_axis_leaves_out_zeros_and_says_numbers_plainly() -> None:
    ax = plot_loss({"a": history([0, 0.01, 1], [1, 0.7, 0.6])}, log="both")
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [0.01, 1])
    ax.figure.draw_without_rendering()
    assert {"0.01", "0.1", "1"} <= {label.get_text() for label in ax.get_xticklabels()}
    assert "0.6" in {label.get_text() for label in ax.get_yticklabels(minor=True)}


def test_an_axis_of_one_power_of_ten_can_be_read() -> None:
    """With nothing but 0.1 on it nobody could say what a loss is."""
    history = SimpleNamespace(seconds=np.arange(1.0, 9), loss=np.geomspace(0.5, 0.02, 8))
    ax = plot_loss({"a": history}, log="y")
    ax.figure.draw_without_rendering()
    low, high = ax.get_ylim()  # matplotlib 3.10 names ticks outside, too, and does not draw them
    labels = [
        label for label in ax.get_yticklabels(minor=True) if low <= label.get_position()[1] <= high
    ]
    shown = {label.get_text() for label in labels} - {""}
    assert {"0.05", "0.2"} <= shown <= {"0.02", "0.05", "0.2", "0.5"}


def test_draws_into_given_axes() -> None:
    given = Figure().add_subplot()
    assert plot_loss({"a": RUNS}, ax=given) is given


def test_long_histories_have_a_short_median() -> None:
    runs = [history(np.linspace(0, 1, 10**5) + shift, np.ones(10**5)) for shift in (0, 1e-6)]
    assert len(plot_loss({"a": runs}).lines[-1].get_xdata()) <= 2000


@pytest.mark.parametrize(
    ("curves", "error", "says"),
    [
        ({}, ValueError, "curves is empty"),
        ({"MU": []}, ValueError, r"curves\['MU'\] is empty"),
        ({"MU": [RUNS[0], 3]}, TypeError, r"curves\['MU'\]\[1\] must be a history"),
        ({"MU": history([0, 1], [1])}, ValueError, "equal length"),
    ],
)
def test_bad_curves_are_refused(curves: dict, error: type, says: str) -> None:
    with pytest.raises(error, match=says):
        plot_loss(curves)


def test_a_bad_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="log must be"):
        plot_loss({"a": RUNS}, log="z")  # type: ignore[arg-type]


def test_a_model_alone_and_its_best_start_from_zero() -> None:
    X = np.random.default_rng(0).random((60, 4))
    model = CNMF(2, 3, n_init=3, max_iter=5, tol=0, random_state=0).fit(X)
    model.history_.seconds[:] = 0.92 + 0.1 * np.arange(len(model.history_.seconds))
    ax = plot_loss(model, log=None)
    (line,) = ax.lines
    assert line.get_xdata()[0] == 0
    np.testing.assert_allclose(np.diff(line.get_xdata()), 0.1)
    assert ax.get_xlabel() == "time since the best start began (s)"
    assert ax.get_legend() is None
    model.n_init = 1
    assert plot_loss(model.history_, log=None).lines[0].get_xdata()[0] == 0.92
    assert len(plot_loss([model, model], log=None).lines) == 3
    with pytest.raises(TypeError, match="curves must be a history"):
        plot_loss(3.0)
