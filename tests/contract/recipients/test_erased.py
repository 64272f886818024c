"""Recipients, erased: nothing personal of an erased recipient is left."""

from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import (
    Accepted,
    Erased,
    EventType,
    IdempotencyKey,
    InboxMail,
    KeyConflict,
    MessageFilter,
    MessageId,
    NewRecipient,
    RecipientId,
    RedriveState,
    State,
    StoredMessage,
)
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_failure, a_message, a_task, dead, messages, retry, sent
from support.clock import StoreClock
from support.redriving import put_into, shown, started
from support.steps import (
    accepted,
    accepted_recipient,
    attempted,
    claimed_alone,
    claimed_and_declared,
    claimed_ids,
    everything_about,
    settled,
)

ANA = NewRecipient("ana@example.com", external_id="ana", nome="Ana", cpf_cnpj_hash="hash-1")


async def _erased(backend: Backend, recipient: RecipientId, *, limit: int = 1000) -> list[Erased]:
    """Erase page by page, to the end."""
    pages: list[Erased] = []
    while not pages or pages[-1].has_more:
        page = await backend.recipients.erase(recipient, tenant=ACME, limit=limit)
        assert page is not None
        pages.append(page)
    return pages


async def _row(backend: Backend, message: MessageId) -> StoredMessage:
    row = await backend.reading.message(message)
    assert row is not None
    return row


async def _known(backend: Backend, **changes: Any) -> tuple[RecipientId, MessageId]:
    """A recipient, and the first message to it."""
    new = a_message(recipient=ANA, external_id="order-1", tags=("vip",), **changes)
    [answer] = await backend.store.accept([new])
    assert isinstance(answer, Accepted)
    assert answer.recipient_id is not None
    return answer.recipient_id, new.id


async def test_redrive_that_looks_for_the_address_is_cancelled(backend: Backend) -> None:
    """Of this tenant or of all, also a paused one: it would keep the text until its end."""
    ana, _ = await _known(backend)
    text = "to Ana@Example.com"
    every = [
        await started(backend, tenant=ACME, text=text),
        await put_into(backend, await started(backend, text=text), RedriveState.PAUSED),
        await started(backend, tenant=ACME, text="example.com"),
        await started(backend, tenant=BRASA, text=text),
    ]

    await _erased(backend, ana)
    after = [await shown(backend, each) for each in every]

    cancelled, running = RedriveState.CANCELLED, RedriveState.RUNNING
    assert [each.state for each in after] == [cancelled, cancelled, running, running]
    assert [each.wanted.text for each in after] == ["", "", "example.com", text]


async def test_finished_message_keeps_id_state_and_times(backend: Backend) -> None:
    """All content is gone."""
    ana, message = await _known(backend)
    await attempted(backend.store, sent())
    before = await _row(backend, message)

    pages = await _erased(backend, ana)

    after = await _row(backend, message)
    assert pages == [Erased(1, recipients=1)]
    assert (after.id, after.state, after.attempts) == (message, State.SENT, 1)
    assert (after.created_at, after.finished_at) == (before.created_at, before.finished_at)
    assert (after.to, after.subject, after.external_id, after.recipient_id) == (None,) * 4
    assert (after.content, after.tags, after.request_id, after.provider_id) == (None, (), "", "")


async def test_events_keep_their_types_and_times(backend: Backend) -> None:
    """Their other fields may name a person."""
    ana, message = await _known(backend)
    await attempted(backend.store, sent())
    before = await backend.reading.events(message)

    await _erased(backend, ana)

    after = await backend.reading.events(message)
    assert [(event.type, event.at) for event in after] == [(each.type, each.at) for each in before]
    assert all(event.metadata == {} for event in after)


async def test_failure_keeps_its_code(backend: Backend) -> None:
    """Its text may repeat the address; its dead letter is gone with its content."""
    ana, message = await _known(backend)
    await attempted(backend.store, dead())

    await _erased(backend, ana)

    row = await _row(backend, message)
    told = a_failure("550").code
    assert row.failure is not None
    assert (row.failure.code, row.failure.reason, row.failure.original_code) == (told, "", None)
    assert await backend.dead_letters.show(message) is None


