"""Erasing on Postgres: erased data is in no table, with any concurrent work."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from carteiro.model import (
    EMAIL,
    ApiLimits,
    IdempotencyKey,
    InboxMail,
    NewRecipient,
    NewTemplate,
    RecipientId,
    Retry,
    TenantId,
    Verdict,
)
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, migrate, open_postgres
from support.builders import (
    BRASA,
    a_failure,
    a_message,
    a_tenant,
    dead,
    messages,
    sent,
    tenants_named,
)
from support.clock import StoreClock
from support.shared_servers import shared_postgres
from support.steps import accepted, accepted_recipient, added_key, attempted, claimed

pytestmark = pytest.mark.servers

GONE = TenantId("tenant-to-forget")
ADDRESS = "person.to.forget@example.com"
NAME = "Fulana de Tal"
PERSONAL = (ADDRESS, NAME, "hash-of-a-document", "order-of-hers", "subject of hers", "tag-of-hers")


@pytest.fixture
def url() -> Iterator[str]:
    """A database with only the schema."""
    server, name = shared_postgres(), f"erasing_{uuid4().hex}"
    server.create_database(name, template=server.template(migrate))
    yield server.url(name)
    server.drop_database(name)


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Backend]:
    options = PostgresOptions(clock=StoreClock(), connections=4)
    async with open_postgres(url, options) as backend:
        await backend.tenants.define([*tenants_named([BRASA]), a_tenant(GONE, name="Forget me")])
        yield backend


async def _lived(backend: Backend) -> RecipientId:
    """A person with sent, failed, retried and waiting messages, and mails in the sandbox."""
    person = NewRecipient(
        ADDRESS, external_id="hers", nome=NAME, cpf_cnpj_hash="hash-of-a-document"
    )
    fields: dict[str, Any] = {
        "to": ADDRESS,
        "subject": "subject of hers",
        "external_id": "order-of-hers",
        "tags": ("tag-of-hers",),
        "content": f'{{"to":"{ADDRESS}","html":"{NAME}"}}',
        "request_id": f"request of {ADDRESS}",
    }
    unknown = a_failure("UNKNOWN", reason=f"no such user {ADDRESS}\0", original_code=ADDRESS)
    verdicts: list[Verdict] = [
        sent(ADDRESS),
        dead(),
        Retry(timedelta(hours=1), charged=True, failure=unknown),
    ]
    for number, verdict in enumerate(verdicts):
        key = IdempotencyKey(f"{ADDRESS}-{number}", "digest")
        new = a_message(GONE, recipient=person, key=key, limits=ApiLimits(), **fields)
        await accepted(backend.store, new)
        await attempted(backend.store, verdict)
        await backend.inbox.keep([InboxMail(new.id, GONE, ADDRESS, "subject", NAME, "id")])
    await accepted(backend.store, a_message(GONE, **fields))
    await added_key(backend, "key", tenant=GONE)
    await backend.templates.define(NewTemplate(GONE, "WELCOME", "Hello", text="Hello"))
    return await accepted_recipient(backend, person, GONE, **fields)


def _tables_with(url: str, *texts: str) -> list[str]:
    """Every table that holds one of the texts in any column of any row."""
    with psycopg.connect(url) as db:
        names = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'carteiro'")
        return [
            name
            for (name,) in names.fetchall()
            for (row,) in db.execute(
                SQL("SELECT t::text FROM carteiro.{} AS t").format(Identifier(name))
            )
            if any(text in row for text in texts)
        ]


async def _erase_tenant(backend: Backend, *, limit: int = 1000) -> None:
    page = await backend.tenants.erase(GONE, limit=limit)
    while page is not None and page.has_more:
        page = await backend.tenants.erase(GONE, limit=limit)


@pytest.mark.parametrize("limit", [1, 2, 1000])
async def test_nothing_of_a_tenant_is_in_any_table(url: str, limit: int) -> None:
    """Its name and its id, after any history of its messages."""
    async with _opened(url) as backend:
        await _lived(backend)
        before = _tables_with(url, GONE)

        await _erase_tenant(backend, limit=limit)

    assert {"messages", "entries", "ready", "delayed", "seats", "dead_letters"} <= set(before)
    assert _tables_with(url, *PERSONAL) == []
    assert set(_tables_with(url, GONE)) == {"audit"}  # who erased it, until the retention is over


@pytest.mark.parametrize("limit", [1, 1000])
async def test_nothing_personal_of_a_recipient_is_in_any_table(url: str, limit: int) -> None:
    """Address, name, document, subject, tags, content, provider texts."""
    async with _opened(url) as backend:
        person = await _lived(backend)
        before = [_tables_with(url, text) for text in PERSONAL]

        page = await backend.recipients.erase(person, tenant=GONE, limit=limit)
        while page is not None and page.has_more:
            page = await backend.recipients.erase(person, tenant=GONE, limit=limit)

    assert all(before)
    assert _tables_with(url, *PERSONAL) == []
    assert "messages" in _tables_with(url, GONE)


async def test_two_processes_can_erase_the_same_tenant(url: str) -> None:
    """With any order of pages, both come to the end."""
    async with _opened(url) as first, _opened(url) as second:
        await accepted(first.store, *messages(30, GONE), *messages(3, BRASA))

        await asyncio.gather(_erase_tenant(first, limit=2), _erase_tenant(second, limit=3))
        left = await claimed(first.store)

    assert set(_tables_with(url, GONE)) == {"audit"}
    assert [job.tenant for job in left] == [BRASA] * 3


async def test_tenant_stays_while_a_transaction_sends_for_it(url: str) -> None:
    """It may be open for long: erasing does not wait for it, and nothing of it is orphaned."""
    async with _opened(url) as backend:
        with psycopg.connect(url) as sender:
            sender.execute("SELECT FROM carteiro.tenants WHERE id = %s FOR KEY SHARE", [GONE])
            during = await backend.tenants.erase(GONE)
            await accepted(backend.store, *messages(2, BRASA))
            others = await claimed(backend.store)
            [still] = await backend.tenants.find([GONE])
        after = await backend.tenants.erase(GONE)

    assert during is not None
    assert during.has_more
    assert still is not None
    assert len(others) == 2
    assert after is not None
    assert not after.has_more


async def test_unread_notes_do_not_count_for_a_later_tenant_of_that_name(url: str) -> None:
    """The jobs of the old one are not counted as the new one's."""
    async with _opened(url) as backend:
        await accepted(backend.store, *messages(5, GONE))
        await _erase_tenant(backend, limit=2)
        await backend.tenants.define([a_tenant(GONE)])
        nothing = await backend.tenants.standings(EMAIL)

        await accepted(backend.store, *messages(2, GONE))
        await claimed(backend.store, limit=1)
        [standing] = await backend.tenants.standings(EMAIL)

    assert nothing == []
    assert (standing.waiting, standing.in_flight) == (1, 1)
