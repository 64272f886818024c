"""Tracking, unsubscribes: a link suppresses its address and is on the timeline of its message, once."""

import asyncio
from datetime import timedelta

import pytest

from carteiro.errors import StoreError
from carteiro.model import (
    AuditFilter,
    BounceKind,
    EventType,
    MessageId,
    NewRecipient,
    NewSuppression,
    NoteAnswer,
    Suppression,
    SuppressionReason,
    TenantId,
    UnsubscribeLink,
)
from carteiro.policy.suppression import key_of
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, an_id, retry, sent
from support.clock import StoreClock
from support.feedback import a_bounce, a_feedback
from support.set_ups import Place
from support.steps import accepted, accepted_recipient, attempted, claimed, event_types

ANA = "ana@example.com"


def a_link(message: MessageId, address: str = ANA, *, tenant: TenantId = ACME) -> UnsubscribeLink:
    """The contents of a link in a message to this address."""
    return UnsubscribeLink(tenant, message, key_of(tenant, address))


async def _sent(backend: Backend) -> MessageId:
    [message] = await accepted(backend.store, a_message())
    await attempted(backend.store, sent())
    return message


async def _listed(backend: Backend, tenant: TenantId = ACME) -> list[Suppression]:
    return list((await backend.suppressions.list(tenant)).rows)


async def test_recipient_is_suppressed_for_the_tenant(backend: Backend, clock: StoreClock) -> None:
    """With the reason and the time; other tenants may still write, other recipients still get mail."""
    message = await _sent(backend)

    answer = await backend.tracking.unsubscribe(a_link(message))

    reason = SuppressionReason.UNSUBSCRIBED
    assert answer is NoteAnswer.NOTED
    assert await _listed(backend) == [Suppression(ANA, reason, clock.at(), None)]
    assert await backend.suppressions.find([ANA, "bia@example.com"], tenant=ACME) == [ANA]
    assert await _listed(backend, BRASA) == []


async def test_next_message_is_not_sent(backend: Backend) -> None:
    """One that waits for its retry, too."""
    content = f'{{"to":"{ANA}","subject":"Bom dia","text":"Oi"}}'
    [message] = await accepted(backend.store, a_message(content=content))
    await attempted(backend.store, retry())
    await backend.tracking.unsubscribe(a_link(message))

    [later] = await accepted(backend.store, a_message(content=content))
    jobs = await claimed(backend.store)

    assert {job.lease.job: job.suppressed for job in jobs} == {message: {ANA}, later: {ANA}}


async def test_event_is_on_the_timeline_and_the_state_stays(backend: Backend) -> None:
    """It proves nothing about the delivery: the tenant knows the link, too."""
    message = await _sent(backend)
    before = await backend.reading.message(message)

    await backend.tracking.unsubscribe(a_link(message))

    [*_, event] = await backend.reading.events(message)
    assert event.type is EventType.UNSUBSCRIBED
    assert event.metadata["recipients"] == [ANA]
    assert await backend.reading.message(message) == before


async def test_repetition_changes_nothing(backend: Backend, clock: StoreClock) -> None:
    """Providers repeat themselves; so do people, days later."""
    message = await _sent(backend)
    await backend.tracking.unsubscribe(a_link(message))
    before = await _listed(backend), await backend.reading.events(message)
    clock.advance(timedelta(days=2))

    answers = [await backend.tracking.unsubscribe(a_link(message)) for _ in range(3)]

    assert answers == [NoteAnswer.KNOWN] * 3
    assert (await _listed(backend), await backend.reading.events(message)) == before


async def test_link_works_again_after_the_tenant_removed_the_address(backend: Backend) -> None:
    """The person asks again; the timeline has the event already."""
    message = await _sent(backend)
    await backend.tracking.unsubscribe(a_link(message))
    await backend.suppressions.remove([ANA], tenant=ACME)

    answer = await backend.tracking.unsubscribe(a_link(message))

    assert answer is NoteAnswer.NOTED
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]
    assert (await event_types(backend, message)).count(EventType.UNSUBSCRIBED) == 1


async def test_link_of_a_pruned_message_suppresses(backend: Backend, clock: StoreClock) -> None:
    """The address is unknown then, and its hash is enough."""
    message = await _sent(backend)
    clock.advance(timedelta(days=1))
    await backend.upkeep.prune(bodies=None, histories=timedelta(hours=1))
    assert await backend.reading.message(message) is None

    answers = [await backend.tracking.unsubscribe(a_link(message)) for _ in range(2)]

    reason = SuppressionReason.UNSUBSCRIBED
    assert answers == [NoteAnswer.UNKNOWN, NoteAnswer.KNOWN]
    assert await _listed(backend) == [Suppression(None, reason, clock.at(), None)]
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]


async def test_known_address_stays_in_the_list(backend: Backend) -> None:
    """A link of a pruned message does not hide it."""
    message = await _sent(backend)
    await backend.tracking.unsubscribe(a_link(message))

    await backend.tracking.unsubscribe(a_link(an_id()))

    assert [each.address for each in await _listed(backend)] == [ANA]


