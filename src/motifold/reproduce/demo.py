"""``python -m motifold.demo``: the three algorithms on the paper's problem, and a picture."""

from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from motifold.datasets import make_sequences
from motifold.estimator import CNMF
from motifold.files import written_whole
from motifold.findings.table import aligned
from motifold.fit import Clock

_SOLVERS = ("mu", "hals", "anls")
_MAX_TIME = 30.0  # seconds for each algorithm
_FULL = (2500, 250, 5, 20)  # time bins, features, motifs, lags
_QUICK = (300, 40, 3, 10)
_TINY = (60, 8, 2, 4)
_DRAWN = 250  # time bins in the picture
_HEADER = ("algorithm", "iterations", "seconds", "relative loss", "KKT residual", "stopped because")


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
    arguments = _parse(argv)
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("\nInterrupted: the demo ends here.", file=sys.stderr)
        return 130


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m motifold.demo", description=__doc__)
    parser.add_argument(
        "--output",
        type=Path,
        default=Path("demo_output"),
        metavar="DIR",
        help="where the picture goes (default: %(default)s)",
    )
    parser.add_argument("--seed", type=_seed, default=0, help="of data and start (default: 0)")
    parser.add_argument("--quick", action="store_true", help="a small problem")
    arguments = parser.parse_args(argv)
    try:
        arguments.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output: cannot make this folder: {error}")
    return arguments


def _seed(text: str) -> int:
    seed = int(text)
    if not 0 <= seed < 2**32:
        raise argparse.ArgumentTypeError(f"must be from 0 to 2**32 - 1, not {seed}")
    return seed


def _run(arguments: argparse.Namespace) -> int:
    try:  # first of all: better no fit than no picture after it
        from motifold.plots import plot_factors
    except ImportError as error:
        print(f"The demo draws a picture. {error}", file=sys.stderr)
        return 1
    T, N, K, L = _QUICK if arguments.quick else _FULL
    X = make_sequences(T, N, K, L, random_state=arguments.seed).X
    _say(f"Data: {T} time bins x {N} features, made of {K} motifs of {L} lags, and noise.")
    _say("Warming up: each algorithm once on a tiny problem, to compile its kernels (not timed).")
    _warm_up()
    settings = {"max_time": _MAX_TIME, "random_state": arguments.seed, "verbose": 1}
    models = {solver: CNMF(K, L, solver=solver, **settings) for solver in _SOLVERS}
    _say(_what_follows(models["hals"]))
    rows = [_row(model, _timed_fit(model, X)) for model in models.values()]
    _say("\n".join(["", *_table([_HEADER, *rows]), ""]))
    drawn = min(T, _DRAWN)
    path = arguments.output / "factors.png"
    _save(plot_factors(models["hals"], X, time_range=(0, drawn)), path)
    _say(f"The factors that HALS found, in the first {drawn} time bins: {path}")
    return 0


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


def _what_follows(model: CNMF) -> str:
    return (
        f"Fitting with each algorithm from the same random start (seed {model.random_state}), "
        f"until the KKT residual is {model.tol:g},\n"
        f"at most {model.max_iter} iterations or {model.max_time:g} seconds each."
    )


def _timed_fit(model: CNMF, X: Any) -> float:
    """Fit, with a progress bar; the table tells why it stopped, so no warning is needed."""
    _say(f"{str(model.solver).upper()}:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        clock = Clock()
        model.fit(X)
        return clock.seconds


def _row(model: CNMF, seconds: float) -> tuple[str, ...]:
    """The cells of the table, in the order of its header."""
    return (
        str(model.solver).upper(),
        str(model.n_iter_),
        f"{seconds:.2f}",
        f"{model.loss_:.5f}",
        f"{model.kkt_residual_:.1e}",
        model.stop_reason_,
    )


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of a table with a rule below the first row; text to the left, numbers to the right."""
    rule = ["-" * max(map(len, column)) for column in zip(*rows, strict=True)]
    return aligned([rows[0], rule, *rows[1:]], left=(0, len(rule) - 1))


if __name__ == "__main__":
    raise SystemExit(main())
