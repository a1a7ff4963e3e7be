"""Model files: what is saved comes back, whole or not at all."""

from __future__ import annotations

import json
import math
import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from model_files import ARRAYS, JSON, fitted, recording
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import motifold
from motifold import ANLS, CNMF, HALS, MU, load
from motifold.storage.models import FORMAT_VERSION

COLUMNS = ("iteration", "seconds", "loss", "objective")
SCALARS = (
    "n_iter_",
    "converged_",
    "stop_reason_",
    "loss_",
    "kkt_residual_",
    "reconstruction_err_",
    "n_features_in_",
    "transform_tol_",
    "solved_",
    "lengths_",
)


def same_transform(one, other, X=None):
    X = recording() if X is None else X
    assert_array_equal(one.transform(X), other.transform(X), strict=True)
    assert_array_equal(
        one.inverse_transform(one.activations_), other.inverse_transform(other.activations_)
    )


# --- what is saved comes back -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_round_trip(dtype, tmp_path):
    X = recording(dtype)
    model = fitted(X, lengths=[25, 15], l1_W=0.1, l2_H=np.float32(0.5), solver=HALS("blocks"))
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")

    assert type(loaded) is CNMF
    assert loaded.get_params() == model.get_params()
    for name in ARRAYS:
        assert_array_equal(getattr(loaded, name), getattr(model, name), strict=True)
        assert getattr(loaded, name).flags.writeable
    for name in COLUMNS:
        assert_array_equal(
            getattr(loaded.history_, name), getattr(model.history_, name), strict=True
        )
    for name in SCALARS:
        assert getattr(loaded, name) == getattr(model, name)
        assert type(getattr(loaded, name)) is type(getattr(model, name))
    assert not hasattr(loaded, "feature_names_in_")
    same_transform(loaded, model, X)
    parts = zip(loaded.reconstruct_components(), model.reconstruct_components(), strict=True)
    assert all(np.array_equal(one, other) for one, other in parts)


def test_every_fitted_attribute_comes_back(original, path):
    assert vars(load(path)).keys() == vars(original).keys()


def test_a_loaded_model_can_be_saved_to_the_same_bytes_and_fitted_again(path, tmp_path):
    load(path).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
    load(path).set_params(warm_start=True).fit(recording())


def test_feature_names(tmp_path):
    X = pd.DataFrame(recording(), columns=["a", "β", "c d", '"', "\ud800"])
    model = fitted(X)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert_array_equal(loaded.feature_names_in_, model.feature_names_in_)
    assert loaded.feature_names_in_.dtype == object
    same_transform(loaded, model, X)
    with pytest.raises(ValueError, match="feature names"):
        loaded.transform(X.rename(columns={"a": "z"}))


def test_numbers_that_json_lacks(model, tmp_path):
    model.kkt_residual_ = np.nan
    model.loss_ = np.inf
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert math.isnan(loaded.kkt_residual_)
    assert loaded.loss_ == np.inf
    with zipfile.ZipFile(tmp_path / "m") as archive:
        text = archive.read(JSON)
    json.loads(text, parse_constant=pytest.fail)
    assert json.loads(text)["fitted"]["kkt_residual_"] == {"float": "nan"}


@pytest.mark.parametrize("solver", ["mu", MU(), HALS("blocks"), ANLS("exact"), ANLS(np.int64(2))])
def test_solvers_come_back(model, solver, tmp_path):
    model.set_params(solver=solver).save(tmp_path / "m")
    assert load(tmp_path / "m").solver == solver


@pytest.mark.parametrize("beta_loss", ["kullback-leibler", "itakura-saito", 0.5, np.float32(1.5)])
def test_losses_come_back(beta_loss, tmp_path):
    X = recording() + 0.1
    model = fitted(X, beta_loss=beta_loss)
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.beta_loss == model.beta_loss
    assert again.solver == "auto"
    assert again.loss_ == model.loss_
    assert again.reconstruction_err_ == model.reconstruction_err_
    pickled = pickle.loads(pickle.dumps(model))
    for other in (again, pickled):
        same_transform(other, model, X)
        assert other.score(X) == model.score(X)


