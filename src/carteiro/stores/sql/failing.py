"""Failures of notes, added to their groups: in the transaction that folds the notes.

If killed anywhere, the notes and the groups are as before; the next fold adds them.
"""

from collections.abc import Container, Iterable
from dataclasses import astuple
from typing import Any

from carteiro.model import Via
from carteiro.policy import failures, history
from carteiro.policy.failures import ALL_HOURS, MOST_GROUPS, MOST_TENANTS, Group
from carteiro.runtime.acting import acting_as, on_this_machine
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.session import Session


async def add_failures(
    session: Session, notes: Iterable[Any], tenants: Container[str], now: int
) -> None:
    """Add the failures of notes, and the results of retries; of these tenants also by tenant."""
    notes = [tuple(each) for each in notes]
    told, results = [*failures.told(notes)], [*history.results(notes)]
    if not told and not results:
        return
    groups = await groups_of(session, sorted({each.group for each in told}))
    reopened = failures.add_groups(groups, told)
    counts: dict[failures.Place, failures.Count] = {}
    failures.add_counts(counts, told, tenants)
    hours = sorted({place[:2] for place in counts})
    failures.add_totals(counts, told, tenants)
    failures.add_totals(counts, [each._replace(tenant="") for each in told], {""})
    totals = {(group, tenant) for group, at, tenant in counts if at == ALL_HOURS}
    totals |= {
        place for each in results for place in history.places(each) if each.tenant in tenants
    }
    changed, known = set(counts), set[failures.Place]()
    for row in await session.fetch("failure_counts_these", hours=hours, totals=sorted(totals)):
        place, count = failures.counted(row)
        known.add(place)
        failures.add_count(counts, place, count)
    changed |= failures.add_results(counts, results, now)
    await put(session, groups.values())
    beyond = failures.beyond(counts, MOST_TENANTS)
    rows = [
        failures.row_of(place, each)
        for place, each in counts.items()
        if place in changed and place not in beyond
    ]
    await session.run("failure_counts_put", rows=rows)
    if lost := sorted(beyond & known):
        await session.run("failure_counts_lose", rows=lost)
    if gone := await session.fetch("failure_groups_trim", most=MOST_GROUPS):
        await session.run("failure_counts_drop", ids=[row[0] for row in gone])
    with acting_as(on_this_machine(Via.UPKEEP, "upkeep")):  # also if somebody else folds
        await note(session, now, *map(_reopened, reopened))


async def groups_of(session: Session, ids: list[str]) -> dict[str, Group]:
    """The known ones of these groups."""
    rows = await session.fetch("failure_groups_these", ids=ids)
    return {row[0]: Group(*row) for row in rows}


async def put(session: Session, groups: Iterable[Group]) -> None:
    """Store groups."""
    await session.run("failure_groups_put", rows=[astuple(each) for each in groups])


def _reopened(group: Group) -> Noted:
    states = {"state": "resolved"}, {"state": group.state}
    return Noted("reopen", "failure group", group.id, None, *states, round=group.resolved_at)
