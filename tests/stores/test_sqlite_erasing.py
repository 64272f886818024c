"""Erasing on SQLite: erased data is in no table and in no byte of the file or its log."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from carteiro.model import (
    ApiLimits,
    Dead,
    DeadReason,
    IdempotencyKey,
    InboxMail,
    NewRecipient,
    NewTemplate,
    RecipientId,
    TenantId,
    Verdict,
)
from carteiro.ports import Backend
from carteiro.stores.sqlite import SqliteOptions, open_sqlite
from support.builders import BRASA, a_failure, a_message, a_tenant, dead, retry, sent, tenants_named
from support.clock import StoreClock
from support.steps import accepted, accepted_recipient, added_key, attempted

FILE = "post.db"
GONE = TenantId("tenant-to-forget")
ADDRESS = "person.to.forget@example.com"
NAME = "Fulana de Tal"
PERSONAL = (ADDRESS, NAME, "hash-of-a-document", "order-of-hers", "subject of hers", "tag-of-hers")


@asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Backend]:
    async with open_sqlite(folder / FILE, SqliteOptions(clock=StoreClock())) as backend:
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
        "content": f'{{"to":"{ADDRESS}","html":"{NAME * 500}"}}',
        "request_id": f"request of {ADDRESS}",
    }
    verdicts: list[Verdict] = [sent(ADDRESS), dead(), retry(timedelta(hours=1))]
    for number, verdict in enumerate(verdicts):
        key = IdempotencyKey(f"{ADDRESS}-{number}", "digest")
        new = a_message(GONE, recipient=person, key=key, limits=ApiLimits(), **fields)
        await accepted(backend.store, new)
        await attempted(backend.store, verdict)
        await backend.inbox.keep([InboxMail(new.id, GONE, ADDRESS, "subject", NAME, "id")])
    await accepted(backend.store, a_message(GONE, **fields))
    await added_key(backend, "key", tenant=GONE)
    await backend.templates.define(NewTemplate(GONE, "WELCOME", "Hello", text=NAME))
    return await accepted_recipient(backend, person, GONE, **fields)


def _bytes_of(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.iterdir()))


def _bytes_without_audit(folder: Path) -> bytes:
    """The bytes after the audit rows were deleted: they keep ids of tenants."""
    with closing(sqlite3.connect(folder / FILE)) as db:
        db.execute("PRAGMA secure_delete = ON")
        db.execute("DELETE FROM audit")
        db.commit()
    return _bytes_of(folder)


def _tables_with(folder: Path, text: str) -> list[str]:
    """Every table that holds the text in any column of any row."""
    with closing(sqlite3.connect(folder / FILE)) as db:
        names = [
            row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        return [
            name
            for name in names
            if any(text in str(row) for row in db.execute(f'SELECT * FROM "{name}"'))
        ]


async def test_nothing_of_a_recipient_is_left_in_the_file(tmp_path: Path) -> None:
    """Not even while the file is still open, and not after its log was copied back."""
    async with _opened(tmp_path) as backend:
        person = await _lived(backend)
        await backend.templates.delete(GONE, "WELCOME")
        before = _bytes_of(tmp_path)

        erased = await backend.recipients.erase(person, tenant=GONE)
        while_open = _bytes_of(tmp_path)

    assert erased is not None
    assert not erased.has_more
    assert {text: _tables_with(tmp_path, text) for text in PERSONAL if text != NAME} == {
        text: [] for text in PERSONAL if text != NAME
    }
    assert _tables_with(tmp_path, NAME) == ["templates"]  # the tenant's own text, not of a person
    for text in PERSONAL:
        assert text.encode() in before
    for text in set(PERSONAL) - {NAME}:
        assert text.encode() not in while_open
        assert text.encode() not in _bytes_of(tmp_path)


async def test_nothing_of_a_tenant_is_left_in_the_file(tmp_path: Path) -> None:
    """Neither its name nor those of its recipients; another tenant's messages stay."""
    async with _opened(tmp_path) as backend:
        await _lived(backend)
        await accepted(backend.store, a_message(BRASA))

        erased = await backend.tenants.erase(GONE)
        while_open = _bytes_of(tmp_path)

    assert erased is not None
    assert not erased.has_more
    for text in (*PERSONAL, "Forget me"):
        assert _tables_with(tmp_path, text) == []
        assert text.encode() not in while_open
        assert text.encode() not in _bytes_of(tmp_path)
    assert _tables_with(tmp_path, GONE) == ["audit"]  # who erased it, until the retention is over
    assert GONE.encode() not in _bytes_without_audit(tmp_path)
    assert _tables_with(tmp_path, BRASA) != []


async def test_interrupted_erasure_goes_on_after_a_restart(tmp_path: Path) -> None:
    """The tenant stays disabled meanwhile, and no erased data comes back."""
    async with _opened(tmp_path) as backend:
        await _lived(backend)
        first = await backend.tenants.erase(GONE, limit=2)

    async with open_sqlite(tmp_path / FILE, SqliteOptions(clock=StoreClock())) as backend:
        [tenant] = await backend.tenants.find([GONE])
        rest = await backend.tenants.erase(GONE)

    assert first is not None
    assert first.has_more
    assert tenant is not None
    assert tenant.disabled
    assert rest is not None
    assert not rest.has_more
    assert GONE.encode() not in _bytes_without_audit(tmp_path)


async def test_texts_of_a_provider_are_erased_too(tmp_path: Path) -> None:
    """A failure often repeats the address; its code stays."""
    reason = f"550 <{ADDRESS}> is unknown"
    async with _opened(tmp_path) as backend:
        person = await accepted_recipient(backend, NewRecipient(ADDRESS), GONE, to=ADDRESS)
        failure = a_failure("550", reason=reason, original_code=reason)
        await attempted(backend.store, Dead(DeadReason.PERMANENT_ERROR, failure))

        await backend.recipients.erase(person, tenant=GONE)

    assert ADDRESS.encode() not in _bytes_of(tmp_path)
    assert _tables_with(tmp_path, '"code":"550"') == ["entries"]
