"""Claims: one call of the server's own function, and what it answers made into leased jobs."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from carteiro.model import (
    Claimed,
    ClaimId,
    Delivery,
    Fairness,
    KindName,
    Lease,
    LeasedJob,
    Recipient,
    State,
)
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Entry
from carteiro.stores.columns import entry_of, recipient_of
from carteiro.stores.postgres.changes import Held
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import Memory

_DELIVERIES = {each.value: each for each in Delivery}
_CLOCK_JITTER_MS = 1000  # a clock that is further back than this was stepped back


class Claims:
    """Leases jobs and remembers their entries: what comes back to be declared or settled need not be loaded."""

    def __init__(self, db: Database, memory: Memory, fairness: Fairness) -> None:
        self._db = db
        self._memory = memory
        self._fairness = fairness

    async def take(
        self, kinds: Sequence[KindName], *, limit: int, claim_id: ClaimId, lease: timedelta
    ) -> Claimed:
        """Lease what is due, fair between tenants."""
        rows = await self._db.fetch(
            "claim",
            list(kinds),
            max(0, limit),
            claim_id,
            lease // MILLISECOND,
            self._fairness.max_jobs_per_tenant_batch,
            self._fairness.enable_round_robin,
            READIED_PER_TURN,
            SUSPECT_CLAIMS,
            LONGEST_HOLD_MS,
            _CLOCK_JITTER_MS,
            self._db.fixed_now,
        )
        now, idle_ms = rows[0][:2]
        idle_for = None if idle_ms is None else idle_ms * MILLISECOND
        leased = [row for row in rows if row[2] is not None]
        stale = [row[2] for row in leased if row[26] is not None]
        if stale:  # ended while it was being claimed: acknowledged, never sent
            await self._db.fetch("drop_orphans", stale, claim_id)
            leased = [row for row in leased if row[26] is None]
        recipients = await self._recipients({row[30] for row in leased} - {None})
        contents = await self._contents([row[2] for row in leased if row[33] is None])
        return Claimed(
            [self._leased(row, claim_id, now, recipients, contents) for row in leased], idle_for
        )

    async def _contents(self, numbers: Sequence[int]) -> Mapping[int, str]:
        """What there was no room for in the claim's own answer."""
        return dict(await self._db.fetch("claim_contents", numbers)) if numbers else {}

    async def _recipients(self, ids: set[str]) -> Mapping[str, Recipient]:
        rows = await self._db.fetch("claim_recipients", sorted(ids)) if ids else []
        return {recipient.id: recipient for recipient in map(recipient_of, rows)}

    def _leased(
        self,
        row: Any,  # noqa: ANN401
        claim_id: ClaimId,
        now: int,
        recipients: Mapping[str, Recipient],
        contents: Mapping[int, str],
    ) -> LeasedJob:
        (_, _, number, identity, kind, tenant, claims, *columns) = row
        lease = Lease(identity, claim_id)
        if columns[0] is None:  # the queue knows it, the ledger does not
            self._memory.keep(lease, _held(row, None, claim_id))
            nothing = (None, None, "", Delivery.AT_LEAST_ONCE, 0, 0, 0, 1, False, timedelta(0))
            return LeasedJob(lease, kind, tenant, claims, *nothing)
        entry = entry_of((identity, columns[0], kind, *columns[1:20]))
        self._memory.keep(lease, _held(row, entry, claim_id))
        request_id, delivery, recipient_id, _, preset, content = columns[21:]
        return LeasedJob(
            lease,
            kind,
            tenant,
            claims,
            contents.get(number) if content is None else content,
            entry.tenant,
            request_id,
            _DELIVERIES[delivery],
            entry.attempts,
            entry.charged,
            entry.in_doubt,
            entry.revision,
            entry.state is State.SENT_ATTEMPT,
            (entry.expires_at - now) * MILLISECOND,
            entry.cancel_requested_at is not None,
            recipient_id,
            recipients.get(recipient_id),
            preset,
        )


def _held(row: Any, entry: Entry | None, claim_id: ClaimId) -> Held:  # noqa: ANN401 - a row
    return Held(
        id=row[3],
        message_no=row[2],
        version=row[27] or 0,
        kind=row[4],
        tenant=row[5],
        entry=entry,
        claim=claim_id,
        is_leased=True,
        is_remembered=True,
    )
