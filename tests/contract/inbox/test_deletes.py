"""Inbox: what is deleted is found no more, and nothing else is touched."""

from carteiro.model import Actor, AuditFilter, InboxFilter, Via
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as
from support.builders import ACME, BRASA
from support.inbox import a_mail


async def test_mail_is_deleted_with_all_its_deliveries(backend: Backend) -> None:
    """Once, and only by its tenant."""
    mail, other = a_mail(), a_mail()
    await backend.inbox.keep([mail, other, mail])

    assert await backend.inbox.delete(mail.message, tenant=BRASA) == 0
    assert await backend.inbox.delete(mail.message, tenant=ACME) == 2
    assert await backend.inbox.delete(mail.message, tenant=ACME) == 0
    assert [each.message for each in await backend.inbox.list()] == [other.message]


async def test_inbox_of_a_tenant_is_emptied_in_pages(backend: Backend) -> None:
    """At most as many as asked, until none is left; the mails of others stay."""
    await backend.inbox.keep([*(a_mail() for _ in range(3)), a_mail(tenant=BRASA)])

    deleted = [await backend.inbox.empty(ACME, limit=2) for _ in range(3)]

    assert deleted == [2, 1, 0]
    assert [each.tenant for each in (await backend.inbox.find(InboxFilter())).rows] == [BRASA]
    assert await backend.inbox.empty(BRASA) == 1


async def test_deleting_is_recorded_once_a_day(backend: Backend) -> None:
    """By whom, in the inbox of which tenant; not if there was nothing to delete."""
    mails = [a_mail() for _ in range(4)]
    await backend.inbox.keep(mails)
    with acting_as(Actor(Via.API, "ana", "host")):
        await backend.inbox.delete(a_mail().message, tenant=ACME)
        assert (await backend.audit.list(AuditFilter(kind="inbox"))).rows == []
        for each in mails[:2]:
            await backend.inbox.delete(each.message, tenant=ACME)
        await backend.inbox.empty(ACME)

    [row] = (await backend.audit.list(AuditFilter(kind="inbox"))).rows
    assert (row.action, row.tenant, row.who) == ("delete", ACME, "ana")