async def test_erased_message_is_found_by_no_personal_data(backend: Backend) -> None:
    """No erased value finds it in a list; by state it is still listed."""
    ana, message = await _known(backend)
    await attempted(backend.store, sent())
    await _erased(backend, ana)

    for wanted in (
        MessageFilter(to="ana@example.com"),
        MessageFilter(external_id="order-1"),
        MessageFilter(recipient_external_id="ana"),
        MessageFilter(tenant=ACME, tag="vip"),
    ):
        assert (await backend.reading.messages(wanted)).rows == []
    listed = await backend.reading.messages(MessageFilter(tenant=ACME, state=State.SENT))
    assert [row.id for row in listed.rows] == [message]


async def test_erased_recipient_is_gone(backend: Backend) -> None:
    """The same data creates a new recipient."""
    ana, _ = await _known(backend)
    await _erased(backend, ana)

    new = await accepted_recipient(backend, ANA)

    assert new != ana
    assert await backend.recipients.show(ana, tenant=ACME) is None
    assert await backend.recipients.erase(ana, tenant=ACME) is None


async def test_waiting_messages_are_cancelled_first(backend: Backend, clock: StoreClock) -> None:
    """Ready, scheduled, to be retried, or claimed and not begun."""
    ana, tried = await _known(backend)
    await attempted(backend.store, retry(timedelta(hours=1)))
    waiting = [
        *await accepted(backend.store, a_message(recipient=ANA)),
        *await accepted(backend.store, a_message(recipient=ANA, due=clock.at(timedelta(days=1)))),
    ]
    taken = await claimed_alone(backend.store)

    pages = await _erased(backend, ana)

    assert pages == [Erased(3, recipients=1)]
    for message in (tried, *waiting):
        assert (await _row(backend, message)).state is State.CANCELLED
    assert taken.lease.job == waiting[0]
    assert await claimed_ids(backend.store) == []


async def test_message_in_flight_is_erased_when_it_has_ended(backend: Backend) -> None:
    """It is marked to be cancelled, and everything else goes before it."""
    ana, message = await _known(backend)
    job = await claimed_and_declared(backend.store)
    [waiting] = await accepted(backend.store, a_message(recipient=ANA))

    first = await backend.recipients.erase(ana, tenant=ACME)
    again = await backend.recipients.erase(ana, tenant=ACME)
    during = await _row(backend, message)
    await settled(backend.store, job, sent())
    last = await backend.recipients.erase(ana, tenant=ACME)

    assert [first, again, last] == [
        Erased(1, has_more=True),
        Erased(0, has_more=True),
        Erased(1, recipients=1),
    ]
    assert (during.state, during.to) == (State.SENT_ATTEMPT, "ana@example.com")
    assert during.cancel_requested_at is not None
    assert (await _row(backend, waiting)).to is None
    assert ((await _row(backend, message)).state, (await _row(backend, message)).to) == (
        State.SENT,
        None,
    )


async def test_running_task_is_erased_when_it_has_ended(backend: Backend) -> None:
    """It has no declared attempt, so its lease counts."""
    ana = await accepted_recipient(backend, ANA)
    await _finished(backend)
    task = a_task(recipient=NewRecipient("ana@example.com", recipient_id=ana))
    await accepted(backend.store, task)
    job = await claimed_alone(backend.store, kinds=[task.kind])

    during = await backend.recipients.erase(ana, tenant=ACME)
    await settled(backend.store, job, sent(), attempted=True)

    assert during == Erased(1, has_more=True)
    assert await _erased(backend, ana) == [Erased(1, recipients=1)]


async def _finished(backend: Backend) -> None:
    await attempted(backend.store, sent())


async def test_erasure_goes_page_by_page(backend: Backend) -> None:
    """Each page is whole; no new message gets in under the name meanwhile."""
    ana, _ = await _known(backend)
    await accepted(backend.store, *messages(4, recipient=ANA))

    first = await backend.recipients.erase(ana, tenant=ACME, limit=2)
    meanwhile = await accepted_recipient(backend, ANA)
    rest = await _erased(backend, ana, limit=2)

    assert first == Erased(2, has_more=True)
    assert meanwhile != ana
    assert [page.messages for page in rest] == [2, 1]
    assert (await backend.recipients.show(meanwhile, tenant=ACME)) is not None


