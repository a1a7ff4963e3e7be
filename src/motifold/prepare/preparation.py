"""Several steps in their order, as a model keeps them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from motifold.data import Segments
from motifold.data.refused import check_model
from motifold.prepare.base import Step
from motifold.prepare.baseline import SubtractBaseline
from motifold.prepare.scaling import ScaleFeatures
from motifold.prepare.smoothing import Smooth
from motifold.prepare.square_root import SquareRoot


class Preparation(Step):
    """Steps that are done one after the other; what a model's file keeps.

    ``model.preparation_`` of a model that the command line fitted, or that ``from_pipeline``
    returned. ``CNMF`` itself does not apply it: give ``model.transform`` what
    ``model.preparation_.transform`` returns, or take ``to_pipeline(model)``.

    Parameters
    ----------
    steps : list of SubtractBaseline, SquareRoot, Smooth and ScaleFeatures
        In the order in which they are done.

    Attributes
    ----------
    steps_ : list
        The fitted steps.
    n_features_in_ : int
    feature_names_in_ : ndarray of str, where X has names

    Examples
    --------
    >>> import numpy as np
    >>> from motifold.prepare import Preparation, ScaleFeatures, SquareRoot
    >>> X = np.array([[0.0, 4.0], [16.0, 0.0]])
    >>> preparation = Preparation([SquareRoot(), ScaleFeatures(by="max")]).fit(X)
    >>> preparation.transform(X).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> preparation.describe()
    'square root of every entry; every feature divided by its largest value'
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"steps": ["array-like"]}

    def __init__(self, steps: list[Any]) -> None:
        self.steps = steps

    @classmethod
    def of(
        cls,
        *,
        baseline: float | None = None,
        square_root: bool = False,
        smooth: float | None = None,
        causal: bool = False,
        rate: float = 1.0,
        scale: Literal["std", "mean-variance", "max"] | None = None,
    ) -> Preparation | None:
        """In the order of the command line: baseline, square root, smoothing, scaling.

        The baseline is in the data's own units; the root is of counts, not of their means; and
        scaling comes last, so that it holds for what is fitted.

        Parameters
        ----------
        baseline : float or None
            The quantile of ``SubtractBaseline``.
        square_root : bool
        smooth : float or None
            Seconds.
        causal : bool
        rate : float
        scale : str or None

        Returns
        -------
        Preparation or None
            None where nothing is to be done.
        """
        steps: list[Step] = []
        if baseline is not None:
            steps.append(SubtractBaseline(baseline))
        if square_root:
            steps.append(SquareRoot())
        if smooth is not None:
            steps.append(Smooth(smooth, rate=rate, causal=causal))
        if scale is not None:
            steps.append(ScaleFeatures(by=scale))
        return cls(steps) if steps else None

    def describe(self) -> str:
        """What is done, in a few words.

        Returns
        -------
        str
        """
        return "; ".join(step.describe() for step in getattr(self, "steps_", self.steps))

    def _learn(self, X: Any, segments: Segments) -> None:
        for step in self.steps:
            if not isinstance(step, Step):
                raise TypeError(
                    f"{step!r} is no step of a preparation: there are SubtractBaseline, "
                    "SquareRoot, Smooth and ScaleFeatures. Put others before it in a Pipeline."
                )
        steps = [clone(step) for step in self.steps]
        for i, step in enumerate(steps):
            step.fit(X, lengths=segments.lengths)
            if i < len(steps) - 1:
                X = step.transform(X, lengths=segments.lengths)
        self.steps_ = steps

    def _apply(self, X: Any, segments: Segments) -> Any:
        if not self.steps_:
            return X.copy()
        for step in self.steps_:
            X = step.transform(X, lengths=segments.lengths)
        return X


def from_pipeline(pipeline: Pipeline) -> Any:
    """The model at the end of a fitted ``Pipeline``, with the steps before it as its preparation.

    So that ``model.save(path)`` keeps them: a file never holds a pickle, but these steps it can.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Fitted; steps of ``motifold.prepare``, then a ``CNMF``.

    Returns
    -------
    CNMF
        The very model of the pipeline, its ``preparation_`` set.

    Examples
    --------
    >>> import os, tempfile
    >>> import motifold
    >>> from sklearn.pipeline import make_pipeline
    >>> from motifold.datasets import make_sequences
    >>> from motifold.prepare import ScaleFeatures, from_pipeline, to_pipeline
    >>> X = make_sequences(200, 10, 2, 5, random_state=0).X
    >>> pipeline = make_pipeline(ScaleFeatures(), motifold.CNMF(2, 5, random_state=0)).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.npz")
    ...     from_pipeline(pipeline).save(path)
    ...     loaded = to_pipeline(motifold.load(path))
    >>> bool((loaded.transform(X) == pipeline.transform(X)).all())
    True
    """
    *before, (_, model) = pipeline.steps
    if not hasattr(model, "components_"):
        raise ValueError("The last step of the pipeline is no fitted CNMF: fit the pipeline first.")
    steps: list[Step] = []
    for name, step in before:
        if isinstance(step, Preparation):
            steps += step.steps_
        elif isinstance(step, Step):
            steps.append(step)
        elif step not in (None, "passthrough"):
            raise TypeError(
                f"The step {name!r} is a {type(step).__name__}, which a model's file cannot hold: "
                "it never holds code. Apply it beforehand, or keep the whole pipeline by joblib."
            )
    model.preparation_ = fitted_preparation(steps) if steps else None
    return model


def fitted_preparation(steps: list[Any]) -> Preparation:
    """A fitted preparation from steps that are fitted."""
    for step in steps:
        check_is_fitted(step)
    found = Preparation([clone(step) for step in steps])
    found.steps_ = steps
    found.n_features_in_ = steps[0].n_features_in_
    if hasattr(steps[0], "feature_names_in_"):
        found.feature_names_in_ = steps[0].feature_names_in_
    return found


def to_pipeline(model: Any) -> Pipeline:
    """A fitted ``Pipeline`` of a model's preparation and the model.

    Parameters
    ----------
    model : CNMF
        Fitted, such as ``motifold.load`` returns.

    Returns
    -------
    sklearn.pipeline.Pipeline
        Its steps are "preparation", where there is one, and "cnmf".

    Examples
    --------
    >>> import numpy as np
    >>> from motifold import CNMF
    >>> from motifold.prepare import to_pipeline
    >>> model = CNMF(1, 2, random_state=0).fit(np.eye(4))
    >>> [name for name, _ in to_pipeline(model).steps]
    ['cnmf']
    """
    check_model(model)
    before = [] if model.preparation_ is None else [("preparation", model.preparation_)]
    return Pipeline([*before, ("cnmf", model)])
