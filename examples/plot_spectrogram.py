"""
A song that we make: motifs of a spectrogram
============================================

A recording of three syllables, made on this page, so that everybody can run it. Its motifs are the
syllables, and its events say when each is sung.
"""

# %%
# The song
# --------
# A rising sweep, a falling one and a harmonic stack, in a random order, over hiss.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.plots import plot_events, plot_motifs, plot_reconstruction
from motifold.sound import from_audio

rng = np.random.default_rng(0)
sr, seconds = 8000, 12.0
t = np.arange(int(0.15 * sr)) / sr
shape = np.sin(np.pi * t / t[-1])
syllables = [
    shape * np.sin(2 * np.pi * (900 + 6000 * t) * t),
    shape * np.sin(2 * np.pi * (3200 - 6000 * t) * t),
    shape * sum(np.sin(2 * np.pi * 440 * k * t) / k for k in range(1, 7)),
]
sound = 0.02 * rng.standard_normal(int(seconds * sr))
sung, now = [], 0.2
while now < seconds - 0.3:
    k = int(rng.integers(3))
    first = int(now * sr)
    sound[first : first + len(t)] += rng.uniform(0.6, 1) * syllables[k]
    sung.append((now, k))
    now += rng.uniform(0.2, 0.45)

# %%
# Its spectrogram
# ---------------
# Roots of magnitudes, so that the quiet parts count as well; the noise floor is taken off. Without
# ``x_ortho`` the loss is a little lower, and one motif also mends what the others leave of theirs:
# it has forty events then, of which thirty are no syllables.

song = from_audio(sound, sr, n_fft=256, hop_length=64)
X = np.maximum(song.X - np.median(song.X, axis=0), 0)
model = CNMF(3, int(0.18 * song.rate), x_ortho=3e-3, n_init=5, random_state=0).fit(X)
plot_motifs(
    model,
    rate=song.rate,
    feature_axis=song.feature_axis,
    figure=plt.figure(figsize=(9, 3.2)),
)

# %%
# Data and reconstruction
# -----------------------

plot_reconstruction(
    model,
    X,
    rate=song.rate,
    time_range=(0, 4),
    feature_axis=song.feature_axis,
    figure=plt.figure(figsize=(11, 5.5)),
)

# %%
# When each is sung
# -----------------

events = motifold.find_events(model, X=X, rate=song.rate)
figure, axes = plt.subplots(figsize=(11, 2.6), layout="constrained")
plot_events(events, ax=axes)

onsets = np.array([when for when, _ in sung])
near = [np.abs(onsets - event["time"]).min() for event in events]
print(f"{len(sung)} syllables were sung, {len(events)} events found, ", end="")
print(f"{np.mean(np.array(near) < 0.1):.0%} of them within 0.1 s of a syllable's onset")
plt.show()
