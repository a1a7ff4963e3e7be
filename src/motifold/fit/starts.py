"""Whether several starts of a fit ended alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from motifold.model.losses import SQUARED, loss_of

# Two starts agree if what they leave unexplained differs by no more than this share of it, and of
# all: the same motifs, a lag earlier or later, explain a little more or less of the noise. A fit
# that leaves nothing ends anywhere below the last.
_OF_THE_REST, _OF_ALL, _NOTHING = 0.05, 2e-3, 1e-5


@dataclass(frozen=True)
class StartAgreement:
    """How many starts of a fit ended like the best one.

    A start agrees if it explains as much of the data's power (or deviance) as the best one, to 0.2
    percentage points and to 5 % of what is left unexplained. That much nearly always means the
    same motifs, perhaps a lag earlier or later; ``find_consensus`` compares motifs.

    Attributes
    ----------
    agreeing : int
        Starts that agree, the best one among them.
    given_up : int
        Starts that were given up early, since the best one had outdone them: they do not agree.
        Starts that were never begun are among them.
    n_starts : int

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.findings import start_agreement
    >>> X = np.zeros((60, 3))
    >>> for start in (5, 20, 43):
    ...     X[start, 0] = X[start + 1, 1] = X[start + 3, 2] = 1.0
    >>> start_agreement(CNMF(1, 3, n_init=3, random_state=0).fit(X)).n_starts
    3
    """

    agreeing: int
    given_up: int
    n_starts: int

    @property
    def is_alone(self) -> bool:
        """Whether, of several starts, none ended like the best one."""
        return self.n_starts > 1 and self.agreeing == 1

    @property
    def sentence(self) -> str:
        """In words."""
        if self.n_starts == 1:
            return "One start: nothing tells whether another one would end alike (n_init)."
        given_up = f" ({self.given_up} given up early)" if self.given_up else ""
        if self.is_alone:
            return (
                f"No other of {self.n_starts} starts agrees with the best one{given_up}. Others "
                "may be better still: raise n_init."
            )
        return f"{self.agreeing} of {self.n_starts} starts agree{given_up}."


def agreement_of(losses: Any, beta_loss: str | float = SQUARED.name) -> StartAgreement:
    """Of the losses at which starts ended, NaN for those that were given up."""
    losses, loss = np.asarray(losses, dtype=np.float64), loss_of(beta_loss)
    left = np.array([1 - loss.explained(float(value)) for value in losses[~np.isnan(losses)]])
    best = float(left.min(initial=np.inf))
    slack = max(min(_OF_THE_REST * best, _OF_ALL), _NOTHING)
    agreeing = int((left <= best + slack).sum())
    # Of a fit that was stopped in its first start nothing has ended: the one there is is alone.
    return StartAgreement(max(1, agreeing), len(losses) - len(left), len(losses))
