"""``warmup`` compiles all kernels, after which nothing is left to compile."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from commands import run

# All kernels there are have been used, in both precisions; fits of other kinds and sizes after it
# compile nothing. It prints the kernels that were never used.
PROGRAM = """
import json, sys, warnings
from click.testing import CliRunner
import numpy as np
from scipy.sparse import csr_array
import motifold
from motifold.cli import main
from motifold.kernels import _jit, tally

warnings.simplefilter("ignore")
answer = CliRunner().invoke(main, ["warmup", "--json", "--device", "cpu"])
assert answer.exit_code == 0, answer.output
unused = [one.__name__ for one in _jit.KERNELS if not one.signatures]
before = tally()[0]
X = np.random.default_rng(0).poisson(1.0, (700, 11)).astype(float)
mask = X < 4
for dtype in ("f4", "f8"):
    for data in (X.astype(dtype), csr_array(X.astype(dtype))):
        for parameters in ({}, {"beta_loss": 1}, {"solver": "mu"}, {"n_jobs": 2}):
            model = motifold.CNMF(4, 7, random_state=1, max_iter=9, **parameters)
            model.fit(data).transform(data)
            model.fit(data, mask=mask)
told = json.loads(answer.output)["cpu"]
print(json.dumps({**told, "unused": unused, "after": tally()[0] - before}))
"""


def told(environment):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_all_is_compiled_once(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first = told(environment)
    assert first["unused"] == []
    assert first["compiled"] > 100
    assert first["after"] == 0
    again = told(environment)
    assert again["compiled"] == again["after"] == 0
    assert again["loaded"] > 50
    assert again["seconds"] < first["seconds"]


def test_on_the_twin_of_a_gpu():
    answer = run("warmup", "--device", "cuda:twin", "-k", 2, "-l", 3)
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("cuda:twin: all kernels compiled or loaded in ")
    told = json.loads(run("warmup", "--device", "cuda:twin", "-k", 2, "-l", 3, "--json").output)
    assert told["cuda:twin"]["seconds"] > 0


def test_a_device_that_is_not_there():
    answer = run("warmup", "--device", "moon")
    assert answer.exit_code == 1
    assert "device must be" in answer.output
