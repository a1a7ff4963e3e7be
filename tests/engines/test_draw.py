"""Starts: the same numbers for every engine, and those of 0.1."""

from __future__ import annotations

import numpy as np
import pytest
from cases import make_case


@pytest.mark.parametrize("rows", [(0, 3), (17, 40), (39, 40)])
def test_any_rows_of_a_start_can_be_drawn_by_themselves(rows):
    """As the architecture page promises to engines that hold a part of the recording only."""
    case = make_case([40], N=5, K=3, L=4, zeros=0.0)
    a, b = rows
    with case.engine() as engine:
        _, whole = engine.draw(7, case.W, None)
    stream = np.random.PCG64(7).advance(case.W.size + a * 3)
    part = np.random.Generator(stream).random((b - a, 3))
    ratio = whole[a:b] / part
    np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)


def test_a_given_factor_is_kept_and_does_not_change_the_other():
    case = make_case([40], N=5, K=3, L=4, zeros=0.0)
    with case.engine() as engine:
        W, H = engine.draw(3, None, None)
        kept_W, drawn_H = engine.draw(3, case.W, None)
        drawn_W, kept_H = engine.draw(3, None, case.H)
        np.testing.assert_array_equal(kept_W, case.W)
        np.testing.assert_array_equal(kept_H, case.H)
        np.testing.assert_allclose(drawn_H / drawn_H[0, 0], H / H[0, 0])
        np.testing.assert_allclose(drawn_W / drawn_W[0, 0, 0], W / W[0, 0, 0])
        # Scaled to the data: no other scale fits better.
        for factors in [(W, H), (kept_W, drawn_H), (drawn_W, kept_H)]:
            best = engine.residual(*factors)
            for scale in (0.99, 1.01):
                assert engine.residual(scale * factors[0], factors[1]) >= best
