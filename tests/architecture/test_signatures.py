"""The public functions as one: the same words by name, and in the same order."""

from __future__ import annotations

import importlib
import inspect

import pytest

ROOMS = (
    "motifold", "motifold.exports", "motifold.findings", "motifold.io", "motifold.plots",
    "motifold.report", "motifold.sound", "motifold.streaming",
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
