"""CNMF on a device: its NumPy twin, and a false CuPy whose kernels are the real ones."""

from __future__ import annotations

import os
import pickle
import shutil
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

import motifold
import motifold.engines.cuda.blas
import motifold.engines.cuda.compiled as compiled
import motifold.engines.cuda.gpu as gpu
from motifold import ANLS, CNMF, HALS
from motifold.datasets import make_sequences
from motifold.engines.cuda import DeviceError
from motifold.storage.checkpoint import fit_with_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = make_sequences(120, 8, 2, 4, random_state=0).X
TWIN = "cuda:twin"
of_the_default = pytest.mark.skipif(
    "MOTIFOLD_TEST_DEVICE" in os.environ, reason="of fits where no device is asked for"
)


@pytest.fixture
def cupy(monkeypatch, tmp_path_factory):
    """The false CuPy in place of the real one."""
    if shutil.which("g++") is None and not os.environ.get("MOTIFOLD_NEEDS_COMPILERS"):
        pytest.skip("g++ is absent")
    import fake_cupy

    # Where there is a real CuPy, its cuBLAS is not for false arrays.
    monkeypatch.setattr(motifold.engines.cuda.blas, "_loaded", lambda: None)
    machine = fake_cupy.machine
    for name, value in vars(type(machine)).items():
        if not name.startswith("_") and not isinstance(value, property):
            monkeypatch.setattr(machine, name, value)
    folder = tmp_path_factory.getbasetemp() / "built"
    folder.mkdir(exist_ok=True)
    machine.folder = folder
    monkeypatch.setattr(compiled, "_THREADS", 64)  # fibers: the fewer the sooner
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy)
    gpu.imported.cache_clear()
    yield fake_cupy
    gpu.imported.cache_clear()


@pytest.fixture
def without_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    gpu.imported.cache_clear()
    yield
    gpu.imported.cache_clear()


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"beta_loss": "kullback-leibler", "acceleration": None},
        {"beta_loss": "itakura-saito", "acceleration": None, "background": True},
        {"beta_loss": 0.5, "acceleration": None, "x_ortho": 0.01, "l2_W": 0.1, "l1_H": 0.1},
        {"center": True, "n_init": 2, "max_iter": 10},
        {"n_lags": 1, "boundary": "valid"},
    ],
    ids=str,
)
def test_as_on_the_cpu(settings):
    """At this length both have one tile: the same steps."""
    options = {"n_components": 2, "n_lags": 4, "random_state": 0, "max_iter": 15, **settings}
    ours, theirs = (
        CNMF(**options, device=device).fit(X[:60] + 0.1, lengths=[40, 20])
        for device in (TWIN, "cpu")
    )
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-6)
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-4, atol=1e-5)
    assert ours.score(X + 0.1) == pytest.approx(theirs.score(X + 0.1), rel=1e-4)
    assert (np.diff(ours.history_.objective) <= 1e-9).all()


def test_missing_entries_and_given_motifs_as_on_the_cpu():
    mask = np.random.default_rng(0).random(X.shape) < 0.8
    given = np.random.default_rng(1).random((2, 4, 8))
    options = {"random_state": 0, "max_iter": 10, "fixed_components": [0], "acceleration": None}
    ours, theirs = (
        CNMF(2, 4, device=device, **options).fit(X, mask=mask, components_init=given)
        for device in (TWIN, "cpu")
    )
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-6)
    np.testing.assert_array_equal(ours.components_[0], theirs.components_[0])


@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_a_support_as_on_the_cpu(loss):
    support = np.random.default_rng(0).random((60, 2)) < 0.5
    options = {"random_state": 0, "max_iter": 10, "beta_loss": loss, "acceleration": None}
    ours, theirs = (
        CNMF(2, 4, device=device, **options).fit(X[:60], activation_support=support)
        for device in (TWIN, "cpu")
    )
    assert ours.loss_ == pytest.approx(theirs.loss_, rel=1e-6)
    allowed = support if ours.activations_[~support].sum() == 0 else support[:, ::-1]
    assert not ours.activations_[~allowed].any()  # motifs may have been sorted
    found = ours.transform(X[:60], activation_support=support)
    expected = theirs.transform(X[:60], activation_support=support)
    np.testing.assert_allclose(found, expected, atol=1e-3 * expected.max())


