"""Inbox: each keep is one delivery, durably."""

from datetime import timedelta
from typing import Any

from carteiro.model import InboxMail, MessageId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, an_id
from support.clock import StoreClock
from support.set_ups import Place


def a_mail(message: MessageId | None = None, **changes: Any) -> InboxMail:
    """A mail that the sandbox handed over."""
    fields: dict[str, Any] = {
        "tenant": ACME,
        "to": "ana@example.com",
        "subject": "Olá ✉",
        "content": '{"html":"<p>Bom dia</p>"}',
        "provider_id": "sandbox-1",
    }
    return InboxMail(message=message or an_id(), **(fields | changes))


async def test_mail_is_listed_as_it_was_kept(backend: Backend, clock: StoreClock) -> None:
    """Every field, and the store's own time."""
    mail = a_mail()
    await backend.inbox.keep([mail])

    [found] = await backend.inbox.list()

    assert found == a_mail(mail.message, at=clock.at())


async def test_newest_come_first(backend: Backend, clock: StoreClock) -> None:
    """In one batch or in several; `limit` cuts off the oldest."""
    mails = [a_mail(), a_mail(tenant=BRASA), a_mail()]
    await backend.inbox.keep(mails[:2])
    clock.advance(timedelta(seconds=1))
    await backend.inbox.keep(mails[2:])

    everything = await backend.inbox.list()
    newest = await backend.inbox.list(limit=1)

    assert [mail.message for mail in everything] == [mail.message for mail in reversed(mails)]
    assert newest == everything[:1]


async def test_each_keep_is_a_separate_delivery(backend: Backend) -> None:
    """The same message handed over twice is two mails: a duplicate is visible."""
    mail = a_mail()
    await backend.inbox.keep([mail])
    await backend.inbox.keep([mail, a_mail()])

    assert len(await backend.inbox.list(message=mail.message)) == 2
    assert len(await backend.inbox.list()) == 3


async def test_tenant_sees_its_own_mails(backend: Backend) -> None:
    """With any number of later deliveries of others."""
    mine = a_mail()
    await backend.inbox.keep([mine, *(a_mail(tenant=BRASA) for _ in range(3))])
    [strange, *_] = await backend.inbox.list(tenant=BRASA)

    assert [mail.message for mail in await backend.inbox.list(tenant=ACME, limit=1)] == [
        mine.message
    ]
    assert await backend.inbox.list(message=strange.message, tenant=ACME) == []


async def test_undelivered_message_has_no_mail(backend: Backend) -> None:
    """Also for an empty inbox, an empty batch and an unknown message."""
    await backend.inbox.keep([])

    assert await backend.inbox.list() == []
    assert await backend.inbox.list(message=MessageId("unknown")) == []


async def test_mails_are_there_for_the_next_opener(place: Place) -> None:
    mail = a_mail()
    async with place.opened() as first:
        await first.inbox.keep([mail])

    async with place.opened() as second:
        [found] = await second.inbox.list()

    assert found.message == mail.message
