"""Plain values, and versions."""

from __future__ import annotations

import json
import platform
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import motifold
from motifold.files import plain_scalar, plain_tree, version_of, versions


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (np.True_, True),
        (3, 3),
        (np.uint8(3), 3),
        (0.1, 0.1),
        (np.float32(0.5), 0.5),
        (Fraction(1, 4), 0.25),
        ("a", "a"),
    ],
)
def test_scalars(value, expected):
    found = plain_scalar(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("value", [[1], (), np.ones(2), {}, object, Path("a"), 1j])
def test_other_things_are_no_scalars(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        plain_scalar(value)


def test_trees():
    record = {
        1: [np.int64(2), (np.nan, np.float32("inf"), 0.5)],
        "path": Path("a/b"),
        "array": np.array([[1, 2], [3, 4]]),
        "nothing": None,
        "yes": np.True_,
    }
    found = plain_tree(record)
    assert found == {
        "1": [2, [None, None, 0.5]],
        "path": str(Path("a/b")),
        "array": [[1, 2], [3, 4]],
        "nothing": None,
        "yes": True,
    }
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_versions():
    assert version_of("numpy") == np.__version__
    assert version_of("no-such-library") is None
    found = versions(["numpy", "no-such-library"])
    assert found == {
        "motifold": motifold.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "no-such-library": None,
        "system": platform.platform(),
    }
