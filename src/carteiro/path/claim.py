"""Lease a batch of jobs, fair between tenants.

In: the kinds a pool can do and its free slots. Out: leased jobs, or the time to sleep. If we crash
here, what was leased comes back when the lease runs out, uncharged and not in doubt.
"""

from collections.abc import Collection
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import Claimed, ClaimId, KindName
from carteiro.ports.store import Store


async def claim(
    store: Store, *, kinds: Collection[KindName], limit: int, lease: timedelta
) -> Claimed:
    """Claim under an id of its own: a lease of a store that was wiped and filled again must not match."""
    return await store.claim(claim_id=ClaimId(str(uuid7())), kinds=kinds, limit=limit, lease=lease)
