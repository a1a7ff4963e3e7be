"""The pages of the project: README, CONTRIBUTING and docs, and the blocks of code in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Pages whose blocks take more than some seconds.
SLOW = {
    "docs/tutorials/neuroscience.md",
    "docs/tutorials/audio.md",
    "docs/tutorials/scikit-learn.md",
    "docs/how-to/choose.md",
    "docs/how-to/cluster.md",
    "docs/how-to/large.md",
    "docs/how-to/missing.md",
    "docs/api/plots.md",
}
_MADE = ("_build", "gallery", "generated")  # by Sphinx
_FENCE = re.compile(
    r"(?P<before>[^\n]*\n\n?)?^(?P<fence>`{3,})(?P<language>[^\n`]*)\n"
    r"(?P<code>.*?)^(?P=fence)[ ]*$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, its line, and why it is not to be run."""

    language: str
    code: str
    line: int
    skip: str | None
    after: str | None  # the language of the block right before it, without a word between
    picture: str | None = None  # its name, where the block is a directive of docs/_ext/pictures.py

    @property
    def runs(self) -> bool:
        """Whether it is part of the page's program."""
        return self.skip is None and (self.language == "python" or self.picture is not None)

    @property
    def after_python(self) -> bool:
        return self.after == "python"

    @property
    def commands(self) -> list[list[str]]:
        """Of a block for the shell: each command as a list of words.

        In a ``console`` block commands begin with ``$ `` and the rest is what they print.
        """
        lines = self.code.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        words = [shlex.split(line, comments=True) for line in lines]
        return [command for command in words if command]


def pages() -> list[Path]:
    docs = [
        page
        for page in sorted((ROOT / "docs").rglob("*.md"))
        if not set(_MADE) & set(page.relative_to(ROOT).parts)
    ]
    templates = sorted((ROOT / ".github").rglob("*.md"))
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *templates, *docs]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_slow(page: Path) -> bool:
    return name_of(page) in SLOW


def needs_recordings(page: Path) -> bool:
    return re.search(r"^\s*\w+ = fetch_\w+\(", page.read_text(), re.MULTILINE) is not None


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page in their order."""
    text = page.read_text()
    found: list[Block] = []
    end = 0
    for match in _FENCE.finditer(text):
        skip = re.search(r"<!-- skip: (\S.*?) -->\s*$", match["before"] or "")
        line = text.count("\n", 0, match.start("fence")) + 1
        language, code = match["language"].strip(), match["code"]
        picture = re.match(r"\{picture\} (\S+)$", language)
        if picture:  # its options are no code; their lines stay, for those of errors
            code = re.sub(r"^:[a-z]+:.*$", "", code, flags=re.MULTILINE)
        follows = bool(found) and not text[end : match.start("fence")].strip()
        found.append(
            Block(
                language=language,
                code=code,
                line=line,
                skip=skip[1] if skip else None,
                after=found[-1].language if follows else None,
                picture=picture[1] if picture else None,
            )
        )
        end = match.end()
    return found


def shape_of(text: str) -> list[str]:
    """The words of a text with # for each number: those differ a little from machine to machine."""
    number = r"[-−+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\bnan\b"
    return re.sub(number, "#", text.replace("  ", " ")).split()
