"""The public functions as one: the same words by name, in the same order, and those of 0.1."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

ROOMS = (
    "motifold", "motifold.datasets", "motifold.exports", "motifold.findings", "motifold.io",
    "motifold.matching", "motifold.plots", "motifold.prepare", "motifold.report",
    "motifold.reproduce", "motifold.solvers", "motifold.sound", "motifold.streaming",
)  # fmt: skip
# What says how the data lies or is gone through, in whichever function: by name alone.
BY_NAME = {
    "rate",
    "lengths",
    "segments",
    "mask",
    "starts",
    "alpha",
    "fdr",
    "random_state",
    "n_jobs",
}
SUBJECTS = {"mark_junctions": {"segments"}}  # not how it lies, but what it is about
# Who comes before whom, where a function takes both by position.
ORDER = ("model", "X", "activations")
# Every name of the reference of 0.1, and what it took: that of a function as it was called there.
OF_0_1 = (Path(__file__).parent / "names_of_0_1.txt").read_text().splitlines()
# Those whose order is another now. The old one is understood, and tested beside the function; but
# nobody gives the eleventh option of a reader by place.
OTHER_ORDER = {
    "motifold.event_triggered_average", "motifold.explained_power", "motifold.sequenciness",
    "motifold.plots.plot_raster", "motifold.plots.plot_reconstruction", "motifold.io.Options",
}  # fmt: skip


def functions():
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isfunction(found):
                yield pytest.param(found, id=f"{room}.{name}")


@pytest.mark.parametrize("function", list(functions()))
def test_signature(function):
    parameters = inspect.signature(function).parameters.values()
    by_place = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    assert not (BY_NAME & {*by_place}) - SUBJECTS.get(function.__name__, set())
    assert [name for name in by_place if name in ORDER] == [
        name for name in ORDER if name in by_place
    ]


@pytest.mark.parametrize("line", OF_0_1)
def test_what_0_1_had_is_there(line):
    name, _, given = line.removesuffix(")").partition("(")
    found = pkgutil.resolve_name(name)
    if "(" not in line:
        return
    then = inspect.signature(eval(f"lambda {given}: 0")).parameters
    now = {k: v for k, v in inspect.signature(found).parameters.items() if k != "self"}
    assert set(then) <= set(now)
    if name not in OTHER_ORDER:
        by_place = [one.name for one in then.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
        assert list(now)[: len(by_place)] == by_place
        assert not [one for one in by_place if now[one].kind is inspect.Parameter.KEYWORD_ONLY]
