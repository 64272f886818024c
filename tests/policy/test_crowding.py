"""Eviction of entries: the largest tenant first, one entry at a time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import TenantId
from carteiro.policy.crowding import Share, giving_way

A, B, C = TenantId("a"), TenantId("b"), TenantId("c")


@pytest.mark.parametrize(
    ("shares", "excess", "gives"),
    [
        ({}, 5, {}),
        ({A: Share(3, 3)}, 0, {}),
        ({A: Share(3, 3)}, -2, {}),
        ({A: Share(3, 3)}, 2, {A: 2}),
        ({A: Share(3, 3)}, 9, {A: 3}),
        ({A: Share(10, 10), B: Share(1, 1)}, 5, {A: 5}),
        ({A: Share(3, 3), B: Share(3, 3)}, 3, {A: 2, B: 1}),
        ({A: Share(5, 0), B: Share(2, 2)}, 1, {B: 1}),
        ({A: Share(5, 1), B: Share(2, 2)}, 2, {A: 1, B: 1}),
    ],
)
def test_largest_tenant_loses_entries_first(
    shares: dict[TenantId, Share], excess: int, gives: dict[TenantId, int]
) -> None:
    """Ties by id; redriven entries count, but cannot be removed."""
    assert giving_way(shares, excess=excess) == gives


@given(
    st.dictionaries(
        st.sampled_from([A, B, C]),
        st.integers(0, 9).flatmap(
            lambda all_: st.builds(Share, st.just(all_), st.integers(0, all_))
        ),
    ),
    st.integers(-3, 30),
)
def test_as_many_are_removed_as_must_and_can_be(shares: dict[TenantId, Share], excess: int) -> None:
    """No tenant loses more than allowed, nor before a larger one."""
    gives = giving_way(shares, excess=excess)

    left = {tenant: share.entries - gives.get(tenant, 0) for tenant, share in shares.items()}
    could = [t for t, share in shares.items() if gives.get(t, 0) < share.may_go]
    assert sum(gives.values()) == min(max(0, excess), sum(s.may_go for s in shares.values()))
    assert all(count <= shares[tenant].may_go for tenant, count in gives.items())
    assert all(left[giver] + 1 >= left[other] for giver in gives for other in could)
