"""What a ledger makes of a ticket from a queue that is kept elsewhere, the same in every SQL store."""

from carteiro.model import Delivery, LeasedJob, Recipient, RecipientId, value
from carteiro.policy.lifecycle import MILLISECOND, Entry, is_open
from carteiro.policy.pairing import is_over, not_yet
from carteiro.ports.queue import ClaimedEntry, Delay

_DELIVERIES = {each.value: each for each in Delivery}


@value
class Beside:
    """What a job needs to know of its message beside its entry."""

    request_id: str
    delivery: str
    recipient_id: RecipientId | None
    recipient: Recipient | None
    retry_preset: str | None
    content: str | None


def opened(
    ticket: ClaimedEntry, entry: Entry, beside: Beside, now: int
) -> LeasedJob | Delay | None:
    """The job, a `Delay` if it must not be tried yet, None if its message is over."""
    if is_over(entry):
        return None
    until = not_yet(entry, due_at=ticket.due_at, now=now)
    if until is not None:
        return Delay(ticket.lease, entry.due_at, until)
    return LeasedJob(
        lease=ticket.lease,
        kind=ticket.kind,
        tenant=ticket.tenant,
        claims=ticket.claims,
        content=beside.content,
        ledger_tenant=entry.tenant,
        request_id=beside.request_id,
        delivery=_DELIVERIES[beside.delivery],
        attempts=entry.attempts,
        charged=entry.charged,
        in_doubt=entry.in_doubt,
        revision=entry.revision,
        open_attempt=is_open(entry),
        expires_in=(entry.expires_at - now) * MILLISECOND,
        cancel_requested=entry.cancel_requested_at is not None,
        recipient_id=beside.recipient_id,
        recipient=beside.recipient,
        retry_preset=beside.retry_preset,
        provider=entry.provider,
    )
