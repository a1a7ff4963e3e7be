"""Fitted models as files: ``save`` and ``load``. Reading a file never executes code.

A model file is an ``.npz``, a zip archive whose members are stored without compression:

- ``motifold.json``, strict JSON: ``format``, ``format_version``, ``motifold_version``, ``params``
  (of the constructor) and ``fitted`` (the attributes that are no arrays). NaN and infinity, which
  JSON lacks, are ``{"float": "nan"}``, ``"inf"`` or ``"-inf"``; a solver object is
  ``{"solver": "hals", "options": {...}}``; indices are a
  list. A parameter that is not there has its default.
- ``components_.npy``, ``activations_.npy``, ``scales_.npy`` and the columns of the history,
  ``history_.iteration.npy`` and so on, which ``np.load`` opens as well.
"""

from __future__ import annotations

import contextlib
import errno
import inspect
import json
import math
import os
import secrets
import warnings
import zipfile
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from reprlib import repr as short
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from sklearn.utils.validation import check_is_fitted

from motifold import __version__
from motifold.estimator import CNMF
from motifold.solvers import SOLVERS
from motifold.state import History

FORMAT = "motifold.CNMF"
FORMAT_VERSION = 1

_JSON = "motifold.json"
_MAX_JSON_BYTES = 16 * 2**20
_MAX_NPY_HEADER = 512  # ours have 118 characters
_FACTORS = ("components_", "activations_", "scales_")
_HISTORY = tuple(f"history_.{column.name}" for column in fields(History))
_DTYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*_FACTORS, *_HISTORY), ("<f8",)),
    **dict.fromkeys(("components_", "activations_"), ("<f4", "<f8")),
    "history_.iteration": ("<i8",),
}
_SCALARS: dict[str, type] = {
    **dict.fromkeys(("converged_", "_solved"), bool),
    **dict.fromkeys(("n_iter_", "n_features_in_"), int),
    **dict.fromkeys(("loss_", "kkt_residual_", "reconstruction_err_", "_transform_tol"), float),
    "stop_reason_": str,
}


