"""
Which motifs can be trusted: a consensus of fits
================================================

A fit ends in one of many local minima. Motifs that fits from many starts agree on are in the data;
those that come up once are in the start.
"""

# %%
# Ten fits
# --------
# Three motifs were planted, and each fit has four.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.plots import plot_consensus, plot_loss, plot_match

planted = make_sequences(800, 30, 3, 12, activation_probability=0.03, noise=0.3, random_state=0)
fits = [CNMF(4, 12, random_state=seed, max_iter=300, tol=3e-3).fit(planted.X) for seed in range(10)]
print("losses:", np.sort([fit.loss_ for fit in fits]).round(3))

figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
plot_loss({"ten starts": fits}, ax=axes)

# %%
# What they agree on
# ------------------
# A group has the most similar motif of each fit. Stable are the groups that most fits are in.

consensus = motifold.find_consensus(fits)
plot_consensus(consensus, figure=plt.figure(figsize=(10, 3.4)))

# %%
# Was it planted?
# ---------------
# A last fit starts from the stable motifs.

stable = consensus.fit(planted.X, CNMF(4, 12))
plot_match(planted.components, stable, figure=plt.figure(figsize=(9, 5)))
plt.show()
