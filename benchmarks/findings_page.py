"""What benchmarks/findings.py measured, as the section "Findings" of docs/benchmarks.md."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import harness


def write_page(folder: Path) -> None:
    """Put the numbers of the JSON files in the folder on the page, and the pictures beside it."""
    parts = [
        "## Findings",
        "",
        "Measured by `benchmarks/findings.py` on 2 cores: made-up recordings with known answers "
        "(1200 bins, 40 features, motifs of 8 bins in 24 lags), none of which was used to choose "
        "a rule or a default.",
    ]
    for name, write in _PARTS.items():
        path = folder / f"findings-{name}.json"
        if path.exists():
            parts += ["", *write(json.loads(path.read_text()))]
        picture = folder / f"findings-{name}.png"
        if picture.exists() and name in _PICTURES:
            shutil.copy(picture, harness.PAGE.parent / "images" / picture.name)
            parts += ["", f"![{_PICTURES[name]}](images/{picture.name})"]
    harness.write_section("findings", parts)


def _discover(found: dict[str, Any]) -> list[str]:
    planted = [row for row in found["rows"] if row["planted"]]
    nulls = [row for row in found["rows"] if not row["planted"]]
    fewest = min(row["sets"] for row in found["rows"])
    seconds = [row["seconds"] for row in found["rows"]]
    return [
        "**Findings in one call** (`motifold.discover(X, n_lags=25)`, everything else by default), "
        "by `benchmarks/discovered.py`: recordings of 1500 bins and 51 features (`regimes.py`) "
        "with three smooth motifs of 25 events each, or none; at least "
        f"{fewest} recordings a row, of seeds that were not used to choose a rule. A run takes "
        f"{min(seconds):.1f} to {max(seconds):.1f} s of one core (medians). *Sequences*: planted "
        "motifs that are called one. *Shapes*: recordings in which all three motifs have at "
        "least 0.9 times the similarity to the truth that least squares with the true times has "
        "(nonnegative, with a background). *Events* within 3 bins, of all that are listed.",
        "",
        "| planted | sequences | K right | similarity (least squares) | shapes | precision "
        "| recall |",
        "|---|---:|---:|---:|---:|---:|---:|",
        *(
            f"| {row['regime']} | {row['sequences']} of {row['motifs']} | "
            f"{row['k_right']} of {row['sets']} | {row['similarity']:.2f} "
            f"({row['least_squares']:.2f}) | {row['shapes']} of {row['sets']} | "
            f"{row['precision']:.3f} | {row['recall']:.3f} |"
            for row in planted
        ),
        "",
        '| without sequences | runs with a "sequence" | runs with "synchrony" | K = 0 |',
        "|---|---:|---:|---:|",
        *(
            f"| {row['regime']} | {row['false_runs']} of {row['sets']} | "
            f"{row['synchrony']} of {row['sets']} | {row['sets'] - row['false_runs']} of "
            f"{row['sets']} |"
            for row in nulls
        ),
        "",
        "Where it fails: with 15 % of the spikes in sequences the motifs are found, their events "
        "too, but the motifs of a half, from a dozen events, are too poor to prove the order; and "
        "motifs that are not significant list no events. K = 3 is never told there, where half of "
        "the time was the aim. Half of the recordings with shared rates have rates that rise at "
        "once and decay. What was tried is in [what findings rest on](theory/findings.md). One "
        "rule was changed when 51 of the 300 recordings had been seen, for a fault that a unit "
        "test showed (a half without evidence spoke against the other one); all recordings whose "
        "outcome could depend on it were measured again.",
    ]


def _number_of_motifs(found: dict[str, Any]) -> list[str]:
    wrong = [
        f"{row['n_components']} instead of {row['true']}"
        for row in found["rows"]
        if row["n_components"] != row["true"]
    ]
    return [
        f"**Number of motifs.** The sweep suggests the true K in {found['right']} of "
        f"{len(found['rows'])} clean data sets (K = 2 to 5)"
        + (f"; elsewhere {', '.join(wrong)}." if wrong else ".")
    ]


def _events(found: dict[str, Any]) -> list[str]:
    return [
        "**Events** of 3 motifs found in 20 data sets against the true ones, within 2 bins "
        "(an entry of a motif is 0.5 to 1.5):",
        "",
        "| standard deviation of the noise | precision | recall |",
        "|---:|---:|---:|",
        *(
            f"| {row['noise']:g} | {row['precision']:.3f} | {row['recall']:.3f} |"
            for row in found["rows"]
        ),
        "",
        "Noise makes small peaks, not missed events: in noisy recordings raise `threshold` above "
        "0.3.",
    ]


def _false_positives(found: dict[str, Any]) -> list[str]:
    most = max(found["rows"], key=lambda row: row["runs"])
    return [
        "**False positives of the test**: runs in which any of 3 motifs is significant at 5 % "
        "(Bonferroni; Holm's procedure finds one exactly where it does). The motifs are fitted to "
        "one half of data that has no sequences and tested on the other. *Shuffled*: planted "
        "data, the bins of each feature in a random order of its own. *Unrelated*: features that "
        "rise and decay over about 6 bins at times of their own.",
        "",
        "| data | runs with a significant motif | motifs with p ≤ 0.05 |",
        "|---|---:|---:|",
        *(
            f"| {row['data']} | {row['hits']} of {row['runs']} ({row['hits'] / row['runs']:.1%}) | "
            f"{row['motifs']:.1%} |"
            for row in found["rows"]
        ),
        "",
        f"Of 200 runs 10 are expected, with a standard deviation of 3. The {most['runs']} have "
        f"{min(most['hits_by_200'])} to {max(most['hits_by_200'])} in each 200, and their p-values "
        f"are uniform: the normal scores have mean {most['mean_score']:.2f} and standard deviation "
        f"{most['sd_score']:.2f}.",
    ]


def _power(found: dict[str, Any]) -> list[str]:
    return [
        "**Power of the test** on planted motifs, found in one half and tested on the other "
        "(20 data sets of 3 motifs for each level):",
        "",
        "| standard deviation of the noise | "
        + " | ".join(f"{level:g}" for level in found["levels"])
        + " |",
        "|---|" + "---:|" * len(found["levels"]),
        "| share of motifs significant | "
        + " | ".join(f"{share:.2f}" for share in found["shares"])
        + " |",
    ]


def _sweep(found: dict[str, Any]) -> list[str]:
    return [
        f"**A sweep** of 10 values of K × 10 seeds on NEURAL takes {found['seconds']:.0f} s and "
        f"suggests K = {found['suggested']['n_components']}. Killed after {found['killed']} runs "
        f"and resumed, it gives the same table: {found['same']} of 100 rows are equal."
    ]


def _consensus(found: dict[str, Any]) -> list[str]:
    losses = sorted(found["single_losses"])
    return [
        f"**Consensus of {len(losses)} fits of SONG** (K = 3, L = 50; motifs found once are left "
        "out):",
        "",
        "| motif | found in | similarity of the copies | stable |",
        "|---:|---:|---:|---|",
        *(
            f"| {row['motif']} | {row['found']} | {row['similarity']:.3f} | "
            f"{'yes' if row['stable'] else 'no'} |"
            for row in found["rows"]
            if row["found"] > 1
        ),
        "",
        f"The fit that starts from the stable ones ends at a loss of {found['loss']:.4f}; the "
        f"single fits end between {losses[0]:.4f} and {losses[-1]:.4f}, their median is "
        f"{losses[len(losses) // 2]:.4f}.",
    ]


# Pictures made from the recordings are not kept in the repository.
_PICTURES = {"power": "power over noise"}
_PARTS = {
    "discover": _discover,
    "k": _number_of_motifs,
    "events": _events,
    "false-positives": _false_positives,
    "power": _power,
    "sweep": _sweep,
    "consensus": _consensus,
}
