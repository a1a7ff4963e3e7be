"""
Live: events while the recording goes on
========================================

A model that was fitted before meets new data one bin at a time. How long to wait for an activation,
and what waiting brings.
"""

# %%
# Known motifs, new data
# ----------------------

import matplotlib.pyplot as plt
import numpy as np

from motifold import CNMF
from motifold.datasets import make_sequences

data = make_sequences(1400, 25, 2, 12, activation_probability=0.03, noise=0.5, random_state=0)
model = CNMF(2, 12, n_init=3, random_state=0).fit(data.X[:1000])
new = data.X[1000:]

# %%
# One bin at a time
# -----------------
# An activation is given out when ``latency`` more bins have been seen, and does not change any
# more. After 11 bins, the rest of the motif, it is nearly what the whole recording says.

whole = model.transform(new)
latencies = [0, 3, 6, 11, 24]
live, errors = {}, []
for latency in latencies:
    stream = model.stream(latency)
    events = stream.events(rate=50) if latency == 11 else None
    parts = [stream.push(row) for row in new]
    parts.append(stream.flush())
    live[latency] = np.concatenate([part.activations for part in parts])
    errors.append(np.linalg.norm(live[latency] - whole) / np.linalg.norm(whole))
    if events is not None:
        n_events = len(events.take())

figure, axes = plt.subplots(figsize=(5.4, 3.4), layout="constrained")
axes.plot(latencies, errors, "o-")
axes.set(xlabel="latency (bins; the motifs have 12 lags)", ylabel="relative error", ylim=(0, None))

# %%
figure, panels = plt.subplots(3, 1, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
for axes, latency in zip(panels, (0, 6, 11), strict=True):
    axes.plot(whole[:, 0], color="0.75", linewidth=4, label="from the whole recording")
    axes.plot(live[latency][:, 0], linewidth=1.2, label="live")
    axes.set_title(f"latency {latency}", loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
panels[0].legend(frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 0.97))
panels[-1].set_xlabel("time (bins)")
print(f"{n_events} events were told, live, at a latency of 11 bins")
plt.show()
