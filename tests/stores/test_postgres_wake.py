"""The bell on Postgres: other processes are heard, and own work is not announced twice."""

from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, open_postgres
from support.builders import ACME, a_message, tenants_named
from support.steps import accepted

pytestmark = pytest.mark.servers

_PATIENCE = timedelta(seconds=30)


@pytest.fixture
async def backend(url: str) -> AsyncIterator[Backend]:
    """A store that listens."""
    async with open_postgres(url, PostgresOptions()) as opened:
        await opened.tenants.define(tenants_named([ACME]))
        await opened.wake.wait(_PATIENCE, since=opened.wake.rings())  # rung when it can hear
        yield opened


async def test_own_accept_rings_once(backend: Backend, url: str) -> None:
    """Here, at once; the server's notification is ignored. Another process's is heard after it."""
    before = backend.wake.rings()
    await accepted(backend.store, a_message())
    at_once = backend.wake.rings()

    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_notify(channel, '') FROM carteiro.wake_channel")
    is_heard = await backend.wake.wait(_PATIENCE, since=at_once)

    assert at_once == before + 1
    assert is_heard
    assert backend.wake.rings() == at_once + 1


async def test_only_processes_that_know_the_channel_ring(backend: Backend, url: str) -> None:
    """Any role that may connect may notify: a flood on a known name would be work for every process."""
    before = backend.wake.rings()

    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_notify('carteiro', i::text) FROM generate_series(1, 100) AS i")
        other.execute("SELECT pg_notify(channel, '') FROM carteiro.wake_channel")
    await backend.wake.wait(_PATIENCE, since=before)

    assert backend.wake.rings() == before + 1
