"""Fitted models as files: ``save`` and ``load``. Reading a file never executes code.

A model file is an ``.npz``, a zip archive whose members are stored without compression:

- ``motifold.json``, strict JSON: ``format``, ``format_version``, ``motifold_version``, ``params``
  (of the constructor) and ``fitted`` (the attributes that are no arrays). NaN and infinity, which
  JSON lacks, are ``{"float": "nan"}``, ``"inf"`` or ``"-inf"``; a solver object is
  ``{"solver": "hals", "options": {...}}``; indices are a list. A parameter that is not there has
  its default. ``recording``, which may be missing, tells how the data was read: ``source``,
  ``rate`` and the ``options`` of ``motifold.io.read``, and where the clock is known ``starts``,
  the seconds at which each segment begins. ``preparation``, which may be missing, lists
  the steps by which it was prepared, each with its ``step`` and ``params``. ``held_out``, which may
  be missing, tells what the fit has not seen of it: ``lengths``, ``stretches``, ``gap`` and
  ``fingerprint``. ``stream``, which may be missing, has the numbers of a stream that
  ``partial_fit`` goes on from; its arrays are ``running_.W.npy`` and so on.
- ``components_.npy``, ``activations_.npy``, ``scales_.npy``, where there is a background
  ``background_.npy``, where steps have learnt something ``preparation_.0.scale_.npy`` and so on,
  and the columns of the history,
  ``history_.iteration.npy`` and so on, which ``np.load`` opens as well. ``observed_.npy`` is there
  where entries were missing, ``start_losses_.npy`` where the losses of the starts are known.
"""

from __future__ import annotations

import errno
import json
import math
import os
import warnings
import zipfile
from collections.abc import Mapping
from reprlib import repr as short
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from motifold import __version__
from motifold.data.refused import check_model
from motifold.estimator import CNMF
from motifold.files import write_npz, written_whole
from motifold.files.archive import check_stored, members_of
from motifold.fit.state import History
from motifold.storage.preparation import (
    encoded_hold_out,
    encoded_preparation,
    give_learnt,
    learnt_names,
)
from motifold.storage.running import (
    arrays_of_stream,
    names_of_stream,
    numbers_of_stream,
    stream_of,
)
from motifold.storage.schema import (
    HISTORY,
    JSON_MEMBER,
    OPTIONAL,
    arrays_of,
    check_json_size,
    check_keys,
    check_specs,
    check_values,
    factors_of,
    fitted_scalars,
    storable,
    without_arrays,
)

FORMAT = "motifold.CNMF"
FORMAT_VERSION = 1

_MAX_NPY_HEADER = 512  # ours have 118 characters


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
    check_model(model)
    params, left_out = storable(model.get_params(deep=False))
    header = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "motifold_version": __version__,
        "params": params,
        "fitted": fitted_scalars(model),
    }
    if model.origin_ is not None:
        header["recording"] = model.origin_
    if model.preparation_ is not None:
        header["preparation"] = encoded_preparation(model.preparation_)
    if model.held_out_ is not None:
        header["held_out"] = encoded_hold_out(model.held_out_)
    if model.running_ is not None:
        header["stream"] = numbers_of_stream(model)
    arrays = arrays_of(model) | arrays_of_stream(model)
    text = json.dumps(header, allow_nan=False).encode("ascii")
    try:  # what load would refuse is not written
        check_json_size(len(text))
        plain = without_arrays(header)
        check_specs(plain, {n: (a.shape, a.dtype) for n, a in arrays.items()})
        check_values(plain, arrays)
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
    with written_whole(path) as file:
        write_npz(file, arrays, texts={JSON_MEMBER: text})


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


# --- reading ----------------------------------------------------------------------------------


def _read(file: BinaryIO) -> CNMF:
    """The model; every claim of the file is checked before memory is taken for it."""
    if file.read(4) != b"PK\x03\x04":
        raise ValueError("it is not a motifold model: it does not begin like an npz file.")
    with zipfile.ZipFile(file) as archive:
        members = members_of(archive, file.seek(0, os.SEEK_END))
        header = _read_header(archive, members)
        model = without_arrays(header)
        expected = (*factors_of(model), *HISTORY, *learnt_names(model.preparation_))
        expected += names_of_stream(members) if "stream" in header else ()
        needed = {JSON_MEMBER, *(f"{name}.npy" for name in expected)}
        check_keys("the archive", members, needed, [f"{name}.npy" for name in OPTIONAL])
        names = (*expected, *(name for name in OPTIONAL if f"{name}.npy" in members))
        infos = {name: members[f"{name}.npy"] for name in names}
        check_specs(model, {name: _read_spec(archive, infos[name]) for name in infos})
        arrays = {name: _read_array(archive, infos[name]) for name in infos}
    check_values(model, arrays)
    model.background_ = None
    for name in (*factors_of(model), *OPTIONAL):
        setattr(model, name, arrays.get(name))
    model.history_ = History(*(arrays[name] for name in HISTORY))
    model.running_ = stream_of(header["stream"], arrays) if "stream" in header else None
    if model.preparation_ is not None:
        names = learnt_names(model.preparation_)
        give_learnt(model.preparation_, {name: arrays[name] for name in names})
    return model


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _read_header(
    archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]
) -> dict[str, Any]:
    """The JSON member, if it is of this format and version."""
    if JSON_MEMBER not in members:
        raise ValueError(f"it is not a motifold model: it has no member {JSON_MEMBER}.")
    check_stored(members[JSON_MEMBER])
    check_json_size(members[JSON_MEMBER].file_size)
    text = archive.read(members[JSON_MEMBER])
    try:
        header = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{JSON_MEMBER} is not valid JSON ({error}).") from error
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"it is not a motifold model: {JSON_MEMBER} does not say {FORMAT!r}.")
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
    check_stored(info)
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