async def test_messages_to_its_address_without_a_recipient_are_erased_with_it(
    backend: Backend,
) -> None:
    """They are to the same person; those of another recipient stay."""
    ana, _ = await _known(backend)
    other = NewRecipient("ana@example.com", external_id="other")
    [nameless] = await accepted(backend.store, a_message(to="ana@example.com"))
    [of_another] = await accepted(backend.store, a_message(recipient=other))
    [elsewhere] = await accepted(backend.store, a_message(BRASA, to="ana@example.com"))

    await _erased(backend, ana)

    assert (await _row(backend, nameless)).to is None
    assert (await _row(backend, of_another)).to == "ana@example.com"
    assert (await _row(backend, elsewhere)).state is State.ENQUEUED


async def test_other_recipients_are_not_changed(backend: Backend) -> None:
    """Another's message reads as before."""
    ana, _ = await _known(backend)
    bia = NewRecipient("bia@example.com", external_id="bia")
    [message] = await accepted(backend.store, a_message(recipient=bia, to="bia@example.com"))
    before = await everything_about(backend, message)

    await _erased(backend, ana)

    assert await everything_about(backend, message) == before


async def test_idempotency_keys_of_an_erased_recipient_are_deleted(backend: Backend) -> None:
    """The key of a message may name its recipient."""
    ana, first = await _known(backend, key=IdempotencyKey("for-ana", "digest-1"))
    [conflict] = await backend.store.accept([a_message(key=IdempotencyKey("for-ana", "digest-2"))])
    await _erased(backend, ana)

    [answer] = await backend.store.accept([a_message(key=IdempotencyKey("for-ana", "digest-2"))])

    assert conflict == KeyConflict(first)
    assert isinstance(answer, Accepted)


async def test_mails_in_the_sandbox_are_erased_too(backend: Backend) -> None:
    """Of its messages, and of no other."""
    ana, message = await _known(backend)
    mail = InboxMail(message, ACME, "ana@example.com", "Bom dia", "{}", "id-1")
    other = InboxMail(MessageId("another"), ACME, "bia@example.com", "Bom dia", "{}", "id-2")
    await backend.inbox.keep([mail, other])

    await _erased(backend, ana)

    assert [each.to for each in await backend.inbox.list()] == ["bia@example.com"]


@pytest.mark.parametrize(("recipient", "tenant"), [("unknown", ACME), (None, BRASA)])
async def test_only_its_own_tenant_erases_it(
    backend: Backend, recipient: str | None, tenant: Any
) -> None:
    """Another's is answered like an unknown one, and stays."""
    ana, message = await _known(backend)

    answer = await backend.recipients.erase(RecipientId(recipient or ana), tenant=tenant)

    assert answer is None
    assert (await _row(backend, message)).to == "ana@example.com"


async def test_late_result_brings_nothing_back(backend: Backend) -> None:
    """A worker whose message was cancelled reports the provider's id, no more."""
    ana, message = await _known(backend)
    job = await claimed_alone(backend.store)
    await _erased(backend, ana)

    await settled(backend.store, job, sent("provider-9"))

    row = await _row(backend, message)
    assert (row.state, row.to, row.subject) == (State.CANCELLED, None, None)
    assert EventType.SENT not in [each.type for each in await backend.reading.events(message)]


async def test_message_of_another_tenant_with_its_id_is_not_changed(backend: Backend) -> None:
    """A guessed id can neither lose a message nor keep the erasure from its end."""
    ana, _ = await _known(backend)
    await attempted(backend.store, sent())
    guessed = NewRecipient("ana@example.com", recipient_id=ana)
    [strange] = await accepted(backend.store, a_message(tenant=BRASA, recipient=guessed))
    before = await everything_about(backend, strange)

    pages = await _erased(backend, ana)

    assert pages[-1].recipients == 1
    assert await everything_about(backend, strange) == before
