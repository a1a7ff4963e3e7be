"""Progress, drawn by tqdm: a bar for the loop, one for any other work; lines where it is a log."""

from __future__ import annotations

import math
import sys
import threading
from contextlib import AbstractContextManager

from tqdm import tqdm

from motifold.fit.state import LoopState

# No time that is left: nobody knows how many iterations a fit will need. What is told has the
# place of a unit, since tqdm puts a comma before a postfix.
_FORMAT = "{desc}: {percentage:3.0f}%|{bar}| {unit}"
# Of a bar, until its start has ended: there may be more to do than it seems.
_NEARLY = 0.99


def watched() -> bool:
    """Whether somebody sees a line change: at a terminal or in a notebook, not in a log."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def work_bar(total: int, name: str, unit: str, *, shown: bool = True) -> tqdm:
    """A bar for work of a known amount, where it is watched; large amounts are written as 1.2M."""
    return tqdm(
        total=total,
        desc=name,
        unit=unit,
        unit_scale=total > 10_000,
        file=sys.stderr,
        dynamic_ncols=True,
        disable=not (shown and watched()),
    )


def log_line(text: str) -> None:
    """Write a line on stderr, where bars are drawn, too."""
    tqdm.write(text, file=sys.stderr)
    sys.stderr.flush()  # what a program has put in its place may keep lines back


class Way:
    """How much of its way a start has gone to whatever will end it first, as far as one can see.

    Time runs evenly to its part of ``max_time``, iterations to ``max_iter``; the KKT residual falls
    to ``tol`` about evenly on a logarithmic scale. The furthest of the three counts.
    """

    def __init__(self, max_iter: int, tol: float, seconds: float) -> None:
        self._max_iter = max_iter
        self._tol = tol
        self._seconds = seconds
        self._began: float | None = None
        self._residual = math.nan  # the first that was known
        self.share = 0.0

    def __call__(self, state: LoopState) -> float:
        """The share at this iteration; it never falls, though the residual may rise."""
        if self._began is None:
            self._began = state.seconds
        elapsed = (state.seconds - self._began) / self._seconds
        shares = (state.iteration / self._max_iter, elapsed, self._to_tol(state))
        self.share = min(_NEARLY, max(self.share, *shares))
        return self.share

    def _to_tol(self, state: LoopState) -> float:
        residual = float(state.kkt_residual)
        if not (self._tol > 0 and 0 < residual < math.inf):
            return 0.0
        if math.isnan(self._residual):
            self._residual = residual
        if self._residual <= self._tol:
            return 1.0
        return math.log(self._residual / residual) / math.log(self._residual / self._tol)


class ProgressBar(AbstractContextManager["ProgressBar"]):
    """One line per start: its way, iterations, time, loss, KKT residual. A callback of the loop.

    In a log, where nothing can be drawn over, the line is written when the start has ended.
    """

    def __init__(
        self,
        max_iter: int,
        n_init: int,
        shown: bool,
        *,
        tol: float = 0.0,
        max_time: float | None = None,
    ) -> None:
        self._max_iter = max_iter
        self._n_init = n_init
        self._shown = shown
        self._tol = tol
        self._max_time = math.inf if max_time is None else max_time
        self._start = 0
        self._iteration = 0  # not the state itself, which has all activations
        self._line = ""
        self._way: Way | None = None
        self._bar: tqdm | None = None
        self._beside: dict[int, tuple[Way, str, float]] = {}  # starts: way, line, loss
        self._turn = threading.Lock()

    def __exit__(self, *exception: object) -> None:
        self._close()

    def __call__(self, state: LoopState) -> bool:
        """Show the state of an iteration; never asks to stop."""
        if not self._shown:
            return False
        if self._way is None or state.iteration <= self._iteration:
            self._next_start(state)
        assert self._way is not None
        self._iteration, self._line = state.iteration, self._told(state)
        share = self._way(state)
        if self._bar is not None:
            self._bar.unit = self._line
            self._bar.update(share - self._bar.n)
        return False

    def beside(self, number: int, state: LoopState) -> None:
        """Show an iteration of one of several starts that go side by side: one bar for all."""
        if not self._shown:
            return
        with self._turn:
            if not self._beside:
                self._bar = self._new_bar(f"CNMF, {self._n_init} starts")
            way = self._beside[number][0] if number in self._beside else self._new_way(state)
            way(state)
            self._beside[number] = way, self._told(state), state.loss
            if self._bar is not None:
                ways = [known.share for known, _, _ in self._beside.values()]
                self._bar.unit = min(self._beside.values(), key=lambda known: known[2])[1]
                self._bar.update(max(0.0, sum(ways) / self._n_init - self._bar.n))

    def tell(self, sentence: str) -> None:
        """Write a line below the bars, where there are any."""
        if self._shown:
            self._close()
            log_line(sentence)

    @property
    def _name(self) -> str:
        return "CNMF" if self._n_init == 1 else f"CNMF {self._start}/{self._n_init}"

    def _told(self, state: LoopState) -> str:
        limit = f" of {self._max_time:g}" if self._max_time < math.inf else ""
        words = [f"{state.iteration} it", f"{state.seconds:.1f}{limit} s", f"loss {state.loss:.4f}"]
        if state.kkt_residual < math.inf:
            aim = f" → {self._tol:.0e}" if self._tol > 0 else ""
            words.append(f"KKT {state.kkt_residual:.1e}{aim}")
        return ", ".join(words)

    def _close(self) -> None:
        """Leave a full bar: a start that converged is done, however few iterations it took."""
        if self._bar is not None:
            self._bar.update(1 - self._bar.n)
            self._bar.close()
        elif self._line:
            log_line(f"{self._name}: {self._line}")
        else:
            for number, (_, line, _) in sorted(self._beside.items()):
                log_line(f"CNMF {number + 1}/{self._n_init}: {line}")
        self._start = max([self._start, *(number + 1 for number in self._beside)])
        self._bar, self._line, self._beside = None, "", {}

    def _next_start(self, state: LoopState) -> None:
        self._close()
        self._start += 1
        self._way = self._new_way(state, max(self._n_init - self._start + 1, 1))
        self._bar = self._new_bar(self._name)

    def _new_way(self, state: LoopState, sharing: int = 1) -> Way:
        """That of a start which shares the time that is left with so many."""
        left = max(self._max_time - state.seconds, 1e-3) / sharing
        return Way(self._max_iter, self._tol, left)

    def _new_bar(self, name: str) -> tqdm | None:
        """None where nobody watches."""
        if not watched():
            return None
        return tqdm(
            total=1.0,
            desc=name,
            file=sys.stderr,
            dynamic_ncols=True,
            miniters=0,  # drawn when it is time, even where the bar itself does not move
            bar_format=_FORMAT,
        )
