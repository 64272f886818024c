"""``carteiro explain``: the reason why a message waits, and until when."""

from datetime import UTC, datetime

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.documents import document_of
from carteiro.cli.messages import known_message
from carteiro.cli.options import MessageArgument, OfTenant
from carteiro.errors import QueueAway
from carteiro.model import StoredMessage, Tenant
from carteiro.policy import waiting


@at_a_desk
async def explain(desk: Desk, message: MessageArgument, *, tenant: OfTenant = None) -> None:
    """Explain why a message is not sent yet, and until when it waits."""
    found = await known_message(desk, message, tenant=tenant)
    now = datetime.now(UTC)
    told = await _told(desk, found, now)
    document = document_of(told, outboxId=found.id, status=found.state, expiresAt=found.expires_at)
    until = told.until
    facts = {
        "id": found.id,
        "status": found.state,
        "why": told.text,
        "until": until,
        "in": until - now if until is not None and until > now else None,
        "expires": found.expires_at if told.why is not waiting.Why.FINISHED else None,
    }
    desk.out.thing(document, facts)


async def _told(desk: Desk, found: StoredMessage, now: datetime) -> waiting.Waiting:
    try:
        place = await desk.backend.reading.place(found.id)
    except QueueAway:
        return waiting.explain_without_queue(found)
    [sender] = await desk.backend.tenants.find([found.tenant])
    return waiting.explain(found, place, sender or Tenant(found.tenant), now=now)
