"""The path of a message: accept, claim, declare, settle, and the recovery from failures."""

from collections.abc import Collection, Sequence
from datetime import timedelta

from carteiro.model import (
    EMAIL,
    ZERO,
    AcceptAnswer,
    Accepted,
    Begun,
    CancelAnswer,
    Claimed,
    ClaimId,
    End,
    EventType,
    KeyConflict,
    KindName,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    NewMessage,
    OverLimit,
    RecipientId,
    Refused,
    RefusedWhy,
    Replayed,
    Settled,
    Start,
    State,
    TenantDisabled,
    TenantId,
    TenantUnknown,
)
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import MILLISECOND, Entry, Stamped
from carteiro.policy.quota import QuotaCounts
from support.model.claiming import Claiming
from support.model.recipients import meet
from support.model.tables import (
    Job,
    Request,
    Row,
    Tables,
    in_parked_order,
    to_datetime,
    to_ms,
)


class ModelStore:
    """The `Store` port on plain dicts: slow, and obviously right. Every other store is compared with it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # --- accept -------------------------------------------------------------------------------

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """Commit the messages and their jobs; a known id or key is replayed."""
        now = self._tables.now()
        return [self._accept_one(message, now) for message in new]

    def _accept_one(self, message: NewMessage, now: int) -> AcceptAnswer:
        refusal = (
            self._known(message)
            or self._closed(message)
            or self._asked_before(message, now)
            or self._over_limit(message, now)
        )
        if refusal is not None:
            return refusal
        told = message.recipient
        recipient = meet(self._tables, message.tenant, told, now) if told else None
        row = self._enter(message, recipient, now)
        self._tables.enqueue(row, now)
        return Accepted(message.id, to_datetime(now), recipient)

    def _known(self, message: NewMessage) -> Replayed | None:
        row = self._tables.rows.get(message.id)
        if row is None:
            return None
        received_at, request_id = to_datetime(row.created_at), row.message.request_id
        return Replayed(message.id, received_at, row.recipient_id, request_id)

    def _closed(self, message: NewMessage) -> TenantUnknown | TenantDisabled | None:
        tenant = self._tables.tenants.get(message.tenant)
        if tenant is None:
            return TenantUnknown(message.tenant)
        return TenantDisabled(message.tenant) if tenant.disabled else None

    def _asked_before(self, message: NewMessage, now: int) -> Replayed | KeyConflict | None:
        """The first answer, or the owner of the key."""
        if message.key is None:
            return None
        first = self._tables.first_under(message.key, message.tenant, now)
        if first is None:
            return None
        is_the_same = first.digest == message.key.digest
        return first.replayed() if is_the_same else KeyConflict(first.message)

    def _over_limit(self, message: NewMessage, now: int) -> OverLimit | None:
        """The limit that refuses the message; without one, the message is counted."""
        if message.limits is None or not message.limits.has_any:
            return None
        tally = QuotaCounts(now, self._tables.api_counts.get(message.tenant, ()))
        refusal = tally.judge(message.limits)
        if refusal is None:
            tally.count()
            self._tables.api_counts[message.tenant] = tally.rows()
        return refusal

    def _enter(self, message: NewMessage, recipient: RecipientId | None, now: int) -> Row:
        enqueued = Stamped(EventType.ENQUEUED, {"requestId": message.request_id}, now)
        events = [enqueued] if message.kind == EMAIL else []
        row = Row(message, _first_entry(message, now), recipient, now, events)
        self._tables.rows[message.id] = row
        self._tables.contents[message.id] = message.content
        if message.key is not None:
            self._tables.requests[message.tenant, message.key.key] = Request(
                message.key.digest, message.id, recipient, message.request_id, now
            )
        return row

    # --- claim --------------------------------------------------------------------------------

    async def claim(
        self,
        *,
        claim_id: ClaimId,
        kinds: Collection[KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns."""
        now = self._tables.now()
        claiming = Claiming(self._tables, kinds, limit=limit, ahead=ahead, now=now)
        claiming.wake()
        claiming.walk()
        for job in claiming.taken:
            job.claim = claim_id
            job.claims += 1
            job.parked_until = now + lease // MILLISECOND
        claiming.close(claim_id)
        leased = [self._leased(job, claim_id, now) for job in claiming.taken]
        return Claimed(leased, claiming.idle_for())

    def _leased(self, job: Job, claim_id: ClaimId, now: int) -> LeasedJob:
        row = self._tables.rows[job.id]
        entry, message, recipient = row.entry, row.message, row.recipient_id
        return LeasedJob(
            lease=Lease(job.id, claim_id),
            kind=job.kind,
            tenant=job.tenant,
            claims=job.claims,
            content=self._tables.contents[job.id],
            ledger_tenant=entry.tenant,
            request_id=message.request_id,
            delivery=message.delivery,
            attempts=entry.attempts,
            charged=entry.charged,
            in_doubt=entry.in_doubt,
            revision=row.entry.revision,
            open_attempt=lifecycle.is_open(entry),
            expires_in=(job.expires_at - now) * MILLISECOND,
            cancel_requested=entry.cancel_requested_at is not None,
            recipient_id=recipient,
            recipient=self._tables.recipients.get(recipient) if recipient else None,
            retry_preset=self._tables.tenants[job.tenant].retry_preset,
            provider=entry.provider,
        )

    # --- declare and settle -------------------------------------------------------------------

    async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""
        now = self._tables.now()
        return [self._declare_one(start, now) for start in starts]

    def _declare_one(self, start: Start, now: int) -> Begun | Refused:
        row = self._tables.rows.get(start.lease.job)
        if row is None:
            return Refused(RefusedWhy.LOST)
        job = self._owned(start.lease)
        answer, change = lifecycle.begin(row.entry, start, owner=job is not None, now=now)
        if change is not None:
            self._tables.apply(row, change, now)
        if change is not None and job is not None and row.entry.held_until is not None:
            job.parked_until = row.entry.held_until
            self._tables.touch(job.kind, job.tenant, job.parked_until)
        return answer

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        """Store the verdicts: state, events, queue and dead letter in one transaction."""
        now = self._tables.now()
        return [self._settle_one(end, now) for end in ends]

    def _settle_one(self, end: End, now: int) -> Settled | Late:
        row = self._tables.rows.get(end.lease.job)
        if row is None:
            return Late(None)
        is_owner = self._owned(end.lease) is not None
        answer, change = lifecycle.finish(row.entry, end, owner=is_owner, now=now)
        if change is not None:
            self._tables.apply(row, change, now)
        return answer

    # --- recovery
    # -----------------------------------------------------------------------------

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims; False where the job was reassigned. Never shortens a hold."""
        until = self._tables.now() + lease // MILLISECOND
        return [self._extend_one(each, until) for each in leases]

    def _extend_one(self, lease: Lease, until: int) -> bool:
        job = self._owned(lease)
        if job is None:
            return False
        job.parked_until = max(job.parked_until or 0, until)
        entry = self._tables.rows[lease.job].entry
        if self._has_declared(lease) and entry.held_until is not None:
            entry.held_until = max(entry.held_until, until)
        return True

    async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
        """Give back claimed, undeclared jobs, as if they had never been claimed."""
        now = self._tables.now()
        for lease in leases:
            job = self._owned(lease)
            if job is not None and not self._has_declared(lease):
                self._tables.refund(job.kind, job.tenant, lease.claim)
                self._release_one(job, now + wait // MILLISECOND, now)

    def _release_one(self, job: Job, until: int, now: int) -> None:
        job.ready()
        job.claims = max(0, job.claims - 1)
        if until > now:
            job.parked_until = until
        self._tables.touch(job.kind, job.tenant, until)
        self._tables.free(job.tenant, now)

    async def undo_claims(self, claims: Sequence[ClaimId]) -> None:
        """Release all jobs that these claims leased and did not declare."""
        jobs = self._tables.jobs.values()
        leases = [Lease(job.id, job.claim) for job in jobs if job.claim is not None]
        await self.release([lease for lease in leases if lease.claim in claims])

    async def cancel(self, ids: Sequence[MessageId], *, tenant: TenantId) -> list[CancelAnswer]:
        """End waiting messages; mark those in flight or in doubt, so that a retry becomes CANCELLED."""
        now = self._tables.now()
        return [self._cancel_one(each, tenant, now) for each in ids]

    def _cancel_one(self, message: MessageId, tenant: TenantId, now: int) -> CancelAnswer:
        row = self._tables.rows.get(message)
        if row is None or row.entry.tenant != tenant:
            return CancelAnswer.NOT_FOUND
        job = self._tables.jobs.get(message)
        is_leased = job is not None and job.is_leased(now)
        answer, change = lifecycle.cancel(row.entry, leased=is_leased, now=now)
        if change is not None:
            self._tables.apply(row, change, now)
        return answer

    async def reap(self, *, limit: int) -> int:
        """Ready the jobs whose lease or hold ran out; return their number. Safe anywhere, at any time."""
        now = self._tables.now()
        claimed = (job for job in self._tables.jobs.values() if job.claim is not None)
        due = in_parked_order(job for job in claimed if job.wakes_at(now) <= now)[:limit]
        for job in due:
            job.ready()
            self._tables.touch(job.kind, job.tenant, now)
            self._tables.free(job.tenant, now)
        return len(due)

    def _owned(self, lease: Lease) -> Job | None:
        """The job, if the claim on it is the lease's."""
        job = self._tables.jobs.get(lease.job)
        return job if job is not None and job.claim == lease.claim else None

    def _has_declared(self, lease: Lease) -> bool:
        entry = self._tables.rows[lease.job].entry
        return lifecycle.is_open(entry) and entry.holder == lease.claim


def _first_entry(message: NewMessage, now: int) -> Entry:
    due_at = now if message.due is None else max(now, to_ms(message.due))
    ttl_ms = message.ttl // MILLISECOND
    return Entry(
        id=message.id,
        tenant=message.tenant,
        kind=message.kind,
        declares=message.declares,
        ttl_ms=ttl_ms,
        state=State.ENQUEUED,
        due_at=due_at,
        expires_at=due_at + ttl_ms,
        attempts=0,
        charged=0,
        in_doubt=0,
        round=1,
        revision=1,
        holder=None,
        held_until=None,
        cancel_requested_at=None,
        evidence=None,
        provider=None,
        provider_id=None,
        failure=None,
        duration_ms=None,
        finished_at=None,
    )
