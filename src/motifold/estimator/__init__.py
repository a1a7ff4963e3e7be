"""CNMF: parameters, checks and fitted attributes; the mathematics is elsewhere.

``parameters`` holds what a user sets, ``border`` turns what a user gives into a problem in the
units of the fit, ``fitting`` has the fit, ``estimating`` what it would take, ``applying`` and
``streams`` the methods of a fitted model; ``cnmf`` is what users see of them.
"""

from motifold.estimator.callbacks import Watcher
from motifold.estimator.cnmf import CNMF
from motifold.estimator.fitting import fit_watched

__all__ = ["CNMF", "Watcher", "fit_watched"]
