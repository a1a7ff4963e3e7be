"""The one clock: seconds since it was started, and how many there are."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Counts from the moment a fit was entered, and knows when its time is up.

    Parameters
    ----------
    limit : seconds that it may take; None: any
    elapsed : seconds that it has taken already, in an earlier process
    now : gives the time in seconds; tests hand in a false one

    Examples
    --------
    >>> from motifold.fit.clock import Clock
    >>> times = iter([10.0, 12.0, 12.0, 15.0])
    >>> clock = Clock(limit=4, now=lambda: next(times))
    >>> clock.seconds, clock.left, clock.expired
    (2.0, 2.0, True)
    """

    def __init__(
        self,
        limit: float | None = None,
        *,
        elapsed: float = 0.0,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.limit = float("inf") if limit is None else float(limit)
        self._now = now
        self._began = now() - elapsed

    @property
    def seconds(self) -> float:
        """Since the fit was entered."""
        return self._now() - self._began

    @property
    def left(self) -> float:
        """Seconds until the limit, not below zero; infinity where there is none."""
        return max(0.0, self.limit - self.seconds)

    @property
    def expired(self) -> bool:
        """Whether the limit has been reached."""
        return self.seconds >= self.limit

    def resumed(self, elapsed: float) -> Clock:
        """The same clock, as if so many seconds had been counted when it was started."""
        return self._like(self.limit, self._began - elapsed)

    def part(self, share: float) -> Clock:
        """The same clock with only this share of what is left."""
        seconds = self.seconds
        return self._like(seconds + share * max(0.0, self.limit - seconds), self._began)

    def with_grace(self, share: float) -> Clock:
        """The same clock with a limit that is later by this share of it."""
        return self._like((1 + share) * self.limit, self._began)

    def _like(self, limit: float, began: float) -> Clock:
        clock = Clock(limit, now=self._now)
        clock._began = began
        return clock


class Every:
    """True once in so many seconds; each time ``slower`` times as many, up to ``most``.

    Examples
    --------
    >>> from motifold.fit.clock import Every
    >>> times = iter([0.0, 1.0, 6.0, 7.0])
    >>> due = Every(5.0, now=lambda: next(times))
    >>> due(), due(), due()
    (False, True, False)
    """

    def __init__(
        self,
        seconds: float,
        *,
        slower: float = 1.0,
        most: float = float("inf"),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds, self._slower, self._most = seconds, slower, most
        self._now = now
        self._last = now()

    def __call__(self) -> bool:
        """Whether it is time again."""
        now = self._now()
        if now - self._last < self._seconds:
            return False
        self._last = now
        self._seconds = min(self._slower * self._seconds, self._most)
        return True
