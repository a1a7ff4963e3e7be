"""``--memory-limit``: how much memory a recording on disk may take."""

from __future__ import annotations

from typing import Any

import click


class MemorySize(click.ParamType):
    """``4GB``, ``512MB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As it was said, or a complaint in click's way."""
        from motifold.data.memory import bytes_of

        try:
            bytes_of(str(value))
        except ValueError:
            self.fail(f"{value!r} is no size such as 4GB or 512MB.", param, ctx)
        return str(value)


MEMORY_HELP = (
    "Memory for a recording in zarr or HDF5, which stays on disk if it is larger than a quarter of "
    "this: 4GB.  [default: half of the machine's]"
)
