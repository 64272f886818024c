"""Checks a file: readable, undamaged, durable, up to date, free space, clock."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from carteiro.errors import StoreError
from carteiro.model import Fairness
from carteiro.model.checkup import Finding, Level, in_size
from carteiro.stores.checks import schema_is, worker_seen
from carteiro.stores.sqlite.moving import left_for
from carteiro.stores.sqlite.opening import PACKAGE, connect, digest, in_our_words, version
from carteiro.stores.sqlite.options import SqliteOptions, wall_clock_ms
from carteiro.stores.sqlite.rows import run
from carteiro.stores.tenant_columns import fairness_of

_FULL = 2  # of PRAGMA synchronous
_MOST_AHEAD = timedelta(seconds=5)
_PATIENCE_MS = 2000


def found_version(path: Path) -> int:
    """The version of the file's schema; 0 if there is none."""
    if not path.exists():
        return 0
    with in_our_words(path), closing(connect(path, busy_timeout_ms=_PATIENCE_MS)) as db:
        return version(db)


def found_fairness(path: Path) -> Fairness | None:
    """The fairness settings that were changed at run time, if they were; the file stays as it is."""
    if not path.exists():
        return None
    with in_our_words(path), closing(connect(path, busy_timeout_ms=_PATIENCE_MS)) as db:
        row = run(db, "override_get", name="fairness").fetchone() if version(db) else None
    return None if row is None else fairness_of(row[0])


def examine(
    path: Path, *, min_free_bytes: int, clock: Callable[[], int] = wall_clock_ms
) -> Iterator[Finding]:
    """Check the file; checks that depend on a failed one are left out."""
    if not path.exists():
        advice = "carteiro up or carteiro migrate makes it; --store names another"
        yield Finding("store", Level.FAIL, f"{path} does not exist", advice)
        return
    try:
        with closing(connect(path, busy_timeout_ms=_PATIENCE_MS)) as db, in_our_words(path):
            yield Finding("store", Level.OK, f"{path} can be read")
            yield _writable(db)
            yield _whole(db)
            yield _durable(db)
            yield (schema := schema_is(PACKAGE, version(db), digest(db), str(path)))
            if schema.level is Level.OK:
                yield _clock(db, clock())
                [seen] = run(db, "last_seen").fetchone()
                yield worker_seen(seen, clock())
    except StoreError as error:
        yield Finding("store", Level.FAIL, str(error))
    yield _room(path, min_free_bytes)


def _writable(db: sqlite3.Connection) -> Finding:
    db.execute("BEGIN IMMEDIATE")
    db.execute("ROLLBACK")
    target = left_for(db)
    if target is not None:
        told = f"it is closed: its messages go to {target}"
        return Finding("writable", Level.FAIL, told, "set store to that address")
    return Finding("writable", Level.OK, "it can be written")


def _whole(db: sqlite3.Connection) -> Finding:
    [first, *more] = [row[0] for row in db.execute("PRAGMA quick_check(10)")]
    if first == "ok":
        return Finding("integrity", Level.OK, "quick_check found nothing")
    told = "; ".join([first, *more])
    return Finding("integrity", Level.FAIL, told, "stop all processes and restore a backup")


def _durable(db: sqlite3.Connection) -> Finding:
    [mode] = db.execute("PRAGMA journal_mode").fetchone()
    [synchronous] = db.execute("PRAGMA synchronous").fetchone()
    if mode == "wal" and synchronous == _FULL:
        return Finding("durability", Level.OK, "write-ahead log, every commit is synced")
    told = f"journal_mode is {mode}, synchronous is {synchronous}"
    return Finding("durability", Level.FAIL, told, "put the file on a local disk, not on a share")


def _clock(db: sqlite3.Connection, now: int) -> Finding:
    row = run(db, "examine_newest").fetchone()
    ahead = timedelta(milliseconds=row[0] - now) if row else timedelta(0)
    if ahead > _MOST_AHEAD:
        told = f"the newest message came {ahead} in the future"
        return Finding("clock", Level.FAIL, told, "set this machine's clock (NTP)")
    return Finding("clock", Level.OK, "no message comes from the future")


def _room(path: Path, min_free_bytes: int) -> Finding:
    free = SqliteOptions().free_bytes(path)
    kept = f"{in_size(min_free_bytes)} are kept for what is accepted already"
    level, advice = Level.OK, ""
    if free < min_free_bytes:
        level, advice = Level.FAIL, "free some space: nothing new is accepted"
    elif free < 2 * min_free_bytes:
        level, advice = Level.WARN, "free some space soon"
    figures = {"freeBytes": free, "minFreeBytes": min_free_bytes}
    return Finding("disk", level, f"{in_size(free)} free, {kept}", advice, figures)
