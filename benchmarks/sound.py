"""Sound taken apart: decibels, onsets and CPU seconds, beside libnmfd; and a long file.

``motifold separate`` is called as a user does, from file to files; libnmfd's ``nmf_conv`` and
``nmfd`` (100 iterations, Kullback-Leibler) get the same spectrogram, templates and transform back,
with the masks of its demo. What is measured: SI-SDR (dB, mean of the stems, best assignment), F of
the onsets (within 50 ms, mir_eval), and CPU seconds of the process, since others use the machine.

The drum mixture is expected in ../shared/data/drums, the digits beside it; without them small ones
are made. libnmfd: pip install --no-deps libnmfd; mir_eval: pip install mir_eval.
"""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import harness
import numpy as np
import soundfile
from scipy.signal import find_peaks

import motifold
from motifold.sound import from_audio, separate

RESULTS = Path(__file__).with_name("sound.json")
DATA = Path(os.environ.get("MOTIFOLD_DATA", harness.ROOT.parent / "shared" / "data"))
LAGS, ITERATIONS, ALPHA = "150ms", 100, 1.2  # the last is libnmfd's demo's
PARTS = ["drums", "digits", "long"]


# What is taken apart ----------------------------------------------------------------------------


def drums() -> dict[str, Any]:
    """The 808 mixture, its stems, onsets, and one hit of each drum."""
    folder = DATA / "drums"
    if not folder.exists():
        return made()
    names = {"Kick": 0.7082, "Snare": 0.4761, "Hihat": 0.2380}  # a hit that is whole
    stems = {n: soundfile.read(folder / f"runningExample_808{n}.wav")[0] for n in names}
    y, sr = soundfile.read(folder / "runningExample_808Mixture.wav")
    table = np.loadtxt(folder / "runningExample_808Drums.txt")
    onsets = {n: table[table[:, 1] == i + 1, 0] for i, n in enumerate(names)}
    hits = {n: stems[n][int(t * sr) - 200 : int((t + 0.22) * sr)] for n, t in names.items()}
    return {"y": y, "sr": sr, "stems": stems, "onsets": onsets, "hits": hits}


def digits() -> dict[str, Any]:
    """Three words of the spoken digits, each said again and again at random times."""
    path = DATA / "spoken_digits_two_speakers_8k.wav"
    if not path.exists():
        return made()
    voice, sr = soundfile.read(path)
    length = int(0.4 * sr)
    hits = {}
    for name, start in (("a", 3.0), ("b", 21.3), ("c", 40.7)):
        word = voice[int(start * sr) :][:length] * np.hanning(length) ** 0.3
        hits[name] = 0.1 * word / np.sqrt(np.mean(word**2))
    return _at_random(hits, sr, 20.0)


def made() -> dict[str, Any]:
    """Three sounds of our own, where there is no data."""
    t = np.arange(800) / 8000
    hits = {str(f): np.exp(-20 * t) * np.sin(2 * np.pi * f * t) for f in (100, 600, 2500)}
    return _at_random(hits, 8000, 4.0)


def _at_random(hits: dict[str, np.ndarray], sr: int, seconds: float) -> dict[str, Any]:
    rng, stems, onsets = np.random.default_rng(0), {}, {}
    for name, hit in hits.items():
        stem, times, t = np.zeros(int(seconds * sr)), [], 0
        while (t := t + int(rng.uniform(0.7, 2.2) * sr)) + len(hit) < len(stem):
            stem[t : t + len(hit)] += hit * rng.uniform(0.5, 1.2)
            times.append(t / sr)
        stems[name], onsets[name] = stem, np.array(times)
    return {"y": sum(stems.values()), "sr": sr, "stems": stems, "onsets": onsets, "hits": hits}


# What is measured -------------------------------------------------------------------------------


def si_sdr(stem: np.ndarray, part: np.ndarray) -> float:
    """Scale-invariant signal-to-distortion ratio, dB."""
    target = stem * (part @ stem / (stem @ stem))
    return float(10 * np.log10((target @ target) / (np.sum((part - target) ** 2) + 1e-20)))


