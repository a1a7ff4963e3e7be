"""
Drums, informed by samples and a score
======================================

A drum loop is taken apart three times: from random starts, from samples of the drums, and with a
score beside them, as in libnmfd's demonstration. Each time into sounds that add up to the loop.
"""

# %%
# The loop
# --------
# Two bars of a drum machine of our own. The hi-hat is struck with every other drum as well, which
# makes them hard to tell apart.

import matplotlib.pyplot as plt
import numpy as np

from motifold.plots import plot_motifs
from motifold.sound import separate

sr = 8000
rng = np.random.default_rng(0)
t = np.arange(int(0.2 * sr)) / sr
hiss = rng.standard_normal(len(t))
samples = {
    "kick": 0.6 * np.exp(-18 * t) * np.sin(2 * np.pi * (60 * t + 5 * np.exp(-30 * t))),
    "snare": 0.3 * np.exp(-22 * t) * (np.sin(2 * np.pi * 330 * t) + 0.5 * hiss),
    "hihat": 0.25 * np.exp(-50 * t) * np.diff(hiss, prepend=0),
}
score = {
    "kick": [0.0, 0.75, 1.0, 2.0, 2.75, 3.0],
    "snare": [0.5, 1.5, 2.5, 3.5],
    "hihat": list(np.arange(0, 4, 0.25)),
}
stems = {}
for name, onsets in score.items():
    stems[name] = np.zeros(int(4.2 * sr))
    for onset in onsets:
        first = int(onset * sr)
        stems[name][first : first + len(t)] += rng.uniform(0.7, 1) * samples[name]
loop = sum(stems.values())

# %%
# Three ways
# ----------
# ``separate`` makes a spectrogram, fits motifs of 150 ms to it, and gives each its share of the
# sound. Samples are where motifs start from; a score says when each may start (``ring``: and for
# how long it may go on).

ways = {
    "random starts": separate(loop, sr, n_components=3, n_lags="150ms", random_state=0),
    "samples": separate(loop, sr, templates=samples, n_lags="150ms"),
    "samples and score": separate(loop, sr, templates=samples, score=score, ring=0.1),
}


def si_sdr(stem, part):
    """How much of a part is the stem, in decibels, whatever its level."""
    target = stem * (part @ stem / (stem @ stem))
    return 10 * np.log10(np.sum(target**2) / np.sum((part - target) ** 2))


ratings = {
    way: [max(si_sdr(stem, part) for part in apart.parts.values()) for stem in stems.values()]
    for way, apart in ways.items()
}
errors = [np.abs(sum(apart.parts.values()) - loop).max() for apart in ways.values()]
print(f"The parts miss the loop by {max(errors):.0e} at most.")

# %%
# How well each drum is heard alone
# ---------------------------------

figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for i, (way, decibels) in enumerate(ratings.items()):
    axes.bar(np.arange(3) + 0.27 * (i - 1), decibels, 0.25, label=way)
axes.set_xticks(range(3), list(stems))
axes.set_ylabel("SI-SDR (dB)")
axes.legend(frameon=False)
plt.show()

# %%
# The motifs
# ----------
# Frequencies are drawn by octaves: the kick is at the bottom.

informed = ways["samples and score"]
figure = plt.figure(figsize=(7, 3))
plot_motifs(
    informed.model,
    rate=informed.spectrogram.rate,
    feature_axis=informed.spectrogram.feature_axis,
    titles=list(stems),
    figure=figure,
)
plt.show()

# %%
# Their activations are zero wherever the score has nothing:

figure, panels = plt.subplots(3, 1, figsize=(7, 4), sharex=True, layout="constrained")
times = np.arange(len(informed.activations)) / informed.spectrogram.rate
for axes, (name, onsets), activation in zip(
    panels, score.items(), informed.activations.T, strict=True
):
    axes.vlines(onsets, 0, activation.max(), color="0.8", linewidth=4)
    axes.plot(times, activation)
    axes.set_ylabel(name)
panels[-1].set_xlabel("time (s)")
plt.show()
