"""Processes that work for another one, and end with it."""

from __future__ import annotations

import os
import threading

_LOOK = 1.0  # seconds between two looks
_watched = threading.Lock()


def end_with(parent: int) -> None:
    """End this process soon after ``parent``, its own parent, is gone, however that ended.

    A process that is killed cannot take its workers along, and theirs would be waiting for it.
    Once called, further calls do nothing.
    """
    if os.getpid() != parent and _watched.acquire(blocking=False):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    pause = threading.Event()  # that nobody sets
    while os.getppid() == parent:
        pause.wait(_LOOK)
    os._exit(1)  # nobody is left to hear of anything else
