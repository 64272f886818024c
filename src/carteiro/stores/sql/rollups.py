"""Figures by minute and by hour, and the notes that they are added up from.

A fold deletes its notes in the transaction that adds them up: if killed anywhere, both happen later, together.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from datetime import timedelta

from carteiro.model import TenantId
from carteiro.model.figures import Figures, Span, Split
from carteiro.policy import rollups
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.rollups import SPANS, Key
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.session import Database, Session


class SqlRollups:
    """See `carteiro.ports.rollups.Rollups` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def total(
        self, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Figures:
        """The sums of the latest minutes or hours."""
        sums = await self._sums("rollups_total", span, back, tenant)
        return sums.get("", Counter())

    async def split(
        self, by: Split, span: Span, back: timedelta, *, tenant: TenantId | None = None
    ) -> Mapping[str, Figures]:
        """As `total`, by tenant, by provider, or of one tenant by template type."""
        return await self._sums(f"rollups_by_{by}", span, back, tenant)

    async def _sums(
        self, statement: str, span: Span, back: timedelta, tenant: TenantId | None
    ) -> dict[str, Figures]:
        start = await self._db.now() - back // MILLISECOND
        since = start - start % SPANS[span]
        whose, by = tenant or "", statement.removeprefix("rollups_by_")
        rows = await self._db.read(
            lambda session: session.fetch(statement, span=span, tenant=whose, since=since)
        )
        sums: defaultdict[str, Figures] = defaultdict(Counter)
        for what, _, text, name in rows:
            if not what:
                rollups.add(sums[name], rollups.figures_of(text))
        for key, figures in rollups.added(row[:3] for row in rows if row[0]).items():
            if key.span == span and key.at >= since and _is_asked(key, by, whose):
                rollups.add(sums[getattr(key, by, "")], figures)
        return dict(sums)

    async def see(self, figures: Figures) -> None:
        """Note figures of the whole installation."""
        at, text = await self._db.now(), rollups.text_of(figures)
        await self._db.run("rollup_note", what="seen", at=at, figures=text)

    async def fold(self, *, limit: int, most: int) -> int:
        """Add the oldest notes to their minutes and hours, and return their number."""
        if not await self._db.value("rollup_any"):
            return 0
        now = await self._db.now()
        return await self._db.write(lambda session: fold(session, now, limit=limit, most=most))

    async def prune(self, *, minutes: timedelta, hours: timedelta, limit: int) -> int:
        """Delete minutes and hours that are older than this; return their number."""
        now, count = await self._db.now(), 0
        kept: dict[Span, timedelta] = {"minute": minutes, "hour": hours}
        for span, retention in kept.items():
            before = now - retention // MILLISECOND
            count += await self._db.write(
                lambda session, span=span, before=before: session.run(  # type: ignore[misc]
                    "rollup_prune", span=span, before=before, limit=limit
                )
            )
        return count


def _is_asked(key: Key, by: str, tenant: str) -> bool:
    """True if these figures belong to the answer."""
    if by == "provider":
        return bool(key.provider)
    if by == "template":
        return key.tenant == tenant and bool(key.template)
    if by == "tenant":
        return bool(key.tenant) and not key.template
    return key.tenant == tenant and not key.template and not key.provider


async def lock_figures(session: Session) -> None:
    """Let nobody else fold until the transaction ends: two would each add to figures that the other has not seen."""
    await lock(session, ["rollups"])


async def fold(session: Session, now: int, *, limit: int, most: int) -> int:
    """Add the oldest notes to their minutes and hours, and return their number."""
    await session.fetch("by_index")
    await lock_figures(session)
    notes = await session.fetch("rollup_take", limit=limit)
    sums = rollups.added(tuple(row) for row in notes)
    asked = sorted({key.tenant for key in sums} - {""})
    known = {"", *[row[0] for row in await session.fetch("rollup_tenants", ids=asked)]}
    sums = {key: figures for key, figures in sums.items() if key.tenant in known}
    if sums:
        for *key, text in await session.fetch("rollup_rows", rows=[tuple(key) for key in sums]):
            rollups.add(sums[Key(*key)], rollups.figures_of(text))
        kept = {key: rollups.bounded(figures) for key, figures in sums.items()}
        rows = [(*key, rollups.weight(each), rollups.text_of(each)) for key, each in kept.items()]
        await session.run("rollup_put", rows=rows)
        await _trim(session, sums, now, most)
    return len(notes)


async def _trim(session: Session, folded: Mapping[Key, Figures], now: int, most: int) -> None:
    """Keep the most active tenants and templates of past minutes and hours: those that changed, and the last one."""
    for span, length in SPANS.items():
        current = now - now % length
        last = await session.value("rollup_past", span=span, before=current)
        past = {key.at for key in folded if key.span == span and key.at < current}
        for at in sorted(past | {last} - {None}):
            await session.run("rollup_trim_tenants", span=span, at=at, most=most)
            await session.run("rollup_trim_templates", span=span, at=at, most=most)
