"""What was tried and what went wrong: counted, kept in a folder, told in a table."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from fuzz.child import Outcome

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "developers" / "fuzz.md"


@dataclass
class Count:
    """Of one kind: cases, and how they ended."""

    cases: int = 0
    refused: int = 0
    contained: int = 0
    faults: int = 0


@dataclass
class Record:
    """All kinds, and each fault once: two are the same if all but their numbers is the same."""

    folder: Path  # where faults are kept
    counts: dict[str, Count] = field(default_factory=dict)
    faults: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def add(self, kind: str, outcome: Outcome, case: dict[str, Any], file: Path | None) -> None:
        """Count a case; keep a fault of a new sort, with the file that shows it."""
        count = self.counts.setdefault(kind, Count())
        count.cases += 1
        count.refused += outcome.end == "refused"
        count.contained += outcome.end == "contained"
        if outcome.end != "fault":
            return
        count.faults += 1
        sort = re.sub(r"(/\S+)|(0x[0-9a-f]+)|[-+]?\d[\d.e+-]*", "#", outcome.what)[:90]
        if (kind, sort) in self.faults:
            self.faults[kind, sort]["times"] += 1
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        number = len(list(self.folder.glob("*.json")))  # those of earlier runs stay
        name = f"{number:03d}-{re.sub('[^a-z0-9]+', '-', kind.lower())}"
        told = {"kind": kind, "what": outcome.what, "where": outcome.where, "times": 1, **case}
        self.faults[kind, sort] = told
        (self.folder / f"{name}.json").write_text(json.dumps(told, indent=1))
        if file is not None:
            _keep(file, self.folder / f"{name}.case")

    def table(self) -> str:
        """Kind by kind."""
        titles = ["kind", "cases", "refused", "contained", "faults"]
        rows = [
            [kind, count.cases, count.refused, count.contained, count.faults]
            for kind, count in self.counts.items()
        ]
        total = ["**all**", *(sum(row[i] for row in rows) for i in range(1, 5))]
        lines = [titles, ["---", *["---:"] * 4], *rows, total]
        return "\n".join("| " + " | ".join(f"{cell}" for cell in line) + " |" for line in lines)

    def list_faults(self) -> str:
        """Each sort of fault, the most frequent first."""
        found = sorted(self.faults.values(), key=lambda fault: -fault["times"])
        return "\n".join(
            f"- {fault['kind']}, {fault['times']} times: `{_one_line(fault['what'])}`"
            + (f" ({fault['where']})" if fault["where"] else "")
            for fault in found
        )


def _keep(file: Path, target: Path) -> None:
    if file.is_dir():
        shutil.copytree(file, target / file.name)
        return
    target.mkdir()
    shutil.copy(file, target)
    beside = file.with_name(file.name + ".fits")
    if beside.is_dir():
        shutil.copytree(beside, target / beside.name)


def _one_line(text: str) -> str:
    return " ".join(re.sub(r"/\S+/", "…/", text).replace("`", "'").split())[:160]


def commit() -> str:
    """The commit that was tried, marked where the working copy had changes."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


LAST = "The last run"


def write_page(
    record: Record, minutes: float, seed: int, path: Path = PAGE, title: str = LAST
) -> None:
    """Put this run on a page, in the place of the last one of that title."""
    faults = record.list_faults()
    parts = [
        f"{minutes:g} minutes at commit `{commit()}`, on {date.today().isoformat()}, seed {seed}.",
        record.table(),
        f"Faults, each sort once:\n\n{faults}" if faults else "No faults.",
    ]
    put_section(path, title, "\n\n".join(parts))


def put_section(path: Path, title: str, text: str) -> None:
    """Put a section into the place of that of its title, or at the end of the page."""
    page = path.read_text() if path.exists() else ""
    before, _, old = page.partition(f"## {title}\n")
    after = old[old.index("\n## ") + 1 :] if "\n## " in old else ""
    sections = [before.rstrip(), f"## {title}\n\n{text}", after.rstrip()]
    path.write_text("\n\n".join(filter(None, sections)) + "\n")