def test_extreme_data():
    for scale in (1e-200, 1e200):
        model = CNMF(2, 4, random_state=0, max_iter=5, device=TWIN).fit(X[:50] * scale)
        plain = CNMF(2, 4, random_state=0, max_iter=5, device=TWIN).fit(X[:50])
        assert model.loss_ == pytest.approx(plain.loss_, rel=1e-6)


def test_transform_does_not_depend_on_the_device():
    model = CNMF(2, 4, random_state=0, tol=1e-4).fit(X)
    expected = model.transform(X)
    found = model.set_params(device=TWIN).transform(X)
    np.testing.assert_allclose(found, expected, atol=1e-4 * expected.max())


def test_a_fit_goes_on_where_there_is_no_gpu(tmp_path):
    """A checkpoint of the device, resumed on the CPU."""
    path = tmp_path / "fit.checkpoint"

    def stop(state) -> None:
        if state.iteration == 6:
            raise KeyboardInterrupt

    options = {"random_state": 0, "max_iter": 12, "tol": 0}
    model = CNMF(2, 4, device=TWIN, callback=stop, **options)
    with pytest.raises(KeyboardInterrupt):
        fit_with_checkpoint(model, X, path=path, every=0)
    assert path.exists()
    resumed = fit_with_checkpoint(CNMF(2, 4, **options), X, path=path, resume=True)
    through = CNMF(2, 4, **options).fit(X)
    assert resumed.n_iter_ == 12
    assert resumed.loss_ == pytest.approx(through.loss_, rel=1e-3)


@of_the_default
def test_a_file_has_no_device(tmp_path):
    model = CNMF(2, 4, random_state=0, max_iter=3, device=TWIN, device_memory=1e9).fit(X)
    model.save(tmp_path / "model.npz")
    loaded = motifold.load(tmp_path / "model.npz")
    assert loaded.device is None
    assert loaded.device_memory is None
    np.testing.assert_array_equal(loaded.components_, model.components_)


def test_streamed_with_little_memory():
    small = CNMF(2, 4, random_state=0, max_iter=5, device=TWIN, device_memory=X.nbytes / 4).fit(X)
    whole = CNMF(2, 4, random_state=0, max_iter=5, device=TWIN).fit(X)
    assert small.loss_ == pytest.approx(whole.loss_, rel=1e-9)


def test_rounded_products_move_motifs_and_judge_nothing(monkeypatch):
    """TF32 while the residual is large: another way, the same guarantees, the loss exact."""
    monkeypatch.setattr("motifold.engines.cuda.engine._LARGE", 0)
    data, losses = X.astype(np.float32), []
    for precision in ("auto", "full"):
        model = CNMF(2, 4, random_state=0, tol=1e-3, device=TWIN, precision=precision).fit(data)
        left = data - model.inverse_transform(model.activations_)
        assert model.loss_ == pytest.approx(np.linalg.norm(left) / np.linalg.norm(data), rel=1e-4)
        assert (np.diff(model.history_.objective) <= 1e-5 * model.history_.objective[:-1]).all()
        assert model.converged_
        losses.append(model.loss_)
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


# --- on the false CuPy --------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "masked"),
    [
        ({"x_ortho": 0.01, "l1_H": 0.01, "l2_W": 0.01}, True),
        ({"ortho_H": 0.1, "ortho_W": 0.1, "boundary": "valid", "background": True}, True),
        ({"precision": "auto", "dtype": np.float32}, False),
        ({"solver": "mu"}, True),
        ({"beta_loss": "kullback-leibler", "background": True, "x_ortho": 0.01}, False),
        ({"beta_loss": 0.5, "l2_H": 0.1, "l2_W": 0.1}, True),
        ({"center": True, "n_init": 2}, False),
        ({"device_memory": 800.0}, True),
    ],
    ids=str,
)
def test_the_whole_of_it_with_real_kernels(cupy, settings, masked):
    """No array of the host meets one of the device; the numbers are the twin's."""
    settings = dict(settings)
    data = (X[:40] + 0.05).astype(settings.pop("dtype", np.float64))
    mask = np.random.default_rng(0).random(data.shape) < 0.8 if masked else None
    options = {"n_components": 2, "n_lags": 3, "random_state": 0, "max_iter": 3, "tol": 0.1}
    options |= settings
    ours, twins = (
        CNMF(device=device, **options).fit(data, lengths=[25, 15], mask=mask)
        for device in ("cuda:1", TWIN)
    )
    assert type(ours.components_) is np.ndarray
    assert ours.loss_ == pytest.approx(twins.loss_, rel=1e-4)
    assert ours.score(data) == pytest.approx(twins.score(data), rel=1e-3)
    assert cupy.machine.freed


