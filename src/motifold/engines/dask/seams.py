"""Seams between shards, which the centre sweeps, and what neighbours are told after a sweep."""

from __future__ import annotations

from typing import Any

import numpy as np

from motifold.engines.dask.plan import Plan
from motifold.kernels.tiles import sweep_seams
from motifold.model import Array, Penalties

Told = tuple[float, Any, dict[str, Array]]
Message = dict[str, Array]


class Seams:
    """What happens at the ends of shards between two sweeps.

    Parameters
    ----------
    plan : which shards are neighbours
    penalties : of the motifs that are swept
    """

    def __init__(self, plan: Plan, L: int, penalties: Penalties, dtype: Any) -> None:
        self._left = [i for i, joined in enumerate(plan.joined) if joined]
        self._h = L - 1
        self._A: Array | None = None  # the Gram, told with the first sweep by tiles
        self._weights = penalties.l1_H.astype(dtype), penalties.l2_H.astype(dtype)

    def closed(self, told: list[Told]) -> tuple[dict[int, Message], float]:
        """The seams swept: a message to every shard, and the squared length of all moves."""
        moved = [part for part, _, _ in told]
        self._A = told[0][2].get("gram", self._A)
        messages: dict[int, Message] = {i: {} for i in range(len(told))}
        if self._left and self._A is not None:
            moved += self._swept(told, messages)
        for i in self._left:
            messages[i]["after"] = told[i + 1][2]["first"]
            messages[i + 1]["before"] = told[i][2]["last"]
        return messages, sum(moved)

    def _swept(self, told: list[Told], messages: dict[int, Message]) -> list[float]:
        """Sweep the seams (changes ``told`` and ``messages``)."""
        h, K = self._h, len(self._A)  # type: ignore[arg-type]
        before = np.stack([told[i][2]["slopes of last"] for i in self._left])
        after = np.stack([told[i + 1][2]["slopes of first"] for i in self._left])
        slopes = np.concatenate([before, after], axis=1)
        slopes[:, h : 2 * h] += np.stack([told[i + 1][1] for i in self._left])
        H = np.stack([told[i][2]["last"][-h:, :K] for i in self._left])
        H, slopes = np.ascontiguousarray(H), np.ascontiguousarray(slopes)
        moved = sweep_seams(H, slopes, self._A, *self._weights)
        for place, i in enumerate(self._left):
            last = told[i][2]["last"] = told[i][2]["last"].copy()
            last[-h:, :K] = H[place]
            messages[i] |= {"seam": H[place], "slopes of last": slopes[place, : 2 * h]}
            messages[i + 1]["slopes of first"] = slopes[place, 2 * h :]
        return moved.tolist()
