"""The ledger of a pair on Postgres: recent messages, for the relay that puts those that nobody else put."""

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from carteiro.model import Accepted
from carteiro.ports.ledger import LedgerHalf
from carteiro.stores.postgres import open_postgres_ledger
from carteiro.stores.postgres.accept import accept_within
from carteiro.stores.postgres.database import Session
from support.builders import ACME, a_message, messages, tenants_named
from support.clock import StoreClock

pytestmark = pytest.mark.servers


@pytest.fixture
async def ledger(url: str) -> AsyncIterator[LedgerHalf]:
    """A ledger with the tenant ACME."""
    async with open_postgres_ledger(url) as half:
        await half.backend.tenants.define(tenants_named([ACME]))
        yield half


@pytest.fixture
async def application(url: str) -> AsyncIterator[Any]:
    """A connection of another application."""
    connection = await asyncpg.connect(url)
    yield connection
    await connection.close()


async def test_new_reader_starts_after_the_last_message(ledger: LedgerHalf, url: str) -> None:
    """It puts all unfinished ones first; to look for recent ones among all messages would take minutes."""
    await ledger.ledger.accept(messages(3))

    async with open_postgres_ledger(url) as new:
        _, position = await new.ledger.recent(after=None, limit=0)

    assert position == 3


async def test_open_transaction_that_accepts_nothing_is_not_waited_for(
    ledger: LedgerHalf, application: Any
) -> None:
    """It may stay open for hours, and each round would read all messages since."""
    _, start = await ledger.ledger.recent(after=None, limit=0)
    async with application.transaction():
        await application.fetchval("SELECT pg_current_xact_id()")
        await ledger.ledger.accept(messages(3))
        found, after = await ledger.ledger.recent(after=start, limit=10)
        for _ in range(2):
            _, after = await ledger.ledger.recent(after=after, limit=10)

    assert len(found) == 3
    assert after == 3


@pytest.mark.parametrize("accepted_before", [0, 2])
async def test_message_of_an_open_transaction_is_found_after_its_commit(
    ledger: LedgerHalf, application: Any, accepted_before: int
) -> None:
    """However many come after it; also the first of all."""
    await ledger.ledger.accept(messages(accepted_before))
    _, start = await ledger.ledger.recent(after=None, limit=0)
    late = a_message()
    async with application.transaction():
        [answer] = await accept_within(Session(application), [late], StoreClock()())
        await ledger.ledger.accept(messages(1))
        for _ in range(3):
            seen, start = await ledger.ledger.recent(after=start, limit=10)
    found, _ = await ledger.ledger.recent(after=start, limit=10)

    assert isinstance(answer, Accepted)
    assert len(seen) == 1
    assert late.id in [entry[0] for entry in found]


async def test_new_reader_does_not_pass_over_an_open_transaction(
    ledger: LedgerHalf, application: Any
) -> None:
    """It waits a little for its end, then reads from further back."""
    await ledger.ledger.accept(messages(1))
    late = a_message()
    async with application.transaction():
        await accept_within(Session(application), [late], StoreClock()())
        await ledger.ledger.accept(messages(1))
        _, start = await ledger.ledger.recent(after=None, limit=0)
    found, _ = await ledger.ledger.recent(after=start, limit=10)

    assert late.id in [entry[0] for entry in found]
