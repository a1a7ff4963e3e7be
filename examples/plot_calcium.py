"""
Calcium traces: baseline, decay and scale
=========================================

Fluorescence rises at once and decays slowly, on a baseline that drifts, in cells of very different
brightness. What to do before a fit, and what it brings.
"""

# %%
# The traces
# ----------
# 40 cells at 20 frames a second. Two sequences recur; every spike leaves a decay of half a second.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter

import motifold
from motifold import CNMF
from motifold.plots import plot_factors
from motifold.prepare import ScaleFeatures, SubtractBaseline

rng = np.random.default_rng(3)
rate, n_frames = 20.0, 2400
spikes = rng.poisson(0.004, (n_frames, 40)).astype(float)
planted = []
for first, starts in ((0, np.arange(40, 2300, 97)), (20, np.arange(85, 2300, 131))):
    starts = starts + rng.integers(-12, 13, len(starts))
    planted.append(starts)
    for cell in range(20):
        spikes[starts + rng.integers(0, 2, len(starts)) + cell, first + cell] += 1
brightness = rng.lognormal(0, 0.8, 40)
drift = 1 + 0.2 * np.sin(2 * np.pi * (np.arange(n_frames)[:, None] / n_frames + rng.random(40)))
traces = brightness * (lfilter([1], [1, -np.exp(-1 / (0.5 * rate))], spikes, axis=0) + 2 * drift)
traces += 0.2 * brightness * rng.standard_normal(traces.shape)
traces = np.maximum(traces[:, rng.permutation(40)], 0)

figure, axes = plt.subplots(figsize=(11, 3.4), layout="constrained")
axes.plot(np.arange(600) / rate, traces[:600, :8] / traces[:600, :8].max(axis=0) + np.arange(8))
axes.set(xlabel="time (s)", ylabel="cell, each on its own scale", yticks=[])

# %%
# Prepare
# -------
# The baseline of each cell is its lower quartile; then all cells vary alike. What is left of the
# decay is the same for every spike, and motifs take it up as a tail.

X = ScaleFeatures(by="std").fit_transform(SubtractBaseline(0.25).fit_transform(traces))
model = CNMF(2, 40, n_init=4, random_state=0).fit(X)
plot_factors(model, X, rate=rate, time_range=(0, 40), figure=plt.figure(figsize=(11, 6.5)))


# %%
# What it brings
# --------------
# A planted occurrence counts as found if its motif has an event within a quarter of a second of it,
# after the lag by which motif and sequence differ throughout.


def share_found(model: CNMF) -> float:
    """Of the planted occurrences, with motifs in the order that suits them best."""
    events = motifold.find_events(model, threshold=0.5)
    bins = [events.where(motif=k)["bin"].astype(int) for k in (0, 1)]

    def hits(starts: np.ndarray, mine: np.ndarray) -> int:
        apart = mine - starts[:, None]
        delay = np.median(apart[np.abs(apart) < 40])
        return int((np.abs(apart - delay).min(axis=1) <= 5).sum())

    ways = [sum(map(hits, planted, mine)) for mine in (bins, bins[::-1])]
    return max(ways) / sum(map(len, planted))


raw = CNMF(2, 40, n_init=4, random_state=0).fit(traces)
shares = {"traces as they are": share_found(raw), "prepared": share_found(model)}
for name, share in shares.items():
    print(f"{name}: {share:.0%} of the occurrences are found")
plt.show()
