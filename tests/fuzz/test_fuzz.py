"""The fuzzer itself: it sees what goes wrong, forgets no format, and runs."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import engines, mutations, problems, reading, seeds
from fuzz.child import Outcome
from fuzz.record import ROOT, Record, put_section, write_page
from motifold.engines.cuda.twin import Twin
from motifold.io.reading import READERS

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="as on Linux")

ENDS = """
import ctypes, os, time
from fuzz.child import Limits, run

def fail(error):
    raise error

def spin():
    while True:
        pass

small = Limits(cpu=1, wall=600.0, resident=64 << 20)
for task in (
    lambda: None,
    lambda: fail(ValueError("a.npy: it is damaged")),
    lambda: fail(ValueError("something is wrong")),
    lambda: fail(KeyError("a.npy")),
    lambda: ctypes.string_at(0),
    lambda: os._exit(3),
    lambda: bytearray(200 << 20),
    lambda: bytearray(1 << 40),
    spin,
):
    print(run(task, name="a.npy", limits=small).__repr__())
print(run(lambda: time.sleep(600), limits=Limits(wall=0.2)))
"""


def python(code: str) -> list[str]:
    """Run code in a process of its own, which may fork: its lines."""
    path = f"import sys; sys.path[:0] = {[str(ROOT / 'tests'), str(ROOT / 'src')]!r}\n"
    command = [sys.executable, "-W", "ignore", "-c", path + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@linux
def test_every_way_to_go_wrong_is_seen():
    found = [eval(line) for line in python(ENDS)]
    ends = [outcome.end for outcome in found]
    assert ends == ["fine", "refused", *["fault"] * 8]
    said = [outcome.what.split(":")[0] for outcome in found[2:]]
    assert said == [
        "ValueError", "KeyError", "signal SIGSEGV", "the process ended with status 3", "memory",
        "MemoryError", "hang", "hang",
    ]  # fmt: skip
    assert [outcome.crashed for outcome in found].count(True) == 1


FILES = """
import random, tempfile
from pathlib import Path
from fuzz import __main__ as fuzz, reading, seeds
from fuzz.record import Record

with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    record = Record(folder / "faults")
    for kind in ("npy", "csv"):
        for path, options in seeds.MAKERS[kind](folder):
            file = seeds.Seed(kind, path, options)
            for number in range(8):
                fuzz.try_file(record, file, number, folder / "damaged", {})
    print(sorted(record.counts), sum(count.refused for count in record.counts.values()) > 5)
    reading.motifold.io.read = lambda *_, **__: {}["a fault of ours"]
    fuzz.try_file(record, file, 1, folder / "damaged", {})
    (kept,) = (folder / "faults").glob("*.json")
    print([fault["what"] for fault in record.faults.values()], fuzz.replay(kept))
"""


@linux
@pytest.mark.slow
def test_files_are_damaged_read_and_kept():
    *_, first, outcome, last = python(FILES)
    assert first == "['csv', 'npy'] True"
    assert "a fault of ours" in outcome
    assert last == """["KeyError: 'a fault of ours'"] 1"""


def test_no_format_is_forgotten(tmp_path):
    seeds.make_all(tmp_path)
    made = seeds.read_list(tmp_path)
    endings = {seed.path.suffix for files in made.values() for seed in files}
    others = {".hdf5", ".hdf", ".aif"}  # other names of .h5 and .aiff
    assert set(READERS) - endings == others | {".m4a"}  # which nothing here can write
    assert {"model", "checkpoint", "sweep store"} <= set(made)
    for files in made.values():
        for seed in files:
            assert len(seed.files()) >= 1


def test_damage_depends_on_the_seed_alone():
    content = bytes(range(256)) * 4
    made = [mutations.damaged(random.Random(seed), content, content) for seed in range(50)]
    again = [mutations.damaged(random.Random(seed), content, content) for seed in range(50)]
    assert made == again
    assert len(set(made)) > 45


def test_a_damaged_checkpoint_that_changes_the_result_is_a_fault(tmp_path):
    ((path, _),) = seeds.MAKERS["checkpoint"](tmp_path)
    seed = seeds.Seed("checkpoint", path)
    with pytest.raises(AssertionError, match="changed the result"):
        reading.read(seed, path, {"fit": (0, 0)}, forged=False)


@pytest.mark.parametrize("kind", problems.PROPERTIES)
def test_an_ordinary_problem_has_every_property(kind):
    ordinary = {
        "lengths": [12, 5], "N": 3, "K": 2, "L": 3, "boundary": "zero", "seed": 0, "zeros": 0.3,
        "dtype": "float64", "power": 0, "start_power": 0, "penalties": {}, "hidden": "nothing",
        "given": "nothing", "fixed": False, "solver": "hals", "acceleration": "auto",
        "center": False, "normalize": True, "n_init": 1, "max_iter": 400, "tol": 1e-3,
    }  # fmt: skip
    problems.PROPERTIES[kind][0](ordinary)


@pytest.mark.slow
@pytest.mark.parametrize("kind", engines.PROPERTIES)
def test_every_engine_has_every_property(kind):
    engines.PROPERTIES[kind][0](engines.ordinary(kind))


def test_an_engine_that_is_wrong_is_seen(monkeypatch):
    """Sums that are a hundredth off."""
    sums = Twin.sums_H
    monkeypatch.setattr(
        Twin, "sums_H", lambda self, H, g, C, *rest: sums(self, H, g, 1.01 * C, *rest)
    )
    kind = "cuda (twin): steps"
    with pytest.raises(AssertionError, match="J told is off"):
        engines.PROPERTIES[kind][0](engines.ordinary(kind))


def test_the_page_has_what_was_found(tmp_path):
    record = Record(tmp_path / "faults")
    for i in range(3):
        record.add("npy", Outcome("fault", f"KeyError: {i}", "io/npy.py:3"), {"seed": i}, None)
    record.add("npy", Outcome("refused"), {}, None)
    assert "| npy | 4 | 1 | 0 | 3 |" in record.table()
    assert [path.name for path in (tmp_path / "faults").iterdir()] == ["000-npy.json"]
    Record(tmp_path / "faults").add("npy", Outcome("fault", "another run"), {}, None)
    assert (tmp_path / "faults" / "001-npy.json").exists()
    (tmp_path / "page.md").write_text("# Fuzzing\n\n## The last run\n\nof long ago\n")
    write_page(record, 2.0, 17, tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert text.startswith("# Fuzzing\n\n## The last run\n\n2 minutes at commit `")
    assert "of long ago" not in text
    assert ", seed 17.\n" in text
    assert "- npy, 3 times: `KeyError: 0` (io/npy.py:3)" in text


def test_a_section_of_the_page_is_replaced_and_others_stay(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Fuzzing\n\nWhat it does.\n")
    put_section(page, "The last run", "short")
    put_section(page, "The hour", "long")
    put_section(page, "The last run", "short again")
    assert page.read_text() == (
        "# Fuzzing\n\nWhat it does.\n\n## The last run\n\nshort again\n\n## The hour\n\nlong\n"
    )
    put_section(tmp_path / "new.md", "The hour", "long")
    assert (tmp_path / "new.md").read_text() == "## The hour\n\nlong\n"
