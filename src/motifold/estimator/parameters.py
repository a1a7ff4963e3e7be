"""The parameters of CNMF and what each may be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from motifold.fit import LoopState
from motifold.model import PENALTIES, Boundary
from motifold.model.losses import NAMES as LOSSES
from motifold.solvers import SOLVERS, Solver

_NONNEGATIVE = Interval(Real, 0, None, closed="left")
_LARGEST = 2**63 - 1  # whole number of a parameter: Python has larger ones, arrays and clocks not


class Parameters(BaseEstimator):
    """What a user sets; ``CNMF`` tells what each means."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_lags": [Interval(Integral, 1, None, closed="left")],
        "solver": [StrOptions({"auto", *SOLVERS}), HasMethods(["update_W", "update_H"])],
        "beta_loss": [StrOptions(set(LOSSES)), Real],
        "init": [StrOptions({"random"})],
        **{penalty.name: [_NONNEGATIVE] for penalty in PENALTIES},
        "background": ["boolean"],
        "allow_negative": ["boolean"],
        "center": ["boolean"],
        "fixed_components": ["array-like", None],
        "boundary": [StrOptions({"zero", "valid"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "tol": [_NONNEGATIVE],
        "acceleration": [StrOptions({"auto"}), None],
        "normalize": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "n_jobs": [Integral, None],
        "device": [str, None],
        "precision": [StrOptions({"auto", "full"})],
        "device_memory": [Interval(Real, 0, None, closed="neither"), None],
        "memory_limit": [str, Interval(Real, 0, None, closed="neither"), None],
    }

    def __init__(
        self,
        n_components: int,
        n_lags: int,
        *,
        solver: str | Solver = "auto",
        beta_loss: str | float = "frobenius",
        init: str = "random",
        l1_W: float = 0,
        l2_W: float = 0,
        l1_H: float = 0,
        l2_H: float = 0,
        x_ortho: float = 0,
        ortho_H: float = 0,
        ortho_W: float = 0,
        background: bool = False,
        allow_negative: bool = False,
        center: bool = False,
        fixed_components: Any = None,
        boundary: Boundary = "zero",
        max_iter: int = 1000,
        max_time: float | None = None,
        tol: float = 1e-3,
        acceleration: Literal["auto"] | None = "auto",
        normalize: bool = True,
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = None,
        warm_start: bool = False,
        callback: Callable[[LoopState], bool] | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        device: str | None = None,
        precision: Literal["auto", "full"] = "auto",
        device_memory: float | None = None,
        memory_limit: str | float | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_lags = n_lags
        self.solver = solver
        self.beta_loss = beta_loss
        self.init = init
        self.l1_W = l1_W
        self.l2_W = l2_W
        self.l1_H = l1_H
        self.l2_H = l2_H
        self.x_ortho = x_ortho
        self.ortho_H = ortho_H
        self.ortho_W = ortho_W
        self.background = background
        self.allow_negative = allow_negative
        self.center = center
        self.fixed_components = fixed_components
        self.boundary = boundary
        self.max_iter = max_iter
        self.max_time = max_time
        self.tol = tol
        self.acceleration = acceleration
        self.normalize = normalize
        self.n_init = n_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.callback = callback
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.device = device
        self.precision = precision
        self.device_memory = device_memory
        self.memory_limit = memory_limit

    # Python's own message on a wrong argument names the class that people know.
    __init__.__qualname__ = "CNMF.__init__"

    def _validate_params(self) -> None:
        """Raise unless each parameter is what it may be."""
        if isinstance(self.n_lags, str):
            raise ValueError(
                f"n_lags counts time bins, and {self.n_lags!r} is text. With the rate of a "
                f"recording (motifold.io.read), recording.bins({self.n_lags!r}) counts them."
            )
        super()._validate_params()
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, Integral) and abs(int(value)) > _LARGEST:
                raise ValueError(f"{name} is a number of {len(str(abs(value)))} digits, too large.")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickle; in those of 0.1 some attributes had private names.

        Parameters that there were not yet have their defaults.
        """
        names = {"_lengths": "lengths_", "_recording": "origin_"}
        names |= {"_transform_tol": "transform_tol_", "_solved": "solved_"}
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if parameter.default is not parameter.empty and name not in state:
                state = {**state, name: parameter.default}
        super().__setstate__({names.get(name, name): value for name, value in state.items()})
