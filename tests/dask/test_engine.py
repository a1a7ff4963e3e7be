"""Every verb of the engine by shards, against the engine of one machine."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from motifold.data import Data
from motifold.datasets import make_sequences
from motifold.engines.cpu import CPUEngine, Problem, Workers
from motifold.engines.dask.crew import LocalCrew
from motifold.engines.dask.engine import ClusterEngine
from motifold.engines.dask.plan import Cutting
from motifold.engines.dask.store import Store
from motifold.model.penalties import penalties_of
from motifold.solvers import HALS, MU, Inner

K, L, N = 5, 20, 8
TILES = HALS("tiles")
SEGMENTS = [3000, 300, 30, 5000, 3000]
CASES = {
    "plain": {},
    "segments": {"lengths": SEGMENTS},
    "valid": {"lengths": SEGMENTS, "boundary": "valid"},
    "penalties": {"l1_H": 0.1, "l2_W": 0.1, "ortho_H": 0.1, "ortho_W": 0.1},
    "x_ortho": {"lengths": [8000, 3000], "x_ortho": 0.01},
    "background": {"background": True},
    "mu": {"solver": MU()},
    "missing": {"lengths": [8000, 3000], "missing": True},
    "all": {"missing": True, "boundary": "valid", "x_ortho": 0.01, "background": True},
    "support": {"support": True},
}


def engines(
    lengths=(11_000,),
    missing=False,
    background=False,
    boundary="zero",
    support=False,
    n_hands=2,
    **weights,
):
    """The same problem on one machine, and by shards in this process."""
    X = make_sequences(sum(lengths), N, K, L, random_state=0).X
    rng = np.random.default_rng(1)
    arrays = np.split(X, np.cumsum(lengths)[:-1])
    masks = None
    if missing:
        masks = [rng.random(array.shape) > 0.2 for array in arrays]
        masks[0][300:340] = False  # nothing at all is known of some activations
        arrays = [np.where(m, x, 0) for m, x in zip(masks, arrays, strict=True)]
    data = Data.of(arrays, masks)
    model = K + background, L, boundary, penalties_of(K + background, background, **weights)
    allowed = rng.random((sum(lengths), K)) > 0.5 if support else None
    given = {"background": background, "support": allowed}
    cutting = Cutting(L, K, boundary, wide="x_ortho" in weights, n_shards=5)
    stores = []

    def look(data, width, *, nonnegative):
        stores.append(Store.sent(LocalCrew(n_hands), data, cutting, signed=not nonnegative))
        return stores[0].facts

    local = CPUEngine(Problem.of(data, *model, **given), Workers(1))
    return local, ClusterEngine(Problem.of(data, *model, look=look, **given), Workers(1), stores[0])


def assert_same(found, expected):
    for field in fields(expected):
        a, b = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8 * expected.fitted, err_msg=field.name)


def close(found, expected, tol=1e-8):
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=tol)


@pytest.mark.parametrize("case", CASES)
def test_steps_are_those_of_one_machine(case):
    options = dict(CASES[case])
    solver = options.pop("solver", TILES)
    local, there = engines(**options)
    assert len(there.store.plan.shards) > 2
    close(there.facts.squared_norm, local.facts.squared_norm)
    (W, H), (V, G) = local.draw(3, None, None), there.draw(3, None, None)
    close(V, W)
    close(there.gather(G), H)
    assert_same(there.assess(V, G).sums, local.assess(W, H).sums)
    for follow in (1e-3, 1.0):
        a = local.step(W, H, solver, Inner(4), follow=follow)
        b = there.step(V, G, solver, Inner(4), follow=follow)
        close([b.kkt_W, b.penalty], [a.kkt_W, a.penalty])
        close(b.W, a.W)
        close(there.gather(b.H), a.H)
        assert_same(b.sums, a.sums)
        ahead = local.ahead(a.H, H, 0.3), there.ahead(b.H, G, 0.3)
        W, H, V, G = a.W, a.H, b.W, b.H
        assert_same(there.assess(V, ahead[1]).sums, local.assess(W, ahead[0]).sums)
    close(there.residual(V, G), local.residual(W, H))
    close(there.power_shares(V, G), local.power_shares(W, H))
    close(there.kkt_of_motifs(V, G), local.kkt_of_motifs(W, H))


@pytest.mark.parametrize("case", ["plain", "valid", "missing"])
def test_moves_are_those_of_one_machine(case):
    local, there = engines(**CASES[case])
    (W, H), (V, G) = local.draw(3, None, None), there.draw(3, None, None)
    t, window = local.worst_window(W, H, 1)
    found, other = there.worst_window(V, G, 1)
    assert found == t
    close(other, window)
    close(there.means(G), local.means(H))
    close(there.gather(there.level(there.means(G))), local.level(local.means(H)))
    shifts = {0: 5, 2: -7}
    for (W2, H2), (V2, G2) in (
        (local.plant(W, H, 1, t, window), there.plant(V, G, 1, t, window)),
        (local.shift(W, H, shifts), there.shift(V, G, shifts)),
    ):
        close(V2, W2)
        close(there.gather(G2), H2)
        assert_same(there.assess(V2, G2).sums, local.assess(W2, H2).sums)


@pytest.mark.parametrize("case", ["plain", "background", "missing"])
def test_the_last_solve_is_that_of_one_machine(case):
    local, there = engines(**CASES[case])
    W, V = local.draw(3, None, None)[0], there.draw(3, None, None)[0]
    p, q = local.exact_problem(W), there.exact_problem(V)
    h, g = local.zeros(p), there.zeros(q)
    for _ in range(2):
        h = local.sweep(h, p, TILES, Inner(5, 0.0))
        g = there.sweep(g, q, TILES, Inner(5, 0.0))
        close(there.standing(g, q), local.standing(h, p), tol=1e-6)
    close(there.gather(there.settled(g, q)), local.settled(h, p))
    order, scales = np.arange(K)[::-1], np.arange(1.0, K + 1)
    close(
        there.delivered(there.settled(g, q), scales, order),
        local.delivered(local.settled(h, p), scales, order),
    )


def test_a_part_of_the_recording_is_that_of_one_machine():
    local, there = engines(lengths=(40_000,))
    (less, rows), (part, others) = local.part(), there.part()
    assert rows == others
    close(part.facts.squared_norm, less.facts.squared_norm)
    (W, H), (V, G) = local.draw(3, None, None), there.draw(3, None, None)
    close(
        part.assess(V, there.take(G, rows)).sums.fitted,
        less.assess(W, local.take(H, rows)).sums.fitted,
    )


def test_no_bit_depends_on_who_has_which_shard():
    found = []
    for n_hands in (1, 2, 4):
        _, there = engines(n_hands=n_hands, x_ortho=0.01)
        W, H = there.draw(3, None, None)
        step = there.step(W, H, TILES, Inner(4), follow=1.0)
        found.append(
            (step.W, there.gather(step.H), step.sums.fitted, there.residual(step.W, step.H))
        )
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_the_centre_lets_go_the_workers_do():
    _, there = engines(n_hands=1)
    (hands,) = there.crew._hands.values()
    W, H = there.draw(3, None, None)
    for _ in range(4):
        step = there.step(W, H, TILES, Inner(1), follow=1.0)
        W, H = step.W, step.H
    part = there.with_penalties(there.model.penalties)
    del step, part
    there.forget()
    there.assess(W, there.draw(1, None, None)[1])
    there.residual(W, there.draw(1, None, None)[1])
    (shards,) = hands._plans.values()
    for held in shards.values():
        assert len(held.H) <= 5
        assert len(held.problems) <= 2
    assert len(hands._motifs) <= 3
