"""A discovery in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from motifold.findings.discovery import Discovery

NOT_SAID = (
    'What this does not say: "sequence" means that the motif occurs more strongly than its mirror '
    "image in time, in data that it was not taken from; it says nothing of causes. Features that "
    'respond together but decay at different speeds come in an order, too. "Synchrony" may be a '
    'sequence that is too weak for the test, or the same forwards and backwards; "not '
    'significant" is no proof of absence. False discovery rates of events are those beside '
    "features that are unrelated in time."
)


def sentences_of(found: Discovery) -> list[str]:
    """The summary, one paragraph each."""
    T, N = found.shape
    length = f"{T} bins" if found.rate is None else f"{T / found.rate:.4g} s ({T} bins)"
    verdicts, K = found.verdicts, len(found.motifs)
    n_segments = len(found.lengths)
    told = [
        f"Recording: {length}, {N} features"
        + (f", {n_segments} segments." if n_segments > 1 else ".")
    ]
    if K == 0:
        told.append(
            "No motif recurs apart from others at a false discovery rate of "
            f"{100 * found.fdr:g}%: there are no sequences to report."
        )
        return [*told, NOT_SAID]
    told.append(
        f"{_number(K, 'motif')} of {found.motifs.shape[1]} lags "
        f"{'was' if K == 1 else 'were'} found, which with a background explain "
        f"{100 * (1 - found.left):.0f}% of the variance at their events. On quarters held out in "
        f"turn, {verdicts.count('sequence')} recur in their order (sequence), "
        f"{verdicts.count('synchrony')} recur without one (synchrony) and "
        f"{verdicts.count('not significant')} cannot be told from chance, at a level of "
        f"{100 * found.alpha:g}% for all {K} together (Holm)."
    )
    told += [_of_motif(found, record) for record in found.table]
    told.append(
        f"{_number(len(found.events), 'event')} of these motifs are listed, at a false discovery "
        f"rate of {100 * found.fdr:g}%."
    )
    return [*told, NOT_SAID]


def _of_motif(found: Discovery, record: dict[str, Any]) -> str:
    T, _ = found.shape
    events = _number(record["n_events"], "event")
    if found.rate is not None:
        events += f" ({60 * record['n_events'] * found.rate / T:.3g} per minute)"
    length = f"{record['length']} bins"
    if found.rate is not None:
        length = f"{record['length'] / found.rate:.3g} s"
    return (
        f"Motif {record['motif']}: {record['verdict']} (recurrence p = "
        f"{record['p_recurrence']:.2g}, order p = {record['p_order']:.2g}, "
        f"{_number(record['n_places'], 'place')} compared); {events}; "
        f"{_number(record['n_features'], 'feature')} over {length}; found by "
        f"{record['n_starts']} of 3 starts.{_too_few(found, record)}"
    )


def _too_few(found: Discovery, record: dict[str, Any]) -> str:
    """What is said of a motif that occurs too rarely to be called a sequence."""
    needed = math.ceil(math.log2(2 * len(found.motifs) / found.alpha))
    if record["verdict"] != "synchrony" or record["n_events"] >= needed:
        return ""
    return f" Events are too few for a verdict on order: {needed} are needed at least."


def _number(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"
