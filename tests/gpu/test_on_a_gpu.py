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


def one_after_the_other(state):
    """A callback: who looks at iterations sees one start after the other."""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("K", "L", "T"), [(3, 10, 700), (2, 1, 300), (4, 150, 900)])
def test_steps_of_several_starts(gpu, K, L, T, dtype):
    """As one, recorded, they do what each does by itself, to the rounding of products."""
    from cases import make_case

    from motifold.engines.cuda.beside import Asked
    from motifold.engines.cuda.recording import Recording

    case = make_case([T - 40, 1, 39], N=17, K=K, L=L)
    with Workers(1) as workers:
        engine = engine_on(gpu, case.problem(dtype), workers)
        rng = np.random.default_rng(0)
        starts = [
            (engine.put_motifs(case.W * rng.random(case.W.shape)), engine.put(case.H))
            for _ in range(3)
        ]
        asked = [Asked(engine, W, H, HALS("tiles"), Inner(4, 0.1)) for W, H in starts]
        recording = asked[0].recorded(3)
        assert isinstance(recording, Recording)
        assert recording.works
        begun = recording.begin_all(*zip(*starts, strict=True))
        again = recording.begin_all(*zip(*starts, strict=True))
        np.testing.assert_array_equal(gpu.host(begun.H), gpu.host(again.H))
        for number, (W, H) in enumerate(starts):
            ours = asked[number].told(begun, number, 3)
            theirs = engine.step(W, H, HALS("tiles"), Inner(4, 0.1), follow=0.0)
            tolerance = 1e-3 if dtype == np.float32 else 1e-8
            assert ours.kkt_W == pytest.approx(theirs.kkt_W, rel=tolerance)
            assert ours.sums.fitted == pytest.approx(theirs.sums.fitted, rel=tolerance)
            if dtype == np.float64:
                W, H = engine.motifs(theirs.W), engine.gather(theirs.H)
                np.testing.assert_allclose(engine.motifs(ours.W), W, atol=1e-8 * W.max())
                np.testing.assert_allclose(engine.gather(ours.H), H, atol=1e-8 * H.max())


def test_starts_side_by_side(gpu):
    X = make_sequences(2000, 30, 3, 10, random_state=0).X.astype(np.float32)
    settings = {"n_init": 5, "random_state": 0, "device": "cuda"}
    beside, again = (CNMF(3, 10, **settings).fit(X) for _ in range(2))
    np.testing.assert_array_equal(beside.activations_, again.activations_)
    apart = CNMF(3, 10, callback=one_after_the_other, **settings).fit(X)
    assert beside.loss_ == pytest.approx(apart.loss_, rel=1e-2)


@pytest.mark.parametrize(("K", "L", "N"), [(5, 20, 250), (1, 2, 31), (3, 50, 141), (20, 12, 257)])
def test_passes_without_cublas(gpu, K, L, N, monkeypatch):
    """P, C and the residual are those of products, also where segments end and H is sparse."""
    from motifold.data.validation import recording_of
    from motifold.engines.cpu import Problem
    from motifold.engines.cuda import passes

    rng = np.random.default_rng(0)
    X = rng.random((5000, N), dtype=np.float32)
    W = rng.random((N, L, K), dtype=np.float32)
    for density in (0.03, 1.0):
        H = rng.random((5000, K)).astype(np.float32) * (rng.random((5000, K)) < density)
        found = []
        for least in (0, 2**60):
            monkeypatch.setattr(passes, "_DIRECT_FROM", least)
            monkeypatch.setattr(passes, "_BINS_OF_C", least)
            data = recording_of(X, [3000, 7, 1993], None, None)
            with Workers(1) as workers:
                engine = engine_on(gpu, Problem.of(data, K, L), workers)
                w, h = engine.put_motifs(W), engine.put(H.astype(np.float32))
                P = gpu.host(engine.passes.lag_products(h, gram=False)[0])
                C = gpu.host(engine.passes.correlation(w))
                found.append((P, C, engine.passes.squared_residual(w, h)()))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())


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
