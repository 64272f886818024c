"""Figures by minute and by hour, and the notes that they are added up from.

A fold deletes its notes in the transaction that adds them up: if killed anywhere, both happen later, together.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from carteiro.model import NOTICES, ZERO, TenantId
from carteiro.model.figures import Figures, ServedShare, Span, Split, TemplateResult
from carteiro.policy import rollups
from carteiro.policy.fairness import jain
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.policy.rollups import MOST_TEMPLATES, SPANS, Key
from carteiro.stores.columns import moment
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.failing import add_failures
from carteiro.stores.sql.session import Database, Session

_MINUTE = SPANS["minute"]
# Of notes in one transaction, which others wait for: some 700 failures, some ten milliseconds.
_MOST_CHARACTERS = 300_000
_MOST_WAITING = 1000  # notes that a question adds up itself
_MOST = (
    "figures kept"  # the mark of the tenants, and templates, that upkeep keeps of a minute or hour
)
_USUAL = 1000


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
        await fold_many(self._db)
        start = await self._db.now() - back // MILLISECOND
        since = start - start % SPANS[span]
        whose, by = tenant or "", statement.removeprefix("rollups_by_")
        asked = {"span": span, "tenant": whose, "since": since, "most": MOST_TEMPLATES}
        rows = await self._db.read(lambda session: session.fetch(statement, **asked))

        def sums() -> dict[str, Figures]:
            sums: defaultdict[str, Figures] = defaultdict(Counter)
            for what, _, text, name in rows:
                if not what:
                    rollups.add(sums[name], rollups.figures_of(text))
            notes = (row[:3] for row in rows if row[0])
            for key, figures in rollups.added(notes, tenant=whose).items():
                name = getattr(key, by, "")
                has_room = by != "template" or name in sums or len(sums) < MOST_TEMPLATES
                if key.span == span and key.at >= since and _is_asked(key, by, whose) and has_room:
                    rollups.add(sums[name], figures)
            return dict(sums)

        return await asyncio.to_thread(sums)  # many notes may wait: others go on meanwhile

    async def minutes(self, back: timedelta, *, until: timedelta = ZERO) -> dict[datetime, Figures]:
        """The folded figures of all messages by minute, from ``back`` ago until ``until`` ago."""
        now = await self._db.now()
        rows = await self._db.read(
            lambda session: session.fetch(
                "rollups_minutes", since=_minute(now, back), before=_minute(now, until) + _MINUTE
            )
        )
        return {moment(at): rollups.figures_of(text) for at, text in rows}

    async def shares(self, span: Span, back: timedelta, *, tenant: TenantId) -> list[ServedShare]:
        """The share of a tenant in the folded figures by minute or hour."""
        start = await self._db.now() - back // MILLISECOND
        rows = await self._db.read(
            lambda session: session.fetch(
                "rollups_shares",
                span=span,
                since=start - start % SPANS[span],
                tenant=tenant,
                but=NOTICES,
            )
        )
        return [
            ServedShare(moment(at), served, of_all, weights, count, jain(count, *sums))
            for at, served, of_all, weights, count, *sums in rows
        ]

    async def worst(self, back: timedelta, *, least: int, limit: int) -> list[TemplateResult]:
        """The templates with the largest share of failed messages, of those with at least ``least`` finished ones."""
        since = _minute(await self._db.now(), back)
        rows = await self._db.read(
            lambda session: session.fetch("rollups_worst", since=since, least=least, limit=limit)
        )
        return [TemplateResult(TenantId(tenant), *each) for tenant, *each in rows]

    async def see(self, figures: Figures) -> None:
        """Note figures of the whole installation."""
        at, text = await self._db.now(), rollups.text_of(figures)
        await self._db.run("rollup_note", what="seen", at=at, figures=text)

    async def fold(self, *, limit: int, most: int) -> int:
        """Add the oldest notes to their minutes and hours, and return their number."""
        return await fold(self._db, limit=limit, most=most)

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


def _minute(now: int, back: timedelta) -> int:
    start = now - back // MILLISECOND
    return start - start % _MINUTE


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


async def fold_many(db: Database) -> None:
    """Leave few notes to add up: a question of one tenant must not cost what all others did while no upkeep ran."""
    while await db.value("rollup_many", most=_MOST_WAITING):
        await fold(db, limit=_MOST_WAITING)


async def fold(db: Database, *, limit: int, most: int | None = None) -> int:
    """Add the oldest notes to their minutes and hours, and return their number; in small transactions.

    ``most`` is the setting of upkeep; None: as upkeep last had it.
    """
    left, is_full = limit, True
    while left and is_full and await db.value("rollup_any"):
        now = await db.now()
        taken, is_full = await db.write(
            lambda session, now=now, left=left: fold_some(session, now, limit=left, most=most)  # type: ignore[misc]
        )
        left -= taken
    return limit - left


async def fold_some(
    session: Session, now: int, *, limit: int, most: int | None = None
) -> tuple[int, bool]:
    """Fold notes in a transaction; return their number, and True if no more fit in it."""
    await session.fetch("by_index")
    await lock_figures(session)
    notes = await session.fetch("rollup_take", limit=limit, size=_MOST_CHARACTERS)
    sums = rollups.added(tuple(row) for row in notes)
    asked = sorted({key.tenant for key in sums} - {""})
    known = {"", *[row[0] for row in await session.fetch("rollup_tenants", ids=asked)]}
    sums = {key: figures for key, figures in sums.items() if key.tenant in known}
    if sums:
        new = set(sums)
        for *key, text in await session.fetch("rollup_rows", rows=[tuple(key) for key in sums]):
            rollups.add(sums[Key(*key)], rollups.figures_of(text))
            new.remove(Key(*key))
        for key in new:  # of a row that was trimmed, nothing is left to take back from
            sums[key] = +sums[key]
        kept = {key: rollups.bounded(figures) for key, figures in sums.items() if figures}
        rows = [
            (*key, rollups.weight(each), each["sent"], each["failed"], rollups.text_of(each))
            for key, each in kept.items()
        ]
        await session.run("rollup_put", rows=rows)
        await _trim(session, new, now, most)
    await add_failures(session, notes, known, now)
    size = sum(len(row[2]) for row in notes)
    return len(notes), len(notes) == limit or size >= _MOST_CHARACTERS


async def _trim(session: Session, new: Collection[Key], now: int, most: int | None) -> None:
    """Keep the most active tenants and templates of past minutes and hours: with new rows, or new in the past."""
    kept = await _marked(session, _MOST)
    if most is not None and most != kept:
        await session.run("override_set", name=_MOST, setting=str(most))
    most = most or kept or _USUAL
    for span, length in SPANS.items():
        current = now - now % length
        mark, last = f"{span}s trimmed", current - length
        trimmed = await _marked(session, mark)
        since = last if trimmed is None else min(trimmed + length, last)
        ended = await session.fetch("rollup_past", span=span, since=since, before=current)
        past = {key.at for key in new if key.tenant and key.span == span and key.at < current}
        for at in sorted(past | {row[0] for row in ended}):
            await session.run("rollup_trim_tenants", span=span, at=at, most=most)
            await session.run("rollup_trim_templates", span=span, at=at, most=most)
        if trimmed != last:
            await session.run("override_set", name=mark, setting=str(last))


async def _marked(session: Session, name: str) -> int | None:
    found = await session.value("override_get", name=name)
    return None if found is None else int(found)
