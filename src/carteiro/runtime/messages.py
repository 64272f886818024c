"""Operations on one message that the library, the API and the command line share."""

from dataclasses import replace
from datetime import UTC, datetime

from carteiro.errors import QueueAway
from carteiro.model import (
    DEAD,
    EMAIL,
    FINISHED,
    AutomaticPlan,
    CancelAnswer,
    QueuePlace,
    StoredMessage,
    Tenant,
    TenantId,
    parse_message_id,
)
from carteiro.policy.breaker import LONGEST_OPEN
from carteiro.policy.estimate import attempts, estimate, minutes_back
from carteiro.policy.waiting import Estimate, Waiting, explain, explain_without_queue
from carteiro.ports import Audit, Backend, Reading
from carteiro.runtime.awaited_recoveries import awaited_recovery_of


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


async def explain_message(
    backend: Backend,
    message: StoredMessage,
    *,
    plan: AutomaticPlan,
    now: datetime | None = None,
) -> Waiting:
    """The reason why a message is not sent yet, until when it waits, and an estimate of when it is sent.

    Of a dead letter also what it waits for; ``plan`` is that of automatic redrives.
    """
    now = now or datetime.now(UTC)
    try:
        place = await backend.reading.place(message.id)
    except QueueAway:
        told = explain_without_queue(message)
    else:
        told = await _explained(backend, message, place, now)
    if message.state in DEAD and (letter := await backend.dead_letters.show(message.id)):
        return replace(
            told,
            automatic_redrive=await awaited_recovery_of(
                backend, letter, message, plan=plan, now=now
            ),
        )
    return told


async def _explained(
    backend: Backend, message: StoredMessage, place: QueuePlace | None, now: datetime
) -> Waiting:
    [tenant] = await backend.tenants.find([message.tenant])
    told = explain(message, place, tenant or Tenant(message.tenant), now=now)
    return replace(told, estimate=await _estimate(backend, told, message, place, now))


async def _estimate(
    backend: Backend, told: Waiting, message: StoredMessage, place: QueuePlace | None, now: datetime
) -> Estimate | None:
    """Reads the recent figures of the tenant, if the estimate needs them."""
    ended, circuits = 0, set[str]()
    if place is not None and not place.is_claimed:
        back = minutes_back(message, place, now)
        ended = attempts(await backend.rollups.total("minute", back, tenant=message.tenant))
        opened = [each.opened.items() for each in await backend.reports.show()]
        circuits = {name for each in opened for name, at in each if abs(now - at) <= LONGEST_OPEN}
    known = circuits if message.kind == EMAIL else ()
    return estimate(told, message, place, ended=ended, circuits=known, now=now)


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
