"""``python -m fuzz``: see the package."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from fuzz import child, engines, problems, reading, suite
from fuzz.mutations import damaged, forged
from fuzz.record import LAST, PAGE, ROOT, Record, write_page
from fuzz.seeds import Seed, make_all, read_list

ARCHIVES = {"npz", "model", "checkpoint", "sweep store"}
# Of the time; what a share leaves over goes to the next.
SHARES = {"files": 0.4, "fits": 0.2, "engines": 0.25, "suite": 0.15}
_FITS = child.Limits(cpu=120, wall=600.0)  # some make two


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="of everything; random if not given")
    parser.add_argument("--faults", type=Path, default=ROOT / "fuzz_faults")
    parser.add_argument("--only", choices=SHARES, help="all the time for one part")
    parser.add_argument("--replay", type=Path, help="a fault that was kept")
    parser.add_argument("--page", type=Path, help="write another page than that of the docs")
    parser.add_argument("--section", help=f'of the page, if not "{LAST}"')
    chosen = parser.parse_args(arguments)
    if chosen.replay is not None:
        return replay(chosen.replay)
    first = chosen.seed if chosen.seed is not None else random.SystemRandom().randrange(2**32)
    print(f"seed {first}")
    rng, record = random.Random(first), Record(chosen.faults)
    parts = {"files": try_files, "fits": try_fits, "engines": try_engines, "suite": try_suite}
    shares = SHARES if chosen.only is None else {chosen.only: 1.0}
    end = time.monotonic()
    for part, share in shares.items():
        end += 60 * chosen.minutes * share
        parts[part](record, rng, end)
    # A run of one part alone is no last run.
    if chosen.only is None or chosen.page is not None or chosen.section is not None:
        page, section = chosen.page or PAGE, chosen.section or LAST
        write_page(record, chosen.minutes, first, page, section)
    print(record.table(), record.list_faults() or "No faults.", sep="\n\n")
    return 1 if record.faults else 0


# --- files ------------------------------------------------------------------------------------


def try_files(record: Record, rng: random.Random, end: float) -> None:
    """Kind after kind, a new file each, until the time is over."""
    with tempfile.TemporaryDirectory(prefix="motifold-fuzz-") as folder:
        seeds, whole = whole_files(Path(folder))
        rounds = 0
        while time.monotonic() < end or not rounds:
            for files in seeds.values():
                number = rng.randrange(2**32)
                try_file(record, rng.choice(files), number, Path(folder) / "damaged", whole)
            rounds += 1


def whole_files(folder: Path) -> tuple[dict[str, list[Seed]], dict[str, Any]]:
    made = child.run(lambda: make_all(folder), limits=_FITS)
    if made.end != "fine":
        raise RuntimeError(f"the whole files could not be made: {made}")
    seeds = read_list(folder)
    reading.preload()
    whole = reading.whole_results()  # it compiles the kernels, too, which all children then have
    for files in seeds.values():
        for file in files:
            copy = copied(file, folder / "copy")
            outcome = child.run(lambda f=file, c=copy: reading.read(f, c, whole, False))
            if outcome.end != "fine":
                raise RuntimeError(f"{file.path} is whole, and: {outcome}")
    return seeds, whole


def try_file(
    record: Record, file: Seed, number: int, folder: Path, whole: dict[str, Any]
) -> child.Outcome:
    """Damage a copy of the file by the seed ``number``, read it, and note what became of it."""
    copy = copied(file, folder)
    as_forged = damage(Seed(file.kind, copy), random.Random(number))
    kept = copied(Seed(file.kind, copy), folder.with_name("kept"))  # reading may change it
    outcome = child.run(
        lambda: reading.read(file, copy, whole, as_forged), name=name_of(file, copy)
    )
    if outcome.crashed and reading.can_isolate(file):
        again = child.run(lambda: reading.read_isolated(file, copy), name=copy.name)
        if again.end != "fault":
            outcome = child.Outcome("contained", outcome.what)
    case = {"seed": number, "options": file.options, "file": copy.name, "forged": as_forged}
    record.add(file.kind, outcome, case, kept)
    return outcome


def name_of(file: Seed, copy: Path) -> str:
    """What an error must name; a sweep may name the file of the factors, beside its own."""
    return copy.stem if file.kind == "sweep store" else copy.name


def damage(file: Seed, rng: random.Random) -> bool:
    """Damage one of its files; whether that was a forgery, with checksums that are right."""
    files = file.files()
    target = rng.choice(files)
    other = rng.choice(files).read_bytes() or b"\0"
    content = target.read_bytes()
    if file.kind in ARCHIVES and target.suffix != ".jsonl" and rng.random() < 0.5:
        target.write_bytes(forged(rng, content, other))
        return True
    target.write_bytes(damaged(rng, content, other))
    return False


def copied(file: Seed, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    copy = folder / file.path.name
    if file.path.is_dir():
        shutil.copytree(file.path, copy)
        return copy
    shutil.copy(file.path, copy)
    beside = file.path.with_name(file.path.name + ".fits")
    if beside.is_dir():
        shutil.copytree(beside, folder / beside.name)
    return copy


# --- fits -------------------------------------------------------------------------------------


def try_fits(record: Record, rng: random.Random, end: float, batch: int = 25) -> None:
    """Property after property, a batch of problems each, until the time is over."""
    problems.warm_up()
    try_properties(record, problems.PROPERTIES, rng, end, batch)


def try_engines(record: Record, rng: random.Random, end: float, batch: int = 10) -> None:
    """The same on every engine, against the oracle."""
    engines.warm_up()
    try_properties(record, engines.PROPERTIES, rng, end, batch)


def try_properties(
    record: Record, properties: engines.Properties, rng: random.Random, end: float, batch: int
) -> None:
    """A batch of each in turn; the first round is whole."""
    rounds = 0
    while time.monotonic() < end or not rounds:
        for kind in properties:
            if rounds and time.monotonic() >= end:
                return
            try_property(record, properties, kind, rng.randrange(2**32), batch)
        rounds += 1


def try_property(
    record: Record, properties: engines.Properties, kind: str, number: int, batch: int
) -> None:
    """Problems that hypothesis draws; each in a process of its own. All faults are kept."""
    check, strategy = properties[kind]

    @seed(number)
    @settings(
        max_examples=batch,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def examples(problem: problems.Problem) -> None:
        outcome = child.run(lambda: check(problem), limits=_FITS)
        record.add(kind, outcome, {"problem": problem}, None)

    examples()


def try_suite(record: Record, rng: random.Random, end: float) -> None:
    tests = suite.collect()
    while time.monotonic() < end:
        suite.try_some(record, tests, rng, max(60.0, end - time.monotonic()))


# --- once more --------------------------------------------------------------------------------


def replay(path: Path) -> int:
    """Try a fault again; 0 if it is gone."""
    told = json.loads(path.read_text())
    if "problem" in told:
        check = (problems.PROPERTIES | engines.PROPERTIES)[told["kind"]][0]
        outcome = child.run(lambda: check(told["problem"]), limits=_FITS)
    elif "tests" in told:
        print(f"pytest --hypothesis-profile=fuzz --hypothesis-seed={told['seed']}", *told["tests"])
        return 1
    else:
        outcome = replay_file(path, told)
    print(outcome)
    return int(outcome.end == "fault")


def replay_file(path: Path, told: dict[str, Any]) -> child.Outcome:
    with tempfile.TemporaryDirectory(prefix="motifold-fuzz-") as folder:
        kept = Seed(told["kind"], path.with_suffix(".case") / told["file"], told["options"])
        copy = copied(kept, Path(folder) / "damaged")
        goes_on = told["kind"] in ("checkpoint", "sweep store")
        whole = reading.whole_results() if goes_on else {}
        return child.run(
            lambda: reading.read(kept, copy, whole, told["forged"]), name=name_of(kept, copy)
        )


if __name__ == "__main__":
    sys.exit(main())
