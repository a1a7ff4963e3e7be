"""``python -m motifold.demo``: sequences found in noise, and a race of the three algorithms."""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from motifold.datasets import make_sequences
from motifold.estimator import CNMF
from motifold.files import check_writable, written_whole
from motifold.findings.table import aligned
from motifold.reproduce.hidden import RATE, find_sequences, hide_sequences, n_found

_SOLVERS = ("mu", "hals", "anls")
_NO_LIMIT = 10**9  # iterations
_TINY = (60, 8, 2, 4)  # time bins, features, motifs, lags
_HEADER = ("algorithm", "iterations", "relative loss", "from", "to", "KKT residual")


@dataclass(frozen=True)
class _Race:
    """What the algorithms are compared on, and what each of them is given."""

    shape: tuple[int, int, int, int]  # time bins, features, motifs, lags
    starts: int
    seconds: float  # for each start

    @property
    def name(self) -> str:
        T, N, K, L = self.shape
        return f"{T} time bins x {N} features, {K} motifs of {L} lags"


_FULL, _QUICK = _Race((2500, 250, 5, 20), 3, 2.0), _Race((300, 40, 3, 10), 5, 0.5)
_HIDDEN, _HIDDEN_QUICK = 2000, 1000  # time bins
_PICTURES = _STORY, _LOSSES = "sequences.png", "losses.png"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo.

    Parameters
    ----------
    argv : sequence of str or None
        Arguments of the command line; None means those of the process.

    Returns
    -------
    int
        Exit status: 0, 1 where matplotlib is missing, 130 after Ctrl-C.
    """
    try:
        return run(argv)
    except KeyboardInterrupt:
        print("\nInterrupted: the demo ends here.", file=sys.stderr)
        return 130


def run(argv: Sequence[str] | None = None) -> int:
    """The same, for a caller who knows what to do on Ctrl-C."""
    return _run(_parse(argv))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m motifold.demo", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="DIR",
        help="where the pictures go (default: %(default)s)",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of data and starts (default: 0)")
    parser.add_argument("--quick", action="store_true", help="smaller problems, less time")
    arguments = parser.parse_args(argv)
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
        for name in _PICTURES:
            check_writable(arguments.output / name)
    except OSError as error:
        parser.error(f"--output: cannot write there: {error}")
    return arguments


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"must be from 0 to 2**32 - 1, not {seed}")
    return seed


def _run(arguments: argparse.Namespace) -> int:
    try:  # first of all: better no fit than no picture after it
        from motifold.reproduce.pictures import draw_race, draw_story
    except ImportError as error:
        print(f"The demo draws pictures. {error}", file=sys.stderr)
        return 1
    seed, quick = arguments.seed, arguments.quick
    hidden = hide_sequences(_HIDDEN_QUICK if quick else _HIDDEN, seed)
    T, N = hidden.counts.shape
    _say(f"1. Spikes of {N} neurons, {T / RATE:g} s, in which three sequences are hidden.")
    found = find_sequences(hidden, seed)
    hits, there, false = n_found(hidden, found)
    _say(f"   {hits} of their {there} occurrences are found, and {false} where there is none.")
    _keep(draw_story(hidden, found), arguments.output / _STORY)

    race = _QUICK if quick else _FULL
    X = make_sequences(*race.shape, random_state=seed).X
    _say(f"\n2. The paper's synthetic problem: {race.name}, and noise.")
    _say(_what_is_compared(race, seed))
    _warm_up()
    fits = {solver.upper(): _fits(solver, race, X, seed) for solver in _SOLVERS}
    _say("\n".join(["", *_table([_HEADER, *(_row(name, fits[name]) for name in fits)]), ""]))
    title = f"The paper's problem: {race.name}"
    _keep(draw_race(fits, title.replace(" x ", " × ")), arguments.output / _LOSSES)
    return 0


def _keep(figure: Any, path: Path) -> None:
    _save(figure, path)
    _say(f"   Picture: {path}")


def _save(figure: Any, path: Path) -> None:
    """Save as a PNG of 256 colours, a quarter of the size: the picture is shown on the web."""
    from PIL import Image  # which matplotlib needs, too

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    with Image.open(drawn) as picture:
        colours = picture.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
    with written_whole(path) as file:
        colours.save(file, format="PNG", optimize=True)


def _say(line: str) -> None:
    """Print at once, so that the lines stand in order with the progress bars."""
    print(line, flush=True)


def _warm_up() -> None:
    T, N, K, L = _TINY
    X = make_sequences(T, N, K, L, random_state=0).X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for solver in _SOLVERS:
            CNMF(K, L, solver=solver, max_iter=20, random_state=0).fit(X)


def _starts(race: _Race, seed: int) -> list[int]:
    return [(seed + i) % 2**32 for i in range(race.starts)]


def _what_is_compared(race: _Race, seed: int) -> str:
    """Nobody stops early: a stop at a residual would be another one for each algorithm."""
    seeds = ", ".join(map(str, _starts(race, seed)))
    return (
        f"   Compared: the loss after {race.seconds:g} s, from the same {race.starts} random "
        f"starts (seeds {seeds})\n"
        "   for each algorithm. None stops before, and all is compiled beforehand. HALS and ANLS "
        "are\n   accelerated, which MU cannot be: nothing leaves a zero by its updates.\n"
        "   Starts end in different minima: the medians are what counts."
    )


def _fits(solver: str, race: _Race, X: Any, seed: int) -> list[CNMF]:
    """A fit from each start, in the same time; a line tells how it ended."""
    K, L = race.shape[2:]
    fits = []
    for start in _starts(race, seed):
        model = CNMF(
            K,
            L,
            solver=solver,
            random_state=start,
            tol=0,
            max_iter=_NO_LIMIT,
            max_time=race.seconds,
        )
        with warnings.catch_warnings():  # that the time is over is no surprise
            warnings.simplefilter("ignore", ConvergenceWarning)
            fits.append(model.fit(X))
        ended = f"loss {model.loss_:.5f} after {model.n_iter_} iterations"
        _say(f"   {solver.upper():4} seed {start}: {ended}")
    return fits


def _row(name: str, fits: list[CNMF]) -> tuple[str, ...]:
    """The cells of the table, in the order of its header: medians, and the losses' range."""
    losses = [fit.loss_ for fit in fits]
    return (
        name,
        f"{median(fit.n_iter_ for fit in fits):.0f}",
        f"{median(losses):.5f}",
        f"{min(losses):.5f}",
        f"{max(losses):.5f}",
        f"{median(fit.kkt_residual_ for fit in fits):.1e}",
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table with a rule below the first row; names to the left, numbers to the right."""
    rule = ["-" * max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned([rows[0], rule, *rows[1:]], left=(0,))


if __name__ == "__main__":
    raise SystemExit(main())