def scores(case: dict[str, Any], parts: list[np.ndarray], onsets: list[np.ndarray]) -> Any:
    """Mean SI-SDR of the best assignment of parts to stems, and mean F of their onsets there."""
    stems, true = list(case["stems"].values()), list(case["onsets"].values())
    rating = np.array([[si_sdr(s, np.asarray(p, float)) for p in parts] for s in stems])
    best = max(
        itertools.permutations(range(len(parts)), len(stems)),
        key=lambda order: sum(rating[i, j] for i, j in enumerate(order)),
    )
    measure = onset_measure()
    found = [measure(true[i], onsets[j]) for i, j in enumerate(best)] if measure else [np.nan]
    return float(np.mean([rating[i, j] for i, j in enumerate(best)])), float(np.mean(found))


def onset_measure() -> Callable[[Any, Any], float] | None:
    """mir_eval's F of onsets; None where it is not installed."""
    try:
        from mir_eval.onset import f_measure
    except ImportError:
        return None
    return lambda true, found: f_measure(np.sort(true), np.sort(found), window=0.05)[0]


def onsets_of(H: np.ndarray, motifs: np.ndarray, rate: float) -> list[np.ndarray]:
    """Peaks of activations (T, K), where the motifs (K, L, N) begin: the same for all rivals."""
    found = []
    for h, motif in zip(H.T, motifs, strict=True):
        loud = motif.sum(axis=1)
        first = int(np.argmax(loud >= 0.3 * loud.max()))
        padded = np.r_[0.0, h, 0.0]  # a peak may be at either end
        peaks, _ = find_peaks(padded, height=0.2 * h.max(), distance=max(1, round(0.08 * rate)))
        found.append((peaks - 1 + first) / rate)
    return found


# Who takes it apart -----------------------------------------------------------------------------


def ours(case: dict[str, Any], seed: int, *options: str) -> tuple[float, float, float, float]:
    """``motifold separate`` from file to files: SI-SDR, F, CPU seconds, and the SNR of the sum."""
    from motifold.cli import main

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        soundfile.write(folder / "y.wav", case["y"], case["sr"], subtype="FLOAT")
        command = ["separate", str(folder / "y.wav"), "-l", LAGS, "-o", str(folder / "parts")]
        command += ["--seed", str(seed), "--save-model", str(folder / "m.npz"), "--n-jobs", "1"]
        if "--templates" in options:
            for drum, hit in case["hits"].items():
                (folder / drum).mkdir()
                soundfile.write(folder / drum / "1.wav", hit, case["sr"], subtype="FLOAT")
            command += ["--templates", *(str(folder / drum) for drum in case["hits"])]
        else:
            command += ["-k", str(len(case["stems"]))]
        command += [option for option in options if option != "--templates"]
        began = time.process_time()
        with open(os.devnull, "w") as nothing:
            kept, sys.stdout = sys.stdout, nothing
            try:
                main(command, standalone_mode=False)
            finally:
                sys.stdout = kept
        seconds = time.process_time() - began
        model = motifold.load(folder / "m.npz")
        files = sorted((folder / "parts").iterdir())
        names = [*case["hits"]] if "--templates" in options else None
        order = [folder / "parts" / f"{n}.wav" for n in names] if names else files
        parts = [soundfile.read(path)[0] for path in order]
    rate = model.origin_["rate"]
    found = scores(case, parts, onsets_of(model.activations_, model.components_, rate))
    rest = case["y"] - sum(parts)
    return *found, seconds, float(10 * np.log10(np.sum(case["y"] ** 2) / np.sum(rest**2)))


