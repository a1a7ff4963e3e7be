"""
Trials of different lengths
===========================

Twenty trials, none as long as another. Motifs are shared by all, none reaches from one trial into
the next, and what is compared between conditions is when they occur.
"""

# %%
# The trials
# ----------
# In both conditions the same sequence is played once; in the second it comes later, and another one
# follows it.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.plots import plot_factors

rng = np.random.default_rng(0)
rate, n_neurons = 50.0, 24
sequences = np.zeros((2, 18, n_neurons))
for k in range(2):
    for i in range(12):
        sequences[k, i + 3 : i + 6, 12 * k + i] = [0.5, 1, 0.5]
trials, condition = [], []
for trial in range(20):
    late = trial % 2
    X = 0.1 * rng.random((int(rng.integers(90, 140)), n_neurons))
    first = int(rng.normal(40 if late else 15, 3))
    X[first : first + 18] += sequences[0]
    if late:
        X[first + 22 : first + 40] += sequences[1]
    trials.append(X)
    condition.append(late)
condition = np.array(condition)

# %%
# One fit
# -------
# A list of arrays is a list of segments. Dotted lines in the picture are their borders.

model = CNMF(2, 24, n_init=3, random_state=0).fit(trials)
plot_factors(model, trials, rate=rate, time_range=(0, 10), figure=plt.figure(figsize=(11, 6.5)))

# %%
# Each trial in its row
# ---------------------
# ``start`` is the time within the trial.

events = motifold.find_events(model, rate=rate)
order = np.argsort(condition, kind="stable")
figure, axes = plt.subplots(figsize=(7, 4.4), layout="constrained")
for row, trial in enumerate(order):
    axes.plot([0, len(trials[trial]) / rate], [row, row], color="0.88", linewidth=4, zorder=0)
    for event in events.where(segment=int(trial)):
        axes.plot(event["start"], row, "o", color=["#0072B2", "#D55E00"][int(event["motif"])])
axes.axhline(9.5, color="0.5", linestyle=":")
axes.set(xlabel="time in the trial (s)", ylabel="trial, by condition", yticks=[])

early, late = (
    np.mean([e["start"] for e in events.where(motif=0) if condition[int(e["segment"])] == c])
    for c in (0, 1)
)
print(f"motif 0 begins after {early:.2f} s in the one condition, after {late:.2f} s in the other")
followed = {int(event["segment"]) for event in events.where(motif=1)}
print(f"motif 1 occurs in {len(followed)} trials, all of one condition:", end=" ")
print(set(condition[sorted(followed)]) == {1})
plt.show()
