"""Claims: one call of the SQL function for the jobs, one for their messages."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from carteiro import model
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND, Entry
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.stores.columns import entry_of, recipient_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.postgres.changes import Held
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import Memory

_DELIVERIES = {each.value: each for each in model.Delivery}
# Columns of a message.
_FINISHED_AT, _RECIPIENT, _HAS_SUPPRESSIONS = 20, 24, 27
_CLOCK_JITTER_MS = 1000  # a clock that is behind by more than this was set back


class Claims:
    """Leases jobs and remembers their entries, which then need not be loaded to be declared or settled."""

    def __init__(self, db: Database, memory: Memory, fairness: model.Fairness) -> None:
        self._db = db
        self._memory = memory
        self._fairness = fairness

    async def take(
        self,
        kinds: Sequence[model.KindName],
        *,
        limit: int,
        claim_id: model.ClaimId,
        lease: timedelta,
    ) -> model.Claimed:
        """Lease due jobs, fair between tenants."""
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
            MOST_DRAWS,
            LONGEST_HOLD_MS,
            _CLOCK_JITTER_MS,
            self._db.fixed_now,
        )
        now, idle_ms = rows[0][:2]
        idle_for = None if idle_ms is None else idle_ms * MILLISECOND
        jobs = [row for row in rows if row[2] is not None]
        known = await self._known(jobs)
        stale = [number for number, row in known.items() if row[_FINISHED_AT] is not None]
        if stale:  # the message ended during the claim: its job is dropped, never sent
            await self._db.fetch("drop_orphans", stale, claim_id)
            jobs = [row for row in jobs if row[2] not in stale]
        recipients = await self._recipients({row[_RECIPIENT] for row in known.values()} - {None})
        leased = [self._leased(row, known.get(row[2]), claim_id, now, recipients) for row in jobs]
        tenants = {row[1] for row in known.values() if row[_HAS_SUPPRESSIONS]}
        return model.Claimed(await with_suppressed(self._db, leased, tenants, now), idle_for)

    async def _known(self, jobs: Sequence[Any]) -> Mapping[int, Any]:
        """The messages of the jobs; a queue may have jobs that the ledger does not know."""
        if not jobs:
            return {}
        numbers, tenants = [row[2] for row in jobs], list({row[5] for row in jobs})
        return {row[0]: row for row in await self._db.fetch("claimed", numbers, tenants)}

    async def _recipients(self, ids: set[str]) -> Mapping[str, model.Recipient]:
        rows = await self._db.fetch("claim_recipients", ids=sorted(ids)) if ids else []
        return {recipient.id: recipient for recipient in map(recipient_of, rows)}

    def _leased(
        self,
        job: Any,  # noqa: ANN401 - a row
        message: Any | None,  # noqa: ANN401 - a row
        claim_id: model.ClaimId,
        now: int,
        recipients: Mapping[str, model.Recipient],
    ) -> model.LeasedJob:
        _, _, _, identity, kind, tenant, claims, tenant_preset = job
        lease = model.Lease(identity, claim_id)
        if message is None:
            self._memory.keep(lease, _held(job, None, 0, claim_id))
            nothing = (
                None,
                None,
                "",
                model.Delivery.AT_LEAST_ONCE,
                0,
                0,
                0,
                1,
                False,
                timedelta(0),
            )
            return model.LeasedJob(lease, kind, tenant, claims, *nothing)
        _, ledger_tenant, *columns = message
        entry = entry_of((identity, ledger_tenant, kind, *columns[:19]))
        version, request_id, delivery, recipient_id, preset, content, _ = columns[19:]
        self._memory.keep(lease, _held(job, entry, version, claim_id))
        return model.LeasedJob(
            lease,
            kind,
            tenant,
            claims,
            content,
            entry.tenant,
            request_id,
            _DELIVERIES[delivery],
            entry.attempts,
            entry.charged,
            entry.in_doubt,
            entry.revision,
            entry.state is model.State.SENT_ATTEMPT,
            (entry.expires_at - now) * MILLISECOND,
            entry.cancel_requested_at is not None,
            recipient_id,
            recipients.get(recipient_id),
            preset or tenant_preset,
            entry.provider,
        )


def _held(job: Any, entry: Entry | None, version: int, claim_id: model.ClaimId) -> Held:  # noqa: ANN401 - a row
    return Held(
        id=job[3],
        message_no=job[2],
        version=version,
        kind=job[4],
        tenant=job[5],
        entry=entry,
        claim=claim_id,
        is_leased=True,
        is_remembered=True,
    )