def save(model: CNMF, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file; the same as ``model.save(path)``.

    The file appears whole or not at all: if writing fails, an older file of that name stays.

    Parameters
    ----------
    model : CNMF
        A fitted model.
    path : str or path
        The file, exactly as given: no ending is added.

    Warns
    -----
    UserWarning
        If a parameter cannot be stored (a callback, a ``RandomState``, a solver of your own): it
        is left out, and ``load`` gives it its default. What ``set_output`` and ``set_callbacks``
        were told is not stored either.

    Examples
    --------
    >>> import os, tempfile
    >>> from motifold import CNMF
    >>> model = CNMF(n_components=1, n_lags=2, random_state=0).fit([[1, 0], [0, 1], [1, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(os.path.join(folder, "model.npz"))
    """
    check_is_fitted(model)
    params, left_out = _storable(model.get_params(deep=False))
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "motifold_version": __version__,
        "params": params,
        "fitted": _fitted(model),
    }
    arrays = _arrays(model)
    text = json.dumps(header, allow_nan=False).encode("ascii")
    try:  # what load would refuse is not written
        _check_json_size(len(text))
        _check_specs(_without_arrays(header), {n: (a.shape, a.dtype) for n, a in arrays.items()})
        _check_values(arrays)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"This model cannot be saved: {error} If parameters or attributes were changed after "
            "the fit, fit again first."
        ) from error
    if left_out:
        warnings.warn(
            f"Not stored, since a file cannot hold them: {', '.join(left_out)}. The loaded model "
            "will have their defaults; set them again with set_params.",
            UserWarning,
            stacklevel=3,
        )
    _write(os.path.realpath(path), text, arrays)


def load(path: str | os.PathLike[str]) -> CNMF:
    """Read a model that ``CNMF.save`` wrote.

    The file may come from anyone: nothing in it is executed, everything is checked, and arrays
    take no more memory than the file is long.

    Parameters
    ----------
    path : str or path
        The file, exactly as given.

    Returns
    -------
    CNMF
        The fitted model; its ``transform`` gives, to the last bit, what the saved one gives.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a whole model file of this format version.

    Examples
    --------
    >>> import os, tempfile
    >>> import motifold
    >>> X = [[1, 0], [0, 1], [1, 0]]
    >>> model = motifold.CNMF(n_components=1, n_lags=2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     model.save(path)
    ...     loaded = motifold.load(path)
    >>> bool((loaded.transform(X) == model.transform(X)).all())
    True
    """
    with open(path, "rb") as file:
        try:
            return _read(file)
        except Exception as error:
            # zipfile seeks where a damaged file tells it to; other failures are the machine's.
            of_the_disk = isinstance(error, OSError) and error.errno not in (None, errno.EINVAL)
            if of_the_disk or isinstance(error, MemoryError):
                raise
            what = str(error)
            if not isinstance(error, ValueError):
                what = f"it is damaged or cut short ({type(error).__name__}: {error})."
            raise ValueError(
                f"Cannot load {os.fspath(path)!r}: {what} If the file was damaged on its way, copy "
                "it again; else fit the model and save it anew."
            ) from error


# --- writing ----------------------------------------------------------------------------------


def _storable(params: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The parameters as JSON, and the names of those that cannot be."""
    stored: dict[str, Any] = {}
    left_out = []
    for name, value in params.items():
        try:
            stored[name] = _encode(value)
        except TypeError:
            left_out.append(name)
    return stored, left_out


def _encode(value: Any) -> Any:
    """The value as JSON; TypeError if it cannot be."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else {"float": str(number)}
    if isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) == 1:
        items = [_encode(item) for item in value]
        if all(type(item) in (bool, int) for item in items):
            return items
    for name, solver in SOLVERS.items():
        if type(value) is solver:
            options = value.get_params()
            return {"solver": name, "options": {key: _encode(options[key]) for key in options}}
    raise TypeError(f"{type(value).__name__} cannot be stored.")


def _fitted(model: CNMF) -> dict[str, Any]:
    names = getattr(model, "feature_names_in_", None)
    fitted = {name: _encode(kind(getattr(model, name))) for name, kind in _SCALARS.items()}
    fitted["_lengths"] = [int(length) for length in model._lengths]
    fitted["feature_names_in_"] = None if names is None else [str(name) for name in names]
    return fitted


def _arrays(model: CNMF) -> dict[str, np.ndarray]:
    arrays = {name: getattr(model, name) for name in _FACTORS}
    arrays |= {name: getattr(model.history_, name.partition(".")[2]) for name in _HISTORY}
    return {
        name: np.ascontiguousarray(array, dtype=np.asarray(array).dtype.newbyteorder("<"))
        for name, array in arrays.items()
    }


def _write(path: str, header: bytes, arrays: Mapping[str, np.ndarray]) -> None:
    """Write beside ``path``, then rename: the file is the old one or the new one, never half."""
    temporary = os.path.join(os.path.dirname(path), f".motifold-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(_JSON), header)
                for name, array in arrays.items():
                    info = zipfile.ZipInfo(f"{name}.npy")
                    with archive.open(info, "w", force_zip64=True) as member:
                        npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


# --- reading ----------------------------------------------------------------------------------


def _read(file: BinaryIO) -> CNMF:
    """The model; every claim of the file is checked before memory is taken for it."""
    if file.read(4) != b"PK\x03\x04":
        raise ValueError("it is not a motifold model: it does not begin like an npz file.")
    with zipfile.ZipFile(file) as archive:
        members = _members(archive, file.seek(0, os.SEEK_END))
        header = _read_header(archive, members)
        expected = {_JSON, *(f"{name}.npy" for name in _DTYPES)}
        _check_keys("the archive", members, expected)
        model = _without_arrays(header)
        infos = {name: members[f"{name}.npy"] for name in _DTYPES}
        _check_specs(model, {name: _read_spec(archive, infos[name]) for name in infos})
        arrays = {name: _read_array(archive, infos[name]) for name in infos}
    _check_values(arrays)
    for name in _FACTORS:
        setattr(model, name, arrays[name])
    model.history_ = History(*(arrays[name] for name in _HISTORY))
    return model


def _members(archive: zipfile.ZipFile, file_bytes: int) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename: info for info in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("it has two members of the same name.")
    # Also keeps members from sharing bytes, the other way to make much of little.
    if sum(info.compress_size for info in members.values()) > file_bytes:
        raise ValueError("its members claim more bytes than the file has.")
    return members


def _check_stored(info: zipfile.ZipInfo) -> None:
    """So a member is as long as it says: no bytes but the file's own."""
    stored = info.compress_type == zipfile.ZIP_STORED and info.compress_size == info.file_size
    if not stored or info.flag_bits & 1:
        raise ValueError(f"{info.filename} is compressed or encrypted, which motifold never does.")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _read_header(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    """The JSON member, if it is of this format and version."""
    if _JSON not in members:
        raise ValueError(f"it is not a motifold model: it has no member {_JSON}.")
    _check_stored(members[_JSON])
    _check_json_size(members[_JSON].file_size)
    text = archive.read(members[_JSON])
    try:
        header = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{_JSON} is not valid JSON ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"it is not a motifold model: {_JSON} does not say {FORMAT!r}.")
    version = header.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        newer = type(version) is int and version > FORMAT_VERSION
        raise ValueError(
            f"it was written by format version {short(version)} (motifold "
            f"{short(header.get('motifold_version'))}); this motifold, {__version__}, reads "
            f"version {FORMAT_VERSION}: {'upgrade motifold' if newer else 'it is not readable'}."
        )
    return header


def _read_spec(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and dtype that the member claims; its size must be the one that follows."""
    _check_stored(info)
    with archive.open(info) as member, warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy's on headers that it can only guess
        try:
            version = npy.read_magic(member)
            shape, fortran, dtype = npy.read_array_header_1_0(member, _MAX_NPY_HEADER)
        except zipfile.BadZipFile:
            raise  # a wrong checksum
        except Exception as error:
            raise ValueError(f"{info.filename} has no valid npy header.") from error
        claimed = member.tell() + math.prod(shape) * dtype.itemsize
    if version != (1, 0) or fortran or dtype.hasobject:
        raise ValueError(
            f"{info.filename} holds Python objects, Fortran order or another npy version, which "
            "motifold never writes and does not read."
        )
    if claimed != info.file_size:
        raise ValueError(
            f"{info.filename} claims shape {short(shape)} of {dtype}, that is {short(claimed)} "
            f"bytes, but has {info.file_size}."
        )
    return shape, dtype


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        array = npy.read_array(member, allow_pickle=False, max_header_size=_MAX_NPY_HEADER)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


# --- checks, the same for both ways -------------------------------------------------------------


def _check_keys(what: str, found: Any, expected: set[str], optional: Any = ()) -> None:
    if not isinstance(found, dict):
        raise ValueError(f"{what} must be a table, not {short(found)}.")
    missing, unknown = expected - found.keys(), found.keys() - expected - set(optional)
    if missing:
        raise ValueError(f"{what} has no {', '.join(sorted(missing))}.")
    if unknown:
        raise ValueError(f"{what} has what motifold does not know: {short(sorted(unknown))}.")


def _check_json_size(size: int) -> None:
    if size > _MAX_JSON_BYTES:
        raise ValueError(f"{_JSON} has {size} bytes; at most {_MAX_JSON_BYTES} are read.")


def _without_arrays(header: Mapping[str, Any]) -> CNMF:
    """The model that the JSON describes, its arrays still missing."""
    top = {"format", "format_version", "motifold_version", "params", "fitted"}
    _check_keys(_JSON, header, top)
    params, fitted = header["params"], header["fitted"]
    _check_keys("params", params, {"n_components", "n_lags"}, inspect.signature(CNMF).parameters)
    _check_keys("fitted", fitted, {*_SCALARS, "_lengths", "feature_names_in_"})
    model = CNMF(**{name: _decode(value) for name, value in params.items()})
    model._validate_params()
    for name, kind in _SCALARS.items():
        value = _decode(fitted[name])
        if type(value) is not kind:
            raise ValueError(f"{name} must be of type {kind.__name__}, not {short(value)}.")
        setattr(model, name, value)
    if model.n_iter_ < 0 or model.n_features_in_ < 1 or not model._transform_tol >= 0:
        raise ValueError("n_iter_, n_features_in_ or _transform_tol is out of range.")
    _set_lists(model, fitted["_lengths"], fitted["feature_names_in_"])
    return model


def _set_lists(model: CNMF, lengths: Any, names: Any) -> None:
    if not _is_list_of(int, lengths) or min(lengths, default=0) < 1:
        raise ValueError("_lengths must be a list of positive whole numbers.")
    model._lengths = lengths
    if names is None:
        return
    if not _is_list_of(str, names) or len(names) != model.n_features_in_:
        raise ValueError(f"feature_names_in_ must be a list of {model.n_features_in_} names.")
    model.feature_names_in_ = np.array(names, dtype=object)


def _is_list_of(kind: type, values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _decode(value: Any) -> Any:
    """What ``_encode`` was given."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if _is_list_of(bool, value) or _is_list_of(int, value):
        return value
    if isinstance(value, dict):
        if value.keys() == {"float"} and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        if value.keys() == {"solver", "options"} and isinstance(value["options"], dict):
            solver: Any = SOLVERS.get(str(value["solver"]))
            options = {name: _decode(option) for name, option in value["options"].items()}
            if solver is not None and options.keys() <= vars(solver()).keys():
                return solver(**options)
    raise ValueError(f"{_JSON} has a value that motifold does not know: {short(value)}.")


def _check_specs(model: CNMF, specs: Mapping[str, tuple[tuple[int, ...], np.dtype]]) -> None:
    """Shapes must agree with each other, the parameters and the segments; dtypes be ours."""
    K, L, N, T = model.n_components, model.n_lags, model.n_features_in_, sum(model._lengths)
    records = specs[_HISTORY[0]][0][:1]
    if not records or records[0] < 1:
        raise ValueError("the history is empty.")
    shapes = dict.fromkeys(_HISTORY, records)
    shapes |= {"components_": (K, L, N), "activations_": (T, K), "scales_": (K,)}
    for name, (shape, dtype) in specs.items():
        if dtype.str not in _DTYPES[name]:
            raise ValueError(f"{name} is of dtype {dtype}, not {' or '.join(_DTYPES[name])}.")
        if shape != shapes[name]:
            raise ValueError(
                f"{name} has shape {short(shape)}; by the parameters, the segments and the other "
                f"arrays it must be {short(shapes[name])}."
            )


def _check_values(arrays: Mapping[str, np.ndarray]) -> None:
    for name in _FACTORS:
        with np.errstate(invalid="ignore"):
            low, high = arrays[name].min(), arrays[name].max()
        if not (low >= 0 and high < np.inf):  # NaN fails both
            raise ValueError(f"{name} must be finite and nonnegative; it is not.")
