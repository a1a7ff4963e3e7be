"""CNMF: parameters, checks and fitted attributes; the mathematics is elsewhere.

``parameters`` holds what a user sets, ``border`` turns what a user gives into a problem in the
units of the fit, ``applying`` and ``streams`` have the methods of a fitted model, ``cnmf`` the fit.
"""

from motifold.estimator.callbacks import Watcher
from motifold.estimator.cnmf import CNMF
from motifold.estimator.watched import fit_watched

__all__ = ["CNMF", "Watcher", "fit_watched"]
