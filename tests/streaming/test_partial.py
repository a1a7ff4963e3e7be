"""Learning from a stream: joints, memory, quality, and what is kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import reference
from scipy import sparse

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.findings import hold_out
from motifold.io import Recording
from motifold.matching import match_motifs
from motifold.model.penalties import penalties_of
from motifold.solvers import HALS
from motifold.streaming.learning import Settings, begun, learn

L = 6
DATA = make_sequences(3000, 12, 2, L, activation_probability=0.05, noise=0.1, random_state=1)
X = DATA.X


def chunks(X, n):
    return [X[a : a + n] for a in range(0, len(X), n)]


def passes_over(model, X, n, passes, seed=0):
    """In chunks of random order, each a segment of its own."""
    rng = np.random.default_rng(seed)
    parts = chunks(X, n)
    for _ in range(passes):
        for i in rng.permutation(len(parts)):
            model.partial_fit(parts[i], new_segment=True)
    return model


def test_after_some_passes_it_is_as_good_as_a_fit():
    batch = CNMF(2, L, n_init=3, random_state=0).fit(X)
    model = passes_over(CNMF(2, L, n_init=3, random_state=0), X, 500, 3)
    assert -model.score(X) < 1.03 * batch.loss_
    assert match_motifs(batch.components_, model.components_).similarity.min() > 0.98


def test_a_stream_does_not_begin_in_a_poor_minimum():
    """Dense activations, where single starts differ twofold and chunks do not lead out of them."""
    dense = make_sequences(1200, 20, 3, 8, random_state=0).X
    streams, fits = [], []
    for seed in (1, 2):
        model = CNMF(3, 8, random_state=seed)
        for chunk in chunks(dense, 300):
            model.partial_fit(chunk, new_segment=True)
        streams.append(-model.score(dense))
        fits.append(CNMF(3, 8, random_state=seed).fit(dense).loss_)
    assert max(streams) < 1.05 * max(fits)


def test_one_pass_in_order_learns_the_motifs_that_were_planted():
    model = CNMF(2, L, n_init=3, random_state=0)
    for chunk in chunks(X, 400):
        model.partial_fit(chunk)
    assert match_motifs(DATA.components, model.components_).similarity.min() > 0.9
    assert model.n_iter_ == 8
    assert model.stop_reason_ == "stream"
    assert model.transform(X[:100]).shape == (100, 2)
    assert model.loss_ == pytest.approx(-model.score(X), rel=0.1)


def test_the_sums_of_chunks_are_those_of_the_whole(monkeypatch):
    """With motifs that are held: P and B add up over joints as if there were none."""
    rng = np.random.default_rng(0)
    W, K = rng.random((12, L, 2)), 2
    settings = Settings("zero", penalties_of(K), np.ones(K, bool), False, False, HALS(), 1)

    def state_after(n):
        state = begun(W, 1.0)
        for chunk in chunks(X[:600], n):
            state = learn(settings, state, chunk, None, forget=None).state
        return state

    monkeypatch.setattr("motifold.streaming.learning._FADING", 0.0)
    whole, pieces = state_after(600), state_after(100)
    assert whole.n_seen == pieces.n_seen == 600
    assert whole.weight == pieces.weight
    np.testing.assert_allclose(pieces.P, whole.P, rtol=2e-2, atol=2e-2 * whole.P.max())
    np.testing.assert_allclose(pieces.B, whole.B, rtol=2e-2, atol=2e-2 * whole.B.max())
    H = reference.solve_H(X[:40], W)
    alone = learn(settings, begun(W, 1.0), X[:40], None, ends=True)
    np.testing.assert_allclose(alone.activations, H, atol=2e-2 * H.max())
    tilde_P, tilde_B = reference.w_statistics(X[:40], alone.activations, L)
    np.testing.assert_allclose(alone.state.P, tilde_P.reshape(12, -1), atol=1e-9)
    np.testing.assert_allclose(alone.state.B, tilde_B.reshape(L * K, L * K), atol=1e-9)


def test_a_motif_across_a_joint_is_not_lost():
    """One that lies on every joint alone: nothing of it is whole in any chunk."""
    T, n = 800, 20
    X = np.zeros((T, 4))
    for joint in range(n, T - 4, n):
        X[joint - 2 + np.arange(4), np.arange(4)] = 1 + 0.1 * np.sin(joint)
    start = np.eye(4)[None] + 0.3 * np.random.default_rng(0).random((1, 4, 4))
    model = CNMF(1, 4, random_state=0)
    for i, chunk in enumerate(chunks(X, n)):
        model.partial_fit(chunk, components_init=start if i == 0 else None)
    assert -model.score(X) < 0.05
    cut = CNMF(1, 4, random_state=0)
    for i, chunk in enumerate(chunks(X, n)):
        cut.partial_fit(chunk, components_init=start if i == 0 else None, new_segment=True)
    assert -cut.score(X) > 0.2


def test_what_is_kept_does_not_grow():
    model = CNMF(2, L, random_state=0)
    sizes = set()
    for i, chunk in enumerate(chunks(X, 100)):
        model.partial_fit(chunk)
        state = vars(model.running_).values()
        if i:
            sizes.add(sum(value.nbytes for value in state if isinstance(value, np.ndarray)))
    assert len(sizes) == 1
    assert model.activations_.shape == (100 + 2 * (L - 1), 2)


def drifting(T=4000, seed=0):
    """A motif that moves from features 0 to 3 to features 4 to 7."""
    rng = np.random.default_rng(seed)
    share = np.linspace(0, 1, T)
    X = 0.02 * rng.random((T, 8))
    for start in range(5, T - 4, 11):
        X[start + np.arange(4), np.arange(4)] += 1 - share[start]
        X[start + np.arange(4), 4 + np.arange(4)] += share[start]
    return X


def test_drift_is_followed_with_forget_and_not_without():
    X = drifting()
    now = np.zeros((1, 4, 8))
    now[0, np.arange(4), 4 + np.arange(4)] = 1
    followed, kept = CNMF(1, 4, random_state=0), CNMF(1, 4, random_state=0)
    for chunk in chunks(X, 200):
        followed.partial_fit(chunk, forget=300)
        kept.partial_fit(chunk)
    near, far = (match_motifs(now, m.components_).similarity[0] for m in (followed, kept))
    assert near > 0.98
    assert near > far


def test_a_stream_goes_on_after_it_was_saved(tmp_path):
    one = CNMF(2, L, random_state=0)
    for chunk in chunks(X[:800], 200):
        one.partial_fit(chunk)
    one.save(tmp_path / "model.npz")
    two = motifold.load(tmp_path / "model.npz")
    for chunk in chunks(X[800:1200], 200):
        one.partial_fit(chunk)
        two.partial_fit(chunk)
    np.testing.assert_array_equal(one.components_, two.components_)
    assert two.running_.n_seen == 1200


def test_fit_begins_anew_and_a_stream_goes_on_from_a_fit():
    model = CNMF(2, L, random_state=0).fit(X[:1000])
    before = model.components_
    model.partial_fit(X[1000:1400])
    assert match_motifs(before, model.components_).similarity.min() > 0.9
    assert model.fit(X[:500]).running_ is None
    expected = CNMF(2, L, random_state=0).fit(X[:500]).components_
    np.testing.assert_array_equal(model.components_, expected)


def test_what_was_known_of_the_data_of_a_fit_is_not_told_of_a_stream(tmp_path):
    """Shares of what was observed, hold-outs and clocks have the sizes of their own data."""
    mask = np.ones(X[:400].shape, dtype=bool)
    mask[50:80] = False
    whole = Recording(X[:400], "x", 10.0, lengths=(150, 250), starts=(5.0, 90.0))
    model = CNMF(2, L, n_init=2, random_state=0).fit(whole, mask=mask)
    model.held_out_ = hold_out(X[:600], 1 / 3, gap=0)
    assert model.observed_ is not None
    model.partial_fit(X[400:500])
    kept = model.origin_, model.held_out_, model.preparation_, model.start_losses_, model.observed_
    assert kept == (None,) * 5
    model.partial_fit(X[500:600], mask=mask[:100])
    assert model.observed_.shape == model.activations_.shape
    assert 0 < np.mean(model.observed_ < 0.5) < 0.5
    model.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(motifold.load(tmp_path / "model.npz").observed_, model.observed_)


def test_a_chunk_may_be_a_recording():
    names = tuple(f"unit {i}" for i in range(X.shape[1]))
    plain, named = CNMF(2, L, random_state=0), CNMF(2, L, random_state=0)
    for a in (0, 200):
        plain.partial_fit(X[a : a + 200])
        named.partial_fit(Recording(X[a : a + 200], "x", feature_names=names))
    np.testing.assert_array_equal(plain.components_, named.components_)
    assert tuple(named.feature_names_in_) == names
    with pytest.raises(ValueError, match="The features are not those of the fit"):
        named.partial_fit(Recording(X[:200], "x", feature_names=names[::-1]))
    with pytest.raises(ValueError, match="one chunk at a time"):
        named.partial_fit(Recording(X[:200], "x", lengths=(100, 100)))


def test_masks_sparse_and_precision():
    mask = np.random.default_rng(0).random(X.shape) > 0.1
    holes = np.where(mask, X, np.nan)
    model = CNMF(2, L, n_init=3, random_state=0)
    for a in range(0, 3000, 500):
        model.partial_fit(holes[a : a + 500], mask=mask[a : a + 500])
    assert match_motifs(DATA.components, model.components_).similarity.min() > 0.9
    dense, listed = CNMF(2, L, random_state=0), CNMF(2, L, random_state=0)
    for chunk in chunks(X[:1000].astype(np.float32), 500):
        dense.partial_fit(chunk)
        listed.partial_fit(sparse.csr_array(chunk))
    assert dense.components_.dtype == np.float32
    np.testing.assert_array_equal(dense.components_, listed.components_)


def test_fixed_motifs_stay_and_penalties_weigh():
    fixed = DATA.components[:1]
    start = np.concatenate([fixed, np.random.default_rng(0).random((1, L, 12))])
    model = CNMF(2, L, fixed_components=[0], random_state=0)
    with pytest.raises(ValueError, match="fixed_components needs the motifs"):
        model.partial_fit(X[:500])
    for i, chunk in enumerate(chunks(X, 500)):
        model.partial_fit(chunk, components_init=start if i == 0 else None)
    np.testing.assert_array_equal(model.components_[0], fixed[0])
    assert match_motifs(DATA.components, model.components_).similarity.min() > 0.9
    sparser = CNMF(2, L, l1_H=2.0, l2_W=1.0, random_state=0)
    plain = CNMF(2, L, random_state=0)
    for chunk in chunks(X[:1000], 500):
        sparser.partial_fit(chunk)
        plain.partial_fit(chunk)
    assert (sparser.activations_ > 0).mean() < (plain.activations_ > 0).mean()


def test_a_background_and_data_below_zero():
    settings = {"background": True, "allow_negative": True, "n_init": 3, "random_state": 0}
    model, batch = CNMF(2, L, **settings), CNMF(2, L, **settings).fit(X - 0.5)
    for chunk in chunks(X - 0.5, 500):
        model.partial_fit(chunk)
    assert -model.score(X - 0.5) < 1.1 * batch.loss_
    np.testing.assert_allclose(model.background_, batch.background_, atol=0.1)


def test_extreme_units_change_nothing():
    plain, tiny = CNMF(2, L, random_state=0), CNMF(2, L, random_state=0)
    for chunk in chunks(X[:1000], 500):
        plain.partial_fit(chunk)
        tiny.partial_fit(chunk * 2.0**-200)
    np.testing.assert_allclose(tiny.components_, plain.components_, atol=1e-6)
    np.testing.assert_allclose(tiny.activations_ * 2.0**200, plain.activations_, rtol=1e-5)


def test_no_lags_and_short_chunks():
    model = CNMF(2, 1, random_state=0)
    for chunk in chunks(X[:300], 50):
        model.partial_fit(chunk)
    assert -model.score(X[:300]) < 1.2 * CNMF(2, 1, random_state=0).fit(X[:300]).loss_
    rows = CNMF(2, L, random_state=0).partial_fit(X[:200])
    for row in X[200:230]:
        rows.partial_fit(row[None])
    assert rows.running_.n_seen == 230


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"beta_loss": "kullback-leibler"}, "beta_loss='kullback-leibler' cannot be streamed"),
        ({"x_ortho": 0.1}, "x_ortho cannot be streamed"),
        ({"ortho_H": 0.1}, "ortho_H cannot be streamed"),
        ({"center": True}, "center cannot be streamed"),
        ({"device": "cuda:twin"}, "runs on the CPU, not on a GPU"),
    ],
)
def test_what_cannot_be_streamed_is_refused_by_name(parameters, told):
    with pytest.raises(ValueError, match=f"partial_fit:? {told}"):
        CNMF(2, L, **parameters).partial_fit(X[:100])


@pytest.mark.parametrize("solver", ["anls", "mu"])
def test_other_solvers(solver):
    model = CNMF(2, L, solver=solver, random_state=0)
    start = DATA.components + 0.3 * np.random.default_rng(0).random(DATA.components.shape)
    for i, chunk in enumerate(chunks(X, 500)):
        model.partial_fit(chunk, components_init=start if i == 0 else None)
    assert -model.score(X) < 1.2 * CNMF(2, L, n_init=3, random_state=0).fit(X).loss_


def test_bad_chunks_change_nothing():
    model = CNMF(2, L, random_state=0).partial_fit(X[:200])
    components, state = model.components_, model.running_
    bad = X[:50].copy()
    bad[3, 1] = -1
    for given, told in (
        (bad, "row 3, column 1"),
        (X[:50, :5], "has 5 features"),
        ([X[:50], X[:50]], "one chunk at a time"),
    ):
        with pytest.raises(ValueError, match=told):
            model.partial_fit(given)
    with pytest.raises(ValueError, match="forget must be"):
        model.partial_fit(X[:50], forget=0)
    assert model.components_ is components
    assert model.running_ is state
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[200:250])
