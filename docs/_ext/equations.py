"""Equations drawn as SVG when the pages are built: read without JavaScript, network or fonts.

ziamath does it, in pure Python with the STIX fonts it brings. The TeX is kept as the picture's
label, for those who listen to the page.
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from typing import Any

import ziafont
import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from ziamath.tex import tex2mml

_log = logging.getLogger(__name__)
_SIZE = 17.0  # pixels, for text of 16
# What people write and ziamath does not know, in words that it does.
_WORDS = {
    r"\dots": r"\ldots",
    r"\texttt": r"\text",
    r"\argmin": r"\operatorname{arg\,min}",
    r"\lVert": r"\|",
    r"\rVert": r"\|",
}

ziafont.config.svg2 = False  # whole outlines: symbols of several pictures would share their names
ziamath.config.math.color = "currentColor"  # that of the text, in the light and in the dark


@cache
def _svg(source: str, block: bool) -> str:
    label = escape(" ".join(source.split()))
    for word, known in _WORDS.items():
        source = re.sub(re.escape(word) + r"(?![a-zA-Z])", lambda _, known=known: known, source)
    source = re.sub(r"\\[bB]igg?[lr]?\\\|", r"\\|", source)
    source = re.sub(r"\\text\w*\{[^}]*\}", lambda text: text[0].replace(r"\_", "_"), source)
    source = re.sub(r"\\(begin|end)\{(align|gather|equation)\*?\}", r"\\\1{aligned}", source)
    if block and r"\\" in source and r"\begin" not in source:
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    # The accent that ziamath takes for \\hat stretches beyond the letter; this one does not.
    mathml = tex2mml(source, inline=not block).replace("&#x00302;", "ˆ")
    drawn = ziamath.Math(mathml, size=_SIZE)
    below = f"{drawn.getyofst():.2f}px"
    head = f'<svg role="img" aria-label="{label}" style="vertical-align:{below}" '
    return drawn.svg().replace("<svg ", head, 1)


def _drawn(node: nodes.Element, *, block: bool) -> str:
    try:
        return _svg(node.astext(), block)
    except Exception as error:  # whatever the parser stumbles over is the page's fault
        _log.warning("cannot draw %r: %s", node.astext(), error, location=node)
        return f"<code>{escape(node.astext())}</code>"


def _visit_inline(self: Any, node: nodes.math) -> None:
    self.body.append(f'<span class="equation">{_drawn(node, block=False)}</span>')
    raise nodes.SkipNode


def _visit_block(self: Any, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="equation"))
    self.body.append(_drawn(node, block=True))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("equations", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
