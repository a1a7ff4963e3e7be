"""The commands on files: what they write, what they tell, how they end."""

from __future__ import annotations

import html
import json
import re
import tracemalloc

import click
import numpy as np
import pytest
from click.testing import CliRunner
from commands import ok, run

import motifold
from motifold.cli import main
from motifold.datasets import make_sequences

X = make_sequences(400, 12, 2, 8, random_state=0).X


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.npy"
    np.save(path, X)
    return path


@pytest.fixture
def model(counts, tmp_path):
    path = tmp_path / "model.npz"
    ok("fit", counts, "-k", 2, "-l", 8, "-o", path, "--rate", 20)
    return path


def test_fit_is_the_estimators(model):
    expected = motifold.CNMF(2, 8, random_state=0).fit(X)
    found = motifold.load(model)
    np.testing.assert_array_equal(found.components_, expected.components_)
    np.testing.assert_array_equal(found.activations_, expected.activations_)
    assert found.origin_["rate"] == 20
    assert not list(model.parent.glob("*.checkpoint*"))


def test_penalties_are_the_estimators(counts, tmp_path):
    given = {"x_ortho": 0.01, "ortho_H": 0.02, "ortho_W": 0.03, "l1_H": 0.04, "l1_W": 0.05}
    given |= {"l2_H": 0.06, "l2_W": 0.07, "n_init": 2, "max_iter": 30, "tol": 0.01}
    options = [f"--{name.replace('_', '-').lower()}={value}" for name, value in given.items()]
    more = ("--center", "--boundary", "valid", "--solver", "hals")
    ok("fit", counts, "-k", 2, "-l", 5, "-o", tmp_path / "m.npz", *options, *more)
    expected = motifold.CNMF(2, 5, center=True, boundary="valid", random_state=0, **given).fit(X)
    found = motifold.load(tmp_path / "m.npz")
    assert {name: found.get_params()[name] for name in given} == given
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_a_report_tells_the_command_as_it_was_given(counts, tmp_path):
    """Penalties and options of several parts, too; but not where this machine has its files."""
    words = "-k 2 -l 8 --smooth 3,causal --x-ortho 0.001 --l1-H=0.01 --max-iter 20"
    files = ("-o", tmp_path / "m.npz", f"--report={tmp_path / 'a b.html'}")
    ok("fit", counts, *words.split(), *files)
    told = f"fit counts.npy {words} -o m.npz '--report=a b.html'"
    text = (tmp_path / "a b.html").read_text()
    shown = html.unescape(re.sub("<.*?>", "", re.search("<code>(.*?)</code>", text)[1]))
    assert shown == f"motifold {told}"
    assert str(tmp_path) not in text


def test_options_that_are_not_said_are_the_estimators(model):
    found, default = motifold.load(model).get_params(), motifold.CNMF(2, 8).get_params()
    assert found == {**default, "random_state": 0}


def test_sweep_goes_through_weights(counts, tmp_path):
    common = ("-k", 2, "-l", 4, "--seeds", 1, "--n-null", 0, "--n-jobs", 1, "--tol", 0.05)
    paths = ("-o", tmp_path / "s.csv")
    answer = ok("sweep", counts, *common, *paths, "--x-ortho", "0,0.01", "--json")
    runs = json.loads(answer.stdout)["runs"]
    assert [record["x_ortho"] for record in runs] == [0, 0.01]
    expected = motifold.sweep(
        X, n_components=2, n_lags=4, n_seeds=1, n_null=0, n_jobs=1, progress=False, tol=0.05,
        x_ortho=[0.0, 0.01],
    )  # fmt: skip
    for name in ("loss", "test_error"):  # the default of --test is Python's
        assert [record[name] for record in runs] == pytest.approx(list(expected.table[name]))
    refused = run("sweep", counts, *common, *paths, "--l1-h", "0,-1")
    assert (refused.exit_code, "no list of weights" in refused.output) == (2, True)
    refused = run("sweep", counts, "-k", "1-9999999999", *paths, "-l", 4)  # not as far as memory
    assert (refused.exit_code, "is no list such as" in refused.output) == (2, True)


def test_seconds_are_lags(counts, tmp_path):
    told = json.loads(
        ok(
            "fit", counts, "-k", 1, "-l", "0.5s", "--rate", 10, "-o", tmp_path / "m", "--json"
        ).stdout
    )
    assert (told["lags"], told["time_bins"], told["features"]) == (5, 400, 12)
    answer = run("fit", counts, "-k", 1, "-l", "0.5s")
    assert answer.exit_code == 3
    assert "with --rate" in answer.output


