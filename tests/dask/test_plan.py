"""Shards: cut by shape, whole tiles, with halos; and sums in one order, whoever takes them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from motifold.data import Segments
from motifold.engines.dask.crew import Lost, shared_out
from motifold.engines.dask.plan import Cutting, merged, number_of_shards, plan_of
from motifold.solvers.tiles import cut


@pytest.mark.parametrize("lengths", [[20_000], [9000, 40, 3, 9000], [500] * 40])
@pytest.mark.parametrize("wide", [False, True])
def test_shards_are_whole_tiles_and_see_what_is_around_them(lengths, wide):
    L, K = 20, 5
    plan = plan_of(Cutting(L, K, "zero", wide), lengths, 7)
    edges = Segments(lengths).edges
    tiles = cut(Segments(lengths).bounds, L, K)
    reach = (L - 1) * (1 + wide)
    a = 0
    for shard, joined in zip(plan.shards, plan.joined, strict=True):
        assert shard.a == a
        a = shard.b
        assert shard.b in tiles.table[:, 2]
        assert joined == (shard.b not in edges)
        assert shard.right == (min(reach, edges[edges > shard.b].min() - shard.b) if joined else 0)
        rows = [(edges[p.segment] + p.a, edges[p.segment] + p.b) for p in shard.pieces]
        assert rows[0][0] == shard.a - shard.left
        assert rows[-1][1] == shard.b + shard.right
        assert all(before[1] == after[0] for before, after in pairwise(rows))
        assert shard.ends == tuple(edges[p.segment + 1] <= shard.b for p in shard.pieces)
        np.testing.assert_array_equal(shard.tiles.table[:, 0] + shard.a >= shard.a, True)
    assert a == sum(lengths)


def test_the_number_of_shards_follows_the_shape():
    assert number_of_shards(1000, 10, 8) == 1
    assert number_of_shards(10**6, 100, 4) == 16
    assert number_of_shards(10**8, 250, 4) == 1024
    assert 16 < number_of_shards(10**7, 250, 4) < 1024


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64])
def test_sums_are_the_same_bits_whoever_takes_them(n):
    rng = np.random.default_rng(n)
    leaves = {(0, i): (rng.standard_normal(5),) for i in range(n)}
    (whole,) = merged(leaves, n).values()
    np.testing.assert_allclose(whole[0], sum(leaf for (leaf,) in leaves.values()))
    for n_hands in (2, 3, 5):
        owner = rng.integers(n_hands, size=n)
        parts = {}
        for hand in range(n_hands):
            mine = {node: leaf for node, leaf in leaves.items() if owner[node[1]] == hand}
            parts |= merged(mine, n)
        (other,) = merged(parts, n).values()
        np.testing.assert_array_equal(other[0], whole[0])


def test_shards_stay_where_they_are_as_far_as_may_be():
    first = shared_out(10, ["a", "b", "c"], {})
    assert sorted(i for shards in first.values() for i in shards) == list(range(10))
    left = shared_out(10, ["a", "c"], first)
    assert set(first["a"]) <= set(left["a"])
    assert set(first["c"]) <= set(left["c"])
    joined = shared_out(10, ["a", "c", "d"], left)
    assert {len(shards) for shards in joined.values()} == {3, 4}
    assert set(joined["a"]) <= set(left["a"])
    with pytest.raises(Lost):
        shared_out(10, [], left)
