"""
Why convolutive: the paper's Figure 1
=====================================

The same recording described twice: by NMF, which needs five components, and by convolutive NMF,
which needs two, because it sees that some components always follow each other.
"""

# %%
# The recording
# -------------
# Twenty features fire in five groups of four. The groups are not independent: three of them
# always fire one after the other, and so do the other two. These two sequences are the motifs;
# each occurs now and then, and they may overlap.

# sphinx_gallery_thumbnail_number = 3
import matplotlib.pyplot as plt
import numpy as np

from motifold import CNMF
from motifold.plots import plot_factors

groups = np.kron(np.eye(5), np.ones(4))  # (group, feature)
motifs = np.stack(
    [
        np.repeat(groups[[0, 1, 2]], [3, 5, 4], axis=0),  # three groups, for 3, 5 and 4 bins
        np.repeat(groups[[4, 3]], [7, 5], axis=0),  # two groups, for 7 and 5 bins
    ]
)
rng = np.random.default_rng(1)
activations = np.zeros((300, 2))
for k, (first, step) in enumerate([(5, 31), (14, 43)]):
    times = np.arange(first, 285, step)
    activations[times + rng.integers(-4, 5, len(times)), k] = rng.uniform(0.5, 1.5, len(times))

X = np.zeros((300, 20))
for lag in range(motifs.shape[1]):
    X[lag:] += activations[: 300 - lag] @ motifs[:, lag]

# %%
# How many components does it take?
# ---------------------------------
# NMF is the case of a single lag. Its loss falls until each of the five groups has its component.
# With more lags two components do. The motifs are twelve time bins long; some lags more let them
# lie anywhere among the lags, which makes them easier to find.

n_lags = 20


def loss(n_components: int, n_lags: int) -> float:
    """Relative loss of the best of several starts."""
    model = CNMF(n_components, n_lags, n_init=10, max_iter=3000, tol=1e-5, random_state=0)
    return model.fit(X).loss_


ranks = [1, 2, 3, 4, 5, 6]
nmf_losses = [loss(K, 1) for K in ranks]
cnmf_losses = [loss(K, n_lags) for K in ranks[:3]]

figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.plot(ranks, nmf_losses, "o-", color="#0072B2", label="NMF (L = 1)")
axes.plot(ranks[:3], cnmf_losses, "s--", color="#D55E00", label=f"convolutive NMF (L = {n_lags})")
axes.set(xlabel="components", ylabel="relative loss", xticks=ranks)
axes.set_ylim(bottom=0)
axes.legend(frameon=False)

# %%
# NMF with five components
# ------------------------
# Each component is a group of features that fire together. That some groups follow each other can
# be read only from the five rows of activations, by comparing them.

nmf = CNMF(5, 1, n_init=10, max_iter=3000, tol=1e-5, random_state=0).fit(X)
plot_factors(nmf, X, figure=plt.figure(figsize=(11, 6.5)), time_range=(0, 150), sort_features=False)

# %%
# Convolutive NMF with two components
# -----------------------------------
# The sequences themselves are the components, and the activations say when each occurs.

cnmf = CNMF(2, n_lags, n_init=10, max_iter=3000, tol=1e-5, random_state=0).fit(X)
plot_factors(
    cnmf, X, figure=plt.figure(figsize=(11, 6.5)), time_range=(0, 150), sort_features=False
)
plt.show()
