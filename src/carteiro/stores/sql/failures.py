"""Failure groups. They are few: a list reads all of them, and the notes that are not folded yet."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import timedelta
from operator import attrgetter
from typing import Any

from carteiro import model
from carteiro.policy import failures
from carteiro.policy.failures import SHOWN_MS, Count, Group, Place, Told
from carteiro.policy.history import history_of, retried, together, up_to
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import FAR, in_ms, made, moment
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.failing import groups_of, put
from carteiro.stores.sql.rollups import fold, fold_many, lock_figures
from carteiro.stores.sql.session import Database, Session

_ANY = model.FailureFilter()
_NOTES = 1000  # added up in one go
_row = attrgetter(
    *(each.name for each in fields(Group))
)  # a copy of each value costs ten times that
_ACTIONS = {
    model.GroupState.OPEN: "open",
    model.GroupState.ACKNOWLEDGED: "acknowledge",
    model.GroupState.RESOLVED: "resolve",
    model.GroupState.IGNORED: "ignore",
}


class SqlFailures:
    """See `carteiro.ports.failures.Failures` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def list(
        self,
        wanted: model.FailureFilter = _ANY,
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.FailureGroup]:
        """The matching groups, most recently seen first."""
        end = key_of(cursor, (FAR, ""))
        groups = [
            (in_ms(each.last_seen), each.id, each)
            for each in (await self._groups(wanted.tenant)).values()
            if wanted.state in {None, each.state} and wanted.provider in {None, each.provider}
        ]
        left = sorted((each for each in groups if each[:2] < end), reverse=True)
        page = [each for _, _, each in left[:limit]]
        return model.Page(page, cursor_at(*left[limit - 1][:2]) if len(left) > limit else None)

    async def show(
        self, group: str, *, tenant: model.TenantId | None = None
    ) -> model.FailureReport | None:
        """One group, up to 48 hours before it was last seen."""
        found = (await self._groups(tenant)).get(group)
        if found is None:
            return None
        since = in_ms(found.last_seen) - SHOWN_MS
        rows = await self._read("failure_counts_of_group", group=group, since=since)
        return await asyncio.to_thread(_shown, found, rows, since, tenant)

    async def hours(
        self, groups: Sequence[str], *, tenant: model.TenantId | None = None
    ) -> Mapping[str, Sequence[model.HourOfFailures]]:
        """The folded failures of these groups in the last 48 hours, by hour."""
        since = await self._db.now() - SHOWN_MS
        rows = await self._read("failure_hours", ids=[*groups], tenant=tenant or "", since=since)
        found: defaultdict[str, list[model.HourOfFailures]] = defaultdict(list)
        for group, at, attempts, deaths in rows:
            found[group].append(model.HourOfFailures(moment(at), attempts, deaths))
        return found

    async def _groups(self, tenant: model.TenantId | None) -> dict[str, model.FailureGroup]:
        """All groups by id; of a tenant its own, with its counts and times."""
        await fold_many(self._db)
        rows = await self._read("failure_groups_list")
        mine = [] if tenant is None else await self._read("failure_counts_of_tenant", tenant=tenant)
        return await asyncio.to_thread(_groups, rows, mine, tenant)  # many notes may wait

    async def _read(self, statement: str, **asked: object) -> Sequence[Any]:
        return await self._db.read(lambda session: session.fetch(statement, **asked))

    async def histories(
        self, groups: Sequence[str] = (), *, least: int = 1
    ) -> Sequence[model.GroupHistory]:
        """Histories of messages that failed in these groups (default: in any) and were tried again."""
        await self._fold_all()
        now = await self._db.now()
        rows = await self._read("failure_histories_of_all", groups=[*groups], least=least)
        if not rows:
            return []
        found = await self._groups(None)
        return await asyncio.to_thread(_histories, rows, found, now)

    async def tenant_histories(
        self, *, least: int, limit: int
    ) -> Sequence[tuple[str, model.TenantId, model.History]]:
        """Group, tenant and history with at least ``least`` results, the most first; notes are not in them."""
        now = await self._db.now()
        rows = await self._read("failure_histories", least=least, limit=limit)

        def histories() -> Sequence[tuple[str, model.TenantId, model.History]]:
            return [(group, tenant, up_to(history_of(text), now)) for group, tenant, text in rows]

        return await asyncio.to_thread(histories)

    async def _fold_all(self) -> None:
        while await fold(self._db, limit=_NOTES) == _NOTES:
            pass

    async def move(self, group: str, state: model.GroupState) -> model.FailureGroup | None:
        """Change the state, and return the group as it is then; None if there is none."""
        now = await self._db.now()
        await self._fold_all()  # it may be new, or open again
        moved = await self._db.write(lambda session: _move(session, group, state, now))
        return None if moved is None else made(model.FailureGroup, _row(moved))

    async def prune(self, *, older: timedelta, limit: int) -> int:
        """Delete hours and groups that are older than this; return the number of hours."""
        before = await self._db.now() - older // MILLISECOND

        async def prune(session: Session) -> int:
            await lock_figures(session)
            await session.run("failure_groups_prune", before=before)
            return await session.run("failure_counts_prune", before=before, limit=limit)

        return await self._db.write(prune)


