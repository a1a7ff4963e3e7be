"""Recordings that go on while they are analysed: activations and events as they become final."""

from motifold.streaming.stream import Final, Stream

__all__ = ["Final", "Stream"]
