"""Starts side by side: fits of equal shapes, each in a thread, whose steps are taken as one.

A small fit gives a GPU too little to do, and waits for it at every step. Where the starts of a
fit, or the runs of a sweep, are alike but for their factors, whoever comes to a step waits until
all the others have come to one, or have ended. Then these steps are one: the same launches, over
arrays with one more axis, for about the time that one of them would take. All else, such as moves,
each does for itself. Nobody's numbers depend on the others' but by the rounding of products that
are taken at once.

Only one of the threads is ever at work: it goes on until it comes to a step, and hands over.
(Threads that want the interpreter at once hand it to and fro with every call of CUDA.)
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from motifold.engines.cuda.recording import Begun, Recording

Result = TypeVar("Result")

_LOOK = 0.2  # seconds between two looks at who has ended
_WHY = "The fit was broken off, as one that ran beside it was."
# Recordings of one step, of several numbers of starts, that are kept.
_KEPT = 2


class Party(Protocol):
    """A step that somebody asks for, and what it takes to take several such at once."""

    @property
    def key(self) -> Hashable:
        """What has to be equal of steps that are taken as one."""

    @property
    def most(self) -> int:
        """How many such there may be at once."""

    @property
    def W(self) -> Any:
        """The motifs that it begins with."""

    @property
    def H(self) -> Any:
        """The activations."""

    def here(self) -> AbstractContextManager[object]:
        """Where it is taken: whoever serves may be elsewhere, or on his way home."""

    def recorded(self, starts: int) -> Recording:
        """The step of so many starts at once."""

    def alone(self) -> Any:
        """The step by itself."""

    def told(self, begun: Begun, number: int, starts: int) -> Any:
        """What is to be known of it, from a step of so many starts, of which it was this one."""


class BrokenOff(RuntimeError):
    """The others have ended by an error, or by Ctrl-C: nobody will come any more."""


class _Member:
    """Somebody who works beside others: what it waits for, and what came of that."""

    def __init__(self) -> None:
        self.party: Party | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._turn = threading.Lock()
        self._turn.acquire()

    def wait(self) -> None:
        """Until it may go on."""
        self._turn.acquire()

    def go_on(self) -> None:
        """It may."""
        self._turn.release()


class Meeting:
    """Where those who work side by side wait for each other; one of them is at work.

    Parameters
    ----------
    members : all that there will be
    """

    def __init__(self, members: Sequence[_Member]) -> None:
        self._ready = deque(members)  # may go on, when it is their turn
        self._waiting: list[_Member] = []
        self._broken = False
        self._recordings: dict[Hashable, dict[int, Recording]] = defaultdict(dict)
        self._last: dict[Hashable, Callable[[], None]] = {}

    def begin(self) -> None:
        """The first goes to work."""
        self._hand_over()

    def step(self, member: _Member, party: Party) -> Any:
        """What it asks for, once all others have asked, too."""
        self.heard()
        member.party = party
        self._waiting.append(member)
        self._hand_over()
        member.wait()
        result, error, member.result, member.error = member.result, member.error, None, None
        if error is not None:
            raise error
        self.heard()
        return result

    def heard(self) -> None:
        """Raise where it was broken off."""
        if self._broken:
            raise BrokenOff(_WHY)

    def left(self) -> None:
        """Whoever is at work has ended."""
        self._hand_over()

    def break_off(self) -> None:
        """All go home, as soon as they come to a step."""
        self._broken = True

    def call_off(self) -> None:
        """It never begins: whoever is there goes home."""
        self._broken = True
        for member in self._ready:
            member.go_on()
        self._ready.clear()

    def at_the_end(self, key: Hashable, work: Callable[[], None]) -> None:
        """Have something done, once for each key, when all have ended."""
        self._last[key] = work

    def close(self) -> None:
        """All have ended."""
        self._recordings.clear()
        for work in self._last.values():
            work()
        self._last.clear()

    def _hand_over(self) -> None:
        """The next goes on; where nobody can, those who wait are served first."""
        if not self._ready:
            self._serve_all()
        if self._ready:
            self._ready.popleft().go_on()

    def _serve_all(self) -> None:
        alike: dict[Hashable, list[_Member]] = defaultdict(list)
        try:
            for member in self._waiting:
                assert member.party is not None
                alike[member.party.key].append(member)
            for group in alike.values():
                if not self._broken:
                    self._serve(group)
        except BaseException as error:  # none of them can go on; one tells why
            for member in self._waiting:
                member.error = BrokenOff(_WHY)
            self._waiting[0].error = error
        self._ready.extend(self._waiting)
        self._waiting = []

    def _serve(self, group: list[_Member]) -> None:
        parties = [member.party for member in group if member.party is not None]
        if len(parties) == 1:
            with parties[0].here():
                group[0].result = parties[0].alone()
            return
        most = parties[0].most
        if len(parties) > most:
            self._serve(group[:most])
            self._serve(group[most:])
            return
        with parties[0].here():
            starts, recording = self._recording_for(parties)
            # A recording is of as many as it is of: the last one is there several times.
            filled = parties + parties[-1:] * (starts - len(parties))
            begun = recording.begin_all([p.W for p in filled], [p.H for p in filled])
            for number, (member, party) in enumerate(zip(group, parties, strict=True)):
                member.result = party.told(begun, number, starts)

    def _recording_for(self, parties: list[Party]) -> tuple[int, Recording]:
        """One of enough starts, but not of too many."""
        known, n = self._recordings[parties[0].key], len(parties)
        most = min(2 * n, parties[0].most)
        starts = min((size for size in known if n <= size <= most), default=n)
        if starts not in known:
            while len(known) >= _KEPT:
                del known[max(known)]
            known[starts] = parties[0].recorded(starts)
        return starts, known[starts]


@dataclass(frozen=True)
class Seat:
    """A member's place in a meeting."""

    meeting: Meeting
    member: _Member

    def step(self, party: Party) -> Any:
        """What it asks for, once all others have asked, too."""
        return self.meeting.step(self.member, party)