def test_results_come_back_in_the_kind_that_came_in(cupy, tmp_path):
    there = cupy.asarray(X[:50])
    options = {"n_components": 2, "n_lags": 3, "random_state": 0, "max_iter": 4}
    model = CNMF(**options).fit(there, lengths=[30, 20])
    plain = CNMF(**options, device=TWIN).fit(X[:50], lengths=[30, 20])
    for array in (model.components_, model.activations_, model.transform(there)):
        assert isinstance(array, cupy.ndarray)
    back = model.inverse_transform(model.activations_, lengths=[30, 20])
    assert isinstance(back, cupy.ndarray)
    np.testing.assert_allclose(model.components_.get(), plain.components_, atol=1e-6)
    assert model.n_features_in_ == 8
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(
        motifold.load(tmp_path / "model.npz").components_, model.components_.get()
    )
    on_cpu = CNMF(**options, device="cpu").fit(there)
    assert isinstance(on_cpu.components_, cupy.ndarray)
    listed = CNMF(**options).fit([there[:30], there[30:]], mask=[X[:30] >= 0, X[30:50] >= 0])
    np.testing.assert_allclose(listed.components_.get(), plain.components_, atol=1e-6)


def test_a_bad_value_on_the_device_is_told_with_its_place(cupy):
    bad = X[:50].copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="row 7, column 3"):
        CNMF(2, 3).fit(cupy.asarray(bad))


def test_out_of_memory_changes_nothing(cupy):
    model = CNMF(2, 3, random_state=0, max_iter=2, device="cuda").fit(X[:40])
    before, freed = pickle.dumps(model.components_), cupy.machine.freed
    cupy.machine.memory = 1000
    with pytest.raises(MemoryError, match=r"cuda:0 has too little free memory.*device_memory"):
        model.fit(X)
    assert pickle.dumps(model.components_) == before
    assert cupy.machine.freed > freed


def test_a_device_that_is_lost(cupy):
    model = CNMF(2, 3, random_state=0, max_iter=2, device="cuda")
    cupy.machine.failure = cupy.CUDARuntimeError("cudaErrorDevicesUnavailable: busy")
    with pytest.raises(DeviceError, match="cuda:0 failed: cudaErrorDevicesUnavailable"):
        model.fit(X[:40])
    assert not hasattr(model, "components_")


def test_arrays_on_two_devices(cupy):
    with cupy.cuda.Device(1):
        there = cupy.asarray(X[:40])
    with pytest.raises(DeviceError, match=r'An array is on cuda:1, the fit on cuda:0.*"cuda:1"'):
        CNMF(2, 3, device="cuda:0").fit(there)
    model = CNMF(2, 3, random_state=0, max_iter=2, device="cuda").fit(there)
    assert model.transform(there).device.id == 1
    assert cupy.machine.current == 0


def test_a_device_that_is_not_there(cupy):
    with pytest.raises(DeviceError, match=r'this machine has "cuda:0", "cuda:1" only'):
        CNMF(2, 3, device="cuda:2").fit(X)
    cupy.machine.devices = 0
    with pytest.raises(DeviceError, match="no GPU that CUDA can see"):
        CNMF(2, 3, device="cuda").fit(X)
    cupy.machine.devices = -1
    with pytest.raises(DeviceError, match="no NVIDIA driver, or it is too old"):
        CNMF(2, 3, device="cuda").fit(X)


# --- refusals -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("without_cupy")
@of_the_default
def test_without_cupy():
    with pytest.raises(DeviceError, match=r"motifold\[cuda12\].*motifold\[cuda13\]"):
        CNMF(2, 3, device="cuda").fit(X)
    CNMF(2, 3, max_iter=1).fit(X)


