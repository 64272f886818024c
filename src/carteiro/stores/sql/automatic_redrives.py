"""Dead letters that wait for their provider, and the redrives that start by themselves.

What waits, for what and since when are columns of a dead letter: whatever removes it removes that, too.
"""

from collections.abc import Awaitable, Callable, Sequence

from carteiro import model
from carteiro.stores.columns import in_ms
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.redrives import add_redrive, new_redrive
from carteiro.stores.sql.session import Database, Session

_LOOKED_AT = 1000  # dead letters of a tenant, until one may be redriven


class SqlAutomaticRedrives:
    """See `carteiro.ports.automatic_redrives.AutomaticRedrives` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def providers(self) -> list[str]:
        """The providers that dead letters wait for."""
        rows = await self._db.read(lambda session: session.fetch("automatic_providers"))
        return [row[0] for row in rows]

    async def ripe(
        self, provider: str, plan: model.AutomaticPlan, *, after: str = "", limit: int
    ) -> list[model.TenantId]:
        """The next tenants by name with dead letters whose cool-down is over, unless they are held or have one open."""
        starts = plan.starts_of_all(await self._db.now() - plan.gathering // model.MILLISECOND)
        running, _ = await self._db.first("automatic_open", tenant="")
        limit = min(limit, model.MOST_AUTOMATIC_REDRIVES - running)
        asked = {"provider": provider, "after": after, "starts": starts, "limit": max(0, limit)}
        rows = await self._db.read(lambda session: session.fetch("automatic_ripe", **asked))
        return [model.TenantId(row[0]) for row in rows]

    async def start(
        self, tenant: model.TenantId, provider: str, plan: model.AutomaticPlan, ramp: model.Ramp
    ) -> model.Redrive | None:
        """Start one of the dead letters whose cool-down is over; None: nothing can be redriven, or too many run."""
        now = await self._db.now()
        whose, reason = (
            {"provider": provider, "tenant": tenant},
            model.DeadReason.MAX_ATTEMPTS_EXCEEDED,
        )
        starts = plan.latest_starts(now)
        fit, _ = await self._fit(whose, plan, now, limit=_LOOKED_AT)
        if not fit:
            return None
        wanted = model.DeadFilter(tenant=tenant, kind=model.EMAIL, reason=reason)
        # Before the transaction: others wait for that, and a tenant may have a million of them.
        total = await self._db.read(
            lambda session: session.value("automatic_total", **whose, starts=starts)
        )

        async def start(session: Session) -> model.Redrive | None:
            await lock(session, ["redrives"])
            running, of_tenant = await session.first("automatic_open", tenant=tenant)
            if of_tenant or running >= model.MOST_AUTOMATIC_REDRIVES:
                return None
            by = model.AUTOMATIC
            new = new_redrive(wanted, now, by=by, ramp=ramp, total=total, provider=provider)
            return await add_redrive(session, new, now)

        return await self._db.write(start)

    async def due(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> tuple[list[model.MessageId], bool]:
        """Dead letters that it has still to send, longest waiting first; True: there may be more."""
        started = in_ms(redrive.started_at)
        return await self._fit(_whose(redrive), plan, started, limit=limit)

    async def _fit(
        self, whose: dict[str, str], plan: model.AutomaticPlan, at: int, *, limit: int
    ) -> tuple[list[model.MessageId], bool]:
        """Dead letters that had cooled down at this time and may be redriven; the others wait no more."""
        starts, now = plan.starts_of_all(at), await self._db.now()
        asked = {**whose, "starts": starts, "rounds": plan.rounds, "now": now, "limit": limit}
        rows = await self._db.read(lambda session: session.fetch("automatic_due", **asked))
        if unfit := [row[0] for row in rows if not row[1]]:
            await self._db.run("automatic_dismiss", ids=unfit)
        return [row[0] for row in rows if row[1]], len(rows) == limit

    async def postpone(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> bool:
        """Count a round for dead letters that it did not send, so that they cool down; True if there may be more."""
        started = in_ms(redrive.started_at)
        told = {"started": started, "now": max(await self._db.now(), started + 1)}

        async def postpone(session: Session, ids: Sequence[str]) -> None:
            await session.run("automatic_postpone", ids=ids, rounds=plan.rounds, **told)

        return await self._leave(redrive, plan.latest_starts(started), postpone, limit=limit)

    async def dismiss(
        self, redrive: model.Redrive, plan: model.AutomaticPlan, *, limit: int
    ) -> bool:
        """Let dead letters that it did not send wait no more: somebody cancelled it; True if there may be more."""

        async def dismiss(session: Session, ids: Sequence[str]) -> None:
            await session.run("automatic_dismiss", ids=ids)

        starts = plan.starts_of_all(in_ms(redrive.started_at))
        return await self._leave(redrive, starts, dismiss, limit=limit)

    async def _leave(
        self,
        redrive: model.Redrive,
        starts: Sequence[tuple[int, int]],
        change: Callable[[Session, Sequence[str]], Awaitable[None]],
        *,
        limit: int,
    ) -> bool:
        asked = {**_whose(redrive), "starts": starts, "limit": limit}

        async def leave(session: Session) -> bool:
            rows = await session.fetch("automatic_left", **asked)
            if rows:
                await change(session, [row[0] for row in rows])
            return len(rows) == limit

        return await self._db.write(leave)


def _whose(redrive: model.Redrive) -> dict[str, str]:
    return {"provider": redrive.provider or "", "tenant": redrive.tenant or ""}
