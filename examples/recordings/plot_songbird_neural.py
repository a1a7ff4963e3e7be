"""
A songbird's brain and its song
===============================

Seventy-five neurons of a singing bird, 22 seconds: from the raw traces to sequences that are
significant, sorted, and aligned with the song. This is the demonstration of seqNMF (Mackevicius
et al. 2019), on the same data.
"""

# %%
# The recording
# -------------
# Deconvolved calcium traces of neurons in HVC at 30 frames a second, and the spectrogram of what
# the bird sang meanwhile, at 200. As recorded, the neurons show no order.

# sphinx_gallery_thumbnail_number = 4
import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import fetch_songbird
from motifold.plots import (
    plot_event_average,
    plot_n_components,
    plot_raster,
    plot_significance,
)

bird = fetch_songbird()
X, rate = bird.neural, bird.neural_rate
n_lags = 20  # two thirds of a second

figure, axes = plt.subplots(figsize=(11, 3.6), layout="constrained")
axes.imshow(
    X.T,
    aspect="auto",
    cmap="gray_r",
    vmax=np.percentile(X, 99.5),
    extent=(0, len(X) / rate, X.shape[1], 0),
    interpolation="nearest",
)
axes.set(xlabel="time (s)", ylabel="neuron")

# %%
# How many motifs?
# ----------------
# A sweep fits each number of motifs from several seeds. One block of time is held out of each fit,
# and half of the neurons in it are predicted from the other half: with too few motifs something is
# missed, with too many, chance is learned. In so short a recording hardly three hundredths are
# predicted by any number of motifs, two thirds of it in one of the four blocks: that may be chance,
# and by itself it would suggest two motifs. So the test error decides, as the note and the picture
# say. Where motifs are tested in the blocks held out, as many and more are significant.

sweep = motifold.sweep(X, n_components=range(1, 7), n_lags=n_lags, n_seeds=8, progress=False)
plot_n_components(sweep, figure=plt.figure(figsize=(11, 3.4)))
print(sweep.suggested, "by", sweep.evidence, *sweep.notes)
n_components = sweep.suggested["n_components"]

# %%
# Are they significant?
# ---------------------
# The motifs are found in the first three quarters of the recording and tested on the last, with a
# gap of a motif's length, so that none reaches from one into the other. Grey is the skewness of the
# overlap for copies of the motif in which each neuron has a random lag.

n_train = 3 * len(X) // 4
model = CNMF(n_components, n_lags, n_init=10, random_state=0).fit(X[:n_train])
result = motifold.significance(X[n_train + n_lags :], model, n_null=5000, random_state=0)
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
plot_significance(result, ax=axes)
print(result.table)

# %%
# The sequences
# -------------
# With the neurons sorted by motif and by the lag of their peak, the sequences show as diagonals.
# Marks on top are the events of each motif.

activations = model.transform(X)
events = motifold.find_events(model, activations, rate=rate)
order = motifold.sort_features(model)
plot_raster(model, X, events=events, rate=rate, figure=plt.figure(figsize=(11, 5)))

# %%
# What the bird sang
# ------------------
# The motifs were found without the song. Averaged around the events of a motif, the song is no
# blur: the syllables stand out.

average = motifold.event_triggered_average(bird.song, events, (-0.3, 1.0), rate=bird.song_rate)
plot_event_average(
    average,
    feature_axis=np.arange(bird.song.shape[1]),
    feature_label="frequency bin",
    figure=plt.figure(figsize=(9, 3.4)),
)

# %%
# Is the alignment more than chance? The average around events is compared with averages around the
# same events moved by a common random time: how much it varies over time, summed over frequencies,
# says how sharp it is.


def sharpness(shift: float) -> np.ndarray:
    """Variance over time of the average song, for each motif, with all events moved in a circle."""
    length = len(bird.song) / bird.song_rate
    moved = [event | {"time": (event["time"] + shift) % length} for event in events]
    moved_events = motifold.findings.Table(moved, events.columns)
    window = motifold.event_triggered_average(
        bird.song, moved_events, (0, 0.65), rate=bird.song_rate
    )
    return window.mean.var(axis=1).sum(axis=1)


rng = np.random.default_rng(0)
chance = np.array([sharpness(shift) for shift in rng.uniform(1, 21, 200)])
observed = sharpness(0.0)
sharpness_p = (1 + (chance >= observed).sum(axis=0)) / (1 + len(chance))
print("sharper than at random times, p =", sharpness_p.round(3))

# %%
# Conclusion
# ----------

n_events = [len(events.where(motif=k)) for k in range(n_components)]
print(f"motifs: {n_components}; significant in new data: {result.significant.sum()}")
print(f"events: {n_events}, in {len(X) / rate:.0f} s")
print(f"neurons in each: {[int((order.motif == k).sum()) for k in range(n_components)]}")
print(f"aligned with the song: {(sharpness_p < 0.05 / n_components).sum()} of {n_components}")

# %%
# Three sequences of HVC neurons recur in these 22 seconds. Each recurs in data that was not used
# to find it, more sharply than if its neurons kept no order. And each belongs to a piece of the
# song, which was not used to find it either: two to a loud broad-band syllable and the sweep that
# follows it, the third to a series of short harmonic notes, one every tenth of a second or so, that
# ends in such a syllable. Around the events of all three the song is sharper than around the same
# events moved to other times. So these neurons step through their order each time the bird sings
# the piece that is theirs.

plt.show()
