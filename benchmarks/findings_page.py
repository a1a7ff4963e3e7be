"""What was measured of findings, as the section "Findings" of docs/benchmarks.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import harness
import regimes

KEPT = Path(__file__).with_name("findings.json")


def keep(name: str, numbers: object, path: Path | None = None) -> None:
    """Put the numbers of a section in the place of those that were there."""
    path = path or KEPT
    kept = json.loads(path.read_text()) if path.exists() else {}
    commits = kept.get("commits", {}) | {name: harness.machine()["commit"]}
    harness.save(path, kept | {name: numbers, "commits": commits})


def section(kept: dict[str, Any]) -> list[str]:
    """The lines of the section."""
    lines = [
        "## Findings",
        "",
        "Measured by `benchmarks/findings.py` on 2 cores (numbers of commits: "
        f"{_commits(kept)}): made-up recordings with known answers "
        "(1200 bins, 40 features, motifs of 8 bins in 24 lags), none of which was used to choose "
        "a rule or a default.",
    ]
    for name, write in _PARTS.items():
        if name in kept:
            lines += ["", *write(kept[name])]
    return lines


def _commits(kept: dict[str, Any]) -> str:
    """Which parts are of which commit."""
    parts: dict[str, list[str]] = {}
    for name, commit in kept.get("commits", {}).items():
        parts.setdefault(commit, []).append(name)
    return "; ".join(f"{commit} {', '.join(names)}" for commit, names in parts.items())


def write_page() -> None:
    """Make the section, and its picture, of what is kept."""
    kept = json.loads(KEPT.read_text())
    if "power" in kept:
        _draw_power(kept["power"], harness.PAGE.parent / "images" / _POWER)
    harness.write_section("findings", section(kept))


def _discover(found: dict[str, Any]) -> list[str]:
    planted = [row for row in found["rows"] if row["planted"]]
    nulls = [row for row in found["rows"] if not row["planted"]]
    fewest = min(row["sets"] for row in found["rows"])
    fastest, slowest = found["seconds"]
    return [
        "**Findings in one call** (`motifold.discover(X, n_lags=25)`, everything else by default), "
        "by `benchmarks/discovered.py`: recordings of 1500 bins and 51 features (`regimes.py`) "
        "with three smooth motifs of 25 events each, or none; at least "
        f"{fewest} recordings a row, of seeds that were not used to choose a rule. A run takes "
        f"{fastest:.1f} to {slowest:.1f} s of one core (medians). *Sequences*: planted "
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
        "Where it fails: with 15 % of the spikes in sequences some motifs are found and their "
        "order is not proven, and motifs that are not significant list no events. A motif that is "
        "played at different speeds may be found as two that share its events, both called "
        "sequences (one of the warped recordings). Half of the "
        "recordings with shared rates have rates that rise at once and decay. "
        "What was tried is in [what findings rest on](theory/findings.md).",
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
        + found.get("note", "")
    ]


def _number_where_it_is_hard(found: dict[str, Any]) -> list[str]:
    sets = len(found["rows"][0]["suggested"])
    return [
        f"**Number of motifs where it is hard**: what the sweep suggests, of 1 to 6, in {sets} "
        "recordings a row of the kinds above (eight seeds, spikes smoothed by one bin). Features "
        "that share a rate are motifs to it, too: three assemblies are three. Whether a motif has "
        "an order only `discover` asks.",
        "",
        "| recordings | true K | " + " | ".join(str(K) for K in range(7)) + " |",
        "|---|---:|" + "---:|" * 7,
        *(
            f"| {row['regime']} | {_true_number(row['regime'])} | "
            + " | ".join(str(row["suggested"].count(K) or "") for K in range(7))
            + " |"
            for row in found["rows"]
        ),
    ]


def _true_number(regime: str) -> str:
    if regime.startswith("shared rates"):
        return "3 assemblies"
    return "3" if regime in regimes.PLANTED else "0"


def _events(found: dict[str, Any]) -> list[str]:
    return [
        "**Events above a threshold** (`find_events(model)`, 0.3 of the typical strength) of 3 "
        "motifs found in 20 data sets against the true ones, within 2 bins (an entry of a motif is "
        "0.5 to 1.5):",
        "",
        "| standard deviation of the noise | precision | recall |",
        "|---:|---:|---:|",
        *(
            f"| {row['noise']:g} | {row['precision']:.3f} | {row['recall']:.3f} |"
            for row in found["rows"]
        ),
        "",
        "Noise makes small peaks, not missed events: give the recording, "
        "`find_events(model, X=X)`, which measures how strong an event must be.",
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
        f"{most['fewest_hits']} to {most['most_hits']} in each 200, and their p-values "
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
        "",
        f"![power over noise](images/{_POWER})",
    ]


def _draw_power(found: dict[str, Any], path: Path) -> None:
    """The curve of the power, and the level of the test."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.4), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(found["levels"], found["shares"], "o-", color="#0072B2")
    axes.axhline(0.05, color="0.5", linestyle=":")
    axes.annotate("level, 5 %", (0, 0.06), color="0.4", fontsize="small")
    axes.set(
        xlabel="standard deviation of the noise (motif entries: 0.5 to 1.5)",
        ylabel="share of planted motifs significant",
        ylim=(0, 1.02),
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)


def _sweep(found: dict[str, Any]) -> list[str]:
    load, by = found.get("load", 0.0), found.get("evidence", {}).get("n_components")
    beside = f" (while others kept the machine busy: load {load:.0f})" if load > 1 else ""
    measure = {"test_error": " by the test error", "predicted": " by what is predicted"}.get(by, "")
    return [
        f"**A sweep** of 10 values of K × 10 seeds on NEURAL takes {found['seconds']:.0f} s{beside}"
        f" and suggests K = {found['suggested']['n_components']}{measure} "
        "([the rule](theory/findings.md) was chosen on this recording, among others). "
        f"Killed after {found['killed']} runs and resumed, it gives the same table: "
        f"{found['same']} of 100 rows are equal."
    ]


def _consensus(found: dict[str, Any]) -> list[str]:
    losses = found["single_losses"]
    return [
        f"**Consensus of {found['fits']} fits of SONG** (K = 3, L = 50; motifs found once are left "
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
        f"single fits end between {losses['lowest']:.4f} and {losses['highest']:.4f}, their median "
        f"is {losses['median']:.4f}.",
    ]


_POWER = "findings-power.png"  # pictures made from recordings are not kept in the repository
_PARTS = {
    "discover": _discover,
    "k": _number_of_motifs,
    "k-regimes": _number_where_it_is_hard,
    "events": _events,
    "false-positives": _false_positives,
    "power": _power,
    "sweep": _sweep,
    "consensus": _consensus,
}
