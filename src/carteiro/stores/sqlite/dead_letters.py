"""Dead letters on SQLite."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from carteiro.model import (
    Cursor,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    MessageId,
    Page,
    RedriveAnswer,
    Revision,
    TenantId,
)
from carteiro.policy.crowding import Share, giving_way
from carteiro.policy.lifecycle import MILLISECOND, restored_ttl
from carteiro.ports.dead_letters import GroupBy
from carteiro.stores.columns import failure_text, in_ms, maybe_moment, moment
from carteiro.stores.cursors import cursor_at
from carteiro.stores.dead_letter_columns import dead_letter_of, finding, parameters_of
from carteiro.stores.sqlite.options import SqliteOptions
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.redrive import redrive
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer

_ANY = DeadFilter()


class SqliteDeadLetters:
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, options: SqliteOptions
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._clock = options.clock
        self._has_queue = options.has_queue

    # --- finding ------------------------------------------------------------------------------

    async def find(
        self, wanted: DeadFilter = _ANY, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[DeadLetter]:
        """The entries that match, newest first."""
        asked = parameters_of(wanted, cursor)
        operation = finding(wanted)

        def page(db: sqlite3.Connection) -> Page[DeadLetter]:
            found = run(db, operation, **asked, limit=limit + 1).fetchall()
            letters = _loaded(db, [row[0] for row in found[:limit]])
            has_more = bool(letters) and len(found) > limit
            return Page(
                letters, cursor_at(found[limit - 1][1], found[limit - 1][0]) if has_more else None
            )

        return await self._reader.ask(page)

    async def group(self, by: GroupBy, wanted: DeadFilter = _ANY) -> list[DeadGroup]:
        """How many match, by what they have in common; the largest group first."""
        asked = parameters_of(wanted, None)
        rows = await self._reader.ask(
            lambda db: run(db, "dead_letters_group", by=by, **asked).fetchall()
        )
        return [
            DeadGroup(key, count, moment(oldest), moment(newest))
            for key, count, oldest, newest in rows
        ]

    async def show(self, message: MessageId) -> DeadLetter | None:
        """The entry of one message."""
        found = await self._reader.ask(lambda db: _loaded(db, [message]))
        return found[0] if found else None

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[TenantId, int]]]:
        """How many entries there are, and the tenants with most of them."""
        rows = await self._reader.ask(lambda db: run(db, "dead_letters_sizes").fetchall())
        return sum(count for _, count in rows), rows[:top]

    async def oldest(self) -> datetime | None:
        """When the oldest entry was moved here; None without any."""
        [at] = await self._reader.ask(lambda db: run(db, "dead_letters_first").fetchone())
        return maybe_moment(at)

    async def moved(self, ids: Sequence[MessageId]) -> dict[MessageId, datetime]:
        """When those of the messages that have an entry were moved here."""
        rows = await self._reader.ask(
            lambda db: run(db, "dead_letters_moved", ids=as_json(ids)).fetchall()
        )
        return {identity: moment(at) for identity, at in rows}

    # --- redriving ----------------------------------------------------------------------------

    async def redrive(
        self, ids: Sequence[MessageId], *, by: str, revision: Revision | None = None
    ) -> list[RedriveAnswer]:
        """Send them round again; ``by`` says on whose word. A dead message without an entry is redriven too."""
        if revision is not None and len(ids) != 1:
            raise ValueError("a revision is for one message")
        answers = await self._writer.do(
            lambda db: redrive(
                db,
                ids,
                by=by,
                revision=revision,
                now=self._clock(),
                has_queue=self._has_queue,
            )
        )
        self._wake.ring()
        return answers

    # --- keeping ------------------------------------------------------------------------------

    async def drop(self, ids: Sequence[MessageId]) -> int:
        """Take entries out of the index; the messages stay, and can be redriven. Return how many went."""
        return await self._writer.do(
            lambda db: run(db, "dead_letters_drop", ids=as_json(ids)).rowcount
        )

    async def outlived(self, *, limit: int = 1000) -> list[MessageId]:
        """Entries older than their time to live, the longest outlived first; none that is on its way."""
        now = self._clock()
        rows = await self._reader.ask(
            lambda db: run(db, "dead_letters_outlived", now=now, limit=limit).fetchall()
        )
        return [row[0] for row in rows]

    async def overfull(self, *, most: int, limit: int = 1000) -> list[DeadLetter]:
        """What must go so that ``most`` stay: again and again the oldest of the tenant with most entries."""
        return await self._reader.ask(lambda db: _overfull(db, most, limit))

    async def restore(self, letters: Sequence[DeadLetter]) -> int:
        """Put entries back whose messages are still dead and have none; return how many."""
        now = self._clock()
        rows = as_json([_restored_row(letter, now) for letter in letters])
        return await self._writer.do(lambda db: run(db, "dead_letters_restore", rows=rows).rowcount)


def _loaded(db: sqlite3.Connection, ids: Sequence[MessageId]) -> list[DeadLetter]:
    return [dead_letter_of(row) for row in run(db, "dead_letters_load", ids=as_json(ids))]


def _overfull(db: sqlite3.Connection, most: int, limit: int) -> list[DeadLetter]:
    excess = sum(count for _, count in run(db, "dead_letters_sizes")) - most
    if excess <= 0:
        return []
    rows = run(db, "dead_letters_shares")
    shares = {tenant: Share(entries, may_go) for tenant, entries, may_go in rows}
    going: list[tuple[int, MessageId]] = []
    for tenant, count in giving_way(shares, excess=min(limit, excess)).items():
        found = run(db, "dead_letters_oldest", tenant=tenant, limit=count)
        going += [(moved_at, identity) for identity, moved_at in found]
    return _loaded(db, [identity for _, identity in sorted(going)])


def _restored_row(letter: DeadLetter, now: int) -> list[object]:
    moved_at = in_ms(letter.moved_at)
    return [
        letter.id,
        letter.tenant,
        letter.reason,
        failure_text(letter.failure),
        letter.failed_attempts,
        in_ms(letter.failed_at),
        in_ms(letter.enqueued_at),
        moved_at,
        restored_ttl(moved_at, letter.ttl // MILLISECOND, now),
    ]
