"""Preparation and model together: in a Pipeline, in a file, and back."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.prepare import (
    Preparation,
    ScaleFeatures,
    Smooth,
    SquareRoot,
    SubtractBaseline,
    from_pipeline,
    to_pipeline,
)

X = make_sequences(300, 8, 2, 6, activation_probability=0.05, noise=0.1, random_state=0).X
STEPS = [SubtractBaseline(0.1), SquareRoot(), Smooth(0.1, rate=10, causal=True), ScaleFeatures()]


@pytest.fixture
def pipeline():
    return make_pipeline(*map(sklearn.clone, STEPS), CNMF(2, 6, random_state=0)).fit(X)


def test_a_file_keeps_the_steps_and_what_they_learnt(pipeline, tmp_path):
    path = tmp_path / "model.npz"
    from_pipeline(pipeline).save(path)
    loaded = motifold.load(path)
    new = 3 * X[::-1]
    np.testing.assert_array_equal(to_pipeline(loaded).transform(new), pipeline.transform(new))
    assert loaded.preparation_.describe() == Preparation(STEPS).describe()
    assert [step.get_params() for step in loaded.preparation_.steps_] == [
        step.get_params() for step in STEPS
    ]
    loaded.save(tmp_path / "again.npz")
    again = motifold.load(tmp_path / "again.npz")
    np.testing.assert_array_equal(to_pipeline(again).transform(new), pipeline.transform(new))


def test_segments_go_through_the_pipeline_by_routing():
    ids = np.repeat([0, 1], 150)
    with sklearn.config_context(enable_metadata_routing=True):
        smooth = Smooth(3.0).set_fit_request(segments=True).set_transform_request(segments=True)
        model = CNMF(2, 6, random_state=0).set_fit_request(segments=True)
        found = make_pipeline(smooth, model).fit(X, segments=ids)[-1]
    prepared = [Smooth(3.0).fit_transform(part) for part in (X[:150], X[150:])]
    expected = CNMF(2, 6, random_state=0).fit(prepared)
    np.testing.assert_array_equal(found.components_, expected.components_)


def test_a_new_fit_forgets_the_preparation_of_the_last(pipeline):
    model = from_pipeline(pipeline)
    model.held_out_ = motifold.hold_out(X, 0.3, gap=5)
    model.fit(X)
    assert model.preparation_ is None
    assert model.held_out_ is None


def test_what_a_file_cannot_hold_is_refused():
    pipeline = make_pipeline(MinMaxScaler(), CNMF(2, 6, random_state=0)).fit(X)
    with pytest.raises(TypeError, match="'minmaxscaler' is a MinMaxScaler, which a model's file"):
        from_pipeline(pipeline)
    with pytest.raises(ValueError, match="no fitted CNMF"):
        from_pipeline(make_pipeline(SquareRoot(), CNMF(2, 6)))


def damaged(path, change):
    """The file with its JSON changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["motifold.json"])
    change(header, members)
    members["motifold.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def npy(array) -> bytes:
    import io

    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


SCALE = "preparation_.3.scale_.npy"
DAMAGES = {
    "does not know": lambda h, m: h["preparation"].append({"step": "log", "params": {}}),
    "list of steps": lambda h, m: h.update(preparation={}),
    "has the parameters": lambda h, m: h["preparation"][2]["params"].update(code="x"),
    "lacks a parameter": lambda h, m: h["preparation"][2]["params"].pop("seconds"),
    "'seconds' parameter": lambda h, m: h["preparation"][2]["params"].update(seconds=-1.0),
    "above zero": lambda h, m: m.update({SCALE: npy(np.zeros(8))}),
    "must be finite": lambda h, m: m.update({SCALE: npy(np.full(8, np.inf))}),
    "has shape": lambda h, m: m.update({SCALE: npy(np.ones(7))}),
    "has no preparation_.3.scale_": lambda h, m: m.pop(SCALE),
    "whole numbers": lambda h, m: h["held_out"].update(gap=-1),
    "stretches must rise": lambda h, m: h["held_out"].update(stretches=[[9, 3]]),
    "do not make": lambda h, m: h["held_out"].update(lengths=[10**15]),
    "hexadecimal": lambda h, m: h["held_out"].update(fingerprint="../../etc"),
    "held_out has what": lambda h, m: h["held_out"].pop("gap"),
}


@pytest.mark.parametrize("told", DAMAGES)
def test_a_damaged_preparation_or_hold_out_is_refused(told, tmp_path):
    split = motifold.hold_out(X, 0.3, gap=5)
    pipeline = make_pipeline(*map(sklearn.clone, STEPS), CNMF(2, 6, random_state=0, tol=0.1))
    model = from_pipeline(pipeline.fit(X[split.train]))
    model.held_out_ = split
    path = tmp_path / "model.npz"
    model.save(path)
    assert motifold.load(path).held_out_ == split
    damaged(path, DAMAGES[told])
    with pytest.raises(ValueError, match=told):
        motifold.load(path)
