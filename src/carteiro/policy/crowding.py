"""Choose the dead letters to remove when there are too many.

Pure: no clock, no randomness, no I/O.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from carteiro.model import TenantId, value


@value
class Share:
    """A tenant's number of entries, and how many of them can be removed."""

    entries: int
    may_go: int


def giving_way(shares: Mapping[TenantId, Share], *, excess: int) -> dict[TenantId, int]:
    """The entries to remove from each tenant: one at a time, from the tenant that has most.

    So a tenant with few entries loses none because of one with many.
    """
    crowd = [(-share.entries, tenant, share.may_go) for tenant, share in shares.items()]
    heapify(crowd)
    gives: dict[TenantId, int] = {}
    while excess > 0 and crowd:
        entries, tenant, may_go = heappop(crowd)
        if may_go:
            gives[tenant] = gives.get(tenant, 0) + 1
            excess -= 1
            heappush(crowd, (entries + 1, tenant, may_go - 1))
    return gives