_here = threading.local()


def seat() -> Seat | None:
    """That of this thread, if it is in a meeting."""
    return getattr(_here, "seat", None)


@contextmanager
def _seated(found: Seat) -> Iterator[None]:
    found.member.wait()
    _here.seat = found
    try:
        found.meeting.heard()
        yield
    finally:
        _here.seat = None
        found.meeting.left()


def together(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Do the works at once, each in a thread; their results, in order.

    An error of one ends all of them, as does Ctrl-C.
    """
    members = [_Member() for _ in works]
    meeting = Meeting(members)

    def one(work: Callable[[], Result], member: _Member) -> Result:
        with _seated(Seat(meeting, member)):
            return work()

    futures: list[Future[Result]] = []
    with ThreadPoolExecutor(len(works), "motifold-start") as pool:
        try:
            futures += [pool.submit(one, *pair) for pair in zip(works, members, strict=True)]
        except BaseException:  # Ctrl-C: some of them wait already
            meeting.call_off()
            raise
        try:
            meeting.begin()
            while any(not future.done() for future in futures):
                if any(future.done() and future.exception() for future in futures):
                    break
                wait(futures, _LOOK, FIRST_EXCEPTION)  # not for long: Ctrl-C is heard then
        finally:
            meeting.break_off()  # if all have ended, nobody hears it
            try:
                wait(futures)
            finally:
                meeting.close()
    return _results(futures)


def _results(futures: list[Future[Result]]) -> list[Result]:
    """All of them, or the error that came first, not those that it caused."""
    errors = [error for error in (future.exception() for future in futures) if error is not None]
    causes = [error for error in errors if not isinstance(error, BrokenOff)]
    if errors:
        raise (causes or errors)[0]
    return [future.result() for future in futures]