def test_info(counts, model):
    told = json.loads(ok("info", counts, "--json", "--rate", 100).stdout)
    assert (told["kind"], told["seconds"]) == ("recording", 4.0)
    assert told["mean"] == pytest.approx(X.mean())
    assert json.loads(ok("info", model, "--json").stdout)["motifs"] == 2
    assert "time bins      400" in ok("info", counts).stdout


def test_transform(model, counts, tmp_path):
    out = tmp_path / "a.npy"
    ok("transform", model, counts, "-o", out)
    expected = motifold.load(model).transform(X)
    np.testing.assert_array_equal(np.load(out), expected)
    table = tmp_path / "a.csv"
    ok("transform", model, counts, "-o", table)
    read = np.loadtxt(table, delimiter=",", skiprows=1)
    np.testing.assert_allclose(read[:, 1:], expected, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(read[:, 0], np.arange(400) / 20)  # the rate of the fit
    assert run("transform", model, counts, "-o", tmp_path / "a.txt").exit_code == 2


def test_motifs_and_segments_count_from_0_as_in_python(model, counts, tmp_path):
    fitted = motifold.load(model)
    expected = motifold.find_events(fitted, rate=20).records
    assert {record["motif"] for record in expected} == {0, 1}
    assert json.loads(ok("events", model, "--json").stdout)["events"] == expected
    lines = ok("events", model).stdout.splitlines()[1:]
    assert [line.split(",")[:2] for line in lines] == [
        [str(record["motif"]), str(record["segment"])] for record in expected
    ]
    ok("transform", model, counts, "-o", tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text().splitlines()[0] == "time,motif_0,motif_1"


def test_names_go_with_the_model(tmp_path):
    path, model = tmp_path / "a.csv", tmp_path / "m.npz"
    names = [f"cell {i}" for i in range(12)]
    text = "\n".join(",".join(f"{v:.6f}" for v in row) for row in X)
    path.write_text(",".join(names) + "\n" + text)
    ok("fit", path, "-k", 2, "-l", 4, "-o", model)
    assert motifold.load(model).feature_names_in_.tolist() == names
    assert "Warning" not in ok("transform", model, path, "-o", tmp_path / "a.npy").output
    path.write_text(",".join(names[::-1]) + "\n" + text)
    answer = run("transform", model, path, "-o", tmp_path / "a.npy")
    assert answer.exit_code == 3
    assert "feature 0 is 'cell 11'" in answer.output


def test_exit_codes(counts, model, tmp_path):
    assert run("info", tmp_path / "missing.npy").exit_code == 3
    assert run("fit", counts).exit_code == 2
    assert run("fit", counts, "-k", 1, "-l", "x").exit_code == 1
    long = run("fit", counts, "-k", 1, "-l", 9, "--orientation", "features_first", "-o", "no/m.npz")
    assert long.exit_code == 3
    assert "no folder" in long.output
    long = run("fit", counts, "-k", 1, "-l", 13, "--orientation", "features_first")
    assert "orientation" in long.output
    (tmp_path / "bad.npz").write_bytes(b"nonsense")
    assert run("transform", tmp_path / "bad.npz", counts).exit_code == 3
    turned = tmp_path / "turned.npy"
    np.save(turned, X.T)
    answer = run("transform", model, turned)
    assert answer.exit_code == 3
    assert "set --orientation" in answer.output
    bad = X.copy()
    bad[5, 3] = -1
    np.save(counts, bad)
    answer = run("fit", counts, "-k", 1, "-l", 3, "-o", tmp_path / "m.npz")
    assert (answer.exit_code, "row 5, column 3" in answer.output) == (3, True)
    assert "--negatives clip" in answer.output


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["transform", "none.npz", "counts.npy"], 3, "none.npz: No such file"),
        (["events", "none.npz"], 3, "none.npz"),
        (["report", "none.npz", "--data", "counts.npy"], 3, "none.npz"),
        (["events", "counts.npy"], 3, "not a motifold model"),
        (["info", "counts.npy", "--rate", "fs"], 3, "is no number"),
        (["info", "counts.npy", "--rate", "-1"], 3, "positive"),
        (["info", "."], 3, "with --kind"),
        (["fit", "counts.npy", "-k", "0", "-l", "3"], 2, "-k"),
        (["sweep", "counts.npy", "-k", "1", "-l", "0"], 1, "is no duration"),
        (["reproduce", "songbird", "--data", "none"], 2, "none"),
    ],
)
def test_what_cannot_be_used_is_named(counts, monkeypatch, arguments, code, told):
    monkeypatch.chdir(counts.parent)
    answer = run(*arguments)
    assert (answer.exit_code, told in answer.output) == (code, True), answer.output
    assert "Traceback" not in answer.output


