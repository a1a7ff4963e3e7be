"""What all pages say of themselves: title, date, command and version, contents."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from motifold import __version__
from motifold.io import Recording
from motifold.report.markup import Markup, join, tag

_TOLD_OPTIONS = ("key", "channel", "units")  # which part of a file a recording is


def _now() -> datetime:
    return datetime.now().astimezone()


@dataclass(frozen=True)
class Origin:
    """How a page came about: the command that made it, and the model's name, where known."""

    command: str | None = None
    model: str | None = None
    made: datetime = field(default_factory=_now)


@dataclass(frozen=True)
class Section:
    """A part of a page: its title, and what is below it. Without a title it is not in the list."""

    title: str
    children: tuple[Markup | None, ...]

    @property
    def name(self) -> str:
        """By which links find it; no other part of a page is called so."""
        return "section-" + re.sub(r"[^a-z]+", "-", self.title.lower()).strip("-")

    @property
    def markup(self) -> Markup:
        return tag("section", tag("h2", self.title), *self.children, id=self.name)


def section(title: str, *children: Markup | None) -> Section:
    """A section with its title."""
    return Section(title, children)


def heading(title: str, origin: Origin, summary: Markup | None = None, about: str = "") -> Markup:
    """The top of a page."""
    made = f"{origin.made:%Y-%m-%d %H:%M} {origin.made.tzname() or ''}".strip()
    by = None if origin.command is None else join(" by ", _command(origin.command))
    return tag(
        "header",
        tag("h1", title),
        tag("p", about, class_="about") if about else None,
        tag("p", f"Made on {made} with motifold {__version__}", by, ".", class_="made"),
        summary,
    )


def _command(words: str) -> Markup:
    """The command, whose options are not broken at their hyphens."""
    parts = re.split(r"(?<= )(-\S+)", words)
    shown = [tag("span", part, class_="option") if i % 2 else part for i, part in enumerate(parts)]
    return tag("code", shown)


def with_contents(sections: Iterable[Section]) -> Markup:
    """A list of the sections, and the sections."""
    shown = list(sections)
    links = [tag("li", tag("a", part.title, href=f"#{part.name}")) for part in shown]
    contents = tag("nav", tag("h2", "Contents"), tag("ul", links), aria_label="Contents")
    return join(contents, *(part.markup for part in shown))


def boxes(pairs: Iterable[tuple[str, Any]]) -> Markup:
    """Numbers with their names, in boxes."""
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs])


def name_of(recording: Recording) -> str:
    """The file's name, without its folder, and which part of the file it is."""
    options = recording.options
    parts = [str(options[name]) for name in _TOLD_OPTIONS if options.get(name) is not None]
    name = Path(recording.source).name or recording.source
    return f"{name} ({', '.join(parts)})" if parts else name


def without_folders(text: str, source: str) -> str:
    """A text that names a file by its name alone: whose machine it lies on is nobody's business."""
    name = Path(source).name
    for path in {source, str(Path(source)), str(Path(source).absolute())}:
        text = text.replace(path, name) if name and path != name else text
    return text
