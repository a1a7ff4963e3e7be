"""All that is compiled, used once on next to no data, so that it is compiled and kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

# Bins, features, motifs, lags: long enough for several tiles and blocks, and several threads.
_T, _N, _K, _L = 400, 8, 3, 4


@dataclass(frozen=True)
class Warmed:
    """What it took.

    Attributes
    ----------
    seconds : of all of it
    compiled, loaded : variants of kernels; None of a GPU, where they are not counted
    """

    seconds: float
    compiled: int | None = None
    loaded: int | None = None

    def __str__(self) -> str:
        """A sentence."""
        if self.compiled is None:
            return f"all kernels compiled or loaded in {self.seconds:.1f} s."
        return (
            f"{self.compiled} kernels compiled and {self.loaded} loaded from the disk in "
            f"{self.seconds:.1f} s."
        )


def warm_cpu() -> Warmed:
    """Use every kernel of the CPU, in single and in double precision."""
    from motifold.fit.clock import Clock
    from motifold.kernels import tally

    clock, before = Clock(), tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float32", "float64"):
            for X, parameters, given in _fits(dtype):
                _used(X, parameters, given)
            _used_beside(dtype)
    compiled, loaded = (now - then for now, then in zip(tally(), before, strict=True))
    return Warmed(clock.seconds, compiled, loaded)


def warm_gpu(device: str, K: int, L: int) -> Warmed:
    """Use every kernel of a GPU, for so many motifs of so many lags."""
    from motifold import CNMF
    from motifold.fit.clock import Clock

    clock = Clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in ("float32", "float64"):
            X = _recording(dtype, T=max(_T, 60 * L))
            mask = X.mean() + 3 * X.std() > X
            for parameters, given in (
                ({}, {}),
                ({"acceleration": None}, {}),
                ({"solver": "mu"}, {}),
                ({"x_ortho": 1e-3, "ortho_H": 1e-3, "background": True}, {}),
                ({}, {"mask": mask}),
                ({"beta_loss": "kullback-leibler"}, {}),
                ({"beta_loss": "itakura-saito"}, {}),
            ):
                settings: dict[str, Any] = {"max_iter": 24, "random_state": 0, **parameters}
                CNMF(K, L, device=device, **settings).fit(X + (X == 0), **given)
    return Warmed(clock.seconds)


def _recording(dtype: str, T: int = _T) -> np.ndarray[Any, Any]:
    """Counts."""
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.poisson(0.5 + rng.random((T, _N))).astype(dtype)


class _OnDisk:
    """A recording that is read by slices, as one on disk."""

    ndim = 2

    def __init__(self, X: np.ndarray[Any, Any]) -> None:
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows: Any) -> Any:
        return self._X[rows].copy()

    def as_rows(self, name: str) -> Any:
        """As ``motifold.data.sources`` asks for them."""
        from motifold.data.sources.kinds import Sliced

        return Sliced(self, name)


def _fits(dtype: str) -> Iterator[tuple[Any, dict[str, Any], dict[str, Any]]]:
    """Recordings, parameters of a model, and what else is given to ``fit``."""
    import numpy as np
    from scipy.sparse import csr_array

    from motifold import ANLS, HALS

    X = _recording(dtype)
    few, many = np.ones(X.shape, bool), np.ones(X.shape, bool)
    few[::17, ::3] = many[::2] = False
    ratios: list[dict[str, Any]] = [
        {"beta_loss": loss} for loss in ("kullback-leibler", "itakura-saito", 1.5, 3.0)
    ]
    plain: list[dict[str, Any]] = [
        {},
        {"acceleration": None},
        {"solver": "mu"},
        {"solver": "mu", "acceleration": None},
        {"solver": HALS("blocks")},
        {"solver": HALS("tiles"), "acceleration": None},
        {"solver": "anls"},
        {"solver": ANLS(h_passes="exact")},
        {"n_lags": 1},
        {"n_lags": 1, "solver": "anls"},
        {"n_lags": 60},
        {"n_jobs": 2},
        {"background": True},
        {"x_ortho": 1e-3, "ortho_H": 1e-3, "ortho_W": 1e-3, "l1_H": 1e-3, "l1_W": 1e-3},
        {"boundary": "valid", "center": True},
        {"allow_negative": True},
    ]
    for parameters in (*plain, *ratios):
        yield X + X.dtype.type(parameters.get("beta_loss") == "itakura-saito"), parameters, {}
    for mask in (few, many):
        for parameters in (*plain[:1], {"n_jobs": 2}, {"background": True}, ratios[0]):
            yield X, parameters, {"mask": mask}
            yield csr_array(X), parameters, {"mask": mask}
    for parameters in ({"background": True}, ratios[0], ratios[2]):
        yield csr_array(X), parameters, {}
    empty = np.ones((_K, _L, _N))
    empty[0] = 0
    for data in (X, csr_array(X), _OnDisk(X)):
        yield data, {}, {"components_init": empty}  # a motif that is put where X is explained worst
        yield data, {"n_jobs": 2}, {}
    yield _OnDisk(X), ratios[0], {}
    for given in ({"activation_support": few[:, :_K]}, {"lengths": [100, 300]}):
        yield X, {}, given
        yield np.asfortranarray(X), ratios[0], given


def _used(X: Any, parameters: dict[str, Any], given: dict[str, Any]) -> None:
    """Fit, and what follows a fit."""
    from motifold import CNMF

    settings: dict[str, Any] = {
        "n_lags": _L,
        "max_iter": 20,
        "n_jobs": 1,
        "random_state": 0,
        **parameters,
    }
    model = CNMF(n_components=_K, **settings).fit(X, **given)
    asked = {name: given[name] for name in ("mask", "lengths") if name in given}
    model.score(X, **asked)


def _used_beside(dtype: str) -> None:
    """What is compiled beside the fit: events, discoveries, streams, seams of a cluster."""
    import numpy as np

    from motifold import CNMF, discover, find_events, refit_events, significance
    from motifold.kernels.tiles import sweep_seams

    X = _recording(dtype)
    model = CNMF(_K, _L, random_state=0, n_jobs=1).fit(X)
    model.inverse_transform(model.activations_)
    find_events(model, X=X)
    refit_events(model, X)
    significance(X, model, n_null=80)
    stream = model.stream()
    stream.push(X[:100])
    stream.flush()
    CNMF(_K, _L, random_state=0).partial_fit(X[:200]).partial_fit(X[200:])
    discover(X, n_lags=_L)
    h, weights = _L - 1, np.zeros(_K, dtype)
    seams = np.zeros((1, h, _K), dtype), np.zeros((1, 3 * h, _K), dtype)
    sweep_seams(*seams, np.ones((_K, 2 * _L - 1, _K), dtype), weights, weights)
