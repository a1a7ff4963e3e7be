"""How far a fit is: on its way to whatever ends it; a bar where it is watched, else lines."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stderr
from dataclasses import dataclass

import numpy as np
import pytest

from motifold import CNMF
from motifold.fit.progress import ProgressBar, Way, work_bar


@dataclass
class State:
    iteration: int
    seconds: float = 0.0
    kkt_residual: float = np.inf
    loss: float = 0.5


def test_the_residual_goes_its_way_on_a_logarithmic_scale():
    way = Way(max_iter=1000, tol=1e-4, seconds=np.inf)
    residuals = [np.inf, 1.0, 0.1, 0.01, 0.1, 1e-3, 1e-4, 1e-5]
    shares = [way(State(i, kkt_residual=kkt)) for i, kkt in enumerate(residuals)]
    # It does not fall where the residual rises, and is not done before the fit is.
    assert shares == pytest.approx([0, 0.001, 0.25, 0.5, 0.5, 0.75, 0.99, 0.99])


def test_whatever_is_nearest_counts():
    way = Way(max_iter=100, tol=1e-4, seconds=20.0)
    assert way(State(1, seconds=5.0)) == pytest.approx(0.01)
    assert way(State(2, seconds=10.0)) == pytest.approx(0.25)
    assert way(State(50, seconds=10.0)) == pytest.approx(0.5)
    assert Way(1000, 0.0, np.inf)(State(100, kkt_residual=0.1)) == pytest.approx(0.1)
    assert Way(1000, 0.1, np.inf)(State(1, kkt_residual=0.01)) == pytest.approx(0.99)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def watch(n_init: int = 1, **rules: float) -> None:
    with ProgressBar(100, n_init, True, **rules) as bar:
        for _ in range(n_init):
            for i in range(1, 6):
                assert bar(State(i, seconds=i, kkt_residual=10.0**-i)) is False


def test_at_a_terminal_it_is_a_bar():
    with redirect_stderr(Terminal()) as terminal:
        watch(tol=1e-6, max_time=50)
    drawn = terminal.getvalue().split("\r")
    assert drawn[-1].startswith("CNMF: 100%|")
    assert "| 5 it, 5.0 of 50 s, loss 0.5000, KKT 1.0e-05 → 1e-06" in drawn[-1]
    assert not re.search(r"it/s|\?it|<", terminal.getvalue()), "no time that is left"


def test_in_a_log_it_is_a_line_for_each_start():
    with redirect_stderr(io.StringIO()) as log:
        watch(n_init=3)
    assert log.getvalue().splitlines() == [
        f"CNMF {i}/3: 5 it, 5.0 s, loss 0.5000, KKT 1.0e-05" for i in (1, 2, 3)
    ]


@pytest.mark.parametrize(("stream", "shown"), [(io.StringIO, False), (Terminal, True)])
def test_other_work_has_a_bar_where_it_is_watched(stream, shown):
    with redirect_stderr(stream()) as told, work_bar(3, "sweep", "run") as bar:
        bar.update()
    assert ("sweep" in told.getvalue()) == bool(told.getvalue()) == shown


def test_a_fit_tells_its_limits():
    X = np.random.default_rng(0).random((60, 5))
    with redirect_stderr(io.StringIO()) as log:
        CNMF(2, 3, n_init=2, random_state=0, tol=0.3, max_time=1e4, verbose=1).fit(X)
    lines = log.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines[:2]] == ["CNMF 1/2", "CNMF 2/2"]
    assert all(" of 10000 s" in line for line in lines[:2])
    assert "→ 3e-01" in lines[0]
    assert "starts agree" in lines[2]
