"""
Data below zero
===============

z-scored rates and ΔF/F have values below zero. They may be kept as they are, cut off at zero, or
moved up; only one of these is a bad idea.
"""

# %%
# Noise around zero
# -----------------

import matplotlib.pyplot as plt
import numpy as np

from motifold import CNMF
from motifold.matching import match_motifs
from motifold.plots import plot_factors, plot_match

rng = np.random.default_rng(0)
motifs = np.zeros((3, 10, 30))
for i in range(30):
    motifs[i // 10, i % 10, i] = 1.0
starts = rng.random((2000, 3)) < 0.015
X = sum(np.roll(starts, lag, axis=0) @ motifs[:, lag] for lag in range(10))
X = X + 0.3 * rng.standard_normal(X.shape)
print(f"{np.mean(X < 0):.0%} of the entries are below zero")

# %%
# Three ways
# ----------

settings = {"n_components": 3, "n_lags": 10, "n_init": 3, "tol": 3e-3, "random_state": 0}
fits = {
    "kept": CNMF(allow_negative=True, **settings).fit(X),
    "cut off": CNMF(**settings).fit(np.maximum(X, 0)),
    "moved up": CNMF(**settings).fit(X - X.min()),
}
similar = {
    name: match_motifs(motifs, fit.components_).similarity.mean() for name, fit in fits.items()
}
for name, cosine in similar.items():
    print(f"{name}: mean cosine with the planted motifs {cosine:.2f}")

# %%
# Colours are on both sides of zero; motifs and activations stay nonnegative.

plot_factors(fits["kept"], X, time_range=(0, 250), figure=plt.figure(figsize=(11, 6.5)))

# %%
# Planted motifs above, those found in the data as it is below:

plot_match(motifs, fits["kept"], figure=plt.figure(figsize=(9, 5)))
plt.show()
