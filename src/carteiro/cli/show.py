"""``carteiro show``: one message and its timeline."""

import orjson

from carteiro.api.email_documents import view
from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.messages import known_message
from carteiro.cli.options import MessageArgument, OfTenant
from carteiro.cli.printing import Column
from carteiro.model import StoredMessage, TimelineEvent


def _details(event: TimelineEvent) -> str:
    return ", ".join(f"{name}={_brief(told)}" for name, told in event.metadata.items())


def _brief(told: object) -> str:
    return told if isinstance(told, str) else orjson.dumps(told).decode()


TIMELINE: tuple[Column[TimelineEvent], ...] = (
    Column("at", lambda event: event.at, is_whole=True),
    Column("event", lambda event: event.type, is_whole=True),
    Column("details", _details),
)


@at_a_desk
async def show(desk: Desk, message: MessageArgument, *, tenant: OfTenant = None) -> None:
    """Show one message with its timeline."""
    found = await known_message(desk, message, tenant=tenant)
    events = await desk.backend.reading.events(found.id)
    document = view(found, events).model_dump(mode="json", by_alias=True)
    desk.out.thing(document, facts_of(found) | {"delivery": document["deliveryStatus"]})
    desk.out.beside("Timeline", events, TIMELINE)


def facts_of(message: StoredMessage) -> dict[str, object]:
    """The main fields of a message, in order of interest."""
    failure = message.failure
    return {
        "id": message.id,
        "tenant": message.tenant,
        "status": message.state,
        "to": message.to,
        "subject": message.subject,
        "kind": message.kind,
        "created": message.created_at,
        "due": message.due_at,
        "expires": message.expires_at,
        "finished": message.finished_at,
        "attempts": message.attempts,
        "in doubt": message.in_doubt or None,
        "round": message.round,
        "revision": message.revision,
        "provider": message.provider,
        "provider's id": message.provider_id,
        "error": None if failure is None else f"{failure.code}: {failure.reason}",
        "request": message.request_id,
        "external id": message.external_id,
        "recipient": message.recipient_id,
        "template": message.template_type,
        "tags": message.tags or None,
        "cancel requested": message.cancel_requested_at,
    }
