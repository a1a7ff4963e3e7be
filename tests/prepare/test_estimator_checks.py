"""scikit-learn's own checks of the transformers."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from motifold.prepare import Preparation, ScaleFeatures, Smooth, SquareRoot, SubtractBaseline

ORDER_MATTERS = {
    "check_methods_sample_order_invariance": "smoothing is over rows, so their order matters",
    "check_methods_subset_invariance": "smoothing reaches across the border of a subset of rows",
}


def expected_failures(step) -> dict[str, str]:
    return ORDER_MATTERS if isinstance(step, (Smooth, Preparation)) else {}


@pytest.mark.filterwarnings("ignore:.*(set_output|feature names|SkipTest).*")
@parametrize_with_checks(
    [
        Smooth(2.0),
        ScaleFeatures(),
        SquareRoot(),
        SubtractBaseline(),
        Preparation([SubtractBaseline(), Smooth(1.0), ScaleFeatures()]),
    ],
    expected_failed_checks=expected_failures,
)
def test_estimator_checks(estimator, check):
    check(estimator)
