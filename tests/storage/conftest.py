"""A small model, and its file."""

from __future__ import annotations

import copy

import pytest
from model_files import fitted


@pytest.fixture(scope="module")
def original():
    return fitted(lengths=[25, 15])


@pytest.fixture
def model(original):
    return copy.deepcopy(original)


@pytest.fixture
def path(original, tmp_path):
    """A good model file."""
    original.save(tmp_path / "model.npz")
    return tmp_path / "model.npz"
