"""A browser, where there is one."""

from __future__ import annotations

from browser import browser  # noqa: F401
