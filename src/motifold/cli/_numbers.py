"""Numbers of options, whose ranges are told in words."""

from __future__ import annotations

from typing import Any

import click

_WORDS = {
    " is not in the range ": " is out of range: it must be ",
    " is not a valid n.": " is not a whole number.",
    " is not a valid x.": " is not a number.",
}


class _InWords:
    """For click's ranges: what they say in the help, and of a number that is outside."""

    def _describe_range(self: Any) -> str:
        low, high = self.min, self.max
        if low is not None and high is not None:
            return f"between {low} and {high}" if self.min_open else f"from {low} to {high}"
        if low is not None:
            return f"more than {low}" if self.min_open else f"{low} or more"
        return f"less than {high}" if self.max_open else f"{high} or less"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or a complaint in click's way."""
        try:
            return super().convert(value, param, ctx)  # type: ignore[misc]
        except click.BadParameter as error:
            for click_says, words in _WORDS.items():
                error.message = error.message.replace(click_says, words)  # type: ignore[misc]
            raise


class IntRange(_InWords, click.IntRange):
    """Whole numbers."""

    name = "n"  # what stands for one in the help, unless the option says


class FloatRange(_InWords, click.FloatRange):
    """Numbers."""

    name = "x"


# A random start, as NumPy takes it.
SEED = IntRange(0, 2**32 - 1)
# A share of something, or a level: neither nothing nor all.
SHARE = FloatRange(0, 1, min_open=True, max_open=True)
POSITIVE = FloatRange(0, min_open=True)