async def _move(session: Session, identity: str, state: model.GroupState, now: int) -> Group | None:
    await lock_figures(session)  # a fold would write the state that it has read
    found = await groups_of(session, [identity])
    if not found:
        return None
    group = found[identity]
    is_over = group.state == model.GroupState.RESOLVED and state is model.GroupState.ACKNOWLEDGED
    if group.state != state and not is_over:
        states = {"state": group.state}, {"state": state.value}
        await note(session, now, Noted(_ACTIONS[state], "failure group", identity, None, *states))
        group.state = state.value
        if state is model.GroupState.RESOLVED:
            group.resolved_at = now
        await put(session, [group])
    return group


def _groups(
    rows: Sequence[Any], mine: Sequence[Any], tenant: model.TenantId | None
) -> dict[str, model.FailureGroup]:
    groups = {row[1]: Group(*row[1:]) for row in rows if row[0] == "group"}
    failures.add_groups(groups, failures.told((row[0], row[10], row[1]) for row in rows))
    found = {each.id: made(model.FailureGroup, _row(each)) for each in groups.values()}
    if tenant is None:
        return found
    counts, told = _taken_apart(mine)
    failures.add_totals(counts, told, {tenant})
    return {
        group: _of_tenant(found[group], each)
        for (group, _, _), each in counts.items()
        if group in found
    }


def _histories(
    rows: Sequence[Any], groups: Mapping[str, model.FailureGroup], now: int
) -> Sequence[model.GroupHistory]:
    parts: defaultdict[str, dict[str, model.History]] = defaultdict(dict)
    for group, tenant, text in rows:
        if group in groups:
            parts[group][tenant] = up_to(history_of(text), now)
    return [
        model.GroupHistory(
            groups[group], whole, together(_without_largest(by_tenant)), len(by_tenant)
        )
        for group, by_tenant in parts.items()
        if (whole := by_tenant.pop("", None)) is not None
    ]


def _without_largest(by_tenant: Mapping[str, model.History]) -> Sequence[model.History]:
    return sorted(by_tenant.values(), key=retried)[:-1]


def _taken_apart(rows: Sequence[Any]) -> tuple[dict[Place, Count], list[Told]]:
    """Counts, and failures of notes."""
    counts = dict(failures.counted(row[1:]) for row in rows if row[0] == "count")
    return counts, [*failures.told((row[0], row[2], row[8]) for row in rows)]


def _of_tenant(group: model.FailureGroup, own: Count) -> model.FailureGroup:
    """The part of a tenant. The last code and the opening are of the tenant that failed last: shown if it is alone."""
    is_alone = (own.attempts, own.deaths) == (group.attempts, group.deaths)
    first = moment(own.first_at)
    return replace(
        group,
        code=group.code if is_alone else "",
        attempts=own.attempts,
        deaths=own.deaths,
        first_seen=first,
        opened_at=group.opened_at if is_alone else first,
        last_seen=moment(own.last_at),
    )


def _shown(
    group: model.FailureGroup, rows: Sequence[Any], since: int, tenant: model.TenantId | None
) -> model.FailureReport:
    counts, told = _taken_apart(rows)
    own = [each for each in told if each.group == group.id and each.at >= since]
    failures.add_counts(counts, own, {each.tenant for each in own})
    return _report(group, counts, tenant)


def _report(
    group: model.FailureGroup, counts: dict[Place, Count], tenant: model.TenantId | None
) -> model.FailureReport:
    shown = [(place, each) for place, each in sorted(counts.items()) if place[2] == (tenant or "")]
    hours = [
        model.HourOfFailures(moment(at), each.attempts, each.deaths) for (_, at, _), each in shown
    ]
    named = [
        (whose, each) for (_, _, whose), each in counts.items() if whose and tenant in {None, whose}
    ]
    attempts, deaths = Counter[str](), Counter[str]()
    for whose, each in named:
        attempts[whose] += each.attempts
        deaths[whose] += each.deaths
    tenants = [
        model.TenantFailures(model.TenantId(each), attempts[each], deaths[each])
        for each in sorted(attempts, key=lambda each: (-deaths[each], -attempts[each], each))
    ]
    others = [
        sum(each.attempts for each in hours) - attempts.total(),
        sum(each.deaths for each in hours) - deaths.total(),
    ]
    if any(others):
        tenants.append(model.TenantFailures(None, *others))
    samples = failures.newest(sample for _, each in named for sample in each.samples)
    return model.FailureReport(group, hours, tenants, [message for _, message in samples])
