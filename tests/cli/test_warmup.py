"""``warmup`` compiles all kernels, after which nothing is left to compile."""

from __future__ import annotations

import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run
from numba.core.caching import _CacheLocator

from motifold.kernels import _jit, hals

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
used = [one for one in _jit.KERNELS if one.signatures]
for one in used:  # what it calls was compiled with it, or was loaded as a part of it
    called = [one.py_func.__globals__.get(name) for name in one.py_func.__code__.co_names]
    used += [other for other in called if other in _jit.KERNELS and other not in used]
# log32 is called by an overload, of which the kernels above that were loaded know no name.
unused = [one.__name__ for one in _jit.KERNELS if one not in used and one.__name__ != "log32"]
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


def cache_without(tmp_path: Path, *modules: str) -> list[str]:
    """A copy of the cache that the suite has filled, but for the kernels of some modules.

    To compile all of them once more would take more than a minute. The names of those left out.
    """
    ours = (one for one in _jit.KERNELS if one.py_func.__module__.startswith("motifold."))
    (own, *others) = {one.stats.cache_path for one in ours}  # tests have kernels of their own
    assert not others
    copy = tmp_path / _CacheLocator.get_suitable_cache_subpath(inspect.getfile(hals))
    shutil.copytree(own, copy, ignore=shutil.ignore_patterns("*.pyc"))
    gone = [path for module in modules for path in copy.glob(f"{module}.*")]
    for path in gone:
        path.unlink()
    return [path.name for path in gone if path.suffix == ".nbi"]


@pytest.mark.slow
def test_all_is_compiled_once(tmp_path):
    missing = cache_without(tmp_path, "hidden", "pursuit")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first = told(environment)
    assert first["unused"] == []
    assert first["compiled"] >= max(len(missing), 1)
    assert first["compiled"] + first["loaded"] > 50
    assert first["after"] == 0
    again = told(environment)
    assert again["compiled"] == again["after"] == 0
    assert again["loaded"] > 50


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
