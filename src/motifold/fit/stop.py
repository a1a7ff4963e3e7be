"""Why a fit stopped, and what to do about it."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """``CNMF.stop_reason_``: a string, with its remedy where it is not what one hoped for.

    Examples
    --------
    >>> from motifold.fit import StopReason
    >>> StopReason("max_iter").remedy
    'raise max_iter or tol'
    """

    CONVERGED = "converged"
    STALLED = "stalled"
    MAX_ITER = "max_iter"
    MAX_TIME = "max_time"
    CALLBACK = "callback"
    INTERRUPTED = "interrupted"
    STREAM = "stream"  # of partial_fit, which goes on

    @property
    def words(self) -> str:
        """What happened, for readers: "the fit …"."""
        return {
            StopReason.CONVERGED: "converged",
            StopReason.STALLED: "made no more progress",
            StopReason.MAX_ITER: "reached the limit of iterations",
            StopReason.MAX_TIME: "reached the limit of time",
            StopReason.CALLBACK: "was stopped by its callback",
            StopReason.INTERRUPTED: "was interrupted",
            StopReason.STREAM: "goes on with the stream",
        }[self]

    @property
    def remedy(self) -> str | None:
        """What to change to get further; None where that was the user's own wish."""
        return {
            StopReason.MAX_ITER: "raise max_iter or tol",
            StopReason.MAX_TIME: "raise max_time or tol",
            StopReason.STALLED: (
                "the loss hardly falls any more: raise tol, or try another solver or start"
            ),
        }.get(self)


class Ending(StrEnum):
    """What has become of the last solve for the activations.

    OPEN: it is still to come. SOLVED: the iterate has its result. KEPT: the iterate was kept, since
    the solve did not reach its objective.
    """

    OPEN = "open"
    SOLVED = "solved"
    KEPT = "kept"
