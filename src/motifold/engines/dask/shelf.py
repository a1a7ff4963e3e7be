"""A shelf in a worker's process, where tasks of Dask and the hands leave arrays for each other."""

from __future__ import annotations

from typing import Any

import numpy as np

_SHELF: dict[str, Any] = {}


def put(token: str, array: Any) -> bool:
    """Leave an array under a name that nothing else has."""
    _SHELF[token] = np.asarray(array)
    return True


def take(token: str) -> Any:
    """Take it away; what is not there was lost with a worker."""
    try:
        return _SHELF.pop(token)
    except KeyError:
        raise RuntimeError(
            "These activations were on a worker that is gone: model.transform(X) gives them anew."
        ) from None
