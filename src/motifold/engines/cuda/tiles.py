"""How time is cut for a GPU: one warp takes one tile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from motifold.solvers import tiles

# Bins of a tile without its seam: as many tiles as keep a large GPU busy, but not too short for the
# sake of what stands around them, and not too long for their memory.
_TILES, _SHORTEST, _LONGEST = 4096, 31, 255
_MANY = 256


@dataclass(frozen=True)
class Tiles:
    """A cut of the time axis, which depends on the lengths of the segments and on L only.

    Attributes
    ----------
    table : (n, 7) of int64, as in ``solvers.tiles.Tiles``, where the kernels want it
    rows : of the longest interior or seam
    has_seams : whether any segment has two tiles
    """

    table: Any
    rows: int
    has_seams: bool


def tile_length(T: int, L: int) -> int:
    """Bins of a tile, at least; segments that are not twice as long are one tile each."""
    return max(L - 1, min(max(T // _TILES, _SHORTEST), _LONGEST)) + L - 1


def cut(bounds: npt.NDArray[np.int64], L: int, K: int, length: int, put: Any) -> Tiles:
    """Tiles of at least ``length`` bins; ``put`` carries the table to the device.

    Where there are many, the last bins of a segment, which cut motifs off and take longer than
    others, are a seam, too: or the tile that has them would hold up all the interiors.
    """
    table = tiles.cut(bounds, L, K, length).table
    begin, seam, end, _, stop_active, _, _ = table.T
    if len(table) >= _MANY:
        seam[:] = np.minimum(seam, np.maximum(begin, end - L + 1))
    longest = max(int((np.minimum(seam, stop_active) - begin).max()), int((end - seam).max()), 1)
    return Tiles(put(table), longest, bool((seam < end).any()))
