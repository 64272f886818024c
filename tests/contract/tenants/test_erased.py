"""Tenants, erased: nothing of an erased tenant is left, and no other tenant is touched."""

from datetime import timedelta

from carteiro.model import (
    EMAIL,
    Depth,
    Erased,
    IdempotencyKey,
    InboxMail,
    MessageFilter,
    MessageId,
    NewRecipient,
    NewTemplate,
    State,
    TenantDisabled,
    TenantId,
    TenantUnknown,
)
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message, a_tenant, dead, messages, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    accepted,
    accepted_recipient,
    added_key,
    attempted,
    claimed_and_declared,
    claimed_ids,
    everything_about,
    key_holder,
    settled,
)


async def _erased(backend: Backend, *, limit: int = 1000) -> list[Erased]:
    """Erase ACME page by page, to the end."""
    pages: list[Erased] = []
    while not pages or pages[-1].has_more:
        page = await backend.tenants.erase(ACME, limit=limit)
        assert page is not None
        pages.append(page)
    return pages


async def _with_everything(backend: Backend, tenant: TenantId) -> list[MessageId]:
    """A tenant with sent, failed, retried and waiting messages; a key, a template, a mail."""
    store = backend.store
    ids = []
    for verdict in (sent(), dead(), retry(timedelta(hours=1))):
        ids += await accepted(store, a_message(tenant, tags=("spring",), external_id="order-1"))
        await attempted(store, verdict)
    ids += await accepted(store, a_message(tenant, key=IdempotencyKey("once", "digest-1")))
    await accepted_recipient(backend, NewRecipient("ana@example.com", external_id="ana"), tenant)
    await added_key(backend, f"key of {tenant}", tenant=tenant)
    await backend.templates.define(NewTemplate(tenant, "WELCOME", "Hello", text="Hello"))
    await backend.inbox.keep([InboxMail(ids[0], tenant, "ana@example.com", "Oi", "{}", "id-1")])
    return ids


async def test_nothing_of_an_erased_tenant_is_left(backend: Backend) -> None:
    """As if it had never existed."""
    ids = await _with_everything(backend, ACME)

    assert await _erased(backend) == [Erased(5, recipients=1)]

    for message in ids:
        assert await everything_about(backend, message) == (None, [], None)
        assert await backend.reading.place(message) is None
    assert (await backend.reading.messages(MessageFilter(tenant=ACME))).rows == []
    assert (await backend.recipients.list(ACME)).rows == []
    assert await backend.keys.list(ACME) == []
    assert await key_holder(backend, f"key of {ACME}") is None
    assert await backend.templates.list(ACME) == []
    assert await backend.inbox.list() == []
    assert await backend.tenants.standings(EMAIL) == []
    assert await backend.reading.depths() == []
    assert await backend.tenants.find([ACME]) == [None]
    assert await claimed_ids(backend.store) == []


async def test_other_tenants_are_not_changed(backend: Backend) -> None:
    """Also where they share kinds and names."""
    ids = await _with_everything(backend, BRASA)
    await backend.tenants.define([a_tenant(BRASA, paused=True)])  # ACME's alone are claimed
    await _with_everything(backend, ACME)
    before = [await everything_about(backend, each) for each in ids]

    await _erased(backend)
    await backend.tenants.define([a_tenant(BRASA)])

    assert [await everything_about(backend, each) for each in ids] == before
    assert await key_holder(backend, f"key of {BRASA}") == BRASA
    assert len((await backend.recipients.list(BRASA)).rows) == 1
    assert len(await backend.templates.list(BRASA)) == 1
    assert [mail.tenant for mail in await backend.inbox.list()] == [BRASA]
    assert [depth.unfinished for depth in await backend.reading.depths()] == [3]
    assert len(await claimed_ids(backend.store)) == 2


async def test_unknown_tenant_cannot_be_erased(backend: Backend) -> None:
    """Nor an erased one."""
    await _erased(backend)

    assert await backend.tenants.erase(ACME) is None
    assert await backend.tenants.erase(TenantId("nobody")) is None


async def test_erasure_goes_page_by_page_and_accepts_nothing(backend: Backend) -> None:
    """The first page disables it; an interrupted erasure goes on where it was."""
    await accepted(backend.store, *messages(5))

    first = await backend.tenants.erase(ACME, limit=2)
    [refused] = await backend.store.accept([a_message()])
    [tenant] = await backend.tenants.find([ACME])
    [depth] = await backend.reading.depths()
    rest = await _erased(backend, limit=2)

    assert first == Erased(2, has_more=True)
    assert refused == TenantDisabled(ACME)
    assert tenant is not None
    assert tenant.disabled
    assert depth == Depth(EMAIL, 3, 0, depth.oldest_due_at)
    assert [page.messages for page in rest] == [2, 1]


async def test_recipients_are_erased_page_by_page_too(backend: Backend) -> None:
    """After the messages, as many as fit into the page."""
    for name in ("ana", "bia", "caio"):
        await accepted_recipient(backend, NewRecipient(f"{name}@example.com", external_id=name))

    pages = await _erased(backend, limit=2)

    assert sum(page.messages for page in pages) == 3
    assert sum(page.recipients for page in pages) == 3
    assert all(page.messages + page.recipients <= 2 for page in pages)


async def test_message_in_flight_is_erased_when_it_has_ended(backend: Backend) -> None:
    """Its worker settles as always; everything else goes before it."""
    [message] = await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    [waiting] = await accepted(backend.store, a_message())

    first = await backend.tenants.erase(ACME)
    again = await backend.tenants.erase(ACME)
    during = await backend.reading.message(message)
    await settled(backend.store, job, sent())
    last = await backend.tenants.erase(ACME)

    assert [first, again, last] == [
        Erased(1, has_more=True),
        Erased(0, has_more=True),
        Erased(1),
    ]
    assert during is not None
    assert during.state is State.SENT_ATTEMPT
    assert await backend.reading.message(waiting) is None
    assert await backend.reading.message(message) is None


async def test_message_in_doubt_is_not_waited_for(backend: Backend, clock: StoreClock) -> None:
    """It is not claimed again, for the tenant is disabled; a late worker finds nothing to change."""
    await accepted(backend.store, a_message())
    job = await claimed_and_declared(backend.store)
    clock.advance(past(HOLD))

    pages = await _erased(backend)
    await settled(backend.store, job, sent())

    assert pages == [Erased(1)]
    assert await backend.reading.states() == {}


async def test_name_can_be_used_again(backend: Backend) -> None:
    """By a new, empty tenant."""
    await _with_everything(backend, ACME)
    await _erased(backend)
    [before] = await backend.store.accept([a_message()])
    await backend.tenants.define([a_tenant(ACME)])

    [message] = await accepted(
        backend.store, a_message(key=IdempotencyKey("once", "another digest"))
    )

    assert before == TenantUnknown(ACME)
    assert await claimed_ids(backend.store) == [message]
