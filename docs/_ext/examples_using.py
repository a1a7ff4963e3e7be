"""The directive ``examples-using``: the examples of the gallery that call a function.

sphinx-gallery's own ``minigallery`` would leave a heading behind where there are none.
"""

from __future__ import annotations

import json
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class ExamplesUsing(SphinxDirective):
    """Thumbnails of the examples that use the object of that name; nothing where none does."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        (name,) = self.arguments
        folder = self.config.sphinx_gallery_conf["backreferences_dir"]
        known = Path(self.env.srcdir, folder, "backreferences_all.json")
        if not known.exists() or not json.loads(known.read_text()).get(name):
            return []
        text = f".. rubric:: Examples using {name}\n\n.. minigallery:: {name}\n"
        return self.parse_text_to_nodes(text)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("examples-using", ExamplesUsing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
