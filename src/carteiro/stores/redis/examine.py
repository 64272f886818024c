"""Checks whether a Redis or Valkey server can keep the queue."""

import time
from asyncio import timeout
from collections.abc import AsyncIterator, Mapping
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError

from carteiro.model.checkup import Finding, Level, in_size
from carteiro.stores.checks import clock_agrees
from carteiro.stores.redis.server import CHECK_WHO, client_of, close, said_by, shown

_OLDEST_SERVER = (7, 0)
_PATIENCE_S = 10.0
_FULLISH, _NEARLY_FULL = 0.8, 0.9
_KEPT = "set appendonly yes and appendfsync everysec, as deploy/redis.conf does"


async def examine(url: str) -> AsyncIterator[Finding]:
    """Check the server; checks that depend on a failed one are left out."""
    client = client_of(url, connections=1)
    try:
        async with timeout(_PATIENCE_S):
            told = await client.info("everything")
            asked_at = time.time()
            seconds, microseconds = await client.time()
            answered_at = time.time()
            kept = await _kept(client, told)
        yield Finding("queue", Level.OK, f"{shown(url)} can be reached")
        yield _version(told)
        yield _memory(told)
        yield _policy(told)
        yield kept
        server_s = seconds + microseconds / 1_000_000
        yield clock_agrees("queue clock", server_s, asked_at, answered_at)
    except AuthenticationError as error:
        advice = f"{CHECK_WHO} in the setting queue; until then messages are accepted and wait"
        yield Finding("queue", Level.FAIL, f"{shown(url)} does not let us in: {error}", advice)
    except (RedisError, OSError) as error:
        advice = "start it, or correct the setting queue; until then messages are accepted and wait"
        why = said_by(error)
        yield Finding("queue", Level.FAIL, f"{shown(url)} cannot be asked: {why}", advice)
    finally:
        await close(client)


def _version(told: Mapping[str, Any]) -> Finding:
    is_valkey = "valkey_version" in told
    version = str(told.get("valkey_version") or told["redis_version"])
    named = f"{'Valkey' if is_valkey else 'Redis'} {version}"
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST_SERVER:
        advice = "upgrade the server"
        return Finding("queue server", Level.FAIL, f"{named}, and 7.0 or newer is needed", advice)
    if told.get("role") == "slave":
        advice = "name the primary as the queue, or the sentinels that know it"
        return Finding(
            "queue server", Level.FAIL, f"{named}, a replica: it cannot be written", advice
        )
    return Finding("queue server", Level.OK, named)


def _memory(told: Mapping[str, Any]) -> Finding:
    most, used = int(told["maxmemory"]), int(told["used_memory"])
    figures = {"usedBytes": used, "maxBytes": most}
    if not most:
        said = f"{in_size(used)} used, and no limit is set"
        advice = "set maxmemory, so that it refuses before the machine runs out"
        return Finding("queue memory", Level.WARN, said, advice, figures)
    said = f"{used / most:.0%} of {in_size(most)} used"
    if used > _FULLISH * most:
        urgency = "at once" if used > _NEARLY_FULL * most else "soon"
        advice = f"raise maxmemory {urgency}; when it is full, messages are accepted and wait"
        return Finding("queue memory", Level.WARN, said, advice, figures)
    return Finding("queue memory", Level.OK, said, figures=figures)


def _policy(told: Mapping[str, Any]) -> Finding:
    policy = told["maxmemory_policy"]
    if policy != "noeviction":
        said = f"maxmemory-policy is {policy}: when it is full, jobs vanish"
        return Finding("queue eviction", Level.FAIL, said, "set maxmemory-policy noeviction")
    return Finding("queue eviction", Level.OK, "nothing is evicted")


async def _kept(client: Redis, told: Mapping[str, Any]) -> Finding:
    if not int(told["aof_enabled"]):
        said = "no AOF is written: a restart loses the queue, and it is made again from the ledger"
        return Finding("queue durability", Level.FAIL, said, _KEPT)
    try:
        synced = (await client.config_get("appendfsync")).get("appendfsync")
    except RedisError:  # a hosted server may keep its configuration to itself
        return Finding("queue durability", Level.OK, "an AOF is written")
    if synced == "no":
        said = "appendfsync is no: a power cut may lose much of the queue"
        return Finding("queue durability", Level.WARN, said, _KEPT)
    return Finding("queue durability", Level.OK, f"an AOF is written, and synced {synced}")
