"""Claims: one call of the SQL function for the jobs, one for their messages."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from carteiro import model
from carteiro.policy.fairness import READIED_PER_TURN, SUSPECT_CLAIMS
from carteiro.policy.lifecycle import LONGEST_HOLD_MS, MILLISECOND
from carteiro.policy.pacing import MOST_DRAWS
from carteiro.stores.columns import recipient_of
from carteiro.stores.heeding import with_suppressed
from carteiro.stores.postgres.database import Database

_DELIVERIES = {each.value: each for each in model.Delivery}
# Columns of a message.
_FINISHED_AT, _RECIPIENT, _HAS_SUPPRESSIONS = 20, 24, 27
_CLOCK_JITTER_MS = 1000  # a clock that is behind by more than this was set back


class Claims:
    """Leases jobs."""

    def __init__(self, db: Database, fairness: model.Fairness) -> None:
        self._db = db
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
        wanted = {number for number, row in known.items() if row[_FINISHED_AT] is None}
        stale = [row[2] for row in jobs if row[2] not in wanted]
        if stale:  # the message ended during the claim, or is gone: its job is dropped, never sent
            await self._db.fetch("drop_orphans", stale, claim_id)
            jobs = [row for row in jobs if row[2] in wanted]
        recipients = await self._recipients({row[_RECIPIENT] for row in known.values()} - {None})
        leased = [_leased(row, known[row[2]], claim_id, now, recipients) for row in jobs]
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
    job: Any,  # noqa: ANN401 - a row
    message: Any,  # noqa: ANN401 - a row
    claim_id: model.ClaimId,
    now: int,
    recipients: Mapping[str, model.Recipient],
) -> model.LeasedJob:
    _, _, _, identity, kind, tenant, claims, tenant_preset = job
    recipient_id = message[_RECIPIENT]
    return model.LeasedJob(
        model.Lease(identity, claim_id),
        kind,
        tenant,
        claims,
        message["o_content"],
        message["o_tenant"],
        message["o_request_id"],
        _DELIVERIES[message["o_delivery"]],
        message["o_attempts"],
        message["o_charged"],
        message["o_in_doubt"],
        message["o_revision"],
        message["o_state"] == model.State.SENT_ATTEMPT,
        (message["o_expires_at"] - now) * MILLISECOND,
        message["o_cancel_requested_at"] is not None,
        recipient_id,
        recipients.get(recipient_id),
        message["o_preset"] or tenant_preset,
        message["o_provider"],
    )
