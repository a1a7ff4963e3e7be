"""CITATION.cff has what the format demands, and tells of this version and of the paper."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import motifold

ROOT = Path(__file__).parents[2]
# https://github.com/citation-file-format/citation-file-format, schema 1.2.0
KEYS = {
    "abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi",
    "identifiers", "keywords", "license", "license-url", "message", "preferred-citation",
    "references", "repository", "repository-artifact", "repository-code", "title", "type", "url",
    "version",
}  # fmt: skip
PERSON = {"family-names", "given-names", "name-particle", "name-suffix", "orcid", "affiliation"}


@pytest.fixture(scope="module")
def citation() -> dict:
    return yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_required_and_known_keys(citation):
    assert {"cff-version", "message", "title", "authors"} <= set(citation) <= KEYS
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"


def test_every_reference_is_complete(citation):
    for reference in [citation["preferred-citation"], *citation["references"]]:
        assert {"type", "title", "authors", "year"} <= set(reference)
        assert "doi" in reference or "url" in reference
        for author in reference["authors"]:
            assert {"family-names", "given-names"} <= set(author) <= PERSON


def test_it_is_of_this_release(citation):
    assert str(citation["version"]) == Version(motifold.__version__).base_version
    assert citation["license"] == "MIT"


@pytest.mark.skipif(os.environ.get("GITHUB_REF_TYPE") != "tag", reason="this is no release")
def test_a_release_is_named_after_its_version():
    """What the workflow of releases puts on PyPI is what the tag says."""
    assert os.environ["GITHUB_REF_NAME"].removeprefix("v") == motifold.__version__


def test_the_paper_is_preferred(citation):
    assert citation["preferred-citation"]["authors"][0]["family-names"] == "Degleris"
    assert "1907.00139" in citation["preferred-citation"]["url"]
