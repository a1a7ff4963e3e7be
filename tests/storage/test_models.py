"""Model files: what is saved comes back, and what is not a model file is refused."""

from __future__ import annotations

import copy
import io
import json
import math
import os
import pickle
import struct
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

import motifold
from motifold import ANLS, CNMF, HALS, MU, load
from motifold.storage.models import FORMAT_VERSION

ARRAYS = ("components_", "activations_", "scales_")
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
JSON = "motifold.json"


def recording(dtype=np.float64):
    return np.random.default_rng(0).gamma(0.5, size=(40, 5)).astype(dtype)


def fitted(X=None, **params):
    params = {"random_state": 0, "max_iter": 5, "tol": 0, "n_jobs": 1} | params
    lengths = params.pop("lengths", None)
    return CNMF(2, 3, **params).fit(recording() if X is None else X, lengths=lengths)


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


# --- bad files ----------------------------------------------------------------------------------


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def change_json(path, change):
    members = members_of(path)
    header = json.loads(members[JSON])
    change(header)
    write_members(path, members | {JSON: json.dumps(header)})


def npy_bytes(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def npy_claiming(shape, descr="<f8", data=b"\0" * 64, fortran_order=False):
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        stream, {"shape": shape, "descr": descr, "fortran_order": fortran_order}
    )
    return stream.getvalue() + data


def refused(path, *words):
    """Load must fail with a ValueError that names the file, the fault and a remedy."""
    with pytest.raises(ValueError, match="Cannot load") as caught:
        load(path)
    message = str(caught.value)
    assert repr(str(path)) in message
    assert "save it anew" in message
    for word in words:
        assert word in message, message


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"hello world", pickle.dumps([1])])
def test_not_a_zip(tmp_path, content):
    (tmp_path / "m").write_bytes(content)
    refused(tmp_path / "m", "not a motifold model")


def test_another_npz(tmp_path):
    np.savez(tmp_path / "m.npz", a=np.ones(3))
    refused(tmp_path / "m.npz", "not a motifold model", JSON)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_truncated(path, part):
    content = path.read_bytes()
    path.write_bytes(content[: int(part * len(content))])
    refused(path, "cut short")


def test_a_changed_number_is_noticed(original, path):
    content = bytearray(path.read_bytes())
    place = content.index(original.components_.tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    refused(path, "damaged", "CRC", "components_")


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 10**6])
def test_a_newer_version(path, version):
    def change(header):
        header.update(format_version=version, motifold_version="9.9", fitted={"new": []})

    change_json(path, change)
    members = members_of(path)
    write_members(path, members | {"new.npy": b""})
    refused(path, f"format version {version}", "9.9", f"reads version {FORMAT_VERSION}", "upgrade")


@pytest.mark.parametrize("version", [0, -1, "1", None, 1.0, True, [1]])
def test_an_older_or_senseless_version(path, version):
    change_json(path, lambda header: header.update(format_version=version))
    refused(path, "format version", f"reads version {FORMAT_VERSION}")


def test_another_format(path):
    change_json(path, lambda header: header.update(format="something else"))
    refused(path, "not a motifold model")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"format": NaN}',
        b"[" * 100_000,
        b'{"format": ' + b"9" * 10_000 + b"}",
    ],
)
def test_bad_json(path, text):
    write_members(path, members_of(path) | {JSON: text})
    refused(path, "not valid JSON")


def test_endless_json(path):
    write_members(path, members_of(path) | {JSON: b" " * (16 * 2**20 + 1)})
    refused(path, JSON, "bytes")


@pytest.mark.parametrize("name", ["components_.npy", "scales_.npy", "history_.loss.npy", JSON])
def test_a_missing_member(path, name):
    members = members_of(path)
    del members[name]
    write_members(path, members)
    refused(path, name)


def test_an_unknown_member(path):
    write_members(path, members_of(path) | {"../evil.py": b"print(1)"})
    refused(path, "does not know", "../evil.py")


def test_a_member_twice(path):
    with (
        zipfile.ZipFile(path, "a") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("scales_.npy", npy_bytes(np.ones(2)))
    refused(path, "same name")


def test_a_zip_bomb(path):
    shape = (2, 3, 10**7)
    members = members_of(path) | {"components_.npy": npy_claiming(shape, data=bytes(10**7))}
    write_members(path, members, zipfile.ZIP_DEFLATED)
    refused(path, "compressed")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content, zipfile.ZIP_DEFLATED if name != JSON else None)
    refused(path, "components_.npy", "compressed")


