"""
Which sounds recur in speech, and when
======================================

Two men speak digits in turn. The motifs of the spectrogram are the sounds that recur, the events
say when each does.
"""

# %%
# The recording
# -------------
# The first 40 seconds, as a spectrogram of log magnitudes: 62.5 bins a second, 257 frequencies.
# The floor of the recording is taken off, so that silence is zero.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import fetch_spoken_digits
from motifold.plots import plot_events, plot_motifs

speech = fetch_spoken_digits()
rate, n_lags = speech.frame_rate, 12  # a fifth of a second
X = speech.spectrogram[: int(40 * rate)]
X = np.maximum(X - np.median(X), 0)

# %%
# Eight sounds
# ------------
# The best of several starts. Hisses have their power at high frequencies, vowels theirs in the
# stripes of the voice's harmonics.

model = CNMF(8, n_lags, n_init=3, tol=1e-2, random_state=0).fit(X)
plot_motifs(model, rate=rate, feature_axis=speech.frequencies, figure=plt.figure(figsize=(11, 3.2)))

# %%
# When they occur
# ---------------
# Peaks of the activations; a taller mark is a stronger one.

events = motifold.find_events(model, rate=rate)
figure, axes = plt.subplots(figsize=(11, 4), layout="constrained")
plot_events(events, ax=axes)
axes.set_xlim(0, 40)
counts = [len(events.where(motif=k)) for k in range(8)]
print("events of each sound:", counts)

# %%
# Do they recur in new speech?
# ----------------------------
# The next 20 seconds were not used to find the sounds.

X_new = speech.spectrogram[int(41 * rate) : int(61 * rate)]
X_new = np.maximum(X_new - np.median(speech.spectrogram[: int(40 * rate)]), 0)
result = motifold.significance(X_new, model, n_null=1000, random_state=0)
print(result.table)

plt.show()
