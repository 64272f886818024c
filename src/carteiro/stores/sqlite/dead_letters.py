"""Dead letters on SQLite."""

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from carteiro.model import (
    Cursor,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    DeadReason,
    MessageId,
    Page,
    RedriveAnswer,
    Revision,
    TenantId,
)
from carteiro.policy.crowding import Share, giving_way
from carteiro.policy.lifecycle import EXPIRED_UNSENT, MILLISECOND, restored_ttl
from carteiro.ports.dead_letters import GroupBy
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.redrive import redrive
from carteiro.stores.sqlite.rows import (
    FAR,
    as_json,
    failure_of,
    failure_text,
    in_ms,
    maybe_moment,
    moment,
    run,
)
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer

_ANY = DeadFilter()


class SqliteDeadLetters:
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, clock: Callable[[], int]
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._clock = clock

    # --- finding ------------------------------------------------------------------------------

    async def find(
        self, wanted: DeadFilter = _ANY, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[DeadLetter]:
        """The entries that match, newest first."""
        asked = _parameters(wanted, cursor)
        operation = _finding(wanted)

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
        asked = _parameters(wanted, None)
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

    # --- redriving ----------------------------------------------------------------------------

    async def redrive(
        self, ids: Sequence[MessageId], *, by: str, revision: Revision | None = None
    ) -> list[RedriveAnswer]:
        """Send them round again; ``by`` says on whose word. A dead message without an entry is redriven too."""
        if revision is not None and len(ids) != 1:
            raise ValueError("a revision is for one message")
        answers = await self._writer.do(
            lambda db: redrive(db, ids, by=by, revision=revision, now=self._clock())
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


def _finding(wanted: DeadFilter) -> str:
    """The statement whose index leads to what is wanted."""
    if wanted.tenant is not None:
        return "dead_letters_find_by_tenant"
    if wanted.code is not None:
        return "dead_letters_find_by_code"
    return "dead_letters_find" if wanted.reason is None else "dead_letters_find_by_reason"


def _parameters(wanted: DeadFilter, cursor: Cursor | None) -> dict[str, object]:
    ends: list[tuple[int | str, ...]] = [(FAR, "")]
    if wanted.moved_before is not None:
        ends.append((in_ms(wanted.moved_before), ""))
    if cursor is not None:
        ends.append(key_of(cursor, (0, "")))
    before_at, before_id = min(ends)
    return {
        "tenant": wanted.tenant,
        "kind": wanted.kind,
        "reason": wanted.reason,
        "code": wanted.code,
        "category": wanted.category,
        "is_redriven": wanted.is_redriven,
        "text": None if wanted.text is None else _folded(wanted.text),
        "moved_after": -FAR if wanted.moved_after is None else in_ms(wanted.moved_after),
        "before_at": before_at,
        "before_id": before_id,
    }


def _folded(text: str) -> str:
    """Without the case of ASCII letters: what SQLite's ``lower`` does."""
    return text.encode("utf-8", "replace").lower().decode()


def _loaded(db: sqlite3.Connection, ids: Sequence[MessageId]) -> list[DeadLetter]:
    return [_dead_letter(row) for row in run(db, "dead_letters_load", ids=as_json(ids))]


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


def _dead_letter(row: Sequence[Any]) -> DeadLetter:
    message, tenant, kind, content, reason, attempts, failure, *times, ttl_ms, redriven = row
    failed, enqueued, moved = times
    return DeadLetter(
        id=message,
        tenant=tenant,
        kind=kind,
        content=content,
        reason=DeadReason(reason),
        failed_attempts=attempts,
        failure=failure_of(failure) or EXPIRED_UNSENT,
        failed_at=moment(failed),
        enqueued_at=moment(enqueued),
        moved_at=moment(moved),
        ttl=ttl_ms * MILLISECOND,
        redriven_at=maybe_moment(redriven),
    )
