"""Inbox: each keep is one delivery, durably."""

from datetime import timedelta

from carteiro.model import MessageId
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.inbox import a_mail
from support.set_ups import Place


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


async def test_mail_is_shown_to_its_tenant_alone(backend: Backend) -> None:
    """By its message, too."""
    mail = a_mail(tenant=BRASA)
    await backend.inbox.keep([mail])

    assert await backend.inbox.list(message=mail.message, tenant=ACME) == []
    assert len(await backend.inbox.list(message=mail.message, tenant=BRASA)) == 1


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
