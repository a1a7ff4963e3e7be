"""``motifold separate``, from files to files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from drums import RATE, STRIKES, samples, si_sdr, snr, stems

from motifold.cli import main
from motifold.sound import separate

soundfile = pytest.importorskip("soundfile")


def run(*args, code=0):
    answer = CliRunner().invoke(main, [str(arg) for arg in args])
    assert answer.exit_code == code, answer.output
    return answer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drums")
    mixture = sum(stems().values())
    stereo = np.column_stack([mixture, 0.5 * mixture])
    soundfile.write(folder / "drums.wav", stereo, RATE, subtype="PCM_16")
    soundfile.write(folder / "drums.flac", mixture, RATE)
    for name, sound in samples().items():
        (folder / name).mkdir()
        soundfile.write(folder / name / "1.wav", sound, RATE)
        soundfile.write(folder / name / "2.wav", 0.5 * sound, RATE)
    lines = [f"{t},{name}" for name, times in STRIKES.items() for t in times]
    (folder / "score.csv").write_text("\n".join(["time,drum", *lines]))
    return folder


@pytest.mark.parametrize(("source", "ending"), [("drums.wav", "wav"), ("drums.flac", "flac")])
def test_parts_of_a_file(folder, tmp_path, source, ending):
    answer = run("separate", folder / source, "-k", 3, "-l", "150ms", "-o", tmp_path / "p",
                 "--format", ending, "--n-init", 2, "--json", "--n-jobs", 1)  # fmt: skip
    told = json.loads(answer.stdout)
    assert [Path(path).name for path in told["parts"].values()] == [
        f"motif-{k}.{ending}" for k in range(3)
    ]
    given, _ = soundfile.read(folder / source)
    parts = [soundfile.read(path) for path in told["parts"].values()]
    assert {rate for _, rate in parts} == {RATE}
    assert all(part.shape == given.shape for part, _ in parts)
    assert snr(given, [part for part, _ in parts]) > 60


def test_templates_a_score_a_page_and_a_model(folder, tmp_path):
    drums = [folder / name for name in STRIKES]
    out = tmp_path / "p"
    answer = run("separate", folder / "drums.wav", "--templates", *drums, "--score",
                 folder / "score.csv", "-o", out, "--report", tmp_path / "p.html",
                 "--save-model", tmp_path / "m.npz")  # fmt: skip
    assert "kick.wav" in answer.stdout
    for name, stem in stems().items():
        part, _ = soundfile.read(out / f"{name}.wav")
        assert si_sdr(stem, part[:, 0]) > 8
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert page.count("<audio") == 4
    assert page.count("<img") == 2
    again = run("separate", folder / "drums.wav", "--model", tmp_path / "m.npz", "-o", out)
    assert "motif-2.wav" in again.stdout


@pytest.mark.parametrize("place", ["-o", "--report", "--save-model"])
def test_neither_the_sound_nor_a_template_is_replaced(folder, tmp_path, monkeypatch, place):
    """Before anything is done: a part is named after its template."""
    mine, kick = tmp_path / "mine", tmp_path / "mine" / "kick.wav"
    shutil.copytree(folder / "kick", mine)
    (mine / "1.wav").rename(kick)
    before = kick.read_bytes()
    monkeypatch.setattr("motifold.sound.separate", lambda *_, **__: pytest.fail("too late"))
    to = mine if place == "-o" else kick
    sound = folder / "drums.wav"
    for arguments in ((sound, "--templates", kick), (kick, "-k", 1)):
        told = run("separate", *arguments, place, to, code=2).output
        assert "might be replaced" in " ".join(told.split())
    assert kick.read_bytes() == before


def test_wrong_usage(folder, tmp_path):
    file, to = folder / "drums.wav", ("-o", tmp_path / "p")
    assert "How many motifs" in run("separate", file, *to, code=2).output
    assert "One sound" in run("separate", file, folder / "kick", "-k", 1, *to, code=2).output
    told = run("separate", tmp_path / "none.wav", "-k", 1, *to, code=3).output
    assert "no such file" in told
    told = run("separate", file, "--templates", tmp_path / "none", *to, code=3).output
    assert "no such folder" in told
    (tmp_path / "empty").mkdir()
    told = run("separate", file, "--templates", tmp_path / "empty", *to, code=3).output
    assert "no sound file" in told
    assert not (tmp_path / "p").exists()


def test_the_sound_is_not_replaced(folder, tmp_path):
    soundfile.write(tmp_path / "motif-0.wav", sum(stems().values()), RATE)
    before = (tmp_path / "motif-0.wav").read_bytes()
    apart = separate(tmp_path / "motif-0.wav", n_components=1, n_init=1, tol=0.1)
    with pytest.raises(ValueError, match="is the sound itself"):
        apart.write(tmp_path)
    assert (tmp_path / "motif-0.wav").read_bytes() == before


def test_flac_refuses_what_it_cannot_hold(tmp_path):
    loud = np.clip(3 * sum(stems().values()), -4, 4)
    soundfile.write(tmp_path / "a.wav", loud, RATE, subtype="FLOAT")
    answer = run("separate", tmp_path / "a.wav", "-k", 1, "--n-init", 1, "--format", "flac",
                 "-o", tmp_path / "p", code=1)  # fmt: skip
    assert "Write wav" in answer.output
    assert not (tmp_path / "p").exists()


def test_events_as_midi(folder, tmp_path):
    """What was struck when, within 50 ms, as a file that music programs open."""
    mido = pytest.importorskip("mido")
    from motifold.sound import read_score

    drums = [folder / name for name in STRIKES]
    run("separate", folder / "drums.flac", "--templates", *drums, "--fix", "-o", tmp_path / "p",
        "--save-model", tmp_path / "m.npz")  # fmt: skip
    run("events", tmp_path / "m.npz", "--to", "midi", "-o", tmp_path / "e.mid")
    found = read_score(tmp_path / "e.mid")
    for k, times in enumerate(STRIKES.values()):
        notes = np.array(found[str(36 + k)])
        assert all(np.abs(notes - time).min() < 0.05 for time in times)
    struck = [note for note in mido.MidiFile(tmp_path / "e.mid") if note.type == "note_on"]
    assert {note.note for note in struck if note.velocity} == {36 + k for k in range(len(STRIKES))}
    run("events", tmp_path / "m.npz", "--to", "midi", code=2)
    run("events", tmp_path / "m.npz", "--to", "midi", "-o", tmp_path / "e.csv", code=2)