def theirs(
    case: dict[str, Any], seed: int, function: str, templates: bool, iterations: int
) -> tuple[float, float, float, float] | None:
    """What libnmfd's function makes of |S|: SI-SDR, F, CPU seconds, and the cost at the end."""
    try:
        import libnmfd.core.nmfconv as library
    except ImportError:
        return None
    library.tnrange = lambda n, **_: range(n)  # its progress bar needs a notebook
    spectrogram = from_audio(case["y"], case["sr"], scale="magnitude", noise_floor=0.0)
    L, K = spectrogram.recording.bins(LAGS), len(case["stems"])
    V, rng = spectrogram.X.T.copy(), np.random.default_rng(seed)
    W = [rng.random((len(V), L)) for _ in range(K)]
    if templates:  # the very motifs that ours begin with
        start = separate(
            case["y"], case["sr"], templates=case["hits"], fix=True, n_lags=LAGS, max_iter=1,
            tol=0, representation={"scale": "magnitude", "noise_floor": 0.0},
        ).model.components_  # fmt: skip
        W = [motif.T.copy() for motif in start]
    W = [w / w.sum() for w in W]
    H = rng.random((K, V.shape[1])) if not templates else np.ones((K, V.shape[1]))
    began = time.process_time()
    sizes = {"num_comp": K, "num_iter": iterations, "num_template_frames": L}
    given = {"init_W": [w.copy() for w in W], "init_H": H.copy()}
    if function == "nmf_conv":
        found = library.nmf_conv(V, beta=0, **sizes, **given)
    else:
        found = library.nmfd(V, num_frames=V.shape[1], num_bins=len(V), **sizes, **given)
    seconds = time.process_time() - began
    motifs, H, parts, cost = found[0], found[1], found[2], found[3]
    powers = np.array([np.maximum(part.T, 1e-12) ** ALPHA for part in parts])
    masks = powers / powers.sum(axis=0)
    sounds = spectrogram.sounds(lambda a, b: [mask[a:b] for mask in masks])
    onsets = onsets_of(H.T, np.array([w.T for w in motifs]), spectrogram.rate)
    return *scores(case, sounds, onsets), seconds, float(np.ravel(cost)[-1])


def compared(
    case: dict[str, Any], starts: int, rival_starts: int, iterations: int
) -> list[dict[str, Any]]:
    """A row for everybody who takes it apart, from random starts and from templates."""
    whole = [case["y"]] * len(case["stems"])
    silent = [np.zeros(0)] * len(whole)
    rows = [{"who": "the mixture as it is", "db": [scores(case, whole, silent)[0]]}]

    def add(who: str, results: Iterable[Any], kept: bool = False) -> None:
        got = [result for result in results if result is not None]
        if got:
            db, f, cpu, last = zip(*got, strict=True)
            row = {"who": who, "db": db, "f": f, "cpu": cpu}
            rows.append(
                row | ({"lowest": db[int(np.argmin(last))]} if kept else {"snr": min(last)})
            )
            print(who, f"{np.median(db):.1f} dB", flush=True)

    seeds = range(starts)
    ours(case, 0, "--max-iter", "1", "--n-init", "1")  # compiled
    add("motifold separate, one start", (ours(case, s, "--n-init", "1") for s in seeds))
    add("motifold separate (ten starts)", (ours(case, s) for s in seeds))
    for name in ("nmf_conv", "nmfd"):
        results = (theirs(case, s, name, False, iterations) for s in range(rival_starts))
        add(f"libnmfd {name}, one start", results, kept=True)
    add("motifold, templates", [ours(case, 0, "--templates")])
    add("motifold, templates, --fix", [ours(case, 0, "--templates", "--fix")])
    for name in ("nmf_conv", "nmfd"):
        add(f"libnmfd {name}, templates", [theirs(case, 0, name, True, iterations)], kept=True)
    return rows


