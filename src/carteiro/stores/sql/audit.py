"""Audit rows: `note` writes them in the transaction of a change, for the actor of the caller's task."""

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import orjson
from uuid_utils import uuid7

from carteiro.model import AuditFilter, AuditRow, Cursor, Page, TenantId, Via, value
from carteiro.policy.audit import harmless, harmless_fields
from carteiro.runtime.acting import actor
from carteiro.stores.columns import in_ms, made
from carteiro.stores.cursors import FAR, cursor_at, key_of
from carteiro.stores.sql.session import Database, Session
from carteiro.views.moments import in_iso

_DAY_MS = 86_400_000
_ORIGIN = 3  # place in a row after its time
_NAMES = ("who", "object", "tenant")


@value
class Noted:
    """One change, as its row says it.

    ``is_daily``: repetitions of the same day are not recorded again, from wherever they come, as with all changes by
    upkeep. ``round``: nor are those by the same actor in this round of the object.
    """

    action: str
    kind: str
    object: str
    tenant: TenantId | None = None
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    is_daily: bool = False
    round: int | None = None


async def note(session: Session, now: int, *noted: Noted) -> None:
    """Record changes by the actor of this task."""
    if rows := rows_of(now, *noted):
        await session.run("audit_add", rows=rows)


def rows_of(now: int, *noted: Noted) -> list[list[Any]]:
    """Changes by the actor of this task, as ``audit_add`` takes them."""
    who = actor()
    rows = []
    for each in noted:
        said = [
            *(who.via, harmless(who.who), who.key_id, harmless(who.origin), each.action, each.kind),
            *(harmless(each.object), harmless(each.tenant or "")),
            *(_text(each.before), _text(each.after)),
        ]
        is_daily = each.is_daily or who.via is Via.UPKEEP
        new_id = _id_of(now // _DAY_MS, said) if is_daily else str(uuid7())
        if each.round is not None:
            new_id = _id_of(each.round, said[:-2])
        rows.append([new_id, now, *said])
    return rows


class SqlAudit:
    """See `carteiro.ports.audit.Audit` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def note(self, action: str, kind: str, identity: str, **said: Any) -> None:  # noqa: ANN401 - as the port has it
        """Record a change of the current actor that has no transaction of its own; call it before the change."""
        now = await self._db.now()
        noted = Noted(action, kind, identity, **said)
        await self._db.write(lambda session: note(session, now, noted))

    async def list(
        self, wanted: AuditFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[AuditRow]:
        """The matching rows, newest first."""
        at, place = key_of(cursor, (FAR, ""))
        since = -FAR if wanted.since is None else in_ms(wanted.since)
        if wanted.is_own:
            since = max(since, await self._db.value("audit_begin", tenant=wanted.tenant) or since)
        asked = asdict(wanted) | {"since": since}
        del asked["is_own"]
        for name in _NAMES:
            asked[name] = asked[name] and harmless(asked[name])
        rows = await self._db.fetch(finding(wanted), **asked, at=at, id=place, limit=limit + 1)
        last = rows[limit - 1] if len(rows) > limit else None
        return Page([_row_of(*row) for row in rows[:limit]], last and cursor_at(last[1], last[0]))


def finding(wanted: AuditFilter) -> str:
    """The statement whose index fits the filter best; of one tenant always its own, which reads no other's rows."""
    if wanted.tenant is not None:
        return "audit_list_of_tenant"
    if wanted.object is not None:
        return "audit_list_of_object"
    return "audit_list" if wanted.who is None else "audit_list_by_who"


def _row_of(*columns: Any) -> AuditRow:  # noqa: ANN401 - of a statement
    *said, tenant, before, after = columns
    return made(AuditRow, [*said, tenant or None, orjson.loads(before), orjson.loads(after)])


def _id_of(time: int, said: list[Any]) -> str:
    """The same for repetitions by one actor, from wherever they come."""
    told = [time, *said[:_ORIGIN], *said[_ORIGIN + 1 :]]
    return blake2b(orjson.dumps(told), digest_size=16).hexdigest()


def _text(fields: Mapping[str, Any] | None) -> str:
    said = harmless_fields(fields or {})
    return orjson.dumps(said, default=in_iso, option=orjson.OPT_PASSTHROUGH_DATETIME).decode()