def test_numpy_scalars_become_numbers(model, tmp_path):
    model.set_params(
        n_components=np.int32(2), tol=np.float64(0.1), normalize=np.True_, random_state=np.uint32(7)
    )
    model.save(tmp_path / "m")
    params = load(tmp_path / "m").get_params()
    found = [params[name] for name in ("n_components", "tol", "normalize", "random_state")]
    assert found == [2, 0.1, True, 7]
    assert [type(value) for value in found] == [int, float, bool, int]


def test_what_cannot_be_stored_is_named_once_and_left_out(model, tmp_path):
    class Mine(HALS):
        pass

    model.set_params(
        solver=Mine(), callback=print, random_state=np.random.RandomState(0), max_iter=7
    )
    with pytest.warns(UserWarning, match="callback, random_state, solver") as caught:
        model.save(tmp_path / "m")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    loaded = load(tmp_path / "m")
    assert (loaded.solver, loaded.callback, loaded.random_state) == ("auto", None, None)
    assert loaded.max_iter == 7
    same_transform(loaded, model)


def test_the_arrays_are_an_npz_file(original, path):
    with np.load(path) as arrays:
        assert_array_equal(arrays["components_"], original.components_)
        assert_array_equal(arrays["history_.loss"], original.history_.loss)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        header = json.loads(archive.read(JSON))
    assert header["format_version"] == FORMAT_VERSION
    assert header["motifold_version"] == motifold.__version__


def test_the_path_is_used_as_given(original, tmp_path):
    original.save(str(tmp_path / "model.txt"))
    assert os.listdir(tmp_path) == ["model.txt"]
    load(str(tmp_path / "model.txt"))


def test_a_link_stays_a_link(model, path, tmp_path):
    (tmp_path / "link").symlink_to(path)
    model.n_iter_ = 99
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(path).n_iter_ == 99


def test_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        CNMF(2, 3).save(tmp_path / "m")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda model: model.set_params(n_components=3),
        lambda model: model.set_params(boundary="none"),
        lambda model: setattr(model, "components_", -model.components_),
        lambda model: setattr(model, "scales_", np.array(["a", "b"])),
        lambda model: setattr(
            model, "feature_names_in_", np.array(["x" * 2**24, *"abcd"], dtype=object)
        ),
    ],
)
def test_what_load_would_refuse_is_not_written(model, spoil, tmp_path):
    spoil(model)
    with pytest.raises(ValueError, match="cannot be saved"):
        model.save(tmp_path / "m")
    assert not os.listdir(tmp_path)


# --- whole or not at all ------------------------------------------------------------------------


def test_a_failed_rename_leaves_the_old_file(model, path, monkeypatch):
    before = path.read_bytes()
    model.n_iter_ = 99

    def fail(*args):
        raise OSError("no rename")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="no rename"):
            model.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]
    model.save(path)
    assert load(path).n_iter_ == 99


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(model, path, monkeypatch, error):
    before = path.read_bytes()
    writes = []

    def fail(member, array, **options):
        writes.append(array)
        member.write(b"half")
        if len(writes) == 2:
            raise error

    monkeypatch.setattr("motifold.storage.models.npy.write_array", fail)
    with pytest.raises(type(error)):
        model.save(path)
    assert len(writes) == 2
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_the_bytes_are_on_the_disk_before_the_rename(model, path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *a: (calls.append("replace"), replace(*a)))
    model.save(path)
    assert calls == ["fsync", "replace", "fsync"]  # the folder last


def test_a_missing_folder(model, tmp_path):
    with pytest.raises(FileNotFoundError):
        model.save(tmp_path / "no" / "m")


# --- what goes along ----------------------------------------------------------------------------


def test_a_pickle_of_0_1_has_its_attributes_under_their_public_names(original):
    names = {"lengths_": "_lengths", "origin_": "_recording"}
    state = {names.get(name, name): value for name, value in vars(original).items()}
    state["_recording"] = {"source": "a.mat", "rate": 5.0, "options": {}}
    old = CNMF.__new__(CNMF)
    old.__setstate__(state)
    assert old.lengths_ == [25, 15]
    assert old.origin_["rate"] == 5.0
    assert not {"_lengths", "_recording"} & vars(old).keys()
    del state["beta_loss"]  # there was one loss only
    old = CNMF.__new__(CNMF)
    old.__setstate__(state)
    assert old.beta_loss == "frobenius"
    del state["_recording"]  # fitted in Python: there was none
    old = CNMF.__new__(CNMF)
    old.__setstate__(state)
    assert old.origin_ is None
    assert pickle.loads(pickle.dumps(old)).lengths_ == [25, 15]


