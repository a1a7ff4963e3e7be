"""Sound taken apart by its motifs."""

from __future__ import annotations
