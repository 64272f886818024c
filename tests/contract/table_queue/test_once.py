"""Table queue, once: each requested change is applied once, by the rules, in any process."""

import asyncio

from carteiro.model import EventType, MessageId, State
from carteiro.ports import Backend
from support.clock import MILLISECOND
from support.requests import RETRY, applied, apply_everything, requests_of, row_of
from support.set_ups import Place
from support.table_queue import Application


async def test_concurrent_processes_apply_a_change_once(place: Place, acme: Application) -> None:
    """Of several that find the same change, one stores it."""
    identity = acme.enqueue()
    acme.update(identity, "status = 'cancelled'")
    async with place.opened() as one, place.opened() as other:
        counts = await asyncio.gather(applied(one), applied(other), applied(one))

        events = await one.reading.events(MessageId(str(identity)))
        assert sum(counts) == 1
        assert [each.type for each in events].count(EventType.CANCELLED) == 1
        assert not await requests_of(other).has_requests()


async def test_change_follows_the_rules(backend: Backend, acme: Application) -> None:
    """A failure reported by an application is charged, and is retried after the delay of the policy."""
    identity = acme.enqueue()
    acme.value("SELECT mark_email_failed(%s, 'no')", identity)
    assert await requests_of(backend).has_requests()

    await apply_everything(backend)

    row = await row_of(backend, identity)
    assert (row.state, row.charged) == (State.RETRY_SCHEDULED, 1)
    [failed] = [
        each
        for each in await backend.reading.events(row.id)
        if each.type is EventType.RETRY_SCHEDULED
    ]
    assert abs(row.due_at - failed.at - RETRY) <= MILLISECOND
