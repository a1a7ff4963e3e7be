"""Equations as MathML, made by docutils at build: read without JavaScript, network or LaTeX."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

_log = logging.getLogger(__name__)
# What people write and docutils does not know, in words that it does.
_WORDS = {
    r"\dots": r"\ldots",
    r"\argmin": r"\operatorname{arg\,min}",
    r"\tfrac": r"\frac",
    r"\dfrac": r"\frac",
}


def _mathml(node: nodes.Element, *, block: bool) -> str:
    source = node.astext()
    for word, known in _WORDS.items():
        source = re.sub(re.escape(word) + r"(?![a-zA-Z])", lambda _, known=known: known, source)
    if block and "\\\\" in source and "\\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    try:
        return str(tex2mathml(source, as_block=block))
    except MathError as error:
        _log.warning("no MathML for %r: %s", source, error, location=node)
        return f"<code>{node.astext()}</code>"


def _visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def _visit_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math"))
    if node.get("number"):
        number = f"({node['number']})"
        self.body.append(f'<span class="eqno">{number}')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append(_mathml(node, block=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
