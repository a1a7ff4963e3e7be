"""Problems on which the fuzzer once found a fault, tried again in every run of the suite."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import reference
from cases import make_case

from fuzz import engines
from fuzz.problems import PROPERTIES
from motifold import ANLS
from motifold.engines.cpu.statistics import h_statistics
from motifold.engines.cpu.threads import Workers
from motifold.solvers.base import Inner

USUAL: dict[str, Any] = {
    "lengths": [12], "N": 3, "K": 1, "L": 6, "boundary": "zero", "seed": 0, "zeros": 0.3,
    "dtype": "float64", "power": 0, "start_power": 0, "penalties": {}, "hidden": "nothing",
    "given": "nothing", "fixed": False, "solver": "hals", "acceleration": "auto", "center": False,
    "normalize": True, "n_init": 1, "max_iter": 40, "tol": 1e-3,
}  # fmt: skip
FOUND = {
    # A motif that is hidden wherever it occurs: transform cannot find it again.
    "hidden motif": ("transform", {
        "lengths": [14, 2, 2], "N": 2, "K": 4, "L": 10, "boundary": "valid", "seed": 75135,
        "zeros": 0.0, "dtype": "float32", "start_power": 8, "hidden": "few", "given": "both",
        "fixed": True, "solver": "anls", "center": True, "n_init": 3, "max_iter": 5, "tol": 1e-6,
    }),
    # Squares of the data are beyond the largest number: J is infinite, and nothing else is.
    "infinite J": ("scales from 2^−1040 to 2^1000", {
        "lengths": [13], "seed": 524287, "power": 1000, "start_power": 150, "hidden": "few",
        "penalties": {"l1_W": 2.0, "l1_H": 2.0, "ortho_H": 0.5, "l2_W": 0.1}, "given": "motifs",
        "solver": "mu",
    }),
    # An entry that next to nothing determines left the range of float32: a RuntimeWarning.
    "overflow": ("transform", {
        "lengths": [12, 12], "N": 4, "K": 3, "L": 15, "seed": 1837467, "zeros": 0.8,
        "dtype": "float32", "power": 20, "start_power": 8, "hidden": "half", "given": "both",
        "solver": "exact", "center": True, "max_iter": 5,
    }),
    # Refused as too extreme: a fixed motif of 1e-4 in float32.
    "small fixed motif": ("saved and loaded", {
        "seed": 5, "K": 2, "N": 1, "dtype": "float32", "start_power": -14, "given": "motifs",
        "fixed": True,
    }),
    # A motif of 1e-32 with activations of 1e30: beside these every step of others was short.
    "a motif of rounding": ("transform", {
        "lengths": [3, 11], "K": 3, "L": 8, "seed": 3, "zeros": 0.8, "solver": "anls",
        "acceleration": None, "center": True, "n_init": 3, "max_iter": 5,
    }),
    # An infinite loss, of what is observed being zero, was not saved.
    "nothing to explain": ("saved and loaded", {
        "lengths": [5], "N": 4, "K": 2, "L": 4, "seed": 2024, "zeros": 0.8, "power": 20,
        "penalties": {"ortho_H": 0.5, "l2_W": 0.1}, "hidden": "segment", "given":
        "activations", "fixed": True, "solver": "anls", "acceleration": None, "max_iter": 1,
        "tol": 0.0,
    }),
    # J of a perfect fit is rounding, that of transform what its tolerance allows: no fault.
    "a perfect fit": ("transform", {
        "lengths": [11, 2], "N": 1, "K": 5, "L": 7, "seed": 757, "zeros": 0.8, "hidden":
        "columns", "given": "activations", "n_init": 3, "tol": 0.0,
    }),
    # Those of a motif that is zero, 1e300 times the data, overflowed.
    "activations of no motif": ("scales from 2^−1040 to 2^1000", {
        "lengths": [8, 8], "N": 4, "K": 4, "L": 8, "seed": 7408, "zeros": 0.97, "power":
        -1040, "penalties": {"l1_W": 2.0, "l1_H": 0.1, "ortho_W": 0.3}, "hidden": "few",
        "given": "activations", "fixed": True, "solver": "anls", "acceleration": None,
        "normalize": False, "max_iter": 1, "tol": 1e-06,
    }),
    # The same: what rounding does to J is measured by the data, not by the start.
    "a perfect start": ("scales from 2^−1040 to 2^1000", {
        "lengths": [5], "N": 5, "K": 3, "L": 5, "boundary": "valid", "seed": 3004, "dtype":
        "float32", "power": 60, "start_power": -60, "penalties": {"l1_H": 0.1, "l2_W": 0.2},
        "hidden": "segment", "given": "activations", "solver": "blocks", "center": True,
        "max_iter": 5,
    }),
    # Activations of motifs as the loop has them are beyond float32.
    "not normalised": ("scales from 2^−1040 to 2^1000", {
        "lengths": [13], "K": 5, "L": 9, "seed": 291, "zeros": 0.97, "dtype": "float32",
        "power": 120, "start_power": -140, "hidden": "half", "given": "motifs", "solver":
        "exact", "center": True, "normalize": False, "n_init": 3, "max_iter": 5, "tol":
        1e-06,
    }),
    # Data of 1e301 was rounded to see whether it has times of spikes.
    "no list of spikes": ("scales from 2^−1040 to 2^1000", {
        "lengths": [9, 3, 7], "N": 2, "boundary": "valid", "seed": 42, "zeros": 0.8,
        "power": 1000, "start_power": 500, "penalties": {"l1_W": 2.0, "l1_H": 2.0,
        "x_ortho": 0.05}, "hidden": "rows", "given": "motifs", "fixed": True, "solver":
        "exact", "center": True, "normalize": False, "n_init": 3, "tol": 0.0,
    }),
    # Products of such small data with activations lost all but some digits; J rose, and HALS ended
    # at a loss of 0.2 where there is one of 1e-4.
    "products below the smallest number": ("scales from 2^−1040 to 2^1000", {
        "lengths": [4], "N": 5, "K": 5, "L": 2, "seed": 460835, "dtype": "float32", "power":
        -140, "hidden": "columns", "solver": "mu", "center": True, "normalize": False,
        "n_init": 3, "max_iter": 5,
    }),
    # A penalty of 1e30 on motifs beside each other: its slope left the range of float32.
    "an infinite slope": ("scales from 2^−1040 to 2^1000", {
        "lengths": [12], "N": 1, "K": 5, "L": 1, "seed": 3, "zeros": 0.0, "dtype": "float32",
        "power": -120, "penalties": {"ortho_W": 0.3, "l1_H": 0.1}, "hidden": "most",
        "acceleration": None, "center": True, "normalize": False, "max_iter": 1, "tol": 0.0,
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", FOUND)
def test_it_is_mended(name):
    kind, problem = FOUND[name]
    check, _ = PROPERTIES[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        check(USUAL | problem)


SMALLEST: dict[str, Any] = {
    "lengths": [1], "N": 1, "K": 1, "L": 1, "zeros": 0.0, "block": 1, "shards": 1, "hands": 1,
    "kept": False, "steps": 1,
}  # fmt: skip
# Of single engines; the rest of each problem is ``engines.ORDINARY``.
FOUND_ON_ENGINES: dict[str, tuple[str, dict[str, Any]]] = {
    # Blocks have no rows before their own to add to.
    "a single lag on disk": ("cpu, on disk: steps", SMALLEST),
    "the same by another loss": ("cpu, on disk: other losses", SMALLEST | {"beta": 0.0}),
    # MU passed it on: activations below zero.
    "rounding of FFTs below zero": (
        "cpu, by FFT: steps",
        {
            "block": 7,
            "shards": 1,
            "kept": False,
            "lengths": [4, 46, 6],
            "K": 3,
            "L": 5,
            "boundary": "valid",
            "seed": 35888,
            "zeros": 0.8,
            "power": -20,
            "hidden": "few",
            "fixed": True,
            "solver": "mu",
            "steps": 1,
        },
    ),
    # A motif of nothing but the rounding of FFTs: activations of 1e16.
    "a motif of rounding": (
        "cpu, by FFT: steps",
        {
            "tile": 7,
            "block": 17,
            "shards": 4,
            "hands": 1,
            "lengths": [5, 60, 46],
            "N": 5,
            "K": 3,
            "seed": 81551,
            "zeros": 0.97,
        },
    ),
    # One entry is observed, and it is zero: J rose from 0 to 1e-35, as rounding may. Judged by
    # what the model says of all entries it is no fault.
    "next to nothing is observed": (
        "cpu, on disk: steps",
        {
            "tile": 7,
            "block": 6,
            "shards": 1,
            "hands": 2,
            "kept": False,
            "lengths": [25],
            "N": 6,
            "seed": 517,
            "zeros": 0.8,
            "hidden": "segment",
            "fixed": True,
            "sweeps": 2,
            "steps": 3,
        },
    ),
    # The oracle added 1e-16 to denominators of 1e-11, which the package raises to it at least.
    "small denominators": (
        "dask: steps",
        {
            "tile": 7,
            "block": 14,
            "hands": 3,
            "lengths": [56, 5, 9],
            "N": 2,
            "L": 7,
            "seed": 215334,
            "zeros": 0.8,
            "power": -20,
            "solver": "mu",
            "steps": 3,
            "follow": 1.0,
        },
    ),
    # All of X is zero: a step leaves activations of 1e-17, and J told of them is rounding.
    "rounding of what was": (
        "cpu, by FFT: steps",
        {
            "tile": 5,
            "block": 4,
            "hands": 1,
            "lengths": [1],
            "N": 1,
            "K": 4,
            "L": 4,
            "seed": 52425,
            "hidden": "most",
            "fixed": True,
            "sweeps": 3,
            "steps": 1,
        },
    ),
    # Of a cluster, where other shards do: an AssertionError.
    "a shard that hides nothing": (
        "dask: fits",
        {
            "lengths": [21, 24, 1],
            "N": 1,
            "K": 3,
            "L": 14,
            "boundary": "valid",
            "seed": 107,
            "dtype": "float32",
            "penalties": {
                "l1_W": 0.1,
                "l2_W": 0.1,
                "l1_H": 0.1,
                "l2_H": 0.3,
                "x_ortho": 1.0,
                "ortho_H": 20.0,
                "ortho_W": 20.0,
            },
            "hidden": "most",
            "given": "activations",
            "fixed": True,
            "solver": "mu",
            "max_iter": 1,
            "tol": 0.0,
            "tile": 7,
            "block": 20,
            "shards": 4,
            "hands": 3,
            "kept": False,
        },
    ),
    # MU left a motif of 1e-155, whose square is the curvature: a slope divided by it overflows, for
    # NumPy with a warning, and min(0, ∞) is right.
    "a motif that all but vanished": (
        "cuda (twin), streamed: steps",
        {
            "tile": 5,
            "block": 12,
            "shards": 4,
            "lengths": [29],
            "N": 2,
            "K": 3,
            "seed": 3464,
            "zeros": 0.0,
            "power": -20,
            "penalties": {"l1_W": 2.0, "l1_H": 2.0},
            "hidden": "columns",
            "fixed": True,
            "solver": "mu",
            "sweeps": 2,
            "follow": 1.0,
        },
    ),
    # The oracle took the squared error of 1e15 off a J that it had been added to, of 100: what was
    # left was a multiple of 1/16. All engines told the same, and were right.
    "rounding of the oracle": (
        "cuda (twin), streamed: other losses",
        {
            "tile": 6,
            "block": 2,
            "shards": 1,
            "hands": 1,
            "lengths": [58],
            "N": 4,
            "K": 4,
            "L": 6,
            "boundary": "valid",
            "seed": 16812,
            "zeros": 0.0,
            "power": 20,
            "hidden": "half",
            "fixed": True,
            "steps": 1,
            "follow": 1.0,
            "beta": 0.0,
        },
    ),
    # A motif of 1e-31, or of 1e-16 beside others: whether its activations stay is rounding.
    "activations of rounding": (
        "cuda (twin): steps",
        {
            "tile": 6,
            "block": 18,
            "shards": 3,
            "hands": 3,
            "kept": False,
            "lengths": [42, 3],
            "N": 2,
            "K": 4,
            "L": 7,
            "boundary": "valid",
            "seed": 144,
            "zeros": 0.97,
            "power": 20,
            "penalties": {"ortho_H": 0.5, "l2_W": 0.1},
            "sweeps": 2,
            "steps": 3,
            "follow": 0.0,
        },
    ),
    "activations of rounding, by the oracle": (
        "cpu, on disk: steps",
        {
            "tile": 6,
            "block": 19,
            "shards": 5,
            "hands": 3,
            "kept": True,
            "lengths": [51],
            "N": 2,
            "K": 4,
            "L": 7,
            "seed": 195,
            "zeros": 0.97,
            "sweeps": 1,
            "steps": 1,
            "follow": 1.0,
        },
    ),
    # A step made the penalty 10¹⁰ times smaller: slopes keep the rounding of what it was.
    "a penalty that fell": (
        "cuda (twin), streamed: steps",
        {
            "tile": 6,
            "block": 12,
            "shards": 4,
            "hands": 3,
            "kept": False,
            "lengths": [37, 17],
            "N": 5,
            "K": 3,
            "L": 7,
            "power": -20,
            "penalties": {"ortho_H": 0.5, "l2_W": 0.1},
            "sweeps": 3,
            "steps": 2,
            "follow": 0.0,
        },
    ),
    "a penalty that fell, and motifs with it": (
        "cuda (twin): steps",
        {
            "tile": 5,
            "block": 3,
            "shards": 5,
            "hands": 2,
            "kept": False,
            "lengths": [3, 39, 29],
            "N": 2,
            "K": 2,
            "L": 2,
            "seed": 63,
            "zeros": 0.8,
            "power": -20,
            "penalties": {"ortho_H": 0.5, "l2_W": 0.1},
            "steps": 2,
            "follow": 1.0,
        },
    ),
}


@pytest.mark.parametrize("name", FOUND_ON_ENGINES)
def test_it_is_mended_on_the_engine(name):
    kind, problem = FOUND_ON_ENGINES[name]
    engines.PROPERTIES[kind][0](engines.ORDINARY | problem)


def test_exact_activations_are_exact():
    """A property of the suite, with other seeds: 1,000 passes ended 4e-5 above the oracle's J."""
    case = make_case([6, 8], 2, 4, 2, seed=1)
    H = case.H.copy()
    with Workers(1) as workers:
        statistics = h_statistics(case.problem(), case.W, workers)
        ANLS("exact").update_H(H, statistics, case.problem().penalties, Inner())
    best = case.objective(case.W, reference.solve_H(case.X, case.W, *case.arguments))
    np.testing.assert_allclose(case.objective(case.W, H), best, rtol=1e-9)
