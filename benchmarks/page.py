"""The whole page of benchmarks from the numbers that were kept; nothing is measured.

``make bench-page``. Sections with numbers in a JSON file beside this script are written from it,
and the pictures where the numbers have their curves; each says of which commit it is. Sections
whose script keeps no file stay as that script wrote them. The numbers of the README and of "How
long will it take" are written from the same files.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import estimate
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

README_NAMES = {
    "synthetic-50000": "the paper's synthetic data",
    "sparse-50000": "the same, sparse activations and noise 1",
    "song": "songbird spectrogram",
    "speech": "speech spectrogram",
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


def write_others(
    numbers: Path, times: Path = estimate.PAGE, readme: Path = harness.ROOT / "README.md"
) -> list[str]:
    """The sections of other pages; a line for each of what it is."""
    found = _read(numbers / "estimate.json")
    harness.write_section("estimate", estimate.lines(found), times)
    results, device = _read(numbers / "results.json"), _read(numbers / "gpu.json")
    harness.write_section("numbers", readme_lines(results, device), readme)
    return [
        f"how long: {estimate.commits(found['predicted'])}",
        f"README: commit {results['machine']['commit']}, GPU {harness.commit_of(device)}",
    ]


def readme_lines(results: dict[str, Any], device: dict[str, Any]) -> list[str]:
    """What the README tells of the same numbers."""
    about, sizes = results["machine"], {row[0]: row[2:] for row in run.ABOUT}
    rows = []
    for row in results["torchnmf"]:
        name = row["problem"]
        kind, _, T = name.rpartition("-")
        shape, K, L = sizes[name] if name in sizes else sizes[f"{kind}-T"]
        shape = shape.replace("T ×", f"{T[:-3]},{T[-3:]} ×")
        rows.append([README_NAMES[name], f"{shape}, {K}, {L}", f"{row['speedup_hals']:.3g}×"])
    least, most = (f(row["speedup"] for row in results["sklearn"]) for f in (min, max))
    race = {row["problem"]: row["times sooner"] for row in device["race"]["rows"]}
    steps = {row["T"]: row["auto, all"] for row in device["iterations"]["rows"]}
    return [
        f"`make bench` on {about['cores']} cores ({results['date']}, commit {about['commit']}), "
        f"single precision, the same start for all, medians over {results['seeds']} starts: how "
        "many times sooner HALS reaches the loss that torchnmf's NMFD has after "
        f"{results['seconds']:g} s.",
        "",
        *harness.table(("problem", "T × N, K, L", "times sooner"), rows, words=2),
        "",
        f"On the first it is {results['residual']['speedup']:.0f} times sooner than the paper's "
        "own form of HALS (compiled, one thread); with L = 1 it is "
        f"{least:.1f} to {most:.1f} times sooner than scikit-learn's NMF. On the same GPU "
        f"(`make bench-gpu`: {device['race']['device']}, {device['race']['date']}, commit "
        f"{device['race']['machine']['commit']}) torchnmf's loss after 20 s is "
        f"reached {race['50000 × 250']:.0f} times sooner at 50,000 bins, "
        f"{race['1000000 × 250']:.0f} times at 10⁶; an iteration takes {steps[50_000]:.1f} and "
        f"{steps[1_000_000]:.1f} ms (median).",
    ]


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def main() -> None:
    """Write the page; with ``--smoke`` another one, in a folder that is thrown away."""
    options = harness.parser(__doc__).parse_args()
    if not options.smoke:
        said = write_page(harness.PAGE, harness.PAGE.parent / "images", FOLDER)
        print("\n".join([*said, *write_others(FOLDER)]))
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "benchmarks.md"
        page.write_text(harness.PAGE.read_text())
        print("\n".join(write_page(page, Path(folder), FOLDER)))


if __name__ == "__main__":
    main()
