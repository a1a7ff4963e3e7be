"""On a real GPU (``make test-gpu``): the kernels against their twins, and fits against the CPU's.

Without one these tests skip; with ``MOTIFOLD_NEEDS_GPU`` set that is a failure.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.engines.cpu import Workers
from motifold.engines.cuda import Device, DeviceError, device_of, engine_on
from motifold.model.motifs import motif_grams
from motifold.solvers import HALS, Inner

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


@pytest.fixture(scope="module")
def gpu():
    try:
        with device_of("cuda") as device:
            yield device
    except DeviceError as error:
        if os.environ.get("MOTIFOLD_NEEDS_GPU"):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("K", "L", "T"), [(5, 20, 1301), (1, 1, 77), (20, 12, 400), (3, 150, 999)])
def test_steps_are_the_twins(gpu, K, L, T, dtype):
    """Odd sizes, several segments: one step of everything."""
    from cases import make_case

    case = make_case([T - 40, 1, 39], N=17, K=K, L=L)
    steps = []
    with Workers(1) as workers:
        for device in (gpu, Device()):
            engine = engine_on(device, case.problem(dtype), workers)
            W, H = engine.put_motifs(case.W), engine.put(case.H)
            step = engine.step(W, H, HALS("tiles"), Inner(3), follow=0.0)
            steps.append((engine.motifs(step.W), engine.gather(step.H), step.sums))
    (W, H, sums), (W2, H2, sums2) = steps
    if dtype == np.float64:
        np.testing.assert_allclose(W, W2, atol=1e-8 * W2.max())
        np.testing.assert_allclose(H, H2, atol=1e-8 * H2.max())
    else:  # sweeps magnify what products round, entry by entry: they lead as far down
        assert case.objective(W, H) == pytest.approx(case.objective(W2, H2), rel=1e-3)
    tolerance = 1e-3 if dtype == np.float32 else 1e-8
    assert sums.fitted == pytest.approx(sums2.fitted, rel=tolerance)


def test_the_same_bits_every_time(gpu):
    X = make_sequences(5000, 30, 3, 10, random_state=0).X.astype(np.float32)
    fits = [CNMF(3, 10, random_state=0, max_iter=20, device="cuda").fit(X) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].activations_, fits[1].activations_)


def test_recorded_steps_are_the_same_bits(gpu, monkeypatch):
    """As a CUDA graph, and launch by launch."""
    from motifold.engines.cuda import engine, recording

    X = make_sequences(5000, 30, 3, 10, random_state=0).X.astype(np.float32)
    replayed = []
    begin = recording.Recording.begin
    monkeypatch.setattr(
        recording.Recording, "begin", lambda self, *a: replayed.append(1) or begin(self, *a)
    )
    fits = []
    for after in (5, 10**6):
        monkeypatch.setattr(engine, "_RECORDED_AFTER", after)
        fits.append(CNMF(3, 10, random_state=0, max_iter=60, tol=0, device="cuda").fit(X))
    assert len(replayed) > 30
    np.testing.assert_array_equal(fits[0].activations_, fits[1].activations_)
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)


@pytest.mark.parametrize("settings", [{}, {"solver": "mu"}, {"beta_loss": "kullback-leibler"}])
def test_fits_are_as_good_as_on_the_cpu(gpu, settings):
    X = make_sequences(5000, 30, 3, 10, random_state=0).X
    ours, theirs = (
        CNMF(3, 10, random_state=0, max_iter=200, device=device, **settings).fit(X)
        for device in ("cuda", "cpu")
    )
    assert ours.loss_ <= 1.02 * theirs.loss_  # the minima may differ


def test_streams(gpu):
    X = make_sequences(20_000, 30, 3, 10, random_state=0).X.astype(np.float32)
    memory = X.nbytes / 4
    small = CNMF(3, 10, random_state=0, max_iter=10, device="cuda", device_memory=memory).fit(X)
    whole = CNMF(3, 10, random_state=0, max_iter=10, device="cuda").fit(X)
    assert small.loss_ == pytest.approx(whole.loss_, rel=1e-3)


def test_torch_tensors(gpu):
    torch = pytest.importorskip("torch")
    X = torch.from_numpy(make_sequences(500, 10, 2, 5, random_state=0).X).cuda()
    model = CNMF(2, 5, random_state=0, max_iter=10).fit(X)
    assert model.components_.is_cuda


def test_gram_of_motifs(gpu):
    W = np.random.default_rng(0).random((6, 7, 3))
    V = W[:, ::-1].reshape(6, -1)
    S = gpu.put((V.T @ V).reshape(7, 3, 7, 3))
    gpu.kernels(3, 7, np.float64).diagonal_sums(S)
    np.testing.assert_allclose(gpu.host(S), motif_grams(W)[1], rtol=1e-12)
