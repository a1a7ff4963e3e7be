"""The directive ``picture``: what a page's own code draws, drawn when the pages are built.

    ```{picture} NAME
    :alt: what is to be seen, for those who listen

    plot_n_components(sweep)
    ```

The Python blocks of a page are one program, and so are its pictures: a picture's block runs after
the blocks above it, is shown like them, and its last expression is a figure (or axes). With
``:hidden:`` only the picture is shown, and ``:caption:`` is a line below it. ``drawn`` shows a
picture of another page: ``.. drawn:: api/plots plot_loss``.

Pictures lie in docs/pictures, which git ignores. A page is drawn anew where its program or the
package has changed; ``-D plot_gallery=0`` (``make docs-quick``) draws nothing, and shows what there
is. Each page has a process of its own, in an empty folder.
"""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
import tempfile
import types
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

DOCS = Path(__file__).parents[1]
sys.path.insert(0, str(DOCS.parent / "tests"))  # pages.py: what the blocks of a page are

from pages import Block, blocks  # noqa: E402

_log = logging.getLogger(__name__)
_FOLDER = DOCS / "pictures"
_DPI = 160
_SHOWN_DPI = 84  # pixels of a page for an inch of a figure
_PROCESSES = 2


# --- drawing --------------------------------------------------------------------------------


def program(page: Path) -> list[Block]:
    """The Python blocks and the pictures of a page, up to its last picture."""
    run = [block for block in blocks(page) if block.runs]
    last = max((i for i, block in enumerate(run) if block.picture), default=-1)
    return run[: last + 1]


def path_of(page: str, name: str) -> Path:
    """Where the picture of a page, "how-to/choose", lies."""
    return _FOLDER / f"{page.replace('/', '-')}-{name}.png"


def draw(page: Path) -> None:
    """Run the program of a page and save its pictures."""
    import matplotlib

    matplotlib.use("Agg")
    module = types.ModuleType("page")  # so that a class of the page can be pickled
    sys.modules["page"] = module
    for block in program(page):
        tree = ast.parse("\n" * block.line + block.code, str(page))
        value = _run(tree, module, str(page), wanted=block.picture is not None)
        if block.picture is not None:
            figure = getattr(value, "figure", None) or value
            if not hasattr(figure, "savefig"):
                raise TypeError(f"{page}:{block.line}: the last line of a picture is to be one")
            figure.savefig(path_of(_name(page), block.picture), dpi=_DPI)


def _run(tree: ast.Module, module: types.ModuleType, file: str, *, wanted: bool) -> Any:
    """Execute; where it is wanted, the value of the last expression."""
    last = tree.body.pop() if wanted and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, file, "exec"), vars(module))
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), file, "eval"), vars(module))
    return None


def _name(page: Path) -> str:
    return page.relative_to(DOCS).with_suffix("").as_posix()


# --- the build ------------------------------------------------------------------------------


def draw_what_has_changed(app: Sphinx) -> None:
    """Every page with pictures whose program, or the package, is not what it was."""
    drawn = [page for page in sorted(DOCS.rglob("*.md")) if "{picture}" in page.read_text()]
    if str(app.config.plot_gallery) in ("0", "False"):  # text, from the command line
        return
    _FOLDER.mkdir(exist_ok=True)
    stamps = {page: _stamp(page) for page in drawn}
    todo = [page for page in drawn if not _is_fresh(page, stamps[page])]
    with ThreadPoolExecutor(_PROCESSES) as pool:
        for page, error in zip(todo, pool.map(_draw_apart, todo), strict=True):
            if error:
                raise ExtensionError(f"{_name(page)}: its pictures cannot be drawn:\n{error}")
            _stamp_file(page).write_text(stamps[page])
            _log.info("pictures of %s drawn", _name(page))


def _draw_apart(page: Path) -> str:
    """Draw in a process of its own, in an empty folder; what went wrong, or nothing."""
    here = Path(__file__)
    source = DOCS.parent / "src"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(source), str(here.parent)])}
    command = [sys.executable, "-c", "import sys, pathlib, pictures; "
               "pictures.draw(pathlib.Path(sys.argv[1]))", str(page)]  # fmt: skip
    with tempfile.TemporaryDirectory() as desk:
        done = subprocess.run(command, cwd=desk, env=environment, capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or f"status {done.returncode}"


def _stamp(page: Path) -> str:
    """What the pictures of a page depend on: its program, and the package."""
    code = "\n".join(f"{block.picture} {block.code}" for block in program(page))
    return f"{_digest(code.encode())} {_package()}"


def _is_fresh(page: Path, stamp: str) -> bool:
    names = [block.picture for block in program(page) if block.picture]
    there = all(path_of(_name(page), name).exists() for name in names)
    return there and _stamp_file(page).exists() and _stamp_file(page).read_text() == stamp


def _stamp_file(page: Path) -> Path:
    return _FOLDER / f"{_name(page).replace('/', '-')}.txt"


@cache
def _package() -> str:
    files = sorted((DOCS.parent / "src" / "motifold").rglob("*.py"))
    return _digest(b"".join(path.read_bytes() for path in files))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- directives -----------------------------------------------------------------------------


class Picture(SphinxDirective):
    """Code of the page and the picture that it draws."""

    required_arguments = 1
    has_content = True
    option_spec = {
        "alt": directives.unchanged_required,
        "caption": directives.unchanged,
        "hidden": directives.flag,
    }

    def run(self) -> list[nodes.Node]:
        if "alt" not in self.options:
            raise self.error("a picture needs :alt:, a line that says what is to be seen")
        code = "\n".join(self.content)
        shown: list[nodes.Node] = []
        if "hidden" not in self.options:
            shown.append(nodes.literal_block(code, code, language="python"))
        page = self.env.docname
        return [*shown, *_figure(self, page, self.arguments[0], self.options["alt"])]


class Drawn(SphinxDirective):
    """A picture that another page draws, with a link to it."""

    required_arguments = 2
    option_spec = {"alt": directives.unchanged, "caption": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        page, name = self.arguments
        known = [block.picture for block in program(DOCS / f"{page}.md") if block.picture]
        if name not in known:
            raise self.error(f"{page} draws no picture {name!r}")
        self.env.note_dependency(str(DOCS / f"{page}.md"))
        return _figure(self, page, name, self.options.get("alt", f"what {name} draws"))


def _figure(directive: SphinxDirective, page: str, name: str, alt: str) -> list[nodes.Node]:
    from PIL import Image

    path = path_of(page, name)
    directive.env.note_dependency(str(path))
    if not path.exists():
        said = "This picture is drawn where the pages are built with their examples."
        return [nodes.paragraph("", "", nodes.emphasis(said, said))]
    with Image.open(path) as picture:
        width = round(picture.width * _SHOWN_DPI / _DPI)
    image = nodes.image(uri=f"/pictures/{path.name}", alt=alt, width=f"{width}px")
    figure = nodes.figure("", image, classes=["picture"], align="default")
    if caption := directive.options.get("caption"):
        children, messages = directive.state.inline_text(caption, directive.lineno)
        figure += nodes.caption("", "", *children)
        return [figure, *messages]
    return [figure]


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", draw_what_has_changed)
    app.add_directive("picture", Picture)
    app.add_directive("drawn", Drawn)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
