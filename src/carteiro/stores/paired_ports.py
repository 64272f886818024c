"""The other ports of a pair: those of the ledger, extended where the queue must be updated or asked."""

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar, cast

from carteiro import model, ports
from carteiro.ports.ledger import LedgerHalf
from carteiro.ports.queue import QueueHalf
from carteiro.ports.table_queue import AppliedChanges, RetryWait
from carteiro.stores.paired import Paired, if_it_is_there, with_answer

Port = TypeVar("Port")

_PAGE = 500


class Over(Generic[Port]):
    """A port with some methods replaced; every other method is the port's own."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of the port
        """Return the port's own method where none replaces it."""
        return getattr(self._port, name)

    def as_port(self) -> Port:
        """Return this, typed as the port that it stands for."""
        return cast("Port", self)


class PairedTenants(Over[ports.Tenants]):
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        super().__init__(ledger.backend.tenants)
        self._desk = ledger.desk
        self._queue = queue.queue
        self._queue_desk = queue.desk

    async def define(self, tenants: Sequence[model.Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        await if_it_is_there(self._queue_desk.note())  # as in `PairedDeadLetters.redrive`
        await self._port.define(tenants)
        await self._share([tenant.id for tenant in tenants])

    async def change(
        self, tenant: model.TenantId, changed: Callable[[model.Tenant], model.Tenant]
    ) -> model.Tenant | None:
        """Replace a tenant by what ``changed`` makes of it, with no other change in between; None if there is none."""
        await if_it_is_there(self._queue_desk.note())  # as in `define`
        after = await self._port.change(tenant, changed)
        await self._share([] if after is None else [tenant])
        return after

    async def ensure(self, ids: Sequence[model.TenantId]) -> None:
        """Create the missing tenants; known ones do not change."""
        unknown = with_answer(None, ids, await self._port.find(ids))
        await self._port.ensure(ids)
        await self._share(unknown)

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; it applies at once to its tenants without their own weight."""
        await self._port.weigh_tier(tier, weight)
        cursor: model.Cursor | None = None
        while True:
            page = await self._port.list(cursor=cursor, limit=_PAGE)
            await self._share([tenant.id for tenant in page.rows if tenant.tier == tier])
            cursor = page.next
            if cursor is None:
                return

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Change the fairness settings of all workers now; None restores the configured ones."""
        await self._port.tune(fairness)
        await if_it_is_there(self._queue_desk.tune(fairness))

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or remove the limit that all claims of a kind share."""
        await self._port.limit(kind, limit)
        await if_it_is_there(self._queue_desk.limit(kind, limit))

    async def standings(
        self, kind: model.KindName, *, tenants: Sequence[model.TenantId] | None = None
    ) -> builtins.list[model.Standing]:
        """The standing of each tenant with jobs or history of this kind, least served first."""
        fairness, _ = await self._port.fairness()
        found = await self._queue_desk.standings(kind, fairness)
        return [each for each in found if tenants is None or each.tenant in tenants]

    async def erase(self, tenant: model.TenantId, *, limit: int = 1000) -> model.Erased | None:
        """Delete a tenant and all its data, in pages of messages; None if there is none."""
        busy = await if_it_is_there(self._queue_desk.busy(tenant)) or []
        erased, gone = await self._desk.erase(tenant, busy=busy, limit=limit)
        if erased is None:
            return None
        if erased.has_more:
            await self._share([tenant])  # the tenant is disabled from now on
            await if_it_is_there(self._queue.settle(gone))
        else:
            await if_it_is_there(self._queue.settle(gone))
            await if_it_is_there(self._queue_desk.forget(tenant))
        return erased

    async def _share(self, ids: Sequence[model.TenantId]) -> None:
        if ids:
            await if_it_is_there(self._queue_desk.share(await self._desk.shares(ids)))


class PairedRecipients(Over[ports.Recipients]):
    """See `carteiro.ports.recipients.Recipients` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        super().__init__(ledger.backend.recipients)
        self._desk = ledger.desk
        self._store = store

    async def erase(
        self, recipient: model.RecipientId, *, tenant: model.TenantId, limit: int = 1000
    ) -> model.Erased | None:
        """Delete all personal data, in pages of messages; None if there is no such recipient."""
        await self._port.delete(recipient, tenant=tenant)
        waiting = await self._desk.addressed(recipient, tenant=tenant, limit=limit)
        await self._store.cancel(waiting, tenant=tenant)
        return await self._port.erase(recipient, tenant=tenant, limit=limit)


class PairedDeadLetters(Over[ports.DeadLetters]):
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf, store: Paired) -> None:
        super().__init__(ledger.backend.dead_letters)
        self._desk = ledger.desk
        self._queue = queue.queue
        self._queue_desk = queue.desk
        self._store = store

    async def redrive(
        self, ids: Sequence[model.MessageId], *, by: str, revision: model.Revision | None = None
    ) -> list[model.RedriveAnswer]:
        """Redrive the messages in the ledger, then put their jobs."""
        # If this process dies before the put, the next relay must not go on from the note of the last one.
        await if_it_is_there(self._queue_desk.note())
        answers = await self._port.redrive(ids, by=by, revision=revision)
        redriven = with_answer(model.RedriveAnswer.REDRIVEN, ids, answers)
        if redriven:
            await if_it_is_there(self._queue.put(await self._desk.entries(redriven)))
        return answers

    async def drop(self, ids: Sequence[model.MessageId]) -> int:
        """Remove entries, in the queue's index too; return the number removed."""
        dropped = await self._port.drop(ids)
        await self._store.show_dead(ids)
        return dropped

    async def restore(self, letters: Sequence[model.DeadLetter]) -> int:
        """Put back entries, in the queue's index too; return the number."""
        restored = await self._port.restore(letters)
        await self._store.show_dead([letter.id for letter in letters])
        return restored


class PairedRedrives(Over[ports.Redrives]):
    """See `carteiro.ports.redrives.Redrives` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        super().__init__(ledger.backend.redrives)
        self._desk = ledger.desk
        self._queue = queue.queue
        self._queue_desk = queue.desk

    async def send(
        self, redrive: model.Redrive, ids: Sequence[model.MessageId], course: model.Course
    ) -> model.Redrive | None:
        """Redrive the messages in the ledger, then put their jobs."""
        await if_it_is_there(self._queue_desk.note())  # as in `PairedDeadLetters.redrive`
        sent = await self._port.send(redrive, ids, course)
        if sent is not None and sent.course.redriven > redrive.course.redriven:
            await if_it_is_there(self._queue.put(await self._desk.entries(ids)))
        return sent


class PairedReading(Over[ports.Reading]):
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        super().__init__(ledger.backend.reading)
        self.place, self.due, self.depths = queue.desk.place, queue.desk.due, queue.desk.depths


class PairedTracking(Over[ports.Tracking]):
    """See `carteiro.ports.tracking.Tracking` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        super().__init__(ledger.backend.tracking)
        self._store = store

    async def note(self, told: Sequence[model.Feedback]) -> builtins.list[model.NoteAnswer]:
        """Record feedback in the ledger; jobs of messages that it proves sent leave the queue."""
        answers = await self._port.note(told)
        resolved = with_answer(model.NoteAnswer.RESOLVED, told, answers)
        await self._store.forget([each.message for each in resolved])
        return answers


class PairedUpkeep(Over[ports.Upkeep]):
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        super().__init__(ledger.backend.upkeep)
        self.expire = store.expire


class PairedTableQueue(Over[ports.TableQueue]):
    """See `carteiro.ports.table_queue.TableQueue` for what it promises."""

    def __init__(
        self, requests: ports.TableQueue, ledger: LedgerHalf, queue: QueueHalf, store: Paired
    ) -> None:
        super().__init__(requests)
        self._desk = ledger.desk
        self._queue = queue.queue
        self._store = store

    async def apply(self, wait_after: RetryWait, *, limit: int) -> AppliedChanges:
        """Apply the oldest requested changes; then put their jobs again, as the ledger has them."""
        applied = await self._port.apply(wait_after, limit=limit)
        if applied.moved:
            await if_it_is_there(self._queue.settle(applied.moved))
            await if_it_is_there(self._queue.put(await self._desk.entries(applied.moved)))
            await self._store.show_dead(applied.moved)
        return applied


@model.value
class Pair:
    """A pair as a store, and the parts that its relay needs."""

    backend: ports.Backend
    ledger: LedgerHalf
    queue: QueueHalf
    found: Callable[[], Awaitable[str]]


@asynccontextmanager
async def open_paired(
    ledger: AbstractAsyncContextManager[LedgerHalf], queue: AbstractAsyncContextManager[QueueHalf]
) -> AsyncIterator[Pair]:
    """Open all ports of a pair; both halves are closed when the block ends."""
    async with ledger as truth, queue as turns:
        store = Paired(truth, turns)
        requests = truth.backend.table_queue
        backend = replace(
            truth.backend,
            store=store,
            tenants=PairedTenants(truth, turns).as_port(),
            recipients=PairedRecipients(truth, store).as_port(),
            dead_letters=PairedDeadLetters(truth, turns, store).as_port(),
            redrives=PairedRedrives(truth, turns).as_port(),
            reading=PairedReading(truth, turns).as_port(),
            tracking=PairedTracking(truth, store).as_port(),
            upkeep=PairedUpkeep(truth, store).as_port(),
            wake=turns.wake,
            table_queue=requests and PairedTableQueue(requests, truth, turns, store).as_port(),
        )
        yield Pair(backend, truth, turns, store.found)
