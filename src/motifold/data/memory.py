"""How much memory may be taken: said by the user, or a share of what the machine has."""

from __future__ import annotations

import math
import os
import re
from contextlib import suppress
from numbers import Real
from pathlib import Path

# Of the machine's memory, where nothing is said: others live there, too.
_SHARE = 0.5
_LEAST, _ALL = 100, 2**60  # bytes: less is meant in GB, more no machine has
_UNITS = {"": 0, "K": 1, "M": 2, "G": 3, "T": 4}
# Arrays of the size of the activations that a fit takes at most, by bytes of a number; what must
# be left for rows of X.
_ARRAYS, _LEAST_SHARE = {4: 15, 8: 11}, 0.1
_PLAIN_ARRAYS = 7  # of the algorithms as published
# More of them with penalties that couple motifs, and as many again with missing entries.
_MORE_ARRAYS = {4: 12, 8: 8}
_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# Of the control group: what is used, and a list of what that is. Files that were read and may be
# dropped again count as used there, and are not.
_USED = ("memory.current", "memory.usage_in_bytes")
_DROPPABLE = r"^(?:total_)?inactive_file (\d+)$"
_FREE = r"^MemAvailable:\s+(\d+) kB$"  # in /proc/meminfo


def bytes_of(limit: str | float | None) -> int:
    """A limit such as ``"4GB"``, ``"512 MiB"`` or a number of bytes; None: half of the machine's.

    Examples
    --------
    >>> from motifold.data.memory import bytes_of
    >>> bytes_of("2GB"), bytes_of("1.5 MiB"), bytes_of(1e6)
    (2000000000, 1572864, 1000000)
    """
    if limit is None:
        return int(_SHARE * machine_bytes())
    found = None
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([KMGT]?)(i?)B?\s*", limit, re.IGNORECASE)
        if found is not None:
            number, unit, binary = found.groups()
            nbytes = float(number) * (1024 if binary else 1000) ** _UNITS[unit.upper()]
    elif isinstance(limit, Real) and not isinstance(limit, bool):
        nbytes, found = float(limit), True
    if found and nbytes == math.inf:
        return _ALL
    if not found or not _LEAST <= nbytes < _ALL:
        raise ValueError(
            f'memory_limit must be a size such as "4GB" or "512MB", a number of bytes, or None, '
            f"not {limit!r}."
        )
    return int(nbytes)


def machine_bytes() -> int:
    """Memory that this process could have: the machine's, or that of its control group."""
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if _has_sysconf() else []
    for file in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # "max": none is set
            known.append(int(Path(file).read_text("ascii")))
    return min(known, default=4 * 2**30)


def available_bytes() -> int:
    """Memory that is free now: what the machine has left, or the control group allows on top.

    Where neither tells, all of the machine's.
    """
    known = [machine_bytes()]
    with suppress(OSError):
        found = re.search(_FREE, Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
        known += [] if found is None else [1024 * int(found[1])]
    for file, used in zip(_CONTROL_GROUPS, _USED, strict=True):
        with suppress(OSError, ValueError):
            limit, folder = int(Path(file).read_text("ascii")), Path(file).parent
            taken = int((folder / used).read_text("ascii"))
            dropped = re.search(
                _DROPPABLE, (folder / "memory.stat").read_text("ascii"), re.MULTILINE
            )
            known.append(limit - taken + (0 if dropped is None else int(dropped[1])))
    return max(0, min(known))


def _has_sysconf() -> bool:
    return "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {})


def bytes_of_activations(
    T: int, K: int, itemsize: int, *, accelerated: bool = True, more: int = 0, coupled: int = 0
) -> int:
    """Bytes of the arrays that are as long as the activations (T, K), at most, in a fit.

    ``more``: arrays that its solver takes beside; ``coupled``: 1 for penalties that couple motifs,
    1 for missing entries.
    """
    arrays = (_ARRAYS[itemsize] if accelerated else _PLAIN_ARRAYS) + more
    return (arrays + coupled * _MORE_ARRAYS[itemsize]) * T * K * itemsize


def room_for_rows(limit: str | float | None, T: int, K: int, itemsize: int) -> int:
    """Bytes that the activations (T, K) leave of a limit for rows of X.

    Where they leave little that is an error, if the user has set the limit.
    """
    nbytes = bytes_of(limit)
    taken = bytes_of_activations(T, K, itemsize)
    left = nbytes - taken
    if left < _LEAST_SHARE * nbytes:
        if limit is not None:
            raise ValueError(
                f"memory_limit={limit!r}: the activations, {T} bins × {K} motifs, take up to "
                f"{told(taken)} themselves. Allow {told(_rounded_up(taken / (1 - _LEAST_SHARE)))} "
                "or more, or fit a part of the recording."
            )
        left = int(_LEAST_SHARE * nbytes)
    return left


def _rounded_up(nbytes: float) -> float:
    """To what ``told`` can say: advice that is rounded down would be refused again."""
    step = 1e8 if nbytes >= 1e9 else 10.0 ** (math.floor(math.log10(nbytes)) - 1)
    return math.ceil(nbytes / step) * step


def told(nbytes: float) -> str:
    """A number of bytes for people.

    Examples
    --------
    >>> from motifold.data.memory import told
    >>> told(2e9), told(333e6), told(150_000)
    ('2.0 GB', '330 MB', '0.15 MB')
    """
    if nbytes >= 1e9:
        return f"{nbytes / 1e9:.1f} GB"
    return f"{float(f'{nbytes / 1e6:.2g}'):g} MB"  # never as 3.3e+02
