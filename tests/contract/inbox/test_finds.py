"""Inbox: every mail that matches is found once, newest first, and no other tenant's."""

from datetime import timedelta

import pytest

from carteiro.errors import BadCursor
from carteiro.model import Cursor, InboxEntry, InboxFilter
from carteiro.ports import Backend
from carteiro.stores.sql.inbox import MOST_LOOKED
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.inbox import a_mail


async def found(backend: Backend, limit: int = 100, **wanted: object) -> list[InboxEntry]:
    """All that match, page by page."""
    rows: list[InboxEntry] = []
    cursor = None
    while True:
        page = await backend.inbox.find(
            InboxFilter(**wanted),  # type: ignore[arg-type] # each test names its own
            cursor=cursor,
            limit=limit,
        )
        rows += page.rows
        cursor = page.next
        if cursor is None:
            return rows
        assert len(rows) < 10_000


async def test_mail_is_found_as_it_was_kept(backend: Backend, clock: StoreClock) -> None:
    """Every field but its content, and the store's own time."""
    mail = a_mail()
    await backend.inbox.keep([mail])
    entry = InboxEntry(mail.message, ACME, mail.to, mail.subject, mail.provider_id, clock.at())

    for wanted in (
        InboxFilter(),
        InboxFilter(tenant=ACME),
        InboxFilter(message=mail.message),
        InboxFilter(tenant=ACME, message=mail.message, to=mail.to, since=clock.at()),
    ):
        page = await backend.inbox.find(wanted)
        assert (page.rows, page.next) == ([entry], None)


async def test_every_mail_is_on_one_page(backend: Backend, clock: StoreClock) -> None:
    """Newest first, of all tenants and of one; also many of one moment, and with mails that arrive meanwhile."""
    mails = []
    for _ in range(3):
        batch = [a_mail(), a_mail(tenant=BRASA), a_mail()]
        await backend.inbox.keep(batch)
        mails += batch
        clock.advance(timedelta(milliseconds=1))
    of_acme = {each.message for each in mails if each.tenant == ACME}

    everything = await found(backend, limit=2)
    own = await found(backend, limit=2, tenant=ACME)
    first = await backend.inbox.find(InboxFilter(tenant=ACME), limit=4)
    await backend.inbox.keep([a_mail()])
    rest = await backend.inbox.find(InboxFilter(tenant=ACME), cursor=first.next, limit=4)

    assert [each.message for each in everything] == [each.message for each in reversed(mails)]
    assert [each.message for each in first.rows + rest.rows] == [each.message for each in own]
    assert [each.at for each in own] == sorted((each.at for each in own), reverse=True)
    assert {each.message for each in own} == of_acme
    assert len(own) == len(of_acme)
    assert rest.next is None


async def test_filters_restrict_it(backend: Backend, clock: StoreClock) -> None:
    """The whole address and a part of the subject, in any case and any alphabet; a time, inclusive; all together."""
    mails = [
        a_mail(to="ana@example.com", subject="Pedido 17"),
        a_mail(to="ANA@example.com", subject="AÇÃO"),
        a_mail(to="banana@example.com", subject="Pedido 18"),
        a_mail(tenant=BRASA, to="ana@example.com", subject="Pedido 17"),
    ]
    began = clock.at()
    for each in mails:
        await backend.inbox.keep([each])
        clock.advance(timedelta(seconds=1))
    second = timedelta(seconds=1)

    for expected, wanted in (
        ([1, 0], {"tenant": ACME, "to": "Ana@Example.com"}),
        ([3, 1, 0], {"to": "ana@example.com"}),
        ([1], {"tenant": ACME, "subject": "ação"}),
        ([2, 0], {"tenant": ACME, "subject": "pedido"}),
        ([2, 1], {"tenant": ACME, "since": began + second}),
        ([3, 2], {"since": began + 2 * second}),
        ([2], {"tenant": ACME, "subject": "Pedido", "since": began + second}),
        ([2], {"message": mails[2].message}),
        ([], {"tenant": BRASA, "message": mails[2].message}),
        ([], {"tenant": ACME, "subject": "%"}),
        ([], {"tenant": ACME, "to": "ana@example"}),
    ):
        got = [each.message for each in await found(backend, **wanted)]
        assert got == [mails[each].message for each in expected], wanted


async def test_page_looks_at_a_bounded_number_of_mails(backend: Backend) -> None:
    """A page with no match among the newest is empty, and leads to the rest."""
    await backend.inbox.keep([a_mail(subject="needle")])
    await backend.inbox.keep([a_mail() for _ in range(MOST_LOOKED)])

    for wanted in (InboxFilter(subject="needle"), InboxFilter(subject="needle", tenant=ACME)):
        page = await backend.inbox.find(wanted, limit=1)
        rest = await backend.inbox.find(wanted, cursor=page.next, limit=1)
        assert page.rows == []
        assert [each.subject for each in rest.rows] == ["needle"]
        assert rest.next is None


async def test_foreign_cursor_is_refused(backend: Backend) -> None:
    """With every filter."""
    mail = a_mail()
    await backend.inbox.keep([mail])
    for wanted in (InboxFilter(), InboxFilter(tenant=ACME), InboxFilter(message=mail.message)):
        with pytest.raises(BadCursor):
            await backend.inbox.find(wanted, cursor=Cursor("x"))
