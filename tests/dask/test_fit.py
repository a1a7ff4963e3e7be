"""motifold.dask.CNMF: the fit of one machine, whoever does it and whatever happens to them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import motifold
from motifold.dask import CNMF, ClusterPlace
from motifold.engines.dask.crew import LocalCrew, Lost
from motifold.engines.dask.hands import Hands

pytestmark = pytest.mark.filterwarnings("ignore:CNMF stopped before it converged")
SETTINGS = {"n_components": 5, "n_lags": 20, "random_state": 0, "max_iter": 4, "tol": 0.03}


@pytest.fixture(scope="module")
def local(recording):
    return motifold.CNMF(**SETTINGS).fit(recording)


def test_a_fit_is_that_of_one_machine(client, recording, local, tmp_path):
    model = CNMF(**SETTINGS, client=client).fit(recording)
    np.testing.assert_allclose(model.history_.objective, local.history_.objective, rtol=1e-6)
    assert (model.n_iter_, model.stop_reason_) == (local.n_iter_, local.stop_reason_)
    np.testing.assert_allclose(model.components_, local.components_, atol=1e-8)
    assert model.activations_.numblocks[0] > 1  # in shards, on the workers
    activations = model.activations_.compute()
    np.testing.assert_allclose(activations, local.activations_, atol=1e-7)
    model.save(tmp_path / "model")
    loaded = motifold.load(tmp_path / "model")
    assert type(loaded) is motifold.CNMF
    np.testing.assert_array_equal(loaded.activations_, activations)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).activations_, activations)
    new = recording[:5000]
    np.testing.assert_allclose(model.transform(new).compute(), local.transform(new), atol=1e-7)
    assert model.score(new) == pytest.approx(local.score(new))


def test_segments_missing_entries_penalties_and_several_starts(client, recording):
    segments = [recording[:7000], recording[7000:]]
    mask = [np.random.default_rng(0).random(part.shape) > 0.1 for part in segments]
    settings = SETTINGS | {"n_init": 2, "x_ortho": 1e-3, "center": True, "max_iter": 2}
    settings |= {"acceleration": None, "solver": motifold.HALS(order="tiles")}
    model = CNMF(**settings, client=client).fit(segments, mask=mask)
    expected = motifold.CNMF(**settings).fit(segments, mask=mask)
    np.testing.assert_allclose(model.start_losses_, expected.start_losses_, rtol=1e-6)
    np.testing.assert_allclose(model.components_, expected.components_, atol=1e-6)
    np.testing.assert_allclose(model.observed_, expected.observed_, atol=1e-6)
    assert model.lengths_ == [7000, 6000]


@pytest.mark.parametrize("kind", ["dask", "zarr", "h5py", "memmap"])
def test_the_data_may_be_anywhere(client, recording, kind, tmp_path):
    X = recording
    if kind == "dask":
        X = pytest.importorskip("dask.array").from_array(recording, chunks=(3000, 5))
    elif kind == "zarr":
        zarr = pytest.importorskip("zarr")
        X = zarr.create_array(tmp_path / "x.zarr", data=recording, chunks=(2000, 8))
    elif kind == "h5py":
        h5py = pytest.importorskip("h5py")
        X = h5py.File(tmp_path / "x.h5", "w").create_dataset("x", data=recording, chunks=(2000, 8))
    elif kind == "memmap":
        np.save(tmp_path / "x.npy", recording)
        X = np.load(tmp_path / "x.npy", mmap_mode="r")
    settings = SETTINGS | {"max_iter": 1, "acceleration": None, "solver": "mu"}
    found = CNMF(**settings, client=client).fit(X)
    expected = CNMF(**settings, client=client).fit(recording)
    np.testing.assert_array_equal(found.activations_.compute(), expected.activations_.compute())


def test_files_by_their_paths(client, recording, tmp_path):
    zarr, polars = pytest.importorskip("zarr"), pytest.importorskip("polars")
    zarr.create_array(tmp_path / "a.zarr", data=recording[:7000], chunks=(2000, 8))
    frame = polars.DataFrame(recording[7000:], schema=[f"n{i}" for i in range(recording.shape[1])])
    frame.write_parquet(tmp_path / "b.parquet")
    settings = SETTINGS | {"max_iter": 1, "acceleration": None, "solver": "mu"}
    paths = [tmp_path / "a.zarr", str(tmp_path / "b.parquet")]
    found = CNMF(**settings, client=client).fit(paths)
    expected = CNMF(**settings, client=client).fit([recording[:7000], recording[7000:]])
    assert found.lengths_ == [7000, len(recording) - 7000]
    np.testing.assert_array_equal(found.components_, expected.components_)
    assert found.score(paths) == expected.score([recording[:7000], recording[7000:]])
    one = CNMF(**settings, client=client).fit(paths[1])
    assert one.feature_names_in_[1] == "n1"
    frame.with_columns(n0=polars.lit(None, polars.Float64)).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"X\[1\] contains NaN, first at row 0"):
        CNMF(**settings, client=client).fit([paths[1], tmp_path / "c.parquet"])


def test_a_fitted_model_comes_home(client, recording):
    model = CNMF(**SETTINGS | {"max_iter": 1}, client=client).fit(recording)
    home = model.to_local()
    assert type(home) is motifold.CNMF
    assert home.get_params() == model.get_params()
    np.testing.assert_array_equal(home.activations_, model.activations_.compute())
    assert home.stop_reason_ == model.stop_reason_


def test_a_sweep_sends_whole_fits(client, recording):
    X = recording[:400]
    grid = {"n_components": [1, 2], "n_lags": 5, "n_seeds": 2, "test": None, "max_iter": 3}
    grid |= {"tol": 0, "progress": False}
    found = motifold.sweep(X, client=client, **grid)
    expected = motifold.sweep(X, n_jobs=1, **grid)
    assert list(found.table["loss"]) == list(expected.table["loss"])


def test_a_bad_value_is_named_by_its_place(client, recording):
    X = recording.copy()
    X[12_345, 6] = np.nan
    with pytest.raises(ValueError, match="NaN, first at row 12345, column 6"):
        CNMF(**SETTINGS, client=client).fit(X)
    with pytest.raises(ValueError, match=r"X\[1\] at row 5345, column 6"):
        CNMF(**SETTINGS, client=client).fit([X[:7000], np.where(np.isnan(X), -1, X)[7000:]])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("beta_loss", "kullback-leibler"),
        ("device", "cuda"),
        ("solver", "anls"),
        ("solver", motifold.HALS(order="blocks")),
    ],
)
def test_what_cannot_be_is_refused_by_name(client, recording, parameter, value):
    with pytest.raises(ValueError, match=parameter):
        CNMF(**SETTINGS | {parameter: value}, client=client).fit(recording[:100])
    with pytest.raises(NotImplementedError, match="partial_fit"):
        CNMF(**SETTINGS, client=client).partial_fit(recording)


def test_a_clone_has_the_client_and_a_pickle_has_none(client):
    model = CNMF(3, 4, l1_H=0.5, client=client)
    copy = clone(model)
    assert copy.client is client
    assert copy.get_params() == model.get_params()
    assert "client" not in model.get_params()
    assert pickle.loads(pickle.dumps(model)).client is None


def test_ctrl_c_leaves_what_there_is(client, recording):
    def interrupt(state):
        if state.iteration == 2:
            raise KeyboardInterrupt

    model = CNMF(**SETTINGS, client=client, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(recording)
    assert model.stop_reason_ == "interrupted"
    assert model.activations_.compute().shape == (len(recording), 5)


def test_checkpoints_go_on_on_one_machine(client, recording, local, tmp_path):
    def interrupt(state):
        if state.iteration == 3:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        motifold.fit_with_checkpoint(
            CNMF(**SETTINGS, client=client, callback=interrupt), recording, path
        )
    assert path.exists()
    model = motifold.fit_with_checkpoint(motifold.CNMF(**SETTINGS), recording, path)
    np.testing.assert_allclose(model.history_.objective, local.history_.objective, rtol=1e-6)


def test_nothing_is_left_behind(client, recording):
    before = set(client.cluster.scheduler.tasks)
    model = CNMF(**SETTINGS | {"max_iter": 1}, client=client).fit(recording)
    model.activations_.compute()
    del model
    client.sync(_settled, client, before)
    assert set(client.cluster.scheduler.tasks) <= before


async def _settled(client, before):
    import asyncio

    for _ in range(200):
        if set(client.cluster.scheduler.tasks) <= before:
            return
        await asyncio.sleep(0.05)


# --- workers that are lost ------------------------------------------------------------------


class Shaky(LocalCrew):
    """Loses one of its members in some rounds; another comes in its place."""

    def __init__(self, rounds, n=2):
        super().__init__(n)
        self.lose, self.lost, self.joining = set(rounds), 0, 0

    def _call(self, calls):
        if self.rounds in self.lose:
            member = self.members[0]
            self._hands.pop(member).close()
            self.lost += 1
            self._hands[100 + self.lost] = Hands(1)
            raise Lost("one")
        return super()._call(calls)

    def newcomers(self):
        if self.joining:
            self.joining -= 1
            self._hands[200 + self.joining] = Hands(1)
            return ["new"]
        return []


class OnShaky(CNMF):
    """A fit with such a crew."""

    crew = None

    def _place(self, X, device=None):
        return ClusterPlace(lambda: self.crew, self)


def shaky_fit(X, rounds=(), joining=0, **settings):
    model = OnShaky(**SETTINGS | settings)
    model.crew = Shaky(rounds)
    model.crew.joining = joining
    return model.fit(X), model.crew


def test_a_lost_worker_changes_no_bit(recording):
    calm, crew = shaky_fit(recording)
    n = crew.rounds
    # At the start, on a part, between sweeps, in the last solve, when results are fetched.
    shaken, crew = shaky_fit(recording, rounds={9, n // 3, n // 2, n - 20, n - 1, n + 30})
    assert crew.lost >= 5
    np.testing.assert_array_equal(shaken.history_.objective, calm.history_.objective)
    np.testing.assert_array_equal(shaken.components_, calm.components_)
    np.testing.assert_array_equal(shaken.activations_, calm.activations_)


def test_a_worker_that_joins_is_used_and_changes_no_bit(recording, monkeypatch):
    monkeypatch.setattr("motifold.dask._SECONDS", 0.0)
    calm, _ = shaky_fit(recording)
    joined, crew = shaky_fit(recording, joining=1)
    assert crew.joining == 0
    np.testing.assert_array_equal(joined.activations_, calm.activations_)


def test_time_counts_on_after_a_loss(recording):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, _ = shaky_fit(recording, rounds={60, 90}, max_iter=3)
    assert np.all(np.diff(model.history_.seconds) >= 0)


def test_a_fit_that_loses_workers_for_ever_ends(recording):
    with pytest.raises(RuntimeError, match="lost 11 times in a row"):
        shaky_fit(recording, rounds=range(20, 10_000, 2))
