"""Who gives way when there are more dead letters than may be kept.

Pure: no clock, no chance, no I/O.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from carteiro.model import TenantId, value


@value
class Share:
    """How many entries a tenant has, and how many of them may go."""

    entries: int
    may_go: int


def giving_way(shares: Mapping[TenantId, Share], *, excess: int) -> dict[TenantId, int]:
    """How many entries each tenant gives: one after another, each from the tenant that has most then.

    So a tenant with few entries loses none because of another that has many.
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