def test_hints_are_in_the_words_of_options(tmp_path):
    np.save(tmp_path / "wide.npy", X[:5])
    assert "--orientation features_first" in ok("info", tmp_path / "wide.npy").output


def test_info_does_not_load(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        long = file.create_dataset("x", (50_000, 200), "f8", chunks=(1000, 200))  # 80 MB
        long[:] = 1.0
        file.create_dataset("huge", (2**27, 200), "f4", chunks=(2**18, 200))
    tracemalloc.start()
    told = json.loads(ok("info", path, "--key", "x", "--json").stdout)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (told["mean"], told["looked_at"]) == (1.0, None)
    assert peak < 40e6
    # Of a hundred gigabytes a part is looked at.
    told = json.loads(ok("info", path, "--key", "huge", "--max-bytes", 10**12, "--json").stdout)
    assert told["time_bins"] == 2**27
    assert told["looked_at"].startswith("1%")


def test_the_help_has_all_options_explained():
    for name in main.list_commands(None):
        command = main.get_command(None, name)
        bare = [p.name for p in command.params if isinstance(p, click.Option) and not p.help]
        assert bare == [], name
    shown = ok("fit", "--help").output
    assert shown.index("--json") < shown.index("How the file is read:") < shown.index("--missing")
    for shell in ("bash_source", "zsh_source", "fish_source"):
        assert shell in ok("--help").output


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "soundfile", None)
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    answer = run("info", tmp_path / "a.wav", "--no-isolate")
    assert answer.exit_code == 4
    assert 'pip install "motifold[io]"' in answer.output


def test_doctor():
    told = json.loads(ok("doctor", "--json").stdout)
    assert told["versions"]["motifold"] == motifold.__version__
    assert told["versions"]["numpy"] == np.__version__
    assert told["problems"] == []
    shown = ok("doctor").stdout
    assert "versions" in shown
    assert shown.endswith("problems\n  none\n")
    # What each extra brings is told of, but for what only a GPU needs.
    assert {"librosa", "panel", "dask"} <= set(told["optional"])


def test_bench_needs_the_sources(monkeypatch, tmp_path):
    monkeypatch.setattr(motifold, "__file__", str(tmp_path / "a" / "b" / "c.py"))
    answer = run("bench")
    assert answer.exit_code == 1
    assert "source checkout" in answer.output


def test_completion():
    answer = CliRunner().invoke(
        main,
        env={"_MOTIFOLD_COMPLETE": "bash_complete", "COMP_WORDS": "motifold tr", "COMP_CWORD": "1"},
        prog_name="motifold",
    )
    assert "transform" in answer.output


def test_sweep(counts, tmp_path):
    out = tmp_path / "s.csv"
    arguments = ["sweep", counts, "-k", "1-2", "-l", "8", "--seeds", 2, "--test", "none"]
    arguments += ["--n-null", 0, "--n-jobs", 1, "--tol", 0.05, "-o", out]
    told = json.loads(ok(*arguments, "--json").stdout)
    assert len(told["runs"]) == 4
    assert out.read_text().count("\n") == 5
    losses = {1: [], 2: []}
    for record in told["runs"]:
        losses[record["n_components"]].append(record["loss"])
    assert max(losses[2]) < min(losses[1])
    assert told["evidence"] == {"n_components": "dissx"}
    shown = ok(*arguments).stdout  # from the finished ones
    assert "4 runs" in shown
    assert "Suggested n_components: no clear answer (by dissx)" in shown
    assert run("sweep", counts, "-k", "two", "-l", 8).exit_code == 2
    assert run("sweep", counts, "-k", "0", "-l", 8).exit_code == 2


def test_a_sound_of_0_1_is_read_as_it_was_then():
    """Its models do not say window and scale where those were the defaults; later ones do."""
    from motifold.cli._shared import options_of_then

    then = {"window": 512, "scale": "log"}
    assert options_of_then({"source": "a.wav", "options": {}}) == then
    assert options_of_then({"source": "a.wav", "options": {"window": 256}})["window"] == 256
    assert options_of_then({"source": "b", "options": {"kind": "flac"}})["scale"] == "log"
    now = {"window": 2048, "hop": 512, "scale": "sqrt", "noise_floor": 0.1}
    assert options_of_then({"source": "a.wav", "options": now}) == now
    assert options_of_then({"source": "a.npy", "options": {"key": "x"}}) == {"key": "x"}
