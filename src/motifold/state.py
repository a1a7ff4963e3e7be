"""A door: pickles of 0.1 look for ``History`` here."""

from motifold.fit.state import History

__all__ = ["History"]
