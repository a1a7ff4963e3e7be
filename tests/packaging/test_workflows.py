"""The workflows cannot run here; what they call can, and what they may do can be read."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(path):
    content = yaml.safe_load(path.read_text())
    assert content["permissions"] == {}, "each job says what it may do"
    return content["jobs"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_step_is_a_target_of_make(path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for job in jobs(path).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        versions = [row["versions"] for row in matrix.get("include", [])]
        for step in job["steps"]:
            if "run" not in step:
                continue
            called = re.fullmatch(r'make "?([a-z-]+?)(\$VERSIONS)?"? PYTHON=python', step["run"])
            assert called, step["run"]
            names = [called[1] + version for version in versions] if called[2] else [called[1]]
            assert names
            assert set(names) <= targets


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_least_permissions_and_pinned_actions(path):
    allowed = [{"contents": "read"}, {"id-token": "write"}]
    for name, job in jobs(path).items():
        assert job["permissions"] in allowed
        assert ("id-token" in job["permissions"]) == (name == "publish")
        assert "timeout-minutes" in job
        for step in job["steps"]:
            if "uses" in step:
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])
                if "checkout" in step["uses"]:
                    assert step["with"]["persist-credentials"] is False


def test_the_classifiers_are_the_versions_that_are_tested():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    told = {line.rpartition(" :: ")[2] for line in project["classifiers"] if ":: 3." in line}
    tested = jobs(ROOT / ".github" / "workflows" / "tests.yml")["test"]["strategy"]["matrix"]
    assert told == set(tested["python"])
    assert min(told, key=lambda version: int(version[2:])) in project["requires-python"]
