"""
Which sounds recur in speech, and when
======================================

Two men say the digits from zero to nine, in turn, over and over. The motifs of the spectrogram are
the sounds that recur, and their events say when. Nobody tells the model where a word begins, what
it is, or who says it.
"""

# %%
# The recording
# -------------
# Two minutes as a spectrogram of log magnitudes: 62.5 bins a second, 257 frequencies. The floor of
# the recording is taken off, so that silence is zero. Motifs are learned from the first 40 seconds.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.datasets import fetch_spoken_digits
from motifold.plots import plot_events, plot_motifs

speech = fetch_spoken_digits()
rate, n_lags, n_sounds = speech.frame_rate, 12, 8  # lags of a fifth of a second
n_train = int(40 * rate)
X = speech.spectrogram[: int(120 * rate)]
X = np.maximum(X - np.median(X[:n_train]), 0)

figure, axes = plt.subplots(figsize=(11, 2.8), layout="constrained")
axes.imshow(
    X[: int(9 * rate)].T,
    aspect="auto",
    origin="lower",
    cmap="gray_r",
    extent=(0, 9, 0, speech.frequencies[-1] / 1000),
)
axes.set(xlabel="time (s)", ylabel="frequency (kHz)")

# %%
# Eight sounds
# ------------
# The best of several starts. A hiss has its power at high frequencies, a vowel has it in the
# stripes of the voice's harmonics, and how far these are apart is the pitch of who speaks.

model = CNMF(n_sounds, n_lags, n_init=3, tol=1e-2, random_state=0).fit(X[:n_train])
plot_motifs(model, rate=rate, feature_axis=speech.frequencies, figure=plt.figure(figsize=(11, 3.2)))

# %%
# When they occur
# ---------------
# Peaks of the activations in the first 40 seconds; a taller mark is a stronger one.

events = motifold.find_events(model, rate=rate)
figure, axes = plt.subplots(figsize=(11, 4), layout="constrained")
plot_events(events, ax=axes)
axes.set_xlim(0, 40)
counts = [len(events.where(motif=k)) for k in range(n_sounds)]

# %%
# When they come back
# -------------------
# The activations in all two minutes, smoothed over a quarter of a second, against themselves later:
# a peak at a delay means that the sound comes back after it. All have one at the same delay: the
# time in which both speakers get from zero to nine. A tenth of it is a word of one and a word of
# the other (dotted).

activations = model.transform(X)
width = np.hanning(int(rate / 2))
n_delays = int(12 * rate)
delays = np.arange(n_delays) / rate


def recurrence(h: np.ndarray) -> np.ndarray:
    """Correlation of a smoothed activation with itself, at each delay."""
    h = np.convolve(np.minimum(h, np.quantile(h, 0.999)), width, "same")
    h = (h - h.mean()) / h.std()
    return np.array([(h[d:] * h[: len(h) - d]).mean() for d in range(n_delays)])


returns = np.array([recurrence(h) for h in activations.T])
late = np.flatnonzero(delays > 4)
rounds = delays[late[returns[:, late].argmax(axis=1)]]
round_length = float(np.median(rounds))
turn = round_length / 10

figure, panels = plt.subplots(
    2, n_sounds // 2, figsize=(11, 4), sharex=True, sharey=True, layout="constrained"
)
for k, axes in enumerate(panels.flat):
    axes.plot(delays, returns[k], linewidth=1)
    axes.axvline(round_length, color="0.8", linewidth=5, zorder=0)
    axes.axvline(turn, color="0.5", linestyle=":", zorder=0)
    axes.set_title(f"motif {k}", fontsize="medium")
    axes.set_ylim(-0.5, 1)
    axes.spines[["top", "right"]].set_visible(False)
figure.supxlabel("delay (s)")
figure.supylabel("correlation")

# %%
# Do they recur in new speech?
# ----------------------------
# The seconds from 41 to 61 were not used to find the sounds. A motif is significant if it overlaps
# with them more unevenly, strongly at a few times and little at others, than copies of it in which
# each frequency has a random lag.

X_new = X[int(41 * rate) : int(61 * rate)]
result = motifold.significance(X_new, model, n_null=1000, random_state=0)

power = np.square(model.components_).sum(axis=1)
centre = power @ speech.frequencies / power.sum(axis=1)
extent = motifold.motif_extent(model)
near_turn = np.abs(delays - turn) < 0.1
rhythm = returns[:, near_turn].max(axis=1)
sounds = motifold.findings.Table(
    [
        {
            "motif": k,
            "centre (Hz)": round(float(centre[k])),
            "length (ms)": round(1000 * int(extent.length[k]) / rate),
            "events": counts[k],
            "comes back (s)": float(rounds[k]),
            "at each turn": float(rhythm[k]),
            "p": float(result.p_value[k]),
        }
        for k in range(n_sounds)
    ]
)
print(sounds)

# %%
# Conclusion
# ----------
# The numbers that the sentences below rest on. The time within a round, in tenths of it, says about
# which digit is spoken: rounds are not all equally long.


def strongest_digits(k: int) -> str:
    """Times of the 12 strongest events of a motif within their round, in tenths of it."""
    mine = sorted(events.where(motif=k), key=lambda event: -event["strength"])[:12]
    return " ".join(f"{phase:.1f}" for phase in sorted(e["time"] / turn % 10 for e in mine))


hiss, voice = int(centre.argmax()), int(rhythm.argmax())
long = np.flatnonzero(extent.length > n_lags / 2)
vowel = int(long[returns[long][:, late].max(axis=1).argmax()])
agree = int((np.abs(rounds - round_length) < 0.1).sum())
print(f"{agree} of {n_sounds} sounds come back after {round_length:.1f} s")
print(f"{int(result.significant.sum())} of {n_sounds} are significant in new speech")
print(f"hiss: motif {hiss} around {centre[hiss]:.0f} Hz, at {strongest_digits(hiss)}")
print(f"vowel: motif {vowel} around {centre[vowel]:.0f} Hz, at {strongest_digits(vowel)}")
print(
    f"voice: motif {voice} keeps a rhythm of {turn:.2f} s, correlation {rhythm[voice]:.2f}; "
    f"the next has {np.sort(rhythm)[-2]:.2f}"
)

# %%
# Which sounds recur? A hiss at high frequencies, strongest from "five" to "eight", around the s of
# "six" and "seven". Long sounds with the harmonics of a voice; the one that comes back most clearly
# is the open vowel of "one", "five" and "nine", the digits at which its strongest events are. And
# short bursts of power in one band, which many words share: they have the most events.
#
# When? Each comes back when its words do, after a round of ten digits by two speakers. One, a stack
# of low harmonics, comes in every second word as well: it is the voice of one of the two men,
# whatever he says.

plt.show()
