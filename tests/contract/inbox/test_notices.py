"""Inbox: `newest` tells of a delivery by any process."""

import asyncio
from datetime import timedelta

from carteiro.model import InboxFilter
from carteiro.ports import Backend
from carteiro.runtime.inbox_watch import InboxWatch
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.inbox import a_mail
from support.set_ups import Place

_LONG = timedelta(minutes=10)


async def test_newest_is_the_time_of_the_last_delivery(backend: Backend, clock: StoreClock) -> None:
    """Of each tenant by itself; a tenant without mails is not there."""
    assert await backend.inbox.newest([ACME, BRASA]) == {}
    await backend.inbox.keep([a_mail()])
    first = clock.at()
    clock.advance(timedelta(seconds=1))
    await backend.inbox.keep([a_mail(), a_mail(tenant=BRASA)])

    assert await backend.inbox.newest([ACME, BRASA]) == {ACME: clock.at(), BRASA: clock.at()}
    assert await backend.inbox.newest([]) == {}
    await backend.inbox.empty(BRASA)
    assert await backend.inbox.newest([BRASA, ACME]) == {ACME: clock.at()}
    assert clock.at() > first


async def test_waiting_ends_with_a_mail_from_another_process(place: Place) -> None:
    """The one that waits never sees it kept; a mail that does not match is not an answer."""
    async with place.opened() as here, place.opened() as there:
        watch = InboxWatch(here.inbox)
        wanted = InboxFilter(tenant=ACME, to="ana@example.com", subject="code")
        waiting = asyncio.create_task(watch.wait(wanted, limit=10, within=_LONG))
        while not watch.waiting:
            await asyncio.sleep(0)
        others = [a_mail(subject="another"), a_mail(tenant=BRASA, subject="your code")]
        await there.inbox.keep(others)
        mail = a_mail(subject="Your CODE: 17")
        await there.inbox.keep([mail])

        page = await asyncio.wait_for(waiting, 60)

        assert [each.message for each in page.rows] == [mail.message]
        assert watch.waiting == 0
