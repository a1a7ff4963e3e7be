"""Who is told of every iteration: the progress bar, the user, scikit-learn, a watcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from motifold._compat import CallbackSupportMixin
from motifold.engines.base import Engine
from motifold.estimator.parameters import Parameters
from motifold.fit import LoopState, SearchState
from motifold.fit.progress import ProgressBar
from motifold.fit.results import fitted_attributes


class Watcher(Protocol):
    """Who sees every iteration of a fit, and may give it another record to go on from."""

    def begin(self, record: SearchState) -> SearchState:
        """The record that the fit shall use: the given one, or that of an earlier process."""

    def __call__(self, state: LoopState) -> None:
        """Note an iteration."""


class Callbacks(CallbackSupportMixin, Parameters):
    """One function of all who want to be told."""

    def _callback(
        self, X: Any, y: Any, bar: ProgressBar, engine: Engine, watcher: Watcher | None
    ) -> Callable[[LoopState], bool]:
        """One function for the progress bar, the user's callback and scikit-learn's."""
        tell_sklearn = self._sklearn_callbacks(X, y, engine)

        def callback(state: LoopState) -> bool:
            if watcher is not None:
                watcher(state)
            bar(state)
            stop = self.callback is not None and bool(self.callback(state))
            return tell_sklearn(state) or stop

        return callback

    @property
    def _is_alone(self) -> bool:
        """Whether neither the user nor scikit-learn is to be told of iterations."""
        return self.callback is None and not hasattr(self, "_skl_callbacks")

    def _sklearn_callbacks(self, X: Any, y: Any, engine: Engine) -> Callable[[LoopState], bool]:
        """A function that tells scikit-learn's callbacks of an iteration, if there are any."""
        if not hasattr(self, "_init_callback_context"):
            return lambda state: False
        context = self._init_callback_context(max_subtasks=int(self.max_iter) * int(self.n_init))
        context.call_on_fit_task_begin(estimator=self, X=X, y=y)
        if not hasattr(self, "_skl_callbacks"):
            return lambda state: False

        def tell(state: LoopState) -> bool:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self, X=X, y=y)
            return task.call_on_fit_task_end(
                estimator=self,
                X=X,
                y=y,
                reconstruction_attributes=lambda: (
                    {"n_features_in_": engine.facts.N}
                    | fitted_attributes(engine, state, normalize=self.normalize, keep_order=True)
                ),
            )

        return tell