@pytest.mark.parametrize("field", ["compress", "both"])
def test_a_directory_that_lies_about_sizes(path, field):
    content = bytearray(path.read_bytes())
    place = content.rindex(b"components_.npy") - 46  # the entry of the central directory
    assert content[place : place + 4] == b"PK\x01\x02"
    lie = 2**31
    struct.pack_into("<L", content, place + 20, lie)
    if field == "both":
        struct.pack_into("<L", content, place + 24, lie)
    path.write_bytes(content)
    refused(path, "more bytes than the file has")


class Payload:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


@pytest.mark.parametrize("name", ["components_.npy", "history_.loss.npy", "extra.npy"])
def test_a_pickle_is_not_executed(path, tmp_path, name):
    marker = tmp_path / "executed"
    hostile = np.array([Payload(str(marker))], dtype=object)
    write_members(path, members_of(path) | {name: npy_bytes(hostile, allow_pickle=True)})
    refused(path, name.removesuffix(".npy"))
    assert not marker.exists()
    with np.load(path, allow_pickle=True) as arrays:  # the payload is live
        arrays[name.removesuffix(".npy")]
    assert marker.exists()


def test_a_file_that_is_a_pickle_is_not_executed(tmp_path):
    marker = tmp_path / "executed"
    (tmp_path / "m").write_bytes(pickle.dumps(Payload(str(marker))))
    refused(tmp_path / "m")
    assert not marker.exists()


@pytest.mark.parametrize("shape", [(10**12,), (2, 3, 10**12), (-2, -3, 5), (2**62, 4, 2**62), ()])
def test_a_header_that_claims_another_size(path, shape):
    write_members(path, members_of(path) | {"components_.npy": npy_claiming(shape)})
    refused(path, "components_", "claims")


def test_a_header_and_parameters_that_claim_a_huge_size(path):
    huge = npy_claiming((2, 10**12, 5))
    write_members(path, members_of(path) | {"components_.npy": huge})
    change_json(path, lambda header: header["params"].update(n_lags=10**12))
    refused(path, "components_", "bytes")


@pytest.mark.parametrize(
    "array",
    [
        np.ones((2, 3, 5), dtype=np.int64),
        np.ones((2, 3, 5), dtype=">f8"),
        np.ones((2, 3, 5), dtype=np.float16),
        np.ones((2, 3, 5), dtype=complex),
        np.full((2, 3, 5), "1"),
        np.ones((2, 3, 5), dtype=[("a", "<f8")]),
    ],
    ids=lambda array: array.dtype.str,
)
def test_another_dtype(path, array):
    write_members(path, members_of(path) | {"components_.npy": npy_bytes(array)})
    refused(path, "components_", "dtype")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not npy",
        npy_bytes(np.ones((2, 3, 5)), version=(2, 0)),
        npy_bytes(np.asfortranarray(np.ones((2, 3, 5)))),
        npy_bytes(np.ones((2, 3, 5))).replace(b"(2, 3, 5)", b"(2,3L,5)  "[:9]),  # Python 2's
        npy_bytes(np.ones((2, 3, 5))).replace(b"(2, 3, 5)", b"__import_"),
        npy_claiming((1,) * 1000),
        b"\x93NUMPY\x01\x00\xff\xff" + b"(" * 65535,
        b"\x93NUMPY\x01\x00\xf0\x00" + b"-" * 240,
    ],
)
def test_a_bad_array_header(path, content):
    write_members(path, members_of(path) | {"components_.npy": content})
    refused(path, "components_.npy")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("components_", (2, 3, 4)),
        ("components_", (3, 2, 5)),
        ("components_", (30,)),
        ("activations_", (40, 3)),
        ("activations_", (39, 2)),
        ("scales_", (3,)),
        ("scales_", ()),
        ("history_.loss", (1,)),
        ("history_.objective", (2, 2)),
        ("history_.iteration", (0,)),
        ("history_.iteration", ()),
    ],
)
def test_shapes_that_disagree(path, name, shape):
    array = np.ones(shape, dtype=np.int64 if name.endswith("iteration") else np.float64)
    write_members(path, members_of(path) | {f"{name}.npy": npy_bytes(array)})
    refused(path, "history" if "iteration" in name else name)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("name", ARRAYS)
def test_values_that_no_factor_has(original, path, name, value):
    array = getattr(original, name).copy()
    array.flat[-1] = value
    write_members(path, members_of(path) | {f"{name}.npy": npy_bytes(array)})
    refused(path, name, "nonnegative")


