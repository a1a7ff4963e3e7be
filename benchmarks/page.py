"""The whole page of benchmarks from the numbers that were kept; nothing is measured.

``make bench-page``. Sections with numbers in a JSON file beside this script are written from it,
and the pictures where the numbers have their curves; each says of which commit it is. Sections
whose script keeps no file stay as that script wrote them.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import gpu
import harness
import losses
import run
import sound
import streams_page

FOLDER = Path(__file__).parent
SECTIONS = {
    "losses": losses.page,
    "streams": streams_page.lines,
    "sound": sound.page,
    "gpu": gpu.section,
}


def write_page(page: Path, images: Path, numbers: Path) -> list[str]:
    """Write the page of the JSON files in ``numbers``; a line for each section of what it is."""
    results = _read(numbers / "results.json")
    run.write_table(results, page, images)
    run.draw(results, images)
    said = [f"against others: commit {results['machine']['commit']}"]
    for name, lines in SECTIONS.items():
        path = numbers / f"{name}.json"
        if path.exists():
            found = _read(path)
            harness.write_section(name, lines(found), page)
            said.append(f"{name}: commit {harness.commit_of(found)}")
    kept = set(harness.section_names(page.read_text())) - set(SECTIONS)
    return [*said, *(f"{name}: as its script wrote it" for name in sorted(kept))]


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def main() -> None:
    """Write the page; with ``--smoke`` another one, in a folder that is thrown away."""
    options = harness.parser(__doc__).parse_args()
    if not options.smoke:
        print("\n".join(write_page(harness.PAGE, harness.PAGE.parent / "images", FOLDER)))
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "benchmarks.md"
        page.write_text(harness.PAGE.read_text())
        print("\n".join(write_page(page, Path(folder), FOLDER)))


if __name__ == "__main__":
    main()
