"""
Gaps: fit around what is missing
================================

Frames that were dropped, channels that failed for a while, entries that are NaN. A mask says what
was observed; the fit uses nothing else, and predicts the rest.
"""

# %%
# A recording with gaps
# ---------------------
# Single entries, a channel that fails, and a stretch in which half of the channels were off.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.plots import plot_factors

rng = np.random.default_rng(0)
truth = make_sequences(800, 30, 2, 12, activation_probability=0.03, noise=0.05, random_state=2).X
X = truth.copy()
X[rng.random(X.shape) < 0.1] = np.nan
X[100:220, 4] = np.nan
X[140:200, :15] = np.nan

# %%
# The fit
# -------
# Missing entries are grey, and so are activations that rest on too little: those are no events.

observed = ~np.isnan(X)
model = CNMF(2, 12, n_init=3, random_state=0).fit(X, mask=observed)
plot_factors(model, X, time_range=(60, 300), figure=plt.figure(figsize=(11, 6.5)))

# %%
# What it predicts there
# ----------------------
# The lower picture above has no gaps: motifs and activations predict every entry. Here are the
# predictions of what nobody observed against what it was.

filled = model.inverse_transform(model.activations_)
missing = ~observed
error = np.linalg.norm((truth - filled)[missing]) / np.linalg.norm(truth[missing])
median = np.nanmedian(X, axis=0)
naive = np.linalg.norm((truth - median)[missing]) / np.linalg.norm(truth[missing])
figure, axes = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
axes.plot(truth[missing], filled[missing], ".", markersize=3, alpha=0.5)
axes.plot([0, truth.max()], [0, truth.max()], color="0.6", linewidth=1, zorder=0)
axes.set(xlabel="what it was", ylabel="what is predicted")
print(f"relative error of the motifs {error:.2f}, of each channel's median {naive:.2f}")
print(f"events: {len(motifold.find_events(model))}")
plt.show()
