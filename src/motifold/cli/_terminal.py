"""What goes to the terminal and what comes from it: text that is only text, Ctrl-C, SIGTERM."""

from __future__ import annotations

import _thread
import contextlib
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

import click

EXIT_INTERRUPTED = 130  # Ctrl-C
EXIT_TERMINATED = 143  # SIGTERM
_AGAIN = 0.1  # seconds until a signal that was swallowed is sent again

# Control characters but tab and newline, what turns the direction of text, and halves of
# characters: names in files may have them, and a terminal would obey.
_UNSEEN = "\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_IN_TEXT, _IN_A_LINE = re.compile(f"[{_UNSEEN}]"), re.compile(f"[{_UNSEEN}\n\t]")


def visible(text: Any, *, one_line: bool = False) -> str:
    r"""The text with what a terminal would obey in letters, as ``\x1b``.

    ``one_line``: so are tabs and newlines, which could pretend to be a line of ours.
    """
    return (_IN_A_LINE if one_line else _IN_TEXT).sub(
        lambda found: ascii(found[0])[1:-1], str(text)
    )


# The words that begin a line, and their colours.
_COLOURS = {"Warning:": "yellow", "Hint:": "cyan", "Note:": "cyan", "Error:": "red"}


def in_colour() -> bool | None:
    """False where colours are not wanted (https://no-color.org) or not known; None: click sees."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return False if unwanted else None


def say(text: Any, *, err: bool = False, nl: bool = True, bold: bool = False) -> None:
    """Print; all that the commands print goes through here, or is JSON."""
    shown = visible(text)
    click.echo(_styled(shown, bold), err=err, nl=nl, color=in_colour())


def _styled(text: str, bold: bool = False) -> str:
    """The text with its first word in its colour, if it has one."""
    first, space, rest = text.partition(" ")
    if first in _COLOURS:
        return click.style(first, fg=_COLOURS[first], bold=True) + space + rest
    return click.style(text, bold=True) if bold else text


def shown_in_colour(error: click.ClickException) -> click.ClickException:
    """The same error, made to show itself as click does but for the colour of its first word."""

    def show(file: Any = None) -> None:
        told = io.StringIO()
        type(error).show(error, file=told)
        lines = map(_styled, told.getvalue().splitlines())
        click.echo("\n".join(lines), file=file, err=file is None, color=in_colour())

    error.show = show  # type: ignore[method-assign]
    return error


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends a command as Ctrl-C does."""


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """That of a command which was ended by Ctrl-C or SIGTERM."""
    return EXIT_TERMINATED if isinstance(interrupt, Terminated) else EXIT_INTERRUPTED


def ended(interrupt: KeyboardInterrupt, kept: str = "") -> SystemExit:
    """The end of an interrupted command, to be raised; says what was kept and how to go on."""
    say(f"\nInterrupted. {kept}".rstrip(), err=True)
    return SystemExit(exit_code(interrupt))


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """End the command on Ctrl-C and SIGTERM, in order, with their exit codes."""

    def terminate(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: now things are put away
        raise Terminated

    try:
        before = signal.signal(signal.SIGTERM, terminate)
    except ValueError:  # not in the main thread: nobody sends signals here
        before = None
    with _swallowed(terminate) as swallowed:
        try:
            yield
        except KeyboardInterrupt as interrupt:
            raise ended(interrupt) from None
        except Exception:
            if not swallowed:
                raise
            raise ended(swallowed[0]) from None  # the error is what came of it
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _swallowed(terminate: Any) -> Iterator[list[KeyboardInterrupt]]:
    """The interrupts that went nowhere; each is sent again.

    In a callback of C, such as LLVM's when a kernel is compiled, and in ``__del__`` Python prints
    an exception and goes on: the command would never hear of the signal, or numba would fail for
    want of what it had compiled.
    """
    swallowed: list[KeyboardInterrupt] = []
    timers: list[threading.Timer] = []
    told = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if not isinstance(unraisable.exc_value, KeyboardInterrupt):
            return told(unraisable)
        swallowed.append(unraisable.exc_value)
        number = signal.SIGINT
        if isinstance(unraisable.exc_value, Terminated):
            number = signal.SIGTERM
            signal.signal(number, terminate)
        # Not now: it would be raised here, and swallowed again.
        timers.append(threading.Timer(_AGAIN, _thread.interrupt_main, [number]))
        timers[-1].daemon = True
        timers[-1].start()

    sys.unraisablehook = hook
    try:
        yield swallowed
    finally:
        sys.unraisablehook = told
        for timer in timers:
            timer.cancel()
