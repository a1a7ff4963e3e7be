"""A door: ``python -m motifold.demo``; the room is ``reproduce``."""

from motifold.reproduce.demo import main

__all__ = ["main"]

if __name__ == "__main__":
    raise SystemExit(main())
