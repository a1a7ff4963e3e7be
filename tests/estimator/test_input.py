"""Bad input is refused by name and place; odd input works; nothing given is ever changed."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold import CNMF

RNG = np.random.default_rng(0)
GOOD = RNG.random((30, 4))


def spoilt(value, row=3, column=2, dtype=float):
    X = GOOD.astype(dtype)
    X[row, column] = value
    return X


def test_seconds_are_no_lags():
    with pytest.raises(ValueError, match=r"n_lags counts time bins.*recording\.bins\('0\.4s'\)"):
        CNMF(2, "0.4s").fit(GOOD)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (spoilt(np.nan), ValueError, r"X contains NaN, first at row 3, column 2.*mask"),
        (spoilt(np.inf), ValueError, r"infinity.*row 3, column 2"),
        (spoilt(-np.inf), ValueError, r"infinity.*row 3, column 2"),
        (spoilt(-0.5), ValueError, r"Negative values in data.*row 3, column 2: -0.5"),
        (np.empty((0, 4)), ValueError, r"0 sample"),
        (np.empty((4, 0)), ValueError, r"0 feature"),
        (GOOD[0], ValueError, r"Expected 2D array, got 1D array instead: X is \(time, features\)"),
        ("spikes.npy", TypeError, r"name of a file, 'spikes.npy'.*motifold.io.read"),
        (Path("spikes.npy"), TypeError, r"name of a file, 'spikes.npy'"),
        (GOOD[None], ValueError, r"dim 3|3 dim"),
        (3.0, ValueError, r"2D array, got scalar"),
        (GOOD + 0j, ValueError, r"Complex data not supported.*np\.abs\(X\)"),
        (spoilt("abc", dtype=object), ValueError, r"row 3, column 2: 'abc'"),
        (spoilt(None, dtype=object), (ValueError, TypeError), r"row 3, column 2"),
        (spoilt({}, dtype=object), TypeError, r"row 3, column 2: {}"),
        (GOOD.astype(str), TypeError, r"text.*row 0, column 0"),
        (GOOD.astype("datetime64[s]"), TypeError, r"dates.*row 0, column 0"),
        ([["a", "b"], ["c", "d"]], ValueError, r"row 0, column 0: 'a'"),
        ([[1, 2], [3]], ValueError, r"inhomogeneous|sequence"),
        (scipy.sparse.csr_array(spoilt(np.nan)), ValueError, r"X contains NaN.*row 3, column 2"),
        (scipy.sparse.coo_array(spoilt(np.inf)), ValueError, r"infinity.*row 3, column 2"),
        (scipy.sparse.csc_array(spoilt(-0.5)), ValueError, r"Negative.*row 3, column 2: -0.5"),
        (scipy.sparse.csr_array(GOOD + 0j), ValueError, r"Complex data not supported"),
        (scipy.sparse.coo_array(GOOD[0]), ValueError, r"Expected 2D array, got 1D sparse"),
        (scipy.sparse.csr_array((0, 4)), ValueError, r"0 sample"),
        (scipy.sparse.csr_array((4, 0)), ValueError, r"0 feature"),
        (
            [GOOD, scipy.sparse.csr_array(spoilt(np.nan))],
            ValueError,
            r"X\[1\] contains NaN.*row 3, column 2",
        ),
        ([scipy.sparse.csr_array(GOOD), GOOD[:, :3]], ValueError, r"X\[0\] has 4, X\[1\] has 3"),
        ([GOOD, spoilt(np.nan)], ValueError, r"X\[1\] contains NaN.*row 3, column 2"),
        ([GOOD, GOOD[:, :3]], ValueError, r"X\[0\] has 4, X\[1\] has 3"),
        ([GOOD, np.empty((0, 4))], ValueError, r"X\[1\].*0 sample"),
        ([], ValueError, r"1D|empty"),
    ],
    ids=lambda value: None if isinstance(value, np.ndarray) else str(value)[:30],
)
def test_bad_data(X, error, message):
    model = CNMF(2, 3, random_state=0).fit(GOOD)
    before = dict(vars(model))
    with pytest.raises(error, match=message):
        model.fit(X)
    assert vars(model) == before, "nothing may be half-changed"
    with pytest.raises(error, match=message):
        model.transform(X)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"lengths": [10, 10]}, ValueError, r"add up to 20, the data has 30"),
        ({"lengths": [30, 0]}, ValueError, r"lengths\[1\] = 0"),
        ({"lengths": [15.0, 15.0]}, TypeError, r"whole numbers"),
        ({"lengths": "abc"}, TypeError, r"whole numbers"),
        ({"segments": [1, 2]}, ValueError, r"one id per row, shape \(30,\)"),
        ({"segments": [0.0] * 29 + [np.nan]}, ValueError, r"no id at row 29"),
        ({"lengths": [30], "segments": [0] * 30}, ValueError, r"not both"),
        ({"components_init": np.ones((2, 3))}, ValueError, r"\(2, 3, 4\), not \(2, 3\)"),
        ({"components_init": -np.ones((2, 3, 4))}, ValueError, r"components_init\[0, 0, 0\] = -1"),
        ({"components_init": np.full((2, 3, 4), "a")}, TypeError, r"components_init"),
        ({"activations_init": np.full((30, 2), np.nan)}, ValueError, r"activations_init\[0, 0\]"),
        ({"activations_init": np.ones((29, 2))}, ValueError, r"\(30, 2\), not \(29, 2\)"),
    ],
    ids=str,
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        CNMF(2, 3).fit(GOOD, **arguments)


def test_a_list_of_segments_takes_no_lengths():
    with pytest.raises(ValueError, match="list of segments already"):
        CNMF(2, 3).fit([GOOD, GOOD], lengths=[30, 30])


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": 2.5},
        {"n_lags": 0},
        {"solver": "halz"},
        {"init": "magic"},
        {"l1_W": -1},
        {"l2_H": "a"},
        {"boundary": "periodic"},
        {"max_iter": 0},
        {"max_time": 0},
        {"tol": -1},
        {"acceleration": "warp"},
        {"n_init": 0},
        {"callback": 3},
        {"random_state": "a"},
        {"n_jobs": 1.5},
    ],
    ids=str,
)
def test_bad_parameters_are_named(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of CNMF must be"):
        CNMF(**{"n_components": 2, "n_lags": 3, **parameters}).fit(GOOD)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8, np.uint64])
def test_whole_numbers_of_numpy_are_whole_numbers(kind):
    """As a grid of parameters has them; narrow ones are not computed with."""
    X = np.random.default_rng(0).random((300, 20))
    options = {"n_components": 20, "n_lags": 100, "n_init": 2, "n_jobs": 1, "max_iter": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = CNMF(**options, random_state=0, tol=0).fit(X)
        given = {name: kind(number) for name, number in options.items()}
        model = CNMF(**given, random_state=kind(0), tol=0).fit(X)
        np.testing.assert_array_equal(model.components_, plain.components_)
        np.testing.assert_array_equal(model.transform(X[:200]), plain.transform(X[:200]))
        model.partial_fit(X[:200])
    assert model.estimate(X).n_samples == 300


@pytest.mark.parametrize(
    "name", ["n_components", "n_lags", "n_init", "n_jobs", "max_time", "tol", "l1_W", "ortho_H"]
)
def test_numbers_beyond_arrays_and_clocks_are_named(name):
    with pytest.raises(ValueError, match=f"{name} is a number of 401 digits"):
        CNMF(**({"n_components": 2, "n_lags": 3} | {name: 10**400})).fit(GOOD)


def check_sane(model: CNMF, X) -> None:
    for values in (model.components_, model.activations_, model.scales_, model.history_.loss):
        assert np.isfinite(values).all()
        assert np.min(values) >= 0
    assert np.isfinite([model.loss_, model.reconstruction_err_, model.kkt_residual_]).all()
    activations = model.transform(X)
    assert np.isfinite(activations).all()
    assert activations.min() >= 0


ODD = {
    "all zeros": np.zeros((30, 4)),
    "zero rows": np.where(np.arange(30)[:, None] % 2, GOOD, 0),
    "zero columns": GOOD * [1, 0, 1, 0],
    "constant": np.full((30, 4), 3.0),
    "one row": GOOD[:1],
    "one entry": GOOD[:1, :1],
    "one column": GOOD[:, :1],
    "shorter than a motif": GOOD[:3],
    "a single spike": np.eye(30, 4) * 7,
    "1e150": GOOD * 1e150,
    "1e-150": GOOD * 1e-150,
    "1e300": GOOD * 1e300,
    "1e-300": GOOD * 1e-300,
    "subnormal": GOOD * 1e-310,
    "smallest": np.full((30, 4), 5e-324),
    "wild": GOOD * 10.0 ** RNG.integers(-150, 150, GOOD.shape),
    "float32 1e30": (GOOD * 1e30).astype(np.float32),
    "float32 1e-30": (GOOD * 1e-30).astype(np.float32),
    "float32 subnormal": (GOOD * 1e-40).astype(np.float32),
}


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
@pytest.mark.parametrize("acceleration", ["auto", None])
@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("penalties", [{}, {"l1_W": 0.1, "l2_W": 0.1, "l1_H": 0.1, "l2_H": 0.1}])
def test_odd_data_gives_finite_nonnegative_factors(name, acceleration, solver, penalties):
    """And no warnings but ours: pytest turns any other into an error."""
    X = ODD[name]
    model = CNMF(
        6, 5, solver=solver, acceleration=acceleration, random_state=0, max_iter=60, **penalties
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "All motifs are empty", UserWarning)
        model.fit(X)
        check_sane(model, X)


@pytest.mark.parametrize("factor", [2.0**500, 2.0**-500])
def test_the_scale_of_the_data_does_not_matter(factor):
    plain = CNMF(2, 3, random_state=0).fit(GOOD)
    extreme = CNMF(2, 3, random_state=0).fit(GOOD * factor)
    np.testing.assert_allclose(extreme.components_, plain.components_, atol=1e-8)
    np.testing.assert_allclose(extreme.activations_ / factor, plain.activations_, atol=1e-8)
    np.testing.assert_allclose(extreme.loss_, plain.loss_, rtol=1e-9)
    np.testing.assert_allclose(extreme.score(GOOD * factor), plain.score(GOOD), rtol=1e-9)


@pytest.mark.parametrize("boundary", ["zero", "valid"])
def test_a_segment_shorter_than_a_motif(boundary):
    X = [GOOD, GOOD[:2], GOOD[:4]]
    model = CNMF(2, 6, boundary=boundary, random_state=0).fit(X)
    check_sane(model, X)
    if boundary == "valid":
        assert not model.activations_[30:].any()


@pytest.mark.parametrize("solver", ["hals", "anls", "mu"])
def test_a_motif_that_dies_keeps_norm_zero_and_comes_last(solver):
    X = np.outer(np.eye(40)[5] + np.eye(40)[20], [1.0, 2.0])
    start = np.zeros((3, 2, 2))
    start[1] = 1.0
    model = CNMF(3, 2, solver=solver, random_state=0, max_iter=500)
    model.fit(X, components_init=start, activations_init=np.ones((40, 3)) * [0, 1, 0])
    check_sane(model, X)
    norms = np.linalg.norm(model.components_, axis=(1, 2))
    np.testing.assert_allclose(norms, [0, 1, 0])
    assert not model.activations_[:, [0, 2]].any()
    penalised = CNMF(4, 3, l1_W=1e6, l1_H=1e6, random_state=0)
    with pytest.warns(UserWarning, match="All motifs are empty"):
        penalised.fit(GOOD)
    check_sane(penalised, GOOD)
    assert not penalised.components_.any()


def variants():
    read_only = GOOD.copy()
    read_only.flags.writeable = False
    return {
        "fortran": np.asfortranarray(GOOD),
        "strided": np.repeat(GOOD, 2, axis=0)[::2],
        "read-only": read_only,
        "list": GOOD.tolist(),
        "pandas": pd.DataFrame(GOOD, columns=list("abcd")),
        "polars": pl.DataFrame(GOOD, schema=list("abcd")),
        "big-endian": GOOD.astype(">f8"),
    }


@pytest.mark.parametrize("name", variants())
def test_the_same_numbers_in_any_container(name):
    X = variants()[name]
    plain = CNMF(2, 3, random_state=0).fit(GOOD)
    model = CNMF(2, 3, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-9)
    if name in ("pandas", "polars"):
        assert model.feature_names_in_.tolist() == list("abcd")
        with pytest.raises(ValueError, match="feature names"):
            model.transform(X[list("dcba")])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, bool, np.float16])
def test_other_numbers_are_converted(dtype):
    X = (GOOD * 10).astype(dtype)
    model = CNMF(2, 3, random_state=0).fit(X)
    assert model.components_.dtype == np.float64
    np.testing.assert_array_equal(
        model.components_, CNMF(2, 3, random_state=0).fit(X.astype(float)).components_
    )


def test_memory_mapped_and_unchanged(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, GOOD)
    X = np.load(path, mmap_mode="r")
    model = CNMF(2, 3, random_state=0).fit(X)
    np.testing.assert_array_equal(
        model.components_, CNMF(2, 3, random_state=0).fit(GOOD).components_
    )
    np.testing.assert_array_equal(np.load(path), GOOD)


def test_given_arrays_are_never_changed():
    X, W, H = GOOD.copy(), RNG.random((2, 3, 4)), RNG.random((30, 2))
    copies = X.copy(), W.copy(), H.copy()
    for acceleration in ("auto", None):
        model = CNMF(2, 3, acceleration=acceleration, boundary="valid", max_iter=200)
        model.fit(X, components_init=W, activations_init=H)
        model.transform(X)
        model.inverse_transform(H)
        for array, copy in zip((X, W, H), copies, strict=True):
            np.testing.assert_array_equal(array, copy)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [{"solver": "hals"}, {"solver": "anls"}, {"solver": "mu"}, {"beta_loss": "kullback-leibler"}],
    ids=str,
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nor_are_masks_supports_and_segments(options, dtype):
    """Also by what goes on from a fit; float32 is not copied to compute with it."""
    rng = np.random.default_rng(3)
    given = {
        "X": rng.random((60, 4)).astype(dtype),
        "mask": rng.random((60, 4)) > 0.1,
        "lengths": np.array([40, 20]),
        "components_init": rng.random((2, 3, 4)).astype(dtype),
        "activations_init": rng.random((60, 2)).astype(dtype),
    }
    given["activation_support"] = rng.random((60, 2)) > 0.2
    copies = {name: array.copy() for name, array in given.items()}
    model = CNMF(2, 3, random_state=0, max_iter=5, **options)
    model.fit(**given)
    again = {name: given[name] for name in ("X", "mask", "lengths")}
    model.transform(**again)
    model.score(**again)
    motifold.find_events(model, X=given["X"], mask=given["mask"])
    if "beta_loss" not in options:
        CNMF(2, 3, random_state=0, **options).partial_fit(given["X"])
    for name, array in given.items():
        np.testing.assert_array_equal(array, copies[name], err_msg=name)


def test_nested_lists_of_numbers_are_one_matrix_and_of_matrices_are_segments():
    one = CNMF(2, 3, random_state=0).fit(GOOD.tolist())
    assert one.activations_.shape == (30, 2)
    two = CNMF(2, 3, random_state=0).fit([GOOD.tolist(), GOOD.tolist()])
    assert two.activations_.shape == (60, 2)


@pytest.mark.parametrize("dtype", [np.uint64, np.int64])
def test_lengths_do_not_wrap_around(dtype):
    """Their sum modulo 2⁶⁴ is the number of rows."""
    step = 2**63 if dtype is np.uint64 else 2**62
    parts = [step] * (2**64 // step) + [20]
    with pytest.raises(ValueError, match=f"add up to {2**64 + 20}"):
        CNMF(1, 2).fit(np.ones((20, 3)), lengths=np.array(parts, dtype))
    CNMF(1, 2).fit(np.ones((20, 3)), lengths=np.array([12, 8], dtype))


def test_segments_of_no_name():
    ids = np.ma.masked_array(np.zeros(20, int), np.arange(20) == 7)
    with pytest.raises(ValueError, match="no id at row 7"):
        CNMF(1, 2).fit(np.ones((20, 3)), segments=ids)


def test_a_spectrogram_that_lies_on_its_side_is_told():
    """librosa's way, (frequency, time); nothing is turned."""
    X = np.random.default_rng(0).random((257, 40))
    with pytest.warns(UserWarning, match=r"transform of 512 samples.*X\.T"):
        model = CNMF(2, 3, max_iter=2, tol=0, random_state=0).fit(X)
    assert model.n_features_in_ == 40
    for upright in (X.T, X[:256], np.ones((129, 257)), [X, X]):
        CNMF(2, 3, max_iter=2, tol=0, random_state=0).fit(upright)


def test_a_recording_that_lies_on_its_side_is_told():
    """More columns than rows, and too few rows for the motifs."""
    X = RNG.random((20, 300))
    with pytest.warns(UserWarning, match=r"20 rows and 300 columns.*6 lags.*X\.T"):
        CNMF(2, 6, max_iter=2, tol=0, random_state=0).fit(X)
    CNMF(2, 5, max_iter=2, tol=0, random_state=0).fit(X)  # wide, but four motifs long


def test_warnings_name_the_line_of_the_caller():
    """scikit-learn wraps fit: not a line of its own, nor of ours."""
    with pytest.warns(ConvergenceWarning) as caught:
        CNMF(1, 2, max_iter=1, tol=1e-9, random_state=0).fit(GOOD)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_wrong_argument_is_told_of_the_class_that_people_know():
    with pytest.raises(TypeError, match=r"^CNMF\.__init__\(\).*'n_starts'"):
        CNMF(1, 2, n_starts=3)
