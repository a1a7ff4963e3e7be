"""Small models and their files, taken apart and put together."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pytest

from motifold import CNMF, load

ARRAYS = ("components_", "activations_", "scales_")
JSON = "motifold.json"


def recording(dtype=np.float64):
    return np.random.default_rng(0).gamma(0.5, size=(40, 5)).astype(dtype)


def fitted(X=None, **params):
    params = {"random_state": 0, "max_iter": 5, "tol": 0, "n_jobs": 1} | params
    lengths = params.pop("lengths", None)
    return CNMF(2, 3, **params).fit(recording() if X is None else X, lengths=lengths)


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
