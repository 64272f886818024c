"""Applies the changes that applications requested by SQL: each once, by the rules, in order.

The statement that stores the change also deletes its request, or its transaction does: if killed anywhere, the request
was applied or is still there. It is loaded with its entry, in one snapshot, and applied only if the entry is still
that version: of two processes that apply it at the same time, one stores nothing.
"""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from carteiro.errors import StoreUnavailable
from carteiro.model import MessageId, RedriveAnswer
from carteiro.policy import lifecycle
from carteiro.policy.lifecycle import Change
from carteiro.ports.table_queue import NEWEST_ROWS, AppliedChanges, RetryWait
from carteiro.stores.postgres.changes import Changes, Held
from carteiro.stores.postgres.database import Database
from carteiro.stores.postgres.ledger import PostgresEntries, held_of, without_jobs
from carteiro.stores.postgres.options import PostgresOptions
from carteiro.stores.postgres.wake import PostgresWake
from carteiro.stores.sql.ledger import is_leased
from carteiro.stores.sql.redrive import redrive


class _Request(NamedTuple):
    no: int
    what: str
    number: int | None
    reason: str | None
    role: str
    max_retries: int | None
    held: Held | None

    @property
    def is_for_rules(self) -> bool:
        """True unless it is one of the two that are applied by statements of their own."""
        return self.what not in {"limit", "redrive"}


class PostgresTableQueue:
    """See `carteiro.ports.table_queue.TableQueue` for what it promises."""

    def __init__(
        self, db: Database, entries: PostgresEntries, wake: PostgresWake, options: PostgresOptions
    ) -> None:
        self._db = db
        self._entries = entries
        self._wake = wake
        self._options = options

    def rings(self) -> int:
        """Counter of notified requests: read it before looking for requests, and pass it to `wait`."""
        return self._wake.changes.rings()

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once the counter is above ``since``, False after ``timeout``."""
        self._wake.listen()
        return await self._wake.changes.wait(timeout, since=since)

    async def has_requests(self) -> bool:
        """True if a requested change is not applied yet."""
        return bool(await self._db.value("requests_are_there"))

    async def pending(self) -> int:
        """The number of unfinished e-mails among the newest ones."""
        count: int = await self._db.value("rows_pending", NEWEST_ROWS)
        return count

    async def apply(self, wait_after: RetryWait, *, limit: int) -> AppliedChanges:
        """Apply the oldest requested changes of each tenant, at most ``limit``; repeat until none is left."""
        found = [_request(row) for row in await self._db.fetch("requests_find", limit)]
        first = {each.held.id if each.held else each.no: each for each in reversed(found)}
        requests = sorted(first.values())
        limits = [each.no for each in requests if each.what == "limit"]
        if limits:
            await self._db.fetch("requests_limit", limits)
        judged = await self._judged([r for r in requests if r.is_for_rules], wait_after)
        redriven = await self._redriven([r for r in requests if r.what == "redrive"])
        count = len(limits) + judged.count + redriven.count
        return AppliedChanges(count, [*judged.moved, *redriven.moved])

    async def _judged(self, requests: Sequence[_Request], wait_after: RetryWait) -> AppliedChanges:
        """Apply the requests by the rules; drop those that are no longer possible."""
        now = await self._db.now()
        changes = Changes(now)
        moot: list[int] = []
        moving: dict[int, MessageId] = {}
        for each in requests:
            change = _change(each, wait_after, now)
            if each.held is None or change is None:
                moot.append(each.no)
                continue
            if change.drop_job or change.park_until is not None:
                moving[len(changes.held)] = each.held.id
            if not self._options.has_queue:
                change = without_jobs(change)
            changes.apply(each.held._replace(request=each.no), change)
        if moot:
            await self._db.fetch("requests_take", moot)
        stored, may_work = await changes.save(
            self._db, dead_letter_ttl_ms=self._options.dead_letter_ttl_ms
        )
        if may_work:
            await self._wake.tell()
        moved = [moving[place] for place in sorted(stored & moving.keys())]
        return AppliedChanges(len(moot) + len(stored), moved)

    async def _redriven(self, requests: Sequence[_Request]) -> AppliedChanges:
        """Redrive dead messages, those of a role together."""
        done: list[AppliedChanges] = []
        for role in sorted({each.role for each in requests}):
            of_role = [each for each in requests if each.role == role]
            try:
                done.append(await self._redrive(of_role, role))
            except StoreUnavailable:  # one of them cannot be redriven now
                for each in of_role:
                    with suppress(StoreUnavailable):  # it stays requested
                        done.append(await self._redrive([each], role))
        moved = [message for each in done for message in each.moved]
        if moved:
            await self._wake.tell()
        return AppliedChanges(sum(each.count for each in done), moved)

    async def _redrive(self, requests: Sequence[_Request], role: str) -> AppliedChanges:
        now = await self._db.now()
        async with self._db.transaction() as session:
            rows = await session.fetch("requests_take", [each.no for each in requests])
            taken = {row[0] for row in rows}
            ids = [each.held.id for each in requests if each.no in taken and each.held]
            answers = await redrive(
                session,
                self._entries,
                ids,
                by=f"role {role}",
                revision=None,
                now=now,
                has_queue=self._options.has_queue,
            )
        pairs = zip(ids, answers, strict=True)
        moved = [message for message, answer in pairs if answer is RedriveAnswer.REDRIVEN]
        return AppliedChanges(len(taken), moved)


def _request(row: Any) -> _Request:  # noqa: ANN401 - a row
    no, what, number, reason, role, max_retries, *entry = row
    held = None if entry[0] is None else held_of(entry)
    return _Request(no, what, number, reason, role, max_retries, held)


def _change(request: _Request, wait_after: RetryWait, now: int) -> Change | None:
    """The result of the rules; None: the change is no longer possible."""
    held = request.held
    if held is None:
        return None
    match request.what:
        case "cancel":
            leased = is_leased(held, now)
            return lifecycle.cancel(held.entry, leased=leased, now=now)[1]
        case "reschedule":
            return lifecycle.reschedule(held.entry, at=request.number or now)
        case "fail":
            wait = wait_after(held.entry.charged + 1, request.max_retries or 0)
            return lifecycle.mark_failed(held.entry, request.reason, wait=wait, now=now)
        case unknown:
            raise ValueError(unknown)
