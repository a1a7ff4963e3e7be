"""The KKT residual: how far a factor is from stationary, free of its scale."""

from __future__ import annotations

import numpy as np


def kkt_ratio(above: float, below: float) -> float:
    """√(Σ min(F, ∇/diag)² / ΣF²); 0 where nothing is wrong, infinity where F is zero and not so."""
    if above == 0:
        return 0.0
    return float(np.sqrt(above / below)) if below > 0 else np.inf
