"""
Spike counts: which loss?
=========================

Counts are noisy where they are high. Squared error takes that noise for signal;
Kullback–Leibler's divergence knows how counts scatter. Both are fitted to the same spikes.
"""

# %%
# The spikes
# ----------
# Three sequences through 60 neurons, in Poisson counts. Ten more neurons fire all the time, about
# eight spikes a bin, and take no part in any sequence.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import make_sequences
from motifold.matching import match_motifs
from motifold.plots import plot_match, plot_raster

rng = np.random.default_rng(0)
planted = make_sequences(
    1500, 60, 3, 15, activation_probability=0.02, noise=0, alpha=0.02, random_state=1
)
busy = np.full((1500, 10), 8.0)
counts = rng.poisson(np.hstack([planted.X + 0.03, busy])).astype(float)
truth = np.concatenate([planted.components, np.zeros((3, 15, 10))], axis=2)

# %%
# Two fits
# --------
# ``background=True`` gives each neuron a constant rate that no motif needs to explain.

losses = {"squared error": "frobenius", "Kullback–Leibler": "kullback-leibler"}
fits = {
    name: CNMF(3, 15, beta_loss=loss, background=True, n_init=3, max_iter=100, tol=1e-2,
               random_state=0).fit(counts)
    for name, loss in losses.items()
}  # fmt: skip
found = {name: match_motifs(truth, fit.components_) for name, fit in fits.items()}
for name, match in found.items():
    print(f"{name}: cosine with the planted motifs {match.similarity.round(2)}")

# %%
# The motifs by Kullback–Leibler, below those that were planted:

plot_match(truth, fits["Kullback–Leibler"], figure=plt.figure(figsize=(9, 5)))

# %%
# Neurons sorted by these motifs: sequences are diagonals, and the busy neurons are the stripes.

model = fits["Kullback–Leibler"]
plot_raster(
    model,
    np.sqrt(counts),
    events=motifold.find_events(model),
    time_range=(0, 500),
    figure=plt.figure(figsize=(11, 5)),
)
plt.show()
