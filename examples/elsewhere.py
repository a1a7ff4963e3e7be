"""
On a GPU, over many processes, on many machines
===============================================

What is here is shown, not run: these pages are built on a machine without a GPU or a cluster. The
results are those of a fit on the CPU, but for rounding.
"""

# %%
# On an NVIDIA GPU
# ----------------
# With ``pip install "motifold[cuda12]"`` (or ``"motifold[cuda13]"``) all that changes is
# ``device``. Data that does not fit there is streamed from the memory of the machine.
# ``motifold doctor`` tells which GPUs there are.

# sphinx_gallery_thumbnail_path = 'images/losses.png'
from motifold import CNMF
from motifold.datasets import make_sequences

X = make_sequences(1_000_000, 100, 5, 20, random_state=0).X.astype("float32")
model = CNMF(5, 20, device="cuda", random_state=0).fit(X)
print(model.loss_, model.stop_reason_)

# %%
# A sweep over processes
# ----------------------
# Fits of a sweep do not depend on each other. Without ``n_jobs`` they go to as many processes as
# there are cores, one thread each; with ``path`` each finished one is kept, and the same call goes
# on after an interruption, or beside another one on a cluster's node.

import motifold

sweep = motifold.sweep(X, n_components=range(2, 9), n_lags=20, n_seeds=10, path="sweep.jsonl")
print(sweep.suggested)

# %%
# On a cluster
# ------------
# With ``pip install "motifold[dask]"``: the same estimator on the workers of a Dask cluster,
# of data that they read themselves. The number of workers changes no bit of the result.

import zarr
from distributed import Client

import motifold.dask

with Client("tcp://scheduler:8786"):
    model = motifold.dask.CNMF(5, 20, random_state=0).fit(zarr.open("days.zarr"))
    model.save("model.npz")  # which motifold.load reads anywhere
