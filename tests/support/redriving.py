"""Redrives of many dead letters, as upkeep runs them."""

from collections.abc import Collection
from typing import Any

from carteiro.maintenance.redrives import OpenCircuits, Redriving, WorkLeft, redrive_once
from carteiro.model import (
    AutomaticPlan,
    DeadFilter,
    MessageId,
    Ramp,
    Redrive,
    RedriveState,
    Verdict,
)
from carteiro.ports import Backend
from support.steps import claimed, settled


async def started(backend: Backend, ramp: Ramp = Ramp(), **wanted: Any) -> Redrive:  # noqa: B008 - a value
    """A redrive that was just started; ``wanted`` are fields of a `DeadFilter`."""
    made = await backend.redrives.start(DeadFilter(**wanted), by="ana", ramp=ramp, total=0)
    assert isinstance(made, Redrive), made
    return made


async def sent(backend: Backend, redrive: Redrive, *ids: MessageId) -> Redrive:
    """The redrive after these messages were sent."""
    after = await backend.redrives.send(redrive, ids, redrive.course)
    assert after is not None
    return after


async def shown(backend: Backend, redrive: Redrive) -> Redrive:
    """The redrive as it is now."""
    found = await backend.redrives.show(redrive.id)
    assert found is not None
    return found


async def put_into(backend: Backend, redrive: Redrive, state: RedriveState) -> Redrive:
    """The redrive after it was set to this state, by a person."""
    after = await backend.redrives.set(redrive.id, state)
    assert after is not None
    assert after.state is state
    return after


async def advanced(backend: Backend, *, open_circuits: Collection[str] = ()) -> WorkLeft:
    """One round of upkeep."""

    async def circuits() -> Collection[str]:
        return open_circuits

    return await redrive_once(backend.upkeep, redriving(backend, circuits))


def redriving(
    backend: Backend,
    circuits: OpenCircuits,
    plan: AutomaticPlan = AutomaticPlan(),  # noqa: B008 - a value
) -> Redriving:
    """The things that redrives are advanced with."""
    ports = backend.redrives, backend.dead_letters, backend.automatic_redrives
    return Redriving(*ports, circuits, plan)


async def worked(backend: Backend, verdict: Verdict, *, limit: int = 100) -> list[MessageId]:
    """Settle all jobs that can be claimed with this verdict; return their ids."""
    ids = []
    while jobs := await claimed(backend.store, limit=limit):
        for job in jobs:
            await settled(backend.store, job, verdict)
            ids.append(job.lease.job)
    return ids