def test_a_new_fit_forgets_how_other_data_was_read():
    model = CNMF(1, 2, random_state=0).fit(np.ones((5, 2)))
    model.origin_ = {"source": "a.mat", "rate": 5.0, "options": {}}
    assert model.fit(np.ones((6, 2))).origin_ is None
    assert model.lengths_ == [6]


def test_how_the_data_was_read_goes_along(tmp_path):
    model = CNMF(1, 2, random_state=0).fit(np.ones((5, 2)))
    path = tmp_path / "m.npz"
    model.origin_ = {"source": "a.mat", "rate": 5.0, "options": {"key": "X", "window": 8}}
    model.save(path)
    assert motifold.load(path).origin_ == model.origin_
    for hostile in ([], {"source": "a"}, {"source": [], "rate": None, "options": {}}):
        model.origin_ = hostile
        with pytest.raises(ValueError, match="recording"):
            model.save(path)


@pytest.mark.parametrize("beta_loss", ["frobenius", "kullback-leibler"])
def test_the_background_comes_back(beta_loss, tmp_path):
    X = recording() + 0.5
    model = fitted(X, background=True, beta_loss=beta_loss)
    model.save(tmp_path / "m")
    loaded = load(tmp_path / "m")
    assert_array_equal(loaded.background_, model.background_, strict=True)
    assert_array_equal(loaded.transform(X), model.transform(X))
    assert vars(loaded).keys() == vars(model).keys()
    model.background_ = model.background_[:-1]
    with pytest.raises(ValueError, match="background_ has shape"):
        model.save(tmp_path / "m")


# --- what a file may lack ----------------------------------------------------------------------


@pytest.fixture
def with_holes(tmp_path):
    X = recording()
    mask = np.ones(X.shape, dtype=bool)
    mask[10:14] = False
    model = CNMF(2, 3, random_state=0, max_iter=20, tol=0, n_init=3).fit(X, mask=mask)
    model.save(tmp_path / "holes.npz")
    return model, tmp_path / "holes.npz"


def test_what_was_observed_and_the_losses_of_starts_come_back(with_holes, original, tmp_path):
    model, path = with_holes
    found = load(path)
    assert_array_equal(found.observed_, model.observed_)
    assert_array_equal(found.start_losses_, model.start_losses_)
    original.save(tmp_path / "plain.npz")
    assert load(tmp_path / "plain.npz").observed_ is None
    with zipfile.ZipFile(tmp_path / "plain.npz") as archive:
        assert "observed_.npy" not in archive.namelist()
    # n_init is free to be set for the next fit.
    found.set_params(n_init=7).save(tmp_path / "more.npz")
    assert len(load(tmp_path / "more.npz").start_losses_) == 3


def test_a_file_without_them_loads(with_holes, tmp_path):
    _, path = with_holes
    old = tmp_path / "old.npz"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(old, "w") as without:
        for name in archive.namelist():
            if name not in ("observed_.npy", "start_losses_.npy"):
                without.writestr(name, archive.read(name))
    found = load(old)
    assert found.observed_ is None
    assert found.start_losses_ is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("observed_", np.full((40, 2), 1.5, np.float32)),
        ("observed_", np.full((40, 2), np.nan, np.float32)),
        ("observed_", np.full((39, 2), 0.5, np.float32)),
        ("observed_", np.full((40, 2), 0.5)),
        ("start_losses_", np.array([-1.0])),
        ("start_losses_", np.zeros((2, 2))),
        ("start_losses_", np.zeros(0)),
    ],
)
def test_wrong_ones_are_refused(with_holes, tmp_path, name, value):
    model, _ = with_holes
    setattr(model, name, value)
    with pytest.raises(ValueError, match=name):
        model.save(tmp_path / "new.npz")
