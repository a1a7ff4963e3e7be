"""Compiled sweeps: arrays in, arrays changed in place, no other imports.

Every kernel is serial, releases the GIL and receives statistics, never the data.
Letters as in the paper; layout X (T, N), H (T, K), W (N, L·K) with column p = ℓ·K + k.
"""
