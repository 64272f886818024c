"""Operations on one message that the library, the API and the command line share."""

from datetime import UTC, datetime

from carteiro.errors import QueueAway
from carteiro.model import (
    FINISHED,
    CancelAnswer,
    StoredMessage,
    Tenant,
    TenantId,
    parse_message_id,
)
from carteiro.policy.waiting import Waiting, explain, explain_without_queue
from carteiro.ports import Audit, Backend, Reading


async def find_message(
    reading: Reading, given: str, *, tenant: str | None = None
) -> StoredMessage | None:
    """Return the message with this id; None if there is none, or it is another tenant's."""
    if not isinstance(given, str):
        raise TypeError(
            f"pass the id of a message, a str such as accepted.id, not a {type(given).__name__}"
        )
    identity = parse_message_id(given)
    if identity is None:
        return None
    return await reading.message(identity, tenant=None if tenant is None else TenantId(tenant))


async def explain_message(backend: Backend, message: StoredMessage) -> Waiting:
    """The reason why a message is not sent yet, and until when it waits."""
    try:
        place = await backend.reading.place(message.id)
    except QueueAway:
        return explain_without_queue(message)
    [tenant] = await backend.tenants.find([message.tenant])
    return explain(message, place, tenant or Tenant(message.tenant), now=datetime.now(UTC))


async def note_cancel(audit: Audit, message: StoredMessage) -> None:
    """Record that an administrator cancels a message: first, because the change has a transaction of its own.

    Repetitions in a round are one row, so those that lose a race leave none.
    """
    if message.state not in FINISHED:
        before, tenant = {"status": message.state}, message.tenant
        what = ("cancel", "message", message.id)
        await audit.note(*what, round=message.round, tenant=tenant, before=before)


async def cancel_message(
    backend: Backend, given: str, *, tenant: str | None = None, is_audited: bool = False
) -> CancelAnswer:
    """Cancel a waiting message; prevent another attempt of one that is being sent."""
    message = await find_message(backend.reading, given, tenant=tenant)
    if message is None:
        return CancelAnswer.NOT_FOUND
    if is_audited:
        await note_cancel(backend.audit, message)
    [answer] = await backend.store.cancel([message.id], tenant=message.tenant)
    return answer
