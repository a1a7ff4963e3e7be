"""The paper's synthetic data: sequences of smooth bumps, activated at random, plus noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Sequences:
    """Synthetic data with the truth it was made from.

    Attributes
    ----------
    X : (n_samples, n_features), nonnegative
    components : (n_components, n_lags, n_features), the true motifs
    activations : (n_samples, n_components), the true activations
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
    alpha: float = 0.1,
    sigma: float = 0.2,
    activation_probability: float = 0.9,
    noise: float = 0.1,
    random_state: int | np.random.Generator | None = None,
) -> Sequences:
    """Make the synthetic data of the paper's section IV-A.

    The defaults are the values that reproduce the paper's published curves. Its text has
    ``noise=1``, and can be read as ``activation_probability=0.1``.

    Parameters
    ----------
    n_samples, n_features, n_components, n_lags : int
        The paper's T, N, K and L.
    alpha : float
        Concentration of the symmetric Dirichlet distribution that loads a feature on the motifs:
        small values put each feature in one motif.
    sigma : float
        Width of a bump, in units of half the motif's length.
    activation_probability : float
        Probability that an activation is not zero; it is then exponential with mean 1.
    noise : float
        Standard deviation of the Gaussian noise; the sum is cut off at zero.
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
