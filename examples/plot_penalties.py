"""
Too many motifs: what penalties do
==================================

With K larger than the truth a fit splits and repeats motifs. The x-ortho penalty of seqNMF takes
the copies away; a sweep over its weight λ shows where it begins to cost.
"""

# %%
# Five motifs for two sequences
# -----------------------------

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.plots import plot_crossover, plot_motifs

X = make_sequences(800, 24, 2, 10, activation_probability=0.03, noise=0.15, random_state=3).X
settings = {"n_components": 5, "n_lags": 10, "n_init": 2, "tol": 3e-3, "random_state": 0}
plain = CNMF(**settings).fit(X)
plot_motifs(plain, figure=plt.figure(figsize=(10, 2.8)))

# %%
# The same with x-ortho
# ---------------------
# Motifs that would explain the same data at the same time are punished: copies end empty.

apart = CNMF(x_ortho=3e-2, **settings).fit(X)
plot_motifs(apart, figure=plt.figure(figsize=(10, 2.8)))


# %%
def shares(model: CNMF) -> np.ndarray:
    """Power of each motif's part of the reconstruction, over that of all parts."""
    parts = [model.inverse_transform(model.activations_ * one) for one in np.eye(5)]
    powers = np.array([np.square(part).sum() for part in parts])
    return powers / powers.sum()


for name, model in {"without": plain, "with x-ortho": apart}.items():
    print(f"{name}: loss {model.loss_:.3f}, shares {shares(model).round(2)}")

# %%
# How strong?
# -----------
# With λ the reconstruction gets worse and the overlap less; each is drawn from 0 to 1.

sweep = motifold.sweep(
    X,
    n_components=5,
    n_lags=10,
    x_ortho=[1e-4, 1e-3, 1e-2, 1e-1, 1],
    n_seeds=2,
    test=None,
    n_null=0,
    max_iter=200,
    tol=1e-2,
    n_jobs=1,
    progress=False,
)
figure, axes = plt.subplots(figsize=(5.4, 3.6), layout="constrained")
plot_crossover(sweep, ax=axes)
print(sweep.suggested)
plt.show()
