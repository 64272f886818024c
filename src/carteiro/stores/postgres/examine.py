"""Checks a database: reachable, writable, durable, up to date, clock, vacuum."""

import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from typing import Any

import asyncpg

from carteiro.errors import ConfigError, StoreError
from carteiro.model.checkup import Finding, Level
from carteiro.stores.checks import clock_agrees, schema_is, worker_seen
from carteiro.stores.postgres.database import FAILURES, address_read, described, sql, translated
from carteiro.stores.postgres.migrating import PACKAGE, Applied, found_schema, functions_digest

_PATIENCE_S = 5.0
_OLDEST_SERVER = 15
_MOST_NOTIFIED = 0.5


async def examine(
    url: str,
    *,
    clock: Callable[[], float] = time.time,
    longest_transaction: timedelta = timedelta(minutes=10),
) -> AsyncIterator[Finding]:
    """Check the database; checks that depend on a failed one are left out."""
    name = described(url)
    try:
        with address_read(name):
            connection = await asyncpg.connect(
                url, timeout=_PATIENCE_S, command_timeout=_PATIENCE_S, statement_cache_size=0
            )
    except ConfigError as error:
        yield Finding("store", Level.FAIL, str(error))
        return
    except FAILURES as error:
        yield Finding("store", Level.FAIL, str(translated(error, name)))
        return
    try:
        asked_at = clock()
        [settings] = await connection.fetch(sql("examine_settings"))
        answered_at = clock()
        server = dict(settings.items())
        yield Finding("store", Level.OK, f"{name} can be reached")
        yield _version(server)
        yield _writable(server)
        yield _durable(server)
        yield (schema := _schema(await found_schema(url), name))
        yield clock_agrees("clock", server["now_ms"] / 1000, asked_at, answered_at)
        if schema.level is Level.OK:
            yield worker_seen(await connection.fetchval(sql("last_seen")), server["now_ms"])
            yield _client_roles(await connection.fetch(sql("examine_client_roles")))
        yield _autovacuum(server)
        yield notified(server["notifications"])
        seconds = longest_transaction.total_seconds()
        yield _open(await connection.fetch(sql("examine_old_transactions"), seconds))
    except FAILURES as error:
        yield Finding("store", Level.FAIL, str(translated(error, name)))
    except StoreError as error:
        yield Finding("store", Level.FAIL, str(error))
    finally:
        connection.terminate()


def _schema(found: Applied, name: str) -> Finding:
    finding = schema_is(PACKAGE, found.version, found.digest, name)
    if finding.level is Level.OK and found.functions != functions_digest():
        told = "its functions are those of another version of Carteiro"
        return Finding("schema", Level.FAIL, told, "run carteiro migrate")
    return finding


def _version(server: Mapping[str, Any]) -> Finding:
    version = server["server_version"] // 10_000
    if version < _OLDEST_SERVER:
        told = f"PostgreSQL {version}, and {_OLDEST_SERVER} or newer is needed"
        return Finding("server", Level.FAIL, told, "upgrade the server")
    return Finding("server", Level.OK, f"PostgreSQL {version}")


def _writable(server: Mapping[str, Any]) -> Finding:
    if server["is_read_only"]:
        told = "it can only be read: a replica, or set to be read-only"
        return Finding("writable", Level.FAIL, told, "name the primary as the store")
    return Finding("writable", Level.OK, "it can be written")


def _durable(server: Mapping[str, Any]) -> Finding:
    if not server["fsync"]:
        told = "fsync is off: a power cut may lose or destroy what was accepted"
        return Finding("durability", Level.FAIL, told, "set fsync = on in postgresql.conf")
    if not server["full_page_writes"]:
        told = "full_page_writes is off: a power cut may destroy what was accepted"
        return Finding("durability", Level.FAIL, told, "set full_page_writes = on")
    if not server["waits_for_commit"]:
        told = "synchronous_commit is off: what was accepted last is lost when the server fails"
        advice = "set synchronous_commit = on for this database and user"
        return Finding("durability", Level.FAIL, told, advice)
    return Finding("durability", Level.OK, "every commit is synced")


def _autovacuum(server: Mapping[str, Any]) -> Finding:
    advice = "turn it on: without it the queue grows slower with every message"
    if not server["has_autovacuum"]:
        told = "autovacuum or track_counts is off on the server"
        return Finding("autovacuum", Level.WARN, told, advice)
    if tables := server["without_autovacuum"]:
        told = f"autovacuum is off for {', '.join(tables)}"
        return Finding("autovacuum", Level.WARN, told, advice)
    return Finding("autovacuum", Level.OK, "it is on")


def _client_roles(rows: list[Any]) -> Finding:
    if not rows:
        return Finding(
            "client roles", Level.OK, "all have a statement_timeout and a connection limit"
        )
    listed = ", ".join(role for (role,) in rows)
    told = f"without a statement_timeout or a connection limit: {listed}"
    advice = "run carteiro.client_role again, and as a superuser what it warns of"
    return Finding("client roles", Level.WARN, told, advice)


def notified(usage: float) -> Finding:
    """Check that the server's queue of notifications is read: when it is full, nothing can be accepted."""
    if usage > _MOST_NOTIFIED:
        told = f"the server's queue of notifications is {usage:.0%} full"
        advice = "end the oldest transaction of a connection that listens (pg_stat_activity)"
        return Finding("notifications", Level.WARN, told, advice)
    return Finding("notifications", Level.OK, "they are read")


def _open(rows: list[Any]) -> Finding:
    if not rows:
        return Finding("transactions", Level.OK, "none has been open for long")
    listed = ", ".join(f"{whose} for {timedelta(seconds=seconds)}" for whose, seconds in rows)
    advice = "end it: as long as it is open nothing can be swept, and tables grow"
    return Finding("transactions", Level.WARN, f"open: {listed}", advice)
