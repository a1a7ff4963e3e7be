"""Sections of a page that one script owns and others leave alone."""

from __future__ import annotations


def marks(name: str) -> tuple[str, str]:
    """The lines before and after a section."""
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def section_of(page: str, name: str) -> str:
    """The section with its marks, or nothing where the page has none."""
    begin, end = marks(name)
    if begin not in page or end not in page:
        return ""
    return page[page.index(begin) : page.index(end) + len(end)]


def with_section(page: str, name: str, text: str) -> str:
    """The page with this text as the section, in its place or at the end."""
    begin, end = marks(name)
    new = f"{begin}\n\n{text.strip()}\n\n{end}"
    old = section_of(page, name)
    return page.replace(old, new) if old else f"{page.rstrip()}\n\n{new}\n"
