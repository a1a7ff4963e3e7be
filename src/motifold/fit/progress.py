"""Progress bars, drawn by tqdm: one for the loop, one for any other work."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm

from motifold.fit.state import LoopState


def work_bar(total: int, name: str, unit: str, *, shown: bool = True) -> tqdm:
    """A bar for work of a known amount; large amounts are written as 1.2M."""
    return tqdm(
        total=total,
        desc=name,
        unit=unit,
        unit_scale=total > 10_000,
        file=sys.stderr,
        dynamic_ncols=True,
        disable=not shown,
    )


class ProgressBar:
    """One line per start: iterations, loss, KKT residual. A context manager and a callback."""

    def __init__(self, max_iter: int, n_init: int, shown: bool) -> None:
        self._max_iter = max_iter
        self._n_init = n_init
        self._shown = shown
        self._start = 0
        self._bar: tqdm | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def __call__(self, state: LoopState) -> bool:
        """Show the state of an iteration; never asks to stop."""
        if not self._shown:
            return False
        if self._bar is None or state.iteration <= self._bar.n:
            self._next_bar()
        assert self._bar is not None
        self._bar.update(state.iteration - self._bar.n)
        self._bar.set_postfix_str(
            f"loss {state.loss:.4f}, KKT {state.kkt_residual:.1e}", refresh=False
        )
        return False

    def tell(self, sentence: str) -> None:
        """Write a line below the bars, where there are any."""
        if self._shown:
            self._close()
            tqdm.write(sentence, file=sys.stderr)

    def _close(self) -> None:
        """Leave a full bar: a start that converged is done, however few iterations it took."""
        if self._bar is not None:
            self._bar.total = self._bar.n
            self._bar.close()

    def _next_bar(self) -> None:
        self._close()
        self._start += 1
        name = "CNMF" if self._n_init == 1 else f"CNMF {self._start}/{self._n_init}"
        self._bar = tqdm(
            total=self._max_iter, desc=name, unit="it", file=sys.stderr, dynamic_ncols=True
        )
