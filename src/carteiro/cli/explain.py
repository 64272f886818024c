"""``carteiro explain``: the reason why a message waits, and until when."""

from datetime import UTC, datetime

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.documents import document_of
from carteiro.cli.messages import known_message
from carteiro.cli.options import MessageArgument, OfTenant
from carteiro.policy.waiting import Why
from carteiro.runtime.messages import explain_message


@at_a_desk
async def explain(desk: Desk, message: MessageArgument, *, tenant: OfTenant = None) -> None:
    """Explain why a message is not sent yet, until when it waits, and estimate when it is sent."""
    found = await known_message(desk, message, tenant=tenant)
    now = datetime.now(UTC)
    told = await explain_message(desk.backend, found, plan=desk.settings.automatic_plan)
    document = document_of(told, outboxId=found.id, status=found.state, expiresAt=found.expires_at)
    until, estimate = told.until, told.estimate
    facts = {
        "id": found.id,
        "status": found.state,
        "why": told.text,
        "until": until,
        "in": until - now if until is not None and until > now else None,
        "expires": found.expires_at if told.why is not Why.FINISHED else None,
    }
    if estimate is not None:
        between = {"not before": estimate.earliest, "sent by": estimate.latest}
        facts |= {"estimate": estimate.text, **between}
    if (redrive := told.automatic_redrive) is not None:
        facts |= {"automatic redrive": redrive.text, "not before": redrive.not_before}
    desk.out.thing(document, facts)
