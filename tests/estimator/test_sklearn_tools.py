"""CNMF among scikit-learn's tools: pipelines, searches, routing, containers, callbacks; librosa."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from motifold import CNMF

RNG = np.random.default_rng(0)
X = RNG.random((60, 5))


def test_pipeline():
    pipeline = make_pipeline(MaxAbsScaler(), CNMF(2, 3, random_state=0))
    activations = pipeline.fit_transform(X)
    assert activations.shape == (60, 2)
    np.testing.assert_allclose(pipeline.transform(X), activations, atol=1e-8)
    assert pipeline.inverse_transform(activations).shape == X.shape


def test_grid_search_uses_the_score():
    search = GridSearchCV(
        CNMF(1, 2, random_state=0, tol=1e-2), {"n_components": [1, 3]}, cv=KFold(3)
    ).fit(X)
    assert search.best_params_ == {"n_components": 3}
    assert -1 < search.best_score_ < 0


def test_segment_ids_are_routed_and_sliced_by_cross_validation():
    ids = np.repeat([0, 1, 2], 20)
    seen = []

    class Spy(CNMF):
        def fit(self, X, y=None, *, segments=None, **others):
            seen.append(np.asarray(segments))
            return super().fit(X, y, segments=segments, **others)

    with sklearn.config_context(enable_metadata_routing=True):
        model = Spy(2, 3, random_state=0, tol=1e-2)
        model.set_fit_request(segments=True).set_score_request(segments=True)
        GridSearchCV(model, {"l2_H": [0.0]}, cv=KFold(3), refit=False).fit(X, segments=ids)
    np.testing.assert_array_equal(seen[0], ids[20:])


@pytest.mark.parametrize("argument", ["lengths", "segments", "mask"])
@pytest.mark.parametrize("method", ["fit", "transform", "score"])
def test_arguments_are_routable_metadata(method, argument):
    with sklearn.config_context(enable_metadata_routing=True):
        model = CNMF(2, 3)
        getattr(model, f"set_{method}_request")(**{argument: True})
        requests = model.get_metadata_routing()
    assert getattr(requests, method).requests[argument] is True


def test_set_output_pandas_keeps_names_and_index():
    frame = pd.DataFrame(X, columns=list("abcde"), index=pd.RangeIndex(100, 160))
    model = CNMF(2, 3, random_state=0).set_output(transform="pandas")
    activations = model.fit_transform(frame)
    assert activations.columns.tolist() == ["cnmf0", "cnmf1"]
    assert activations.index.tolist() == frame.index.tolist()
    pd.testing.assert_frame_equal(model.transform(frame), activations, atol=1e-8)
    assert model.inverse_transform(activations).shape == X.shape
    assert model.get_feature_names_out().tolist() == ["cnmf0", "cnmf1"]


callbacks = pytest.mark.skipif(
    not hasattr(CNMF, "set_callbacks"), reason="this scikit-learn has no callbacks (1.9 has)"
)


@callbacks
def test_sklearns_callbacks_see_every_iteration_and_can_stop():
    calls = []

    class Watch:
        def setup(self, estimator, context):
            calls.append("setup")

        def teardown(self, estimator, context):
            calls.append("teardown")

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
            if context.task_name == "iteration":
                calls.append(fitted_estimator.score(X))
                return len(calls) == 5

    model = CNMF(2, 3, random_state=0, tol=0).set_callbacks(Watch()).fit(X)
    assert calls[0] == "setup"
    assert calls[-1] == "teardown"
    scores = calls[1:-1]
    assert len(scores) == 4
    assert np.all(np.diff(scores) >= -1e-9)
    assert model.stop_reason_ == "callback"
    assert model.n_iter_ == 4


@callbacks
def test_sklearns_scoring_monitor():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X)})
    model = CNMF(2, 3, random_state=0, tol=0, max_iter=4).set_callbacks(monitor)
    model.fit(X, np.zeros(60))
    scores = [row["score"] for row in monitor.get_logs().data if "score" in row]
    assert len(scores) == 4
    assert np.all(np.diff(scores) >= 0)


def test_librosa_decompose():
    librosa = pytest.importorskip("librosa")
    spectrogram = np.abs(RNG.standard_normal((20, 80)))  # librosa: frequencies × time
    motifs, activations = librosa.decompose.decompose(
        spectrogram, transformer=CNMF(3, 4, random_state=0)
    )
    assert activations.shape == (3, 80)
    model = CNMF(3, 4, random_state=0).fit(spectrogram.T)
    np.testing.assert_allclose(activations, model.activations_.T, atol=1e-8)
    assert motifs.size == model.components_.size
