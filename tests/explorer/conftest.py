"""A fit to explore."""

from __future__ import annotations

import pytest
from browser import browser  # noqa: F401

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.explorer.session import Session
from motifold.explorer.subject import Subject

RATE = 50.0


@pytest.fixture(scope="session")
def X():
    return make_sequences(3000, 30, 3, 12, activation_probability=0.01, random_state=0).X


@pytest.fixture(scope="session")
def model(X):
    return CNMF(3, 12, random_state=0).fit(X)


@pytest.fixture(scope="session")
def subject(model, X):
    return Subject.of(model, X, RATE)


@pytest.fixture
def session(subject, tmp_path):
    return Session(subject, tmp_path / "model.npz.explore.json")
