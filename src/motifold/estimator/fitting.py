"""The fit itself: from what a user gives to the fitted attributes, also under others' eyes."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from motifold._compat import with_callbacks
from motifold.data import Data
from motifold.data.factors import check_fixed
from motifold.data.given import Given
from motifold.data.observed import observed_shares
from motifold.engines.cuda.place import Place
from motifold.estimator.advice import (
    warn_if_empty,
    warn_if_ill_posed,
    warn_if_not_converged,
    warn_if_too_large,
    warn_if_turned,
)
from motifold.estimator.border import first_segment
from motifold.estimator.callbacks import Callbacks, Watcher
from motifold.estimator.estimating import Estimating
from motifold.fit import Acceleration, Clock, Loop, LoopState, Rules, SearchState, search
from motifold.fit.progress import ProgressBar
from motifold.fit.results import fitted_attributes
from motifold.fit.starts import agreement_of
from motifold.model import Mask
from motifold.solvers import find_solver

# Attributes that are arrays of the kind that X is.
_IN_KIND = {"components_", "activations_", "background_"}


class Fitting(Callbacks, Estimating):
    """What ``CNMF.fit`` does."""

    def _fit(
        self,
        X: Any,
        y: Any,
        lengths: Any,
        segments: Any,
        mask: Any,
        components_init: Any,
        activations_init: Any,
        activation_support: Any,
        watcher: Watcher | None = None,
    ) -> Self:
        self._validate_params()
        clock = Clock(self.max_time)
        solver = find_solver(self.solver, self._loss(), signed=bool(self.allow_negative))
        given = self._unpacked(X, lengths, segments, mask)
        place = self._place(given.X)
        warn_if_too_large(self._demand(given, place))
        with place:  # X is looked at where it is
            data = self._recording(given, place)
            fixed = self._fixed(has_start=components_init is not None)
            problem = self._problem(data, fixed, activation_support, place)
        W, H = self._given_factors(problem, components_init, activations_init)
        warn_if_ill_posed(self)
        if len(data.layout.lengths) == 1:
            warn_if_turned(data.T, data.N, int(self.n_lags))
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=int(self.n_init))
        record = SearchState(seeds.tolist())
        if watcher is not None:
            record = watcher.begin(record)
        keep_order = components_init is not None or activation_support is not None
        how = {"normalize": self.normalize, "keep_order": keep_order}
        with place, self._workers(problem) as workers, self._bar() as bar:
            engine = place.engine(problem, workers, solver)
            callback = self._callback(given.X, y, bar, engine, watcher)
            watched = place.watched(engine, record, callback, watcher is not None)
            loop = Loop(engine, solver, self._rules(), watched)
            # Starts may go side by side where nobody has to see one after the other.
            tell = bar.beside if watcher is None and self._is_alone else None

            def store(state: LoopState) -> None:
                self._keep(fitted_attributes(engine, state, **how), given, data, place)
                self.start_losses_ = record.all_losses

            def work() -> None:
                try:
                    state = search(loop, record, W, H, clock, tell)
                except KeyboardInterrupt:
                    if record.leader is not None:
                        store(record.leader)
                    raise
                store(state)

            place.safely(engine, work)
            if self.n_init > 1:
                bar.tell(agreement_of(record.all_losses, self.beta_loss).sentence)
        warn_if_empty(self)
        warn_if_not_converged(self)
        return self

    def _fixed(self, *, has_start: bool) -> Mask | None:
        if self.fixed_components is None:
            return None
        return check_fixed(self.fixed_components, int(self.n_components), has_start)

    def _rules(self) -> Rules:
        return Rules(
            max_iter=self.max_iter,
            tol=self.tol,
            acceleration=Acceleration() if self.acceleration == "auto" else None,
            center=self.center,
        )

    def _bar(self) -> ProgressBar:
        shown = bool(self.verbose)
        return ProgressBar(self.max_iter, self.n_init, shown, tol=self.tol, max_time=self.max_time)

    def _keep(self, fitted: dict[str, Any], given: Given, data: Data, place: Place) -> None:
        """Set what is known after a fit; what was known of another fit's data goes."""
        validate_data(self, first_segment(given.X), reset=True, skip_check_array=True)
        self.running_ = None  # a stream begins anew
        for name, value in (fitted | given.attributes).items():
            setattr(self, name, place.back(value) if name in _IN_KIND else value)
        masks = [segment.observed for segment in data.segments]
        self.observed_ = observed_shares(fitted["components_"], masks, self.lengths_)
        self.preparation_ = self.held_out_ = None


def fit_watched(
    model: Fitting,
    watcher: Watcher,
    X: Any,
    *,
    lengths: Any = None,
    segments: Any = None,
    mask: Any = None,
    components_init: Any = None,
    activations_init: Any = None,
    activation_support: Any = None,
) -> Fitting:
    """``model.fit`` under the eyes of a watcher: of checkpoints, for example."""
    fit = with_callbacks(type(model)._fit)
    arguments = (lengths, segments, mask, components_init, activations_init, activation_support)
    return fit(model, X, None, *arguments, watcher=watcher)
