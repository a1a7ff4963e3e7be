"""
Events against behaviour
========================

Neurons at 50 bins a second on the clock of the amplifier; running speed from a camera, at another
rate, switched on later. Averaged around the events of each motif, the speed tells what they have to
do with running.
"""

# %%
# Two recordings of one session
# -----------------------------
# One sequence precedes each acceleration by half a second, the other has nothing to do with it.

import matplotlib.pyplot as plt
import numpy as np

import motifold
from motifold import CNMF
from motifold.plots import plot_event_average, plot_raster

rng = np.random.default_rng(0)
rate, frames = 50.0, 30.0
X = 0.5 * rng.exponential(1, (6000, 40)) * (rng.random((6000, 40)) < 0.05)
speed = np.zeros(int(110 * frames))
truly = []
for k, gap in enumerate((4.1, 3.3)):
    for when in np.cumsum(rng.uniform(0.4 * gap, 1.6 * gap, int(110 / gap))):
        if when > 116:
            break
        bins = int(when * rate) + np.arange(20)
        X[bins, 20 * k + np.arange(20)] += 1
        X[bins + 1, 20 * k + np.arange(20)] += 0.6
        if k == 0:
            truly.append(when)
            camera = np.arange(len(speed)) / frames + 5.0  # it begins 5 s after the amplifier
            since = camera - when - 0.5
            speed += 10 * np.where(since > 0, since, 0) * np.exp(-np.maximum(since, 0) / 0.25)
speed += 0.4 * rng.standard_normal(len(speed))
X = X[:, rng.permutation(40)]

# %%
# Motifs and events
# -----------------

model = CNMF(2, 25, n_init=4, random_state=0).fit(X)
events = motifold.find_events(model, X=X, rate=rate)
plot_raster(
    model,
    X,
    events=events,
    rate=rate,
    time_range=(0, 25),
    figure=plt.figure(figsize=(11, 4.6)),
)

# %%
# The speed around them
# ---------------------
# ``starts`` says when the camera's first frame was, on the clock of the events.

average = motifold.event_triggered_average(speed, events, (-1.0, 2.0), rate=frames, starts=[5.0])
plot_event_average(average, figure=plt.figure(figsize=(9, 3.2)))

# %%
# Is it more than chance?
# -----------------------
# The same averages around events that are moved, all together, by random times.


def swing(shift: float) -> np.ndarray:
    """How far the average rises above its own mean, for each motif."""
    moved = [dict(event) | {"time": 6 + (event["time"] - 6 + shift) % 106} for event in events]
    table = motifold.findings.Table(moved, events.columns)
    mean = motifold.event_triggered_average(speed, table, (-1, 2), rate=frames, starts=[5.0]).mean
    return np.ptp(mean[:, :, 0], axis=1)


chance = np.array([swing(shift) for shift in rng.uniform(3, 100, 200)])
p = (1 + (chance >= swing(0.0)).sum(axis=0)) / 201
runs = int(p.argmin())
print(f"p = {p.round(3)}: motif {runs} comes before running, motif {1 - runs} does not")
plt.show()
