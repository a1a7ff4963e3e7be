"""The hypothesis tests of the suite, with new seeds."""

from __future__ import annotations

import random
import re
import subprocess
import sys

from fuzz.child import Outcome
from fuzz.record import ROOT, Record

KIND = "properties of the suite"
_AT_ONCE = 12
_PYTEST = [
    sys.executable,
    "-m",
    "pytest",
    "-p",
    "no:cacheprovider",
    "-m",
    "hypothesis and not slow",
]


def collect() -> list[str]:
    """The ids of the tests."""
    shown = subprocess.run(
        [*_PYTEST, "--collect-only", str(ROOT / "tests")],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [line for line in shown.stdout.splitlines() if "::" in line]


def try_some(record: Record, tests: list[str], rng: random.Random, seconds: float) -> None:
    """Some of the tests with a new seed; whatever fails is a fault."""
    seed, chosen = rng.randrange(2**32), rng.sample(tests, min(_AT_ONCE, len(tests)))
    options = ["--hypothesis-profile=fuzz", f"--hypothesis-seed={seed}"]
    command = [*_PYTEST, *options, "--hypothesis-show-statistics", "-rf", *chosen]
    case = {"seed": seed, "tests": chosen}
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return  # the minutes are over
    examples = [int(n) for n in re.findall(r"(\d+) passing", done.stdout)]
    for failed in re.findall(r"^FAILED (.*)$", done.stdout, re.MULTILINE):
        record.add(KIND, Outcome("fault", failed), case, None)
    if done.returncode not in (0, 1):
        record.add(KIND, Outcome("fault", f"pytest ended with {done.returncode}"), case, None)
    for _ in range(sum(examples)):
        record.add(KIND, Outcome("fine"), {}, None)
