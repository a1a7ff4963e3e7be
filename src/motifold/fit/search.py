"""The search over starts: each gets its part of the time, losers are given up, the best is kept.

Where the engine says so, starts go side by side, and the record is that of one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from motifold.fit.clock import Clock
from motifold.fit.loop import Loop
from motifold.fit.moves import with_first_activations
from motifold.fit.state import LoopState, SearchState
from motifold.fit.stop import StopReason
from motifold.model import Array


def search(
    loop: Loop,
    record: SearchState,
    W: Array | None = None,
    H: Array | None = None,
    clock: Clock | None = None,
    tell: Callable[[int, LoopState], object] | None = None,
) -> LoopState:
    """Run every start that ``record`` has left and return the best; ``record`` is kept up to date.

    ``W``, ``H`` are given factors, the same for every start. ``clock``: started when the fit was
    entered; its limit covers all starts, and each gets an equal part of what is left. ``tell``: of
    the iterations of a start, by its number, where nobody has to see them one start after the other
    and nobody but the loop's callback may stop it; starts may go side by side then.

    On Ctrl-C ``record`` has the best there is, and ``interrupted`` says so.
    """
    clock = Clock() if clock is None else clock
    n_init = len(record.seeds)
    if record.current is not None:
        clock = clock.resumed(record.current.seconds)
    try:
        if tell is not None and record.current is None:
            _side_by_side(loop, record, W, H, clock, tell)
        for index in range(record.index, n_init):
            record.index = index
            if loop.descent.rules.acceleration is not None and record.best is not None:
                loop.to_beat = record.best.objective
            part = clock.part(1 / (n_init - index))
            state = record.current
            if state is None or state.over:
                state = _started(loop, record.seeds[index], W, H, part)
            else:
                state = _restored(loop, state)
            try:
                state = loop.run(state, part)
            finally:
                record.current = loop.state
            record.ended(state)
            record.best = record.leader
            if state.stop_reason is StopReason.CALLBACK:
                break
    except KeyboardInterrupt:
        _interrupt(record)
        raise
    assert record.best is not None
    return record.best


def _side_by_side(
    loop: Loop,
    record: SearchState,
    W: Array | None,
    H: Array | None,
    clock: Clock,
    tell: Callable[[int, LoopState], object],
) -> None:
    """Starts, as many at once as the engine takes; ``record.index`` is where it takes no more."""
    descent, n_init = loop.descent, len(record.seeds)
    while engines := descent.engine.beside(n_init - record.index, descent.solver):
        first = record.index
        part = clock.part(len(engines) / (n_init - first))
        numbers = range(first, first + len(engines))
        loops = [
            Loop(engine, loop.solver, descent.rules, _telling(tell, number))
            for number, engine in zip(numbers, engines, strict=True)
        ]
        try:
            descent.engine.together(
                [
                    partial(_whole, one, record.seeds[number], W, H, part)
                    for number, one in zip(numbers, loops, strict=True)
                ]
            )
        finally:
            for number, one in zip(numbers, loops, strict=True):
                if one.state is not None:
                    _entered(loop, record, number, one.state)
        record.index = numbers.stop


def _telling(tell: Callable[[int, LoopState], object], number: int) -> Callable[[LoopState], bool]:
    def told(state: LoopState) -> bool:
        tell(number, state)
        return False

    return told


def _whole(loop: Loop, seed: int, W: Array | None, H: Array | None, clock: Clock) -> LoopState:
    return loop.run(_started(loop, seed, W, H, clock), clock)


def _entered(loop: Loop, record: SearchState, number: int, state: LoopState) -> None:
    """Note a start beside others as if those before it had ended, and it had been compared.

    One that would have been given up, and got ahead after all, was not.
    """
    record.index, record.current = number, state
    if not state.over:
        record.best = record.leader
        return
    if loop.descent.rules.acceleration is not None and record.best is not None:
        loop.to_beat = record.best.objective
        if state.objective >= loop.to_beat and loop.would_have_been_outdone(state):
            record.current = state = replace(state, given_up=True)
    record.ended(state)
    record.best = record.leader


def _started(loop: Loop, seed: int, W: Array | None, H: Array | None, clock: Clock) -> LoopState:
    """The state before the first iteration of a new start."""
    descent = loop.descent
    factors = descent.engine.draw(seed, W, H)
    state = loop.start(*factors, clock.seconds)
    if W is not None and H is None and descent.leaps:
        state = with_first_activations(descent, state, state.now.W).noted()
    return state


def _restored(loop: Loop, state: LoopState) -> LoopState:
    """The state of another process, with its factors where the engine wants them."""
    engine = loop.descent.engine
    (W, H), now = state.before, state.now
    now = replace(now, W=engine.put_motifs(now.W), H=engine.put(now.H))
    before = engine.put_motifs(W), engine.put(H)
    return replace(state, now=now, before=before, gather=engine.gather)


def _interrupt(record: SearchState) -> None:
    """The leader stopped because of Ctrl-C, whatever had stopped it before."""
    leader = record.leader
    if leader is None:
        return
    course = leader.course_before(leader.iteration + 1)
    interrupted = replace(leader, stop_reason=StopReason.INTERRUPTED, given_up=False, course=course)
    if leader is record.best:
        record.best = interrupted
    if leader is record.current:
        record.current = interrupted
