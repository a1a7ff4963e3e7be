"""scikit-learn's own checks of an estimator: all of them for n_lags=1, all but two beyond."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from motifold import CNMF

ORDER_MATTERS = {
    "check_methods_sample_order_invariance": "a motif spans several rows, so their order matters",
    "check_methods_subset_invariance": "a motif reaches across the border of a subset of rows",
}


def expected_failures(estimator: CNMF) -> dict[str, str]:
    return ORDER_MATTERS if estimator.n_lags > 1 else {}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*(set_output|feature names|SkipTest).*")
@parametrize_with_checks(
    [
        CNMF(2, 1, max_iter=200),
        CNMF(2, 3, max_iter=200),
        CNMF(2, 1, max_iter=200, solver="anls"),
        CNMF(2, 3, max_iter=100, solver="anls", acceleration=None),
        CNMF(2, 3, max_iter=100, solver="mu"),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)
