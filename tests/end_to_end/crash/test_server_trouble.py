"""Trouble with the server under load: it dies, it closes all sessions, its connection is cut or falls silent.

The workers are real processes. They are never restarted: they recover by themselves, log
what they wait for, and the law of delivery holds.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from carteiro.model import MessageId
from carteiro.stores.postgres import migrate
from end_to_end.crash.children import PATIENCE_S, wait_for_rest
from end_to_end.crash.law import broken
from end_to_end.crash.places import Place
from end_to_end.crash.post_office import LEASE
from end_to_end.crash.trouble import (
    LULL_S,
    WORKERS,
    cuts_at_random,
    silence_of,
    under_load,
    waits,
    workers_at,
)
from support.cut_proxy import CutProxy, a_cut_proxy
from support.postgres_server import PostgresServer, a_postgres

# No worker dies here. A job that waits for the end of a lease, as if one had, is not done in
# time.
LEASE_S = 2 * PATIENCE_S


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server that may be killed."""
    with a_postgres() as running:
        yield running


@pytest.fixture
def place(server: PostgresServer, tmp_path: Path) -> Iterator[Place]:
    """An empty database on it, and a folder."""
    with server.a_database(migrate) as url:
        yield Place(url, str(tmp_path))


async def test_killed_and_restarted_server_loses_nothing(
    place: Place, server: PostgresServer
) -> None:
    """Killed -9 under load, twice: answered messages are there, and the workers go on when it is back."""

    async def die() -> None:
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(0.5)
        await asyncio.to_thread(server.start)

    async with workers_at(place, lease_s=LEASE_S):
        accepted = await under_load(place, die, die)
        await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []
    assert (
        len({wait for operation, wait in waits(place) if operation == "claim"}) > 1
    )  # it backs off


async def test_terminated_connections_come_back(place: Place) -> None:
    """pg_terminate_backend of every connection, repeatedly."""

    async def throw_out() -> None:
        for _ in range(5):
            place.rows(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await asyncio.sleep(LULL_S)

    async with workers_at(place, lease_s=LEASE_S):
        accepted = await under_load(place, throw_out)
        await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []
    assert waits(place)


@asynccontextmanager
async def _behind_a_proxy(
    place: Place, server: PostgresServer
) -> AsyncIterator[tuple[CutProxy, Place]]:
    """The same store, behind a proxy."""
    async with a_cut_proxy(server.port) as proxy:
        yield proxy, Place(place.store.replace(f":{server.port}/", f":{proxy.port}/"), place.folder)


async def test_random_cuts_of_connections_lose_nothing(
    place: Place, server: PostgresServer
) -> None:
    """Inside a statement, an answer, or a commit whose answer is lost."""
    async with (
        _behind_a_proxy(place, server) as (proxy, behind),
        workers_at(behind, lease_s=LEASE_S),
    ):
        accepted = await under_load(place, cuts_at_random(proxy))
        await asyncio.to_thread(wait_for_rest, place)

    assert proxy.cuts > WORKERS
    assert broken(place, accepted) == []
    assert waits(place)


async def test_silent_connections_are_given_up(place: Place, server: PostgresServer) -> None:
    """Nothing comes and nothing ends, as when a firewall forgets a connection: new ones replace them."""
    async with (
        _behind_a_proxy(place, server) as (proxy, behind),
        workers_at(behind, lease_s=LEASE_S, command_timeout_s=0.5),
    ):
        accepted = await under_load(place, silence_of(proxy))
        await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []
    assert waits(place)


async def test_stall_is_waited_out(place: Place, server: PostgresServer) -> None:
    """All statements arrive in the end, long after the end of their leases."""
    async with _behind_a_proxy(place, server) as (proxy, behind):

        async def stall() -> None:
            proxy.stall()
            await proxy.held_back.wait()
            await asyncio.sleep(2 * LEASE.total_seconds())
            proxy.flow()

        async with workers_at(behind):
            accepted = await under_load(place, stall)
            await asyncio.to_thread(wait_for_rest, place)

    assert broken(place, accepted) == []


async def test_stopped_workers_block_no_other(place: Place) -> None:
    """Stopped anywhere, others go on meanwhile; after they continue, they change nothing of theirs."""
    accepted: list[MessageId] = []
    async with workers_at(place), workers_at(place) as sleepers:

        async def stop() -> None:
            for each in sleepers:
                each.tell(signal.SIGSTOP)

        for seed in range(2):
            accepted += await under_load(place, stop, seed=seed)
            await asyncio.to_thread(wait_for_rest, place)
            for each in sleepers:
                each.tell(signal.SIGCONT)

    assert broken(place, accepted) == []
