"""Feedback of providers: the event, the proven state and the suppressed addresses, in one transaction.

Feedback is stored only if nobody else changed the message; else the message is loaded and judged again. So the same
feedback, received twice at the same moment, is stored once.
"""

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeAlias

import orjson

from carteiro.errors import StoreUnavailable
from carteiro.model import (
    Feedback,
    MessageId,
    NoteAnswer,
    SuppressionReason,
    UnsubscribeLink,
)
from carteiro.policy import lifecycle
from carteiro.policy.suppression import Report, key_of, suppressions
from carteiro.stores.columns import in_ms
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.ledger import Entries
from carteiro.stores.sql.session import Database, Session, Wake
from carteiro.stores.sql.suppressions import put, reports_of

Noting: TypeAlias = Coroutine[Any, Any, tuple[NoteAnswer | None, bool]]

_MOST_TRIES = 20  # others keep changing it: let the caller try again


class SqlTracking:
    """See `carteiro.ports.tracking.Tracking` for what it promises."""

    def __init__(self, db: Database, entries: Entries, wake: Wake) -> None:
        self._db = db
        self._entries = entries
        self._wake = wake

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Record feedback on the timelines of its messages, and apply its consequences."""
        return [await self._note(each) for each in told]

    async def unsubscribe(self, link: UnsubscribeLink) -> NoteAnswer:
        """Suppress the address behind a link, and note it on the timeline of its message."""
        return await self._written(partial(_unsubscribed, entries=self._entries, link=link))

    async def _note(self, told: Feedback) -> NoteAnswer:
        return await self._written(partial(_noted, entries=self._entries, told=told))

    async def _written(self, noted: Callable[..., Noting]) -> NoteAnswer:
        now = await self._db.now()
        for _ in range(_MOST_TRIES):
            answer, has_work = await self._db.write(partial(noted, now=now))
            if has_work:
                await self._wake.tell()
            if answer is not None:
                return answer
        raise StoreUnavailable("The message changes faster than it can be stored: try again")


async def _noted(
    session: Session, *, entries: Entries, told: Feedback, now: int
) -> tuple[NoteAnswer | None, bool]:
    """Return the answer, None if somebody changed the message meanwhile; True if there may be work now."""
    held = (await entries.load(session, [told.message])).get(told.message)
    known = await _known(session, told.message)
    if known is None or held is None or held.entry is None:
        return NoteAnswer.UNKNOWN, False
    carriers, events = known
    answer, change = lifecycle.note(
        held.entry, told, known=events, carriers=carriers, at=in_ms(told.at), now=now
    )
    if change is None:
        return answer, False
    tenant = held.entry.tenant
    consequences = reports_of(tenant, suppressions(told), now)
    if consequences:  # locked before the message, as by the process that erases it: no deadlock
        await session.value("tenant_lock", tenant=tenant)
    stored, has_work = await entries.save(session, [(held, change)], now)
    if not stored:
        return None, False
    if consequences:
        await put(session, tenant, consequences)
    return answer, has_work


async def _unsubscribed(
    session: Session, *, entries: Entries, link: UnsubscribeLink, now: int
) -> tuple[NoteAnswer | None, bool]:
    """As `_noted`. The tenant is locked first: of equal requests at the same moment, the second sees the first."""
    tenant = link.tenant
    if await session.value("tenant_lock", tenant=tenant) is None:
        return NoteAnswer.UNKNOWN, False
    held = (await entries.load(session, [link.message])).get(link.message)
    row = await session.first("track_known", id=link.message)
    change, address = None, None
    is_known = held is not None and held.entry is not None and held.entry.tenant == tenant
    is_known = is_known and row is not None and row[0] is not None
    if is_known:
        address = row[0] if key_of(tenant, row[0]) == link.key else None  # else it was edited
        known = set(orjson.loads(row[2] or "[]"))
        change = lifecycle.unsubscribed(link.key, address, known=known, now=now)
        if change is not None and not (await entries.save(session, [(held, change)], now))[0]:
            return None, False
    reason = SuppressionReason.UNSUBSCRIBED
    records = await session.fetch("suppressions_known", tenant=tenant, keys=[link.key])
    is_new = reason not in {record[1] for record in records}
    if is_new:
        await put(session, tenant, [Report(link.key, reason, address, now, None)])
        await note(session, now, Noted("unsubscribe", "suppression", "", tenant, is_daily=True))
    if is_known:
        return NoteAnswer.NOTED if change or is_new else NoteAnswer.KNOWN, False
    return NoteAnswer.UNKNOWN if is_new else NoteAnswer.KNOWN, False


async def _known(session: Session, message: MessageId) -> tuple[set[str], set[str]] | None:
    """Return its providers and the ids of earlier feedback; None if the message is unknown, or was erased.

    Read after the entry: concurrent feedback is either seen here, or it changes the entry and is detected.
    """
    row = await session.first("track_known", id=message)
    if row is None or row[0] is None:
        return None
    _, carriers, events = row
    return set(orjson.loads(carriers or "[]")), set(orjson.loads(events or "[]"))
