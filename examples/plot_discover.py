"""
Findings in one call
====================

``motifold.discover`` finds how many motifs there are, whether they are sequences, and when they
occur. It may say that there is none, and on shuffled data it has to.
"""

# %%
# A recording
# -----------
# Two sequences in noise; neither their number nor their length is told. ``n_lags`` is only to be
# longer than they are.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold.plots import plot_motifs, plot_raster

rng = np.random.default_rng(0)
X = 0.3 * np.abs(rng.standard_normal((1200, 40)))
for first, gap in ((0, 43), (20, 57)):
    starts = np.arange(10, 1160, gap) + rng.integers(-6, 7, len(range(10, 1160, gap)))
    for i in range(20):
        for width, height in enumerate((0.5, 1.0, 0.5)):
            X[starts + i + width, first + i] += height
X = X[:, rng.permutation(40)]

found = motifold.discover(X, n_lags=30, rate=50, random_state=0, progress=False)
print(found.summary())

# %%
# What was found
# --------------

plot_motifs(found.model, rate=50, figure=plt.figure(figsize=(6, 3.2)))

# %%
plot_raster(
    found.model,
    X,
    events=found.events,
    rate=50,
    time_range=(0, 10),
    figure=plt.figure(figsize=(11, 4.6)),
)

# %%
# The same values without their order
# -----------------------------------
# Each neuron's bins in a random order of its own: nothing recurs, and nothing may be found.

shuffled = rng.permuted(X, axis=0)
nothing = motifold.discover(shuffled, n_lags=30, rate=50, random_state=0, progress=False)
print(nothing.summary())
plt.show()
