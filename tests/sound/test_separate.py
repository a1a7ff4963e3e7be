"""A sound taken apart: parts that add up, and that are the sounds it was made of."""

from __future__ import annotations

import numpy as np
import pytest
from drums import RATE, STRIKES, at_the_ends, best_si_sdr, samples, si_sdr, snr, stems

from motifold import CNMF
from motifold.sound import separate
from motifold.sound.masks import shares


@pytest.fixture(scope="module")
def mixture():
    return sum(stems().values())


def mean_si_sdr(parts):
    """Of parts that have the names of the stems."""
    return np.mean([si_sdr(stem, parts[name].astype(float)) for name, stem in stems().items()])


@pytest.fixture(scope="module")
def apart(mixture):
    return separate(mixture, RATE, n_components=3, n_lags="150ms", random_state=0)


def test_the_parts_are_the_stems_and_add_up(mixture, apart):
    assert apart.names == ["motif-0", "motif-1", "motif-2"]
    parts = list(apart.parts.values())
    assert all(part.shape == mixture.shape for part in parts)
    assert snr(mixture, parts) > 100
    assert best_si_sdr(stems().values(), parts) > 10
    given = at_the_ends(mixture)
    assert all(at_the_ends(part) < max(0.01, 3 * given) for part in parts)


def test_channels_and_length_are_kept():
    """Of opposite phase, too: masks are of magnitudes, in which nothing cancels."""
    found = stems()
    left = sum(found.values())
    both = np.column_stack([left, -left])[:-77]
    apart = separate(both, RATE, n_components=3, n_lags="150ms", random_state=0, n_init=3)
    parts = list(apart.parts.values())
    assert all(part.shape == both.shape for part in parts)
    assert snr(both, parts) > 100
    np.testing.assert_allclose(parts[0][:, 0], -parts[0][:, 1], atol=1e-6)
    assert best_si_sdr([s[:-77] for s in found.values()], [p[:, 0] for p in parts]) > 5


@pytest.mark.parametrize("fix", [False, True])
def test_templates(mixture, fix):
    apart = separate(mixture, RATE, templates=samples(), fix=fix, n_lags="150ms")
    assert apart.names == ["kick", "snare", "hihat"]
    assert mean_si_sdr(apart.parts) > 12
    assert snr(mixture, apart.parts.values()) > 100
    more = separate(mixture, RATE, templates=samples(), fix=fix, n_components=4, max_iter=5, tol=0)
    assert more.names == ["kick", "snare", "hihat", "motif-3"]
    if fix:
        assert list(more.model.fixed_components) == [0, 1, 2]


def test_a_score(mixture):
    """Activations are where the score has its sounds, and nowhere else."""
    names = {"score": STRIKES, "ring": 0.1, "n_lags": "150ms"}
    apart = separate(mixture, RATE, templates=samples(), **names)
    rate = apart.spectrogram.rate
    times = np.arange(len(apart.activations)) / rate
    for k, strikes in enumerate(STRIKES.values()):
        active = times[apart.activations[:, k] > 0]
        since = active[:, None] - np.array(strikes)
        near = (since >= -0.05 - 1 / rate) & (since <= 0.15 + 1 / rate)
        assert near.any(axis=1).all()
    assert mean_si_sdr(apart.parts) > 12
    assert separate(mixture, RATE, score=STRIKES).names == list(STRIKES)


def test_a_background_is_a_part():
    """Hiss that is always there is no part of the kick."""
    kick = stems()["kick"]
    hiss = 0.01 * np.random.default_rng(0).standard_normal(len(kick))
    options = {"background": True, "n_init": 1, "representation": {"noise_floor": 0}}
    apart = separate(kick + hiss, RATE, n_components=1, random_state=0, **options)
    assert apart.names == ["motif-0", "background"]
    assert snr(kick + hiss, apart.parts.values()) > 100
    assert np.corrcoef(apart.parts["background"], hiss)[0, 1] > 0.8
    assert si_sdr(kick, apart.parts["motif-0"].astype(float)) > 20


def test_an_earlier_model(mixture, apart):
    again = separate(mixture, RATE, model=apart.model)
    assert again.model is apart.model
    for one, other in zip(again.parts.values(), apart.parts.values(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-2)
    with pytest.raises(ValueError, match="features"):
        separate(mixture, RATE, model=apart.model, representation={"n_fft": 1024})


def test_a_file_that_is_not_there_is_no_damaged_one():
    with pytest.raises(FileNotFoundError, match=r"missing\.wav: there is no such file"):
        separate("missing.wav", n_components=2)


def test_what_cannot_be_taken_apart(mixture):
    for options, told in [
        ({}, "n_components"),
        ({"n_components": 2, "templates": samples()}, "3 templates"),
        ({"n_components": 2, "fix": True}, "there are none"),
        ({"n_components": 2, "representation": {"hop_length": 400}}, "tremolo"),
    ]:
        with pytest.raises(ValueError, match=told):
            separate(mixture, RATE, **options)
    with pytest.raises(ValueError, match=r"y\.T"):
        separate(np.zeros((2, 1000)), RATE, n_components=1)
    with pytest.raises(ValueError, match="32767"):
        separate(np.zeros(1000, np.int16), RATE, n_components=1)


def test_masks_sum_to_one_where_nothing_is():
    rng = np.random.default_rng(0)
    parts = [rng.random((20, 9)) * (rng.random((20, 9)) > 0.5) for _ in range(3)]
    parts[0][3, 3] = 1e-200  # its square is zero
    parts[1][3, 3] = parts[2][3, 3] = 0
    for exponent in (0.5, 1, 2, 10):
        masks = shares(parts, exponent)
        np.testing.assert_allclose(sum(masks), 1)
        assert min(mask.min() for mask in masks) >= 0
        assert masks[0][3, 3] == 1


def test_silence(tmp_path):
    model = CNMF(2, 3, random_state=0).fit(np.random.default_rng(0).random((30, 257)))
    apart = separate(np.zeros(4000), RATE, model=model)
    assert all(not part.any() for part in apart.parts.values())
