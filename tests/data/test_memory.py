"""Limits of memory: how they are said, and what activations leave of them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from motifold.data.memory import bytes_of, machine_bytes, room_for_rows


@pytest.mark.parametrize(
    ("said", "expected"),
    [("4GB", 4 * 10**9), ("512 MiB", 2**29), ("1.5g", 15 * 10**8), (".5 kB", 500), (700.0, 700)],
)
def test_sizes(said, expected):
    assert bytes_of(said) == expected


@pytest.mark.parametrize(
    "said", ["", "GB", "4 apples", "-1GB", "1e999", 0, 4, -5.0, float("nan"), True]
)
def test_what_is_no_size(said):
    with pytest.raises(ValueError, match="memory_limit must be a size such as"):
        bytes_of(said)


def test_without_a_word_it_is_half_of_the_machine():
    assert bytes_of(None) == machine_bytes() // 2
    assert bytes_of(np.inf) > machine_bytes()


def test_activations_come_first():
    """15 arrays of them in single precision; the rest is for rows."""
    assert room_for_rows("100MB", 100_000, 5, 4) == 10**8 - 15 * 100_000 * 5 * 4
    with pytest.raises(ValueError, match=r"take up to 30 MB themselves\. Allow 34 MB or more"):
        room_for_rows("30MB", 100_000, 5, 4)
    assert room_for_rows(None, 10**12, 5, 4) > 0  # nobody has asked for a limit


@pytest.mark.parametrize("T", [1000, 10**5, 10**6, 3_333_333, 48_100_000, 10**9])
def test_the_limit_that_is_advised_is_enough(T):
    with pytest.raises(ValueError, match="Allow") as refused:
        room_for_rows("1KB", T, 5, 4)
    advised = re.search(r"Allow ([\d.]+ [MG]B)", str(refused.value))
    assert room_for_rows(advised[1], T, 5, 4) > 0
