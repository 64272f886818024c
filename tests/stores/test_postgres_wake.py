"""The bell on Postgres: other processes are heard, and own work is not announced twice."""

from collections.abc import AsyncIterator
from datetime import timedelta

import psycopg
import pytest

from carteiro.model import EMAIL
from carteiro.ports import Backend
from carteiro.stores.postgres import PostgresOptions, open_postgres
from support.builders import ACME, TASK, a_message, a_task, tenants_named
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


async def test_accept_elsewhere_rings_for_its_kind(backend: Backend, url: str) -> None:
    """Pools of other kinds would look for work in vain; a list of several kinds rings for all."""
    async with open_postgres(url, PostgresOptions()) as other:
        before = backend.wake.rings()
        await accepted(other.store, a_message())
        hears_its_own = await backend.wake.wait(_PATIENCE, since=before, kinds=[EMAIL])
        hears_others = await backend.wake.wait(timedelta(0), since=before, kinds=[TASK])
        await accepted(other.store, a_message(), a_task())
        hears_a_mixed_list = await backend.wake.wait(_PATIENCE, since=before, kinds=[TASK])

    assert (hears_its_own, hears_others, hears_a_mixed_list) == (True, False, True)


async def test_only_processes_that_know_the_channel_ring(backend: Backend, url: str) -> None:
    """Any role that may connect may notify: a flood on a known name would be work for every process."""
    before = backend.wake.rings()

    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_notify('carteiro', i::text) FROM generate_series(1, 100) AS i")
        other.execute("SELECT pg_notify(channel, '') FROM carteiro.wake_channel")
    await backend.wake.wait(_PATIENCE, since=before)

    assert backend.wake.rings() == before + 1
