"""``motifold fit --follow``: a model that is learnt from rows as they come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from motifold.cli._fitting import given_parameters
from motifold.cli._following import follow_option, reader_of
from motifold.cli._numbers import POSITIVE, IntRange
from motifold.cli._outputs import check_no_other_ending, check_outputs, keep
from motifold.cli._shared import friendly, load_model, print_json
from motifold.cli._terminal import ended, say

if TYPE_CHECKING:
    import numpy as np

    from motifold.estimator import CNMF

_CHUNK, _MOTIFS = 2000, 100  # rows of a chunk, and lengths of a motif, whichever is more
_LEAST_MOTIFS = 4  # lengths of a motif that the first chunk has at least, if time is up before
_LOOK = 1.0  # seconds without rows after which the clock is looked at


def fit_follow_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what ``fit --follow`` takes."""
    options: list[Any] = [
        click.option(
            "--forget",
            type=POSITIVE,
            metavar="BINS",
            help="With --follow: half-life of what was seen, to follow motifs that drift.",
        ),
        click.option(
            "--chunk",
            type=IntRange(1),
            metavar="BINS",
            help="With --follow: time bins that are learnt from at a time.  [default: 2000, or 100 "
            "motifs]",
        ),
    ]
    for option in options:
        command = option(command)
    return follow_option(command)


@dataclass(frozen=True)
class FollowedFit:
    """What was asked for."""

    source: Path
    output: Path
    n_lags: str
    every: float
    resume: bool
    restart: bool
    chunk: int | None
    forget: float | None

    @property
    def is_pipe(self) -> bool:
        return str(self.source) == "-"


def refuse_with_follow(
    report: Path | None, test_fraction: float | None, options: dict[str, Any]
) -> None:
    """What needs the whole recording, by name."""
    if report is not None:
        raise click.UsageError("--report does not go with --follow: use motifold report later.")
    whole: dict[str, Any] = {"--test-fraction": test_fraction}
    for name in ("baseline", "sqrt", "smooth"):
        whole[f"--{name}"] = options[name] if options[name] is not False else None
    scale = options["scale_features"]
    whole["--scale-features"] = None if scale == "none" else scale
    for name, value in whole.items():
        if value is not None:
            raise click.UsageError(
                f"{name} does not go with --follow: it takes the whole recording. Prepare rows "
                "before they come, and test on another recording."
            )


def follow_fit(
    asked: FollowedFit,
    idle: float | None,
    as_json: bool,
    options: dict[str, Any],
) -> None:
    """Learn until the rows end, and save the model on the way and at the end, whatever ends it."""
    with friendly():
        inputs = {} if asked.is_pipe else {"the recording": asked.source}
        check_outputs({"--output": asked.output}, inputs)
        check_no_other_ending("--output", asked.output, ".npz")
        learner = _Learner(asked, *_model(asked, options))
        signed = bool(learner.model.allow_negative)
        try:
            with reader_of(asked.source, idle, signed=signed, tick=_LOOK) as reader:
                for rows in reader:
                    learner.take(rows.values)
        except KeyboardInterrupt as interrupt:
            learner.save()
            raise ended(interrupt, learner.told) from None
        except BaseException:  # a bad line: what came before it is kept
            learner.save()
            say(learner.told, err=True)
            raise
        learner.save()
    if as_json:
        seen = learner.n_seen
        print_json({"model": asked.output, "time_bins": seen, "loss": learner.loss})
    else:
        say(learner.told)


class _Learner:
    """A model, the rows that have come for its next chunk, and its file."""

    def __init__(self, asked: FollowedFit, model: CNMF, rate: float | None) -> None:
        from motifold.fit.clock import Every

        self._asked, self.model, self._rate = asked, model, rate
        self._due = Every(min(asked.every, 60.0))
        self._waiting: list[np.ndarray] = []
        self._size = asked.chunk or max(_CHUNK, _MOTIFS * model.n_lags)
        resumed = model.running_ is not None
        self._skip = self.n_seen if resumed and not asked.is_pipe else 0
        self._gap = resumed and asked.is_pipe

    @property
    def n_seen(self) -> int:
        """Rows that the model has learnt from."""
        return 0 if self.model.running_ is None else self.model.running_.n_seen

    @property
    def loss(self) -> float | None:
        """Relative, of what came; None before the first chunk."""
        return None if self.model.running_ is None else float(self.model.loss_)

    @property
    def told(self) -> str:
        """What there is now, in a sentence."""
        if self.model.running_ is None:
            return "No rows came: there is no model."
        return f"{self._asked.output}: {self.n_seen} time bins, relative loss {self.loss:.4f}."

    def take(self, rows: np.ndarray) -> None:
        """The next rows, or none; learn and save when it is time."""
        skipped = min(self._skip, len(rows))
        self._skip -= skipped
        if len(rows) > skipped:
            self._waiting.append(rows[skipped:])
        while self._n_waiting >= self._size:
            self._learn(self._size)
        if self._due():
            enough = self.model.running_ is not None
            if enough or self._n_waiting >= _LEAST_MOTIFS * self.model.n_lags:
                self.save()

    @property
    def _n_waiting(self) -> int:
        return sum(map(len, self._waiting))

    def _learn(self, n_rows: int | None = None) -> None:
        """From so many of the rows that wait, or all: chunks do not depend on how rows come."""
        import numpy as np

        if not self._waiting:
            return
        X = np.concatenate(self._waiting)
        n = len(X) if n_rows is None else n_rows
        self.model.partial_fit(X[:n], new_segment=self._gap, forget=self._asked.forget)
        # Not before it is done: Ctrl-C may come in between.
        self._waiting, self._gap = [X[n:]] if len(X) > n else [], False

    def save(self) -> None:
        """Learn what is there, and write the model."""
        self._learn()
        if self.model.running_ is None:
            return
        source = "standard input" if self._asked.is_pipe else str(self._asked.source)
        self.model.origin_ = {"source": source, "rate": self._rate, "options": {}}
        keep(self._asked.output, self.model.save, "The model")


def _model(asked: FollowedFit, options: dict[str, Any]) -> tuple[CNMF, float | None]:
    """A new model, or the one that a stream was saved with."""
    import numpy as np

    from motifold.estimator import CNMF
    from motifold.io import Recording

    rate = float(options["rate"]) if options.get("rate") else None
    signed = options.get("negatives") == "keep"
    L = Recording(np.zeros((1, 1)), str(asked.source), rate=rate).bins(asked.n_lags)
    parameters = given_parameters(options)
    names = ("n_components", "max_time", "random_state", "n_jobs")
    parameters |= {name: options[name] for name in names if options.get(name) is not None}
    model = CNMF(n_lags=L, allow_negative=signed, **parameters)
    if asked.output.exists() and not asked.restart:
        if not asked.resume:
            raise click.UsageError(
                f"{asked.output} is there already: go on from it with --resume, or --restart."
            )
        found = load_model(asked.output)
        if found.running_ is None:
            raise click.UsageError(
                f"{asked.output} is no model of a stream: give another output, or --restart."
            )
        if (found.n_components, found.n_lags) != (model.n_components, L):
            raise click.UsageError(
                f"{asked.output} has {found.n_components} motifs of {found.n_lags} lags, not "
                f"{model.n_components} of {L}: give another output, or --restart."
            )
        say(f"Going on from {asked.output}, {found.running_.n_seen} time bins done.", err=True)
        return found, rate
    return model, rate
