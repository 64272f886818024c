"""Tracking, suppresses: a hard bounce or a complaint at once, soft bounces when they are enough."""

from datetime import timedelta

import pytest

from carteiro.model import BounceKind, EventType, Feedback, MessageId, NewRecipient, NoteAnswer
from carteiro.policy.suppression import SOFT_BOUNCES
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, sent
from support.clock import StoreClock
from support.feedback import AT, a_bounce, a_feedback
from support.steps import accepted, accepted_recipient, attempted, event_types

ANA = "ana@example.com"


async def _sent(backend: Backend) -> MessageId:
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    return message


async def _is_suppressed(backend: Backend, tenant: str = ACME) -> bool:
    return bool(await backend.suppressions.find([ANA], tenant=tenant))  # type: ignore[arg-type]


@pytest.mark.parametrize("type", [EventType.BOUNCED, EventType.COMPLAINED])
async def test_recipient_is_not_sent_to_any_more(backend: Backend, type: EventType) -> None:
    """By the tenant of the message; others are not affected."""
    message = await _sent(backend)
    bounce = BounceKind.HARD if type is EventType.BOUNCED else None

    await backend.tracking.note([a_feedback(message, type, bounce=bounce)])

    assert await _is_suppressed(backend)
    assert not await _is_suppressed(backend, BRASA)


@pytest.mark.parametrize(
    "told",
    [
        a_feedback(MessageId("")),
        a_feedback(MessageId(""), EventType.DELAYED),
        a_feedback(MessageId(""), EventType.OPENED),
        a_bounce(MessageId(""), BounceKind.REJECTED),
        a_bounce(MessageId(""), BounceKind.SOFT),
    ],
    ids=lambda told: f"{told.type}-{told.bounce}",
)
async def test_other_events_do_not_suppress(backend: Backend, told: Feedback) -> None:
    """Deliveries, delays, and faults of the mail instead of the address."""
    message = await _sent(backend)
    fields = {"at": told.at, "event_id": "it", "bounce": told.bounce}

    answers = await backend.tracking.note([a_feedback(message, told.type, **fields)])

    assert answers == [NoteAnswer.NOTED]
    assert not await _is_suppressed(backend)


async def test_soft_bounces_of_different_mails_are_counted(backend: Backend) -> None:
    """A repeated report is not."""
    for number in range(SOFT_BOUNCES):
        was_suppressed = await _is_suppressed(backend)
        message = await _sent(backend)
        told = a_bounce(message, BounceKind.SOFT, at=AT - timedelta(days=number))
        await backend.tracking.note([told, told])
        await backend.tracking.note([told])

    assert not was_suppressed
    assert await _is_suppressed(backend)


async def test_removed_suppression_stays_removed_after_a_repeated_report(backend: Backend) -> None:
    """Providers repeat themselves; only a new report counts."""
    message = await _sent(backend)
    await backend.tracking.note([a_bounce(message)])
    await backend.suppressions.remove([ANA], tenant=ACME)

    await backend.tracking.note([a_bounce(message)])

    assert not await _is_suppressed(backend)


async def test_nothing_is_written_again_for_an_erased_person(
    backend: Backend, clock: StoreClock
) -> None:
    """Its messages have no recipient any more."""
    ana = await accepted_recipient(backend, NewRecipient(ANA, external_id="ana"))
    job = await attempted(backend.store, sent())
    message = job.lease.job
    await backend.recipients.erase(ana, tenant=ACME)
    before = await event_types(backend, message)

    answers = await backend.tracking.note([a_bounce(message, at=clock.at())])

    assert answers == [NoteAnswer.UNKNOWN]
    assert await event_types(backend, message) == before
    assert (await backend.suppressions.list(ACME)).rows == []
