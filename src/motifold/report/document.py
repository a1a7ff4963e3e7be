"""An HTML file that needs nothing else, and may fetch and run nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from motifold.report.markup import Markup, tag


def document(title: str, body: Markup, script: str | None = None) -> str:
    """The whole document around a body, with the one script that it may run."""
    policy = (
        "default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src {_allowed(script)}"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("style", Markup(resource("page.css"))),
    )
    last = None if script is None else tag("script", Markup(script))
    return f"<!DOCTYPE html>\n{tag('html', head, tag('body', body, last), lang='en')}\n"


def _allowed(script: str | None) -> str:
    """What may run: this script, and nothing else whatever a name in the data tries."""
    if script is None:
        return "'none'"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def resource(name: str) -> str:
    """A text file of this folder."""
    return files("motifold.report").joinpath(name).read_text(encoding="utf-8")
