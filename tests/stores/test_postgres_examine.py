"""Findings of ``carteiro doctor`` on a PostgreSQL database."""

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from carteiro.model.checkup import Finding, Level
from carteiro.stores.postgres.examine import examine, notified
from support.postgres_server import a_postgres
from support.services import HOST
from support.shared_servers import shared_postgres

pytestmark = pytest.mark.servers


async def _found(url: str, **options: Any) -> dict[str, Finding]:
    findings: AsyncIterator[Finding] = examine(url, **options)
    return {each.check: each async for each in findings}


def _do(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


async def test_working_database_is_ok(url: str) -> None:
    """The only finding on a new one is the missing worker."""
    found = await _found(url)

    assert {each.check for each in found.values() if each.level is not Level.OK} == {"worker"}
    assert found["worker"].level is Level.WARN


async def test_unreachable_server_is_reported_without_its_password() -> None:
    """Other checks are skipped."""
    [finding] = (await _found(f"postgresql://ana:secret@{HOST}:1/post")).values()

    assert (finding.check, finding.level) == ("store", Level.FAIL)
    assert "secret" not in finding.told


async def test_database_without_a_schema_is_reported() -> None:
    """Checks that need the tables are skipped."""
    with shared_postgres().a_database() as url:
        found = await _found(url)

    assert found["schema"].level is Level.FAIL
    assert "migrate" in found["schema"].advice
    assert "worker" not in found


async def test_newer_schema_needs_a_newer_program(url: str) -> None:
    """It is not changed."""
    _do(
        url,
        "INSERT INTO carteiro.migrations (number, name, digest) VALUES (9999, 'of tomorrow', 1)",
    )

    schema = (await _found(url))["schema"]

    assert schema.level is Level.FAIL
    assert "upgrade this program" in schema.told


async def test_server_that_does_not_sync_fails() -> None:
    """Accepted messages may be lost: fsync, or the wait for it, is off."""
    with a_postgres(settings={"fsync": "off"}) as server:
        unsynced = (await _found(server.url()))["durability"]
    with shared_postgres().a_database() as url:
        name = url.rpartition("/")[2]
        _do(url, f'ALTER DATABASE "{name}" SET synchronous_commit = off')
        impatient = (await _found(url))["durability"]

    assert unsynced.level is Level.FAIL
    assert "fsync" in unsynced.advice
    assert impatient.level is Level.FAIL
    assert "synchronous_commit" in impatient.advice


async def test_read_only_database_fails(url: str) -> None:
    """A replica, or a read-only setting."""
    name = url.rpartition("/")[2]
    _do(url, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')

    assert (await _found(url))["writable"].level is Level.FAIL


@pytest.mark.parametrize(("ahead", "word"), [(-60, "ahead of"), (60, "behind")])
async def test_clock_difference_is_reported(url: str, ahead: int, word: str) -> None:
    """Our clock is a minute behind, or before, the server's."""
    clock = (await _found(url, clock=lambda: time.time() + ahead))["clock"]

    assert clock.level is Level.WARN
    assert word in clock.told


@pytest.mark.parametrize(("ago_ms", "level"), [(0, Level.OK), (3_600_000, Level.WARN)])
async def test_worker_is_known_by_its_lead(url: str, ago_ms: int, level: Level) -> None:
    """One that was seen long ago is a warning."""
    _do(
        url,
        "INSERT INTO carteiro.leads (name, holder, until, seen_at) "
        f"VALUES ('prune', 'one', carteiro.now_ms(), carteiro.now_ms() - {ago_ms})",
    )

    assert (await _found(url))["worker"].level is level


async def test_tables_without_autovacuum_are_reported(url: str) -> None:
    """It was turned off, and forgotten."""
    _do(url, "ALTER TABLE carteiro.ready SET (autovacuum_enabled = off)")

    autovacuum = (await _found(url))["autovacuum"]

    assert autovacuum.level is Level.WARN
    assert "ready" in autovacuum.told


async def test_long_open_transaction_is_reported(url: str) -> None:
    """With its owner, so that an operator can end it."""
    with psycopg.connect(url, application_name="night report") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        found = await _found(url, longest_transaction=timedelta(0))

    assert found["transactions"].level is Level.WARN
    assert "night report" in found["transactions"].told


def test_growing_notification_queue_is_reported() -> None:
    """A connection that listens in an open transaction keeps it from being emptied."""
    assert notified(0.5).level is Level.OK
    assert notified(0.51).level is Level.WARN
    assert "51%" in notified(0.51).told


async def test_unbounded_client_roles_are_named(url: str) -> None:
    """Until both their statements and their connections are bounded."""
    role = f"client_{uuid4().hex}"
    _do(
        url,
        "INSERT INTO carteiro.tenants (id, name, stride, paused, created_at) VALUES ('acme', 'a', 1, false, 0)",
        f"CREATE ROLE {role} LOGIN",
        f"SELECT carteiro.client_role('{role}', 'acme')",
    )
    try:
        bounded = (await _found(url))["client roles"]
        _do(url, f"ALTER ROLE {role} CONNECTION LIMIT -1")
        connections = (await _found(url))["client roles"]
        database = url.rpartition("/")[2]
        _do(
            url,
            f"ALTER ROLE {role} CONNECTION LIMIT 5",
            f'ALTER ROLE {role} IN DATABASE "{database}" RESET statement_timeout',
        )
        statements = (await _found(url))["client roles"]
    finally:
        _do(url, f"DROP OWNED BY {role}", f"DROP ROLE {role}")

    assert bounded.level is Level.OK
    assert connections.level is statements.level is Level.WARN
    assert role in connections.told
    assert role in statements.told