def test_what_is_no_device():
    with pytest.raises(ValueError, match='"cuda" or "cuda:N"'):
        CNMF(2, 3, device="gpu").fit(X)


class Own:
    def update_W(self, W, statistics, penalties, inner): ...
    def update_H(self, H, statistics, penalties, inner): ...


@pytest.mark.parametrize(
    "solver", [ANLS(), "anls", HALS("blocks"), Own()], ids=["ANLS", "anls", "blocks", "own"]
)
def test_solvers_of_the_cpu_are_refused_by_name(solver):
    with pytest.raises(ValueError, match=r'runs on the CPU.*device="cpu"'):
        CNMF(2, 3, solver=solver, device=TWIN).fit(X)


def test_sparse_data_is_refused_by_name():
    with pytest.raises(TypeError, match=r'sparse matrix.*device="cpu"'):
        CNMF(2, 3, device=TWIN).fit(csr_array(X))


# --- around it ------------------------------------------------------------------------------------


def test_a_sweep_on_a_device_knows_the_runs_of_the_cpu(tmp_path, monkeypatch):
    options = {"n_components": [1, 2], "n_lags": 3, "n_seeds": 1, "test": None, "n_null": 0}
    options |= {"path": tmp_path / "runs", "progress": False, "max_iter": 3, "n_jobs": 1}
    first = motifold.sweep(X[:60], device=TWIN, **options)
    with monkeypatch.context() as patched:
        patched.setattr(CNMF, "fit", None)  # nothing is fitted again
        again = motifold.sweep(X[:60], **options)
    assert list(again.table["loss"]) == list(first.table["loss"])
    assert "device" not in first.table.columns
    with pytest.raises(ValueError, match="device must be None"):
        motifold.sweep(X[:60], n_components=1, n_lags=3, n_seeds=1, device="gpu", progress=False)


def test_the_command_line(tmp_path, monkeypatch):
    from click.testing import CliRunner

    from motifold.cli import main

    np.save(tmp_path / "x.npy", X[:60])
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "x.npy", "-k", "2", "-l", "3", "--max-iter", "3", "--json"]
    done = CliRunner().invoke(main, [*fit, "--device", TWIN])
    assert done.exit_code == 0, done.output
    refused = CliRunner().invoke(main, [*fit, "--device", "gpu", "-o", "other.npz"])
    assert refused.exit_code == 1
    assert "device must be" in refused.output


@pytest.mark.usefixtures("without_cupy")
def test_the_doctor_says_what_is_missing():
    from motifold.engines.cuda import Census

    assert "motifold[cuda12]" in Census().facts["none"]


def test_the_doctor_tells_of_gpus(cupy):
    from motifold.engines.cuda import Census

    assert Census().facts["cuda:1"] == ("False GPU, compute capability 9.0, 8.0 of 16.0 GiB free")


def test_starts_side_by_side_on_the_second_device(cupy):
    """What there is to do at once is done there, whichever thread does it."""
    settings = {"n_init": 2, "random_state": 0, "max_iter": 9, "tol": 0.05, "device": "cuda:1"}
    data = X[:40, :4]
    beside = CNMF(1, 2, **settings).fit(data)
    apart = CNMF(1, 2, callback=lambda state: False, **settings).fit(data)
    np.testing.assert_array_equal(beside.components_, apart.components_)
    np.testing.assert_array_equal(beside.start_losses_, apart.start_losses_)
    assert cupy.machine.current == 0


def test_threads_with_streams_of_their_own_do_not_meet(cupy, monkeypatch):
    """Nothing would put what they launch in order."""
    from motifold.engines.cuda.together import Meeting

    served, plain = [], Meeting._serve
    monkeypatch.setattr(Meeting, "_serve", lambda *a: served.append(1) or plain(*a))
    settings = {"n_init": 2, "random_state": 0, "max_iter": 2, "device": "cuda"}
    CNMF(1, 2, **settings).fit(X[:40, :4])
    assert served
    served.clear()
    monkeypatch.setenv("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "1")
    assert len(CNMF(1, 2, **settings).fit(X[:40, :4]).start_losses_) == 2
    assert not served
