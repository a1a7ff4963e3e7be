"""A drum machine of our own: three sounds, when each is struck, and their mixture."""

from __future__ import annotations

import itertools

import numpy as np

RATE = 8000
STRIKES = {
    "kick": [0.0, 0.75, 1.5, 2.25, 2.6],
    "snare": [0.4, 1.2, 2.0, 2.8],
    "hihat": [0.2, 0.6, 1.0, 1.4, 1.8, 2.4, 3.0],
}


def samples():
    rng, t = np.random.default_rng(0), np.arange(int(0.15 * RATE)) / RATE
    hiss = rng.standard_normal(len(t))
    return {
        "kick": 0.6 * np.exp(-20 * t) * np.sin(2 * np.pi * 90 * t),
        "snare": 0.3 * np.exp(-25 * t) * (np.sin(2 * np.pi * 700 * t) + 0.3 * hiss),
        "hihat": 0.2 * np.exp(-60 * t) * np.diff(hiss, prepend=0),
    }


def stems(seconds=3.3):
    found = {}
    for name, sound in samples().items():
        stem = np.zeros(int(seconds * RATE))
        for strike in STRIKES[name]:
            first = round(strike * RATE)
            stem[first : first + len(sound)] += sound
        found[name] = stem
    return found


def si_sdr(stem, part):
    """Scale-invariant signal-to-distortion ratio, dB."""
    target = stem * (part @ stem / (stem @ stem))
    return 10 * np.log10((target @ target) / np.sum((part - target) ** 2))


def best_si_sdr(stems, parts):
    """Mean over the stems, of the best assignment of parts."""
    table = [[si_sdr(stem, np.asarray(part, float)) for part in parts] for stem in stems]
    orders = itertools.permutations(range(len(parts)), len(stems))
    return max(np.mean([table[i][j] for i, j in enumerate(order)]) for order in orders)


def snr(whole, parts):
    """How well the parts add up to the whole, dB."""
    rest = whole - sum(np.asarray(part, float) for part in parts)
    return 10 * np.log10(np.sum(whole**2) / max(np.sum(rest**2), 1e-30))


def at_the_ends(clip):
    """Share of its energy that a clip has in its first and last 5 ms."""
    edge = round(0.005 * RATE)
    return (np.sum(clip[:edge] ** 2) + np.sum(clip[-edge:] ** 2)) / np.sum(clip**2)
