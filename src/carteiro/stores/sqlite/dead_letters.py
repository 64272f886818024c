"""Dead letters on SQLite."""

from collections.abc import Callable, Sequence
from typing import Any

from carteiro.model import DeadLetter, DeadReason, MessageId, RedriveAnswer, TenantId
from carteiro.policy.lifecycle import EXPIRED_UNSENT, MILLISECOND
from carteiro.stores.sqlite import ledger
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import failure_of, maybe_moment, moment, run
from carteiro.stores.sqlite.wake import SqliteWake
from carteiro.stores.sqlite.writer import Writer


class SqliteDeadLetters:
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(
        self, writer: Writer, reader: Reader, wake: SqliteWake, clock: Callable[[], int]
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._wake = wake
        self._clock = clock

    async def find(
        self, *, tenant: TenantId | None = None, reason: DeadReason | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """The newest entries that match."""
        return await self._select(tenant=tenant, reason=reason, id=None, limit=limit)

    async def show(self, message: MessageId) -> DeadLetter | None:
        """The entry of one message."""
        found = await self._select(tenant=None, reason=None, id=message, limit=1)
        return found[0] if found else None

    async def redrive(self, ids: Sequence[MessageId], *, by: str) -> list[RedriveAnswer]:
        """Send them round again; ``by`` says on whose word."""
        answers = await self._writer.do(lambda db: ledger.redrive(db, ids, by, self._clock()))
        self._wake.ring()
        return answers

    async def _select(self, **filters: object) -> list[DeadLetter]:
        rows = await self._reader.ask(lambda db: run(db, "dead_letters", **filters).fetchall())
        return [_dead_letter(row) for row in rows]


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
