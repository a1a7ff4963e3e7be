"""Typical mistakes in reading, and what the command line says to each: what, where, what to do."""

from __future__ import annotations

import numpy as np
import pytest
from click.testing import CliRunner

from motifold.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files as labs have them."""
    folder = tmp_path_factory.mktemp("lab")
    rng = np.random.default_rng(0)
    units, times = rng.integers(0, 9, 200), np.sort(rng.uniform(3, 25, 200))
    rows = [f"{u},{t:.3f}" for u, t in zip(units, times, strict=True)]
    (folder / "spikes.csv").write_text("\n".join(["neuron,seconds", *rows]) + "\n")
    (folder / "bare.txt").write_text("\n".join(row.replace(",", " ") for row in rows) + "\n")
    np.save(folder / "spikes.npy", np.c_[units, times])
    (folder / "holes.csv").write_text("neuron,seconds\n1,0.5\n2,\n1,0.9\n")
    (folder / "words.csv").write_text("neuron,seconds\n1,0.5\n2,soon\n1,0.9\n")
    (folder / "far.csv").write_text("neuron,seconds\n1,0.5\n2,1e12\n1,0.9\n")
    (folder / "many.csv").write_text("a,b,c\n1,0.5,2\n2,0.6,2\n")
    clock = [f"{0.1 * i + 0.03 * (i == 7):.2f},1,2" for i in range(20)]
    (folder / "uneven.csv").write_text("\n".join(["t,a,b", *clock]) + "\n")
    np.save(folder / "counts.npy", rng.poisson(1.0, (50, 4)))
    np.save(folder / "negative.npy", rng.normal(size=(50, 4)))
    (folder / "sorted").mkdir()
    np.save(folder / "sorted" / "spike_times.npy", np.arange(10))
    np.save(folder / "sorted" / "spike_clusters.npy", np.arange(10) % 3)
    return folder


SPIKES = ("spikes.csv", "--unit", "neuron", "--time", "seconds")

MISTAKES = {
    "a list of spikes as if it were a recording": (
        ("spikes.csv",),
        "looks like a list of spikes, not like a recording: column 'neuron' has 9 ids",
        "--unit neuron --time seconds --bin-size 0.",
        "--orientation time_first",
    ),
    "the same without names": (("bare.txt",), "list of spikes", "--unit 0 --time 1 --bin-size"),
    "the same as a matrix": (("spikes.npy",), "list of spikes", "--unit 0 --time 1 --bin-size"),
    "no bin size": (SPIKES, "set --bin-size, in seconds. From the data: --bin-size 0."),
    "a bin size that is none": (
        (*SPIKES, "--bin-size", "0"),
        "bin_size must be positive, not 0.0",
    ),
    "a column that is not there": (
        ("spikes.csv", "--unit", "cell", "--bin-size", "0.02"),
        "there is no column 'cell'; it has neuron, seconds.",
    ),
    "columns that nobody can guess": (
        ("many.csv", "--bin-size", "0.02"),
        "not clear which column has the unit of each: name it with --unit. It has a, b, c.",
    ),
    "a spike without a time": (
        ("holes.csv", "--bin-size", "0.02"),
        "holes.csv: could not convert string '' to float64 at row 1",
        "mend the row",
    ),
    "a time that is a word": (("words.csv", "--bin-size", "0.02"), "'soon'", "at row 1"),
    "a spike that is far off": (
        ("far.csv", "--bin-size", "0.02"),
        "from 0.5 to 1e+12 s in bins of 0.02 s take",
        "Are the times in seconds, and all of them right?",
        "set --max-bytes to",
    ),
    "a rate beside a bin size": (
        (*SPIKES, "--bin-size", "0.02", "--rate", "50"),
        "the rate of counts follows from bin_size; leave --rate out.",
    ),
    "a clock that skips": (
        ("uneven.csv", "--time", "t"),
        "not evenly spaced, first between rows 6 and 7",
        "Resample first, or leave the times out",
    ),
    "a start of what are no spikes": (
        ("counts.npy", "--t-start", "3"),
        "t_start is for spikes; leave it out, or set --bin-size.",
    ),
    "a clock for a matrix": (
        ("counts.npy", "--time", "t"),
        "time says nothing about a matrix without names",
    ),
    "seconds without a rate": (
        ("counts.npy",),
        "'0.3s' needs the number of time bins per second",
        "Give it with --rate",
    ),
    "motifs longer than the recording": (
        ("counts.npy", "--rate", "1000"),
        "A motif of 300 lags is longer than the recording, 50 bins. Take a shorter one.",
    ),
    "negative values": (
        ("negative.npy", "--rate", "10"),
        "Negative values",
        "--negatives clip",
    ),
    "a folder of phy without its rate": (
        ("sorted", "--bin-size", "0.02"),
        "there is no params.py, which has the sampling rate",
        "sample_rate = 30000.",
    ),
    "a file that is not there": (("nothing.csv",), "nothing.csv: there is no such file."),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_what_to_do(folder, monkeypatch, mistake):
    monkeypatch.chdir(folder)
    arguments, *words = MISTAKES[mistake]
    answer = CliRunner().invoke(main, ["fit", *arguments, "-k", "2", "-l", "0.3s", "-o", "m.npz"])
    assert answer.exit_code in (1, 3), answer.output
    told = " ".join(answer.output.split())
    for word in words:
        assert word in told, told
    assert not (folder / "m.npz").exists()


def test_more_motifs_than_a_motif_has_values_are_told(folder, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)

    def told(n_components, n_lags):
        order = ["fit", str(folder / "counts.npy"), "-k", n_components, "-l", n_lags]
        answer = CliRunner().invoke(main, [*order, "--max-iter", "1"])
        assert answer.exit_code == 0, answer.output
        return " ".join(answer.output.split())

    assert "9 motifs are more than the 8 values of one (lags × features)" in told("9", "2")
    assert "values of one" not in told("8", "2")
