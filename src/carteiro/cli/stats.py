"""``carteiro stats``: counts of messages, jobs and dead letters."""

from carteiro.cli.desk import Desk, at_a_desk
from carteiro.cli.documents import plain
from carteiro.cli.groups import columns
from carteiro.cli.options import OfTenant
from carteiro.cli.printing import Column, note
from carteiro.errors import QueueAway
from carteiro.model import DeadFilter, Depth, ProviderRate
from carteiro.providers.email_kind import routes_of
from carteiro.providers.registry import is_paced

_MOST_NAMED = 5
_DEPTHS: tuple[Column[Depth], ...] = (
    Column("kind", lambda row: row.kind, is_whole=True),
    Column("unfinished", lambda row: row.unfinished),
    Column("in flight", lambda row: row.in_flight),
    Column("oldest due", lambda row: row.oldest_due_at, is_whole=True),
)


def _health(row: ProviderRate) -> str:
    if row.is_open:
        return "circuit open"
    return "healthy" if row.processes else "not in use"


def _rounded(rate: float | None) -> str | None:
    return None if rate is None else f"{round(rate, 2):g}"


_RATES: tuple[Column[ProviderRate], ...] = (
    Column("provider", lambda row: row.provider, is_whole=True),
    Column("a second", lambda row: _rounded(row.rate)),
    Column("at most", lambda row: _rounded(row.ceiling)),
    Column("processes", lambda row: row.processes),
    Column("health", _health),
    Column("last trouble", lambda row: row.trouble),
    Column("at", lambda row: row.trouble_at, is_whole=True),
)


@at_a_desk
async def stats(desk: Desk, *, tenant: OfTenant = None) -> None:
    """Count messages by state, jobs by kind and dead letters by reason; show the state of providers."""
    restricted = await desk.tenant_asked_for(tenant)
    states = dict(await desk.backend.reading.states(tenant=restricted))
    depths = await _depths(desk) if restricted is None else []
    groups = await desk.backend.dead_letters.group("reason", DeadFilter(tenant=restricted))
    rates = await _providers(desk) if restricted is None else []
    fairness, is_override = await desk.backend.tenants.fairness()
    total, fullest = (
        await desk.backend.dead_letters.sizes(top=_MOST_NAMED)
        if restricted is None
        else (sum(group.count for group in groups), [])
    )
    document = {
        "companyId": restricted,
        "states": states,
        "depths": depths,
        "deadLetters": {
            "total": total,
            "byReason": {group.key: group.count for group in groups},
            "byCompany": [{"companyId": name, "count": count} for name, count in fullest],
        },
        "providers": rates,
        "overrides": {"fairness": fairness} if is_override else {},
    }
    facts = {f"messages {name}": count for name, count in states.items()}
    desk.out.thing(plain(document), facts | {"dead letters": total})
    if depths is None:
        note("The queue is unreachable: its counts are unknown until it is back.")
    if is_override:
        note("Turns of tenants were changed at run time: see carteiro fairness show.")
    desk.out.beside("Queue", depths or [], _DEPTHS)
    desk.out.beside("Dead letters", groups, columns("reason"))
    desk.out.beside("Providers", rates, _RATES)


async def _providers(desk: Desk) -> list[ProviderRate]:
    """Every network provider in the settings or in the ledger, called or not."""
    shown = {each.provider: each for each in await desk.backend.rates.show()}
    unheard = {
        name: ProviderRate(name, None, None, 0)
        for name in routes_of(desk.settings).names
        if name not in shown and is_paced(name, desk.settings)
    }
    return sorted((shown | unheard).values(), key=lambda each: each.provider)


async def _depths(desk: Desk) -> list[Depth] | None:
    """Counts of the queue; None if it is unreachable."""
    try:
        return await desk.backend.reading.depths()
    except QueueAway:
        return None
