"""Checks that `carteiro doctor` runs on every store."""

from datetime import timedelta

from carteiro.errors import SchemaMismatch
from carteiro.model.checkup import Finding, Level
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import moment
from carteiro.stores.migrations import pending

_LONGEST_SILENCE = timedelta(minutes=10)
_MOST_SKEW = timedelta(seconds=5)


def schema_is(package: str, found: int, digest: int | None, database: str) -> Finding:
    """Check that the schema is the one that this program writes."""
    try:
        lacking = pending(package, found, digest, database)
    except SchemaMismatch as error:
        return Finding("schema", Level.FAIL, str(error))
    if lacking:
        told = f"version {found}, and {lacking[-1].number} is needed"
        return Finding("schema", Level.FAIL, told, "run carteiro migrate")
    return Finding("schema", Level.OK, f"version {found}, the newest")


def worker_seen(at: int | None, now: int) -> Finding:
    """Check that a worker does the upkeep; ``at``: when a process last led one of its tasks."""
    advice = "start carteiro worker or up, or run carteiro process from cron"
    if at is None:
        return Finding("worker", Level.WARN, "no worker has ever run here", advice)
    if now - at > _LONGEST_SILENCE // MILLISECOND:
        told = f"no worker was seen since {moment(at):%Y-%m-%dT%H:%M:%SZ}"
        return Finding("worker", Level.WARN, told, advice)
    return Finding("worker", Level.OK, "a worker was seen in the last minutes")


def clock_agrees(check: str, server_s: float, asked_at: float, answered_at: float) -> Finding:
    """Check the server's clock, which was read between these two moments of ours, in seconds."""
    skew = timedelta(seconds=server_s - (asked_at + answered_at) / 2)
    if abs(skew) > _MOST_SKEW + timedelta(seconds=answered_at - asked_at) / 2:
        word = "ahead of" if skew > timedelta(0) else "behind"
        told = f"the server's clock is {abs(skew)} {word} this machine's"
        return Finding(check, Level.WARN, told, "set both clocks (NTP)")
    return Finding(check, Level.OK, "the server's clock agrees with this machine's")
