"""Accept: lists of e-mails that a store commits together."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from carteiro.email.message import make_email
from carteiro.email.submission import Submission
from carteiro.model import Tenant
from carteiro.stores.sqlite.store import SqliteStore
from support.builders import ACME
from support.http import opened


async def test_recipients_make_short_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is looked up and written by itself, and e-mails of other tenants wait for the list."""
    lists: list[int] = []
    accept = SqliteStore.accept

    async def seen(self: SqliteStore, new: Sequence[Any]) -> Any:
        lists.append(len(new))
        return await accept(self, new)

    monkeypatch.setattr(SqliteStore, "accept", seen)
    fields = {"to": "ana@example.com", "subject": "Oi", "text": "Oi"}
    plain = make_email(fields)
    known = make_email(fields | {"recipient": {"email": "ana@example.com", "externalId": "7"}})
    async with opened("memory://") as post:
        for email in (plain, known):
            submission = Submission(email, Tenant(ACME), "request")
            await asyncio.gather(*[post.accepting.one(submission) for _ in range(200)])

    assert lists[0] == sum(lists[1:]) == 200
    assert max(lists[1:]) < 200
