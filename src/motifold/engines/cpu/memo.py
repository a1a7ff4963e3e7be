"""Results kept by the identity of what they were made of."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


class Memo:
    """The last few results of one function, for arguments that are never changed in place.

    Keys are compared by identity, and held: as long as a result is kept its key stays alive.
    """

    def __init__(self, size: int = 1) -> None:
        self._size = size
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = OrderedDict()

    def get(self, keys: tuple[Any, ...], make: Callable[[], Result]) -> Result:
        """The result for these keys, made if it is not there."""
        place = tuple(map(id, keys))
        if place not in self._kept:
            self._drop_all_but(self._size - 1)  # before memory is taken for the new one
            self.put(keys, make())
        self._kept.move_to_end(place)
        return self._kept[place][1]

    def put(self, keys: tuple[Any, ...], result: Any) -> None:
        """Keep a result that was made elsewhere."""
        self._kept[tuple(map(id, keys))] = keys, result
        self._drop_all_but(self._size)

    def _drop_all_but(self, size: int) -> None:
        while len(self._kept) > size:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()

    def keep_last(self) -> None:
        """Keep only the result that was asked for last."""
        self._drop_all_but(1)