def long_file(seconds: float) -> dict[str, float]:
    """The mixture again and again, in stereo, from file to files: seconds and memory."""
    case = drums()
    y, sr = case["y"], case["sr"]
    n = int(seconds * sr)
    mono = np.resize(y, n)
    stereo = np.column_stack([mono, 0.5 * np.roll(mono, 400)]).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        soundfile.write(folder / "y.wav", stereo, sr, subtype="PCM_16")
        command = [sys.executable, "-m", "motifold.cli", "separate", str(folder / "y.wav")]
        command += ["-k", "3", "-l", LAGS, "-o", str(folder / "parts")]
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True)
        wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        given = soundfile.read(folder / "y.wav")[0]
        for path in (folder / "parts").iterdir():
            given -= soundfile.read(path)[0]
    rest = np.sum(given**2)
    return {
        "minutes": seconds / 60,
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "mib": after.ru_maxrss / 1024,
        "snr": float(10 * np.log10(np.sum(stereo.astype(float) ** 2) / rest)),
    }


# The page ---------------------------------------------------------------------------------------


def page(found: dict[str, Any]) -> list[str]:
    """The section of the page."""
    said = (
        f"By `python benchmarks/sound.py --page` at commit {harness.commit_of(found)}, one thread."
    )
    lines = ["## Sound taken apart", "", said]
    lines += ["SI-SDR in dB, mean of three stems; F of the onsets within 50 ms; CPU seconds a run."]
    lines += ["Windows of 2048 samples at 44.1 kHz (512 at 8 kHz), motifs of 150 ms; libnmfd 1.0.0"]
    lines += ["has KL on |S| with 100 iterations, starts random in W and H as ours are, and the"]
    lines += ["masks of its demo (α = 1.2)."]
    titles = {"drums": "The 808 drum mixture", "digits": "Three spoken words at random times"}
    for name, title in titles.items():
        if name not in found:
            continue
        rows = []
        for row in found[name]:
            db = np.array(row["db"])
            spread = f" ({db.min():.1f} … {db.max():.1f})" if len(db) > 1 else ""
            kept = f"{row['lowest']:.1f}" if "lowest" in row and len(db) > 1 else ""
            rest = ["", ""] if "f" not in row else [f"{np.median(row['f']):.2f}"]
            rest = rest if "f" not in row else [*rest, f"{np.median(row['cpu']):.1f}"]
            starts = str(len(db)) if "f" in row else ""
            rows.append([row["who"], starts, f"{np.median(db):.1f}{spread}", kept, *rest])
        head = ["", "runs", "median (range)", "lowest cost", "onset F", "CPU s"]
        lines += ["", f"**{title}**", "", *harness.table(head, rows)]
    sums = [row["snr"] for name in titles for row in found.get(name, []) if "snr" in row]
    if sums:
        lines += ["", f"Parts add up to the input to {min(sums):.0f} dB or more."]
    if "long" in found:
        one = found["long"]
        lines += [
            "",
            f"A stereo file of {one['minutes']:.0f} minutes at 44.1 kHz, three motifs, from file",
            f"to files with ten starts: {one['wall']:.0f} s ({one['cpu']:.0f} CPU seconds, on two",
            f"cores), {one['mib']:.0f} MiB; the parts add up to",
            f"{one['snr']:.0f} dB.",
        ]
    return lines


def main() -> None:
    """Measure what is asked for, and write it down."""
    parser = harness.parser(__doc__, page=True)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}: all")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--rival-starts", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10.0)
    options = parser.parse_args()
    wanted = options.parts or PARTS
    starts = options.starts, options.rival_starts
    found: dict[str, Any] = {}
    if RESULTS.exists() and not options.smoke:
        import json

        found = json.loads(RESULTS.read_text())
    found["machine"] = harness.machine()
    if options.smoke:
        rows = compared(made(), 1, 1, 2)
        assert all(row.get("snr", 100) > 60 for row in rows)
        return
    if "drums" in wanted:
        found["drums"] = compared(drums(), *starts, ITERATIONS)
    if "digits" in wanted:
        found["digits"] = compared(digits(), *starts, ITERATIONS)
    if "long" in wanted:
        found["long"] = long_file(60 * options.minutes)
    print("\n".join(page(found)))
    if options.page:
        harness.save(RESULTS, found)
        harness.write_section("sound", page(found))


if __name__ == "__main__":
    main()
