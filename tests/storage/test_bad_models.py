"""What is no model file, or claims what cannot be, is refused with a remedy."""

from __future__ import annotations

import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
from model_files import (
    ARRAYS,
    JSON,
    change_json,
    members_of,
    npy_bytes,
    npy_claiming,
    refused,
    write_members,
)

from motifold import CNMF, load
from motifold.storage.models import FORMAT_VERSION


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
        ("fitted", {"stop_reason_": "tired"}, "stop_reason_"),
        ("fitted", {"_transform_tol": {"float": "nan"}}, "transform_tol_"),
        ("fitted", {"feature_names_in_": ["a"]}, "feature_names_in_"),
        ("fitted", {"feature_names_in_": [1, 2, 3, 4, 5]}, "feature_names_in_"),
    ],
)
def test_json_that_says_wrong_things(path, part, change, word):
    change_json(path, lambda header: header[part].update(change))
    refused(path, word)


def test_a_reason_that_only_0_1_had(path):
    """Of a start that was given up; it leaked."""
    change_json(path, lambda header: header["fitted"].update(stop_reason_="outdone"))
    assert load(path).stop_reason_ == "stalled"


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