@pytest.mark.parametrize(
    ("part", "change", "word"),
    [
        ("params", {"evil": 1}, "evil"),
        ("params", {"self": 1}, "self"),
        ("params", {"n_components": 3}, "shape"),
        ("params", {"n_components": "2"}, "n_components"),
        ("params", {"n_lags": 4}, "shape"),
        ("params", {"tol": -1.0}, "tol"),
        ("params", {"callback": "print"}, "callback"),
        ("params", {"random_state": [1]}, "[1]"),
        ("params", {"solver": "os.system"}, "solver"),
        ("params", {"solver": {"solver": "os", "options": {}}}, "solver"),
        ("params", {"solver": {"solver": "hals", "options": {"evil": 1}}}, "evil"),
        ("params", {"solver": {"solver": ["hals"], "options": {}}}, "solver"),
        ("params", {"max_time": {"float": "1"}}, "float"),
        ("params", {"beta_loss": "poisson"}, "beta_loss"),
        ("params", {"beta_loss": {"float": "nan"}}, "beta_loss"),
        ("params", {"beta_loss": True}, "beta_loss"),
        ("params", {"beta_loss": None}, "beta_loss"),
        ("fitted", {"evil": 1}, "evil"),
        ("fitted", {"_lengths": [40, 1]}, "shape"),
        ("fitted", {"_lengths": [41, -1]}, "_lengths"),
        ("fitted", {"_lengths": [20.0, 20.0]}, "_lengths"),
        ("fitted", {"_lengths": []}, "_lengths"),
        ("fitted", {"_lengths": 40}, "_lengths"),
        ("fitted", {"n_features_in_": 4}, "shape"),
        ("fitted", {"n_features_in_": -5}, "n_features_in_"),
        ("fitted", {"n_iter_": "many"}, "n_iter_"),
        ("fitted", {"n_iter_": True}, "n_iter_"),
        ("fitted", {"converged_": 1}, "converged_"),
        ("fitted", {"_transform_tol": {"float": "nan"}}, "transform_tol_"),
        ("fitted", {"feature_names_in_": ["a"]}, "feature_names_in_"),
        ("fitted", {"feature_names_in_": [1, 2, 3, 4, 5]}, "feature_names_in_"),
    ],
)
def test_json_that_says_wrong_things(path, part, change, word):
    change_json(path, lambda header: header[part].update(change))
    refused(path, word)


@pytest.mark.parametrize("part", ["params", "fitted"])
@pytest.mark.parametrize("value", [None, [], {}, "x", 1])
def test_json_without_its_parts(path, part, value):
    change_json(path, lambda header: header.update({part: value}))
    refused(path, part)
    change_json(path, lambda header: header.pop(part))
    refused(path, part)


def test_a_parameter_that_the_file_lacks_has_its_default(path):
    change_json(path, lambda header: header["params"].pop("max_iter"))
    assert load(path).max_iter == CNMF(1, 1).max_iter


# --- any file at all ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def good_bytes(original):
    with tempfile.TemporaryDirectory() as folder:
        original.save(Path(folder) / "m")
        return (Path(folder) / "m").read_bytes()


def load_or_value_error(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        path.write_bytes(content)
        try:
            assert isinstance(load(path), CNMF)
        except ValueError as error:
            message = str(error)
        else:
            return
        assert message.startswith(f"Cannot load {str(path)!r}")


flips = st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=6)


def flipped(content, changes):
    content = bytearray(content)
    for place, byte in changes:
        content[int(place * len(content))] = byte
    return bytes(content)


@settings(max_examples=150, deadline=None)
@given(changes=flips, keep=st.one_of(st.just(1.0), st.floats(0, 1)), tail=st.binary(max_size=9))
def test_damaged_bytes(good_bytes, changes, keep, tail):
    content = flipped(good_bytes, changes)
    load_or_value_error(content[: int(keep * len(content))] + tail)


@settings(max_examples=150, deadline=None)
@given(changes=flips, whole_directory=st.booleans())
def test_damaged_directory(good_bytes, changes, whole_directory):
    start = good_bytes.index(b"PK\x01\x02") if whole_directory else len(good_bytes) - 22
    load_or_value_error(good_bytes[:start] + flipped(good_bytes[start:], changes))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_members_in_a_sound_archive(good_bytes, data):
    members = members_of(io.BytesIO(good_bytes))
    name = data.draw(st.sampled_from(sorted(members)))
    head = members[name][: None if name == JSON else 128]
    members[name] = flipped(head, data.draw(flips)) + members[name][len(head) :]
    stream = io.BytesIO()
    write_members(stream, members)
    load_or_value_error(stream.getvalue())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["float", "solver", "options"]), inner)
    ),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_json_with_any_values(good_bytes, data):
    members = members_of(io.BytesIO(good_bytes))
    header = json.loads(members[JSON])
    table = header[data.draw(st.sampled_from(["params", "fitted"]))]
    table[data.draw(st.sampled_from(sorted(table)))] = data.draw(json_values)
    members[JSON] = json.dumps(header)
    stream = io.BytesIO()
    write_members(stream, members)
    load_or_value_error(stream.getvalue())


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
