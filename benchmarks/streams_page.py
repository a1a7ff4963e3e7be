"""What benchmarks/streams.py measured, as the section "Streams" of docs/benchmarks.md."""

from __future__ import annotations

from typing import Any

import harness


def lines(found: dict[str, Any]) -> list[str]:
    """The section, of the parts that are there."""
    said = f"By `python benchmarks/streams.py --page` at commit {harness.commit_of(found)}."
    made = ["## Streams", "", said]
    for name, write in _PARTS.items():
        if name in found:
            kept = {key: value for key, value in found[name].items() if key != "machine"}
            made += ["", *write(kept)]
    return made


def _quality(found: dict[str, Any]) -> list[str]:
    passes = max(len(p["passes"]) for p in found.values())
    rows = [
        [
            f"{p.get('problem', name)}, K{p['K']} L{p['L']}, chunks of {p['chunk']}",
            p["seed"],
            f"{p['fit']:.4f}",
            *(f"{loss:.4f}" for loss in p["passes"]),
            f"{100 * (p['passes'][-1] / p['fit'] - 1):+.1f} %",
        ]
        for name, p in sorted(found.items())
    ]
    return [
        "**How good `partial_fit` is.** Chunks in random order, each a segment of its own: the "
        "loss of the motifs on the whole recording after each pass, beside that of one `fit`, "
        "everything else by default. A fit and a stream of the same seed do not have the same "
        "start: the first chunk is fitted from five.",
        "",
        *harness.table(
            ["problem", "seed", "fit", *map(str, range(1, passes + 1)), "last to fit"], rows
        ),
    ]


def _latency(found: dict[str, Any]) -> list[str]:
    names = [row["d"] for row in next(iter(found.values()))["rows"]]
    rows, some = [], []
    for name, p in found.items():
        title = f"{name}, K{p['K']} L{p['L']}"
        rows.append([f"{title}: error", *(f"{row['error']:.3f}" for row in p["rows"])])
        rows.append(["certainty told", *(f"{row['told']:.2f}" for row in p["rows"])])
        rows.append(["certainty found", *(f"{row['found']:.2f}" for row in p["rows"])])
        some += [
            [title, row["d"], f"{row['cut off']:.3f}", f"{row['some']:.3f}"]
            for row in p["rows"]
            if "some" in row
        ]
    return [
        "**What a latency costs.** Error of activations relative to `transform` of the whole when "
        "d bins after them have been seen. *Told* is the mean of `certainty` over the recording, "
        "*found* what it should be: 1 − (error/size)² of each motif, times the certainty of a "
        "motif that was seen whole (mean over motifs).",
        "",
        *harness.table(["", *(f"d = {name}" for name in names)], rows),
        "",
        "The errors are those of the bins that have come, not of the stream: `transform` on data "
        "that is cut off d bins after a bin (ten windows before it are there) is hardly better, "
        "and worse where motifs begin faintly. At about a hundred bins, evenly spaced:",
        "",
        *harness.table(["", "d", "cut-off transform", "stream"], some, words=2),
    ]


def _push(found: dict[str, Any]) -> list[str]:
    mine, theirs, both = found["events"]
    return [
        f"**A push of one bin** (N = {found['N']}, K = {found['K']}, L = {found['L']}, latency "
        f"{2 * found['L']}): {found['median']:.0f} µs in the median, {found['late']:.0f} µs in the "
        f"99th percentile, on two cores with a load of {found['load']:.0f}. Events of a stream and "
        f"of `find_events` ({found['events_of']} bins, but for the last 30): {mine}, {theirs}, "
        f"and {both} of them the same.",
    ]


def _drift(found: dict[str, Any]) -> list[str]:
    kept = {name: course for name, course in found.items() if name != "bin"}
    told = ", ".join(f"{name} {min(course):.3f}" for name, course in kept.items())
    return [f"**Motifs that drift**: lowest cosine with the motif as it is now: {told}."]


def _long(found: dict[str, Any]) -> list[str]:
    first, last = found["marks"][0], found["marks"][-1]
    rate, own = found["n_bins"] / found["seconds"], found["n_bins"] / found["cpu"]
    return [
        f"**A long stream**: {found['n_bins']:,} bins × {found['N']} (K = 5, L = 20) through "
        f"`partial_fit` in chunks of {found['chunk']} on one thread. Memory of its own at most "
        f"{first['peak']:.0f} MB after {first['bins']:,} bins and {last['peak']:.0f} MB at the "
        f"end; {rate:,.0f} bins a second on two cores with a load of {found['load']:.0f}, "
        f"{own:,.0f} for each second of processor time. Loss of its motifs on the first 20,000 "
        f"bins: {found['loss']:.4f}.",
    ]


def _mapped(found: dict[str, Any]) -> list[str]:
    return [
        f"`fit` on the same file, mapped, one thread: {found['peak']:,.0f} MB of its own (the "
        f"activations alone are {4e-6 * 5 * found['n_bins']:,.0f}), {found['iterations']} "
        f"iterations in {found['seconds']:,.0f} s, {found['cpu']:,.0f} s of them processor time "
        f"(load {found['load']:.0f}; ended by: {found['stop']}). Loss on the same bins: "
        f"{found['loss']:.4f}.",
    ]


_PARTS = {
    "quality": _quality,
    "latency": _latency,
    "push": _push,
    "drift": _drift,
    "long": _long,
    "mapped": _mapped,
}