async def test_erased_person_is_suppressed_by_hash_alone(backend: Backend) -> None:
    """Nothing is written to messages that were erased."""
    ana = await accepted_recipient(backend, NewRecipient(ANA, external_id="ana"))
    message = (await attempted(backend.store, sent())).lease.job
    await backend.recipients.erase(ana, tenant=ACME)
    before = await event_types(backend, message)

    answer = await backend.tracking.unsubscribe(a_link(message))

    assert answer is NoteAnswer.UNKNOWN
    assert await event_types(backend, message) == before
    assert [each.address for each in await _listed(backend)] == [None]
    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]


async def test_link_to_the_address_before_an_edit_suppresses_that_one(backend: Backend) -> None:
    """The message has another address now."""
    message = await _sent(backend)

    await backend.tracking.unsubscribe(a_link(message, "old@example.com"))

    assert [each.address for each in await _listed(backend)] == [None]
    assert await backend.suppressions.find([ANA, "old@example.com"], tenant=ACME) == [
        "old@example.com"
    ]
    [*_, event] = await backend.reading.events(message)
    assert event.type is EventType.UNSUBSCRIBED
    assert "recipients" not in event.metadata


async def test_link_of_another_tenant_writes_nothing_to_the_message(backend: Backend) -> None:
    """It suppresses for its own tenant alone."""
    message = await _sent(backend)
    before = await event_types(backend, message)

    answer = await backend.tracking.unsubscribe(a_link(message, tenant=BRASA))

    assert answer is NoteAnswer.UNKNOWN
    assert await event_types(backend, message) == before
    assert await backend.suppressions.find([ANA], tenant=ACME) == []
    assert await backend.suppressions.find([ANA], tenant=BRASA) == [ANA]


async def test_link_of_an_erased_tenant_writes_nothing(backend: Backend) -> None:
    answer = await backend.tracking.unsubscribe(a_link(an_id(), tenant=TenantId("gone")))

    assert answer is NoteAnswer.UNKNOWN
    assert await _listed(backend, TenantId("gone")) == []


async def test_full_list_still_takes_who_unsubscribes(backend: Backend) -> None:
    """The limit is for addresses that the tenant adds."""
    manual = [NewSuppression("bia@example.com", SuppressionReason.MANUAL)]
    await backend.suppressions.put(manual, tenant=ACME, most=1)

    await backend.tracking.unsubscribe(a_link(await _sent(backend)))

    assert await backend.suppressions.find([ANA], tenant=ACME) == [ANA]


async def test_feedback_and_a_link_do_not_hide_each_other(backend: Backend) -> None:
    """Each is an event and a record of its own, in any order."""
    message = await _sent(backend)
    await backend.tracking.note([a_feedback(message)])
    await backend.tracking.unsubscribe(a_link(message))
    answers = await backend.tracking.note([a_feedback(message), a_bounce(message, BounceKind.HARD)])

    assert answers == [NoteAnswer.KNOWN, NoteAnswer.NOTED]
    assert (await event_types(backend, message))[-3:] == ["DELIVERED", "UNSUBSCRIBED", "BOUNCED"]
    reasons = {each.reason for each in await _listed(backend)}
    assert reasons == {SuppressionReason.HARD_BOUNCE, SuppressionReason.UNSUBSCRIBED}


async def test_equal_requests_at_one_moment_are_one(place: Place) -> None:
    """Also in two processes."""
    async with place.opened() as first, place.opened() as second:
        message = await _sent(first)
        answers = await asyncio.gather(
            *(each.tracking.unsubscribe(a_link(message)) for each in [first, second] * 4)
        )

        assert sorted(answers) == [NoteAnswer.KNOWN] * 7 + [NoteAnswer.NOTED]
        assert (await event_types(first, message)).count(EventType.UNSUBSCRIBED) == 1


async def test_first_of_a_day_is_an_audit_row_of_the_tenant(
    backend: Backend, clock: StoreClock
) -> None:
    """The person is on the timeline: one row for each mail of a campaign would hide all others."""
    for address in (ANA, "bia@example.com"):
        await backend.tracking.unsubscribe(a_link(an_id(), address))
    clock.advance(timedelta(days=1))
    await backend.tracking.unsubscribe(a_link(an_id(), "caio@example.com"))

    page = await backend.audit.list(AuditFilter(tenant=ACME, action="unsubscribe"))
    assert [(each.kind, each.object) for each in page.rows] == [("suppression", "")] * 2


@pytest.mark.parametrize("before_the", ["put", "note"])
async def test_either_all_is_written_or_nothing(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, before_the: str
) -> None:
    """A process that is killed in between leaves a link that still works."""
    message = await _sent(backend)
    before = await event_types(backend, message)

    async def killed(*_: object, **__: object) -> object:
        raise StoreError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(f"carteiro.stores.sql.tracking.{before_the}", killed)
        with pytest.raises(StoreError):
            await backend.tracking.unsubscribe(a_link(message))

    assert await event_types(backend, message) == before
    assert await _listed(backend) == []
    assert await backend.tracking.unsubscribe(a_link(message)) is NoteAnswer.NOTED
