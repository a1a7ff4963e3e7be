"""The paper's synthetic data: sequences of smooth bumps, activated at random, plus noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

# What the paper's section IV-A says, and what its published curves show: they start near 0.37 and
# fall to 0.024, which takes ten times less noise.
_PRESETS = {
    "figures": {"activation_probability": 0.9, "noise": 0.1},
    "text": {"activation_probability": 0.9, "noise": 1.0},
}


@dataclass(frozen=True)
class Sequences:
    """Synthetic data with the truth it was made from.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
        Nonnegative.
    components : ndarray of shape (n_components, n_lags, n_features)
        The true motifs.
    activations : ndarray of shape (n_samples, n_components)
        The true activations.

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> data = make_sequences(200, 10, 2, 5, noise=0.0, random_state=0)
    >>> type(data).__name__, data.X.shape, data.components.shape, data.activations.shape
    ('Sequences', (200, 10), (2, 5, 10), (200, 2))
    """

    X: npt.NDArray[np.float64]
    components: npt.NDArray[np.float64]
    activations: npt.NDArray[np.float64]


def make_sequences(
    n_samples: int = 2500,
    n_features: int = 250,
    n_components: int = 5,
    n_lags: int = 20,
    *,
    preset: Literal["figures", "text"] = "figures",
    alpha: float = 0.1,
    sigma: float = 0.2,
    activation_probability: float | None = None,
    noise: float | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Sequences:
    """Make the synthetic data of the paper's section IV-A.

    Parameters
    ----------
    n_samples, n_features, n_components, n_lags : int
        The paper's T, N, K and L.
    preset : {"figures", "text"}, default="figures"
        Values for what is not given below. The paper's text and its published curves do not agree
        on the noise: "figures" (probability 0.9, noise 0.1) gives curves like the published ones,
        "text" (probability 0.9, noise 1) is what is written. Where the text calls the activations
        sparse, one may also think of ``activation_probability=0.1``.
    alpha : float
        Concentration of the symmetric Dirichlet distribution that loads a feature on the motifs:
        small values put each feature in one motif.
    sigma : float
        Width of a bump, in units of half the motif's length.
    activation_probability : float or None, default=None
        Probability that an activation is not zero; it is then exponential with mean 1. None takes
        the preset's.
    noise : float or None, default=None
        Standard deviation of the Gaussian noise; the sum is cut off at zero. None takes the
        preset's.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    Sequences

    Examples
    --------
    >>> from motifold.datasets import make_sequences
    >>> data = make_sequences(500, 30, 3, 10, random_state=0)
    >>> data.X.shape, data.components.shape, data.activations.shape
    ((500, 30), (3, 10, 30), (500, 3))
    """
    if preset not in _PRESETS:
        raise ValueError(f"preset must be one of {', '.join(_PRESETS)}, not {preset!r}.")
    if activation_probability is None:
        activation_probability = _PRESETS[preset]["activation_probability"]
    if noise is None:
        noise = _PRESETS[preset]["noise"]
    rng = np.random.default_rng(random_state)
    centres = rng.uniform(-1, 1, (n_components, 1, n_features))
    loadings = rng.dirichlet(np.full(n_components, alpha), n_features).T[:, None, :]
    times = (2 * np.arange(1, n_lags + 1) / n_lags - 1)[:, None]
    bumps = np.exp(-0.5 * ((times - centres) / sigma) ** 2) / (sigma * np.sqrt(2 * np.pi))
    W = loadings * bumps

    H = rng.exponential(1.0, (n_samples, n_components))
    H *= rng.random(H.shape) < activation_probability

    X = np.zeros((n_samples, n_features))
    for lag in range(min(n_lags, n_samples)):
        X[lag:] += H[: n_samples - lag] @ W[:, lag]
    X += noise * rng.standard_normal(X.shape)
    return Sequences(np.maximum(X, 0, out=X), W, H)
