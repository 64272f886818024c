"""The other ports of a pair: the ledger's own, and what the queue must know of them or alone can tell."""

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from carteiro import model
from carteiro.ports import Backend
from carteiro.ports.dead_letters import GroupBy
from carteiro.ports.ledger import LedgerHalf
from carteiro.ports.queue import QueueHalf
from carteiro.ports.table_queue import AppliedChanges, RetryWait, TableQueue
from carteiro.ports.upkeep import Pruned
from carteiro.stores.paired import Paired, if_it_is_there

_PAGE = 500
_ANY = model.DeadFilter()


class PairedTenants:
    """See `carteiro.ports.tenants.Tenants` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        self._tenants = ledger.backend.tenants
        self._desk = ledger.desk
        self._queue = queue.queue
        self._queue_desk = queue.desk

    async def define(self, tenants: Sequence[model.Tenant]) -> None:
        """Create or change tenants; a change of weight rescales their virtual time."""
        await self._tenants.define(tenants)
        await self._share([tenant.id for tenant in tenants])

    async def ensure(self, ids: Sequence[model.TenantId]) -> None:
        """Create the tenants that are missing; known ones stay as they are."""
        unknown = [
            tenant
            for tenant, found in zip(ids, await self._tenants.find(ids), strict=True)
            if found is None
        ]
        await self._tenants.ensure(ids)
        await self._share(unknown)

    async def find(self, ids: Sequence[model.TenantId]) -> builtins.list[model.Tenant | None]:
        """The tenants with these ids, None for an unknown one."""
        return await self._tenants.find(ids)

    async def claimants(self, domains: Sequence[str]) -> builtins.list[model.TenantId | None]:
        """The tenant that has claimed each domain, None for one that nobody has."""
        return await self._tenants.claimants(domains)

    async def weigh_tier(self, tier: str, weight: float) -> None:
        """Set the weight of a tier; its tenants without a weight of their own follow at once."""
        await self._tenants.weigh_tier(tier, weight)
        cursor: model.Cursor | None = None
        while True:
            page = await self._tenants.list(cursor=cursor, limit=_PAGE)
            await self._share([tenant.id for tenant in page.rows if tenant.tier == tier])
            cursor = page.next
            if cursor is None:
                return

    async def charge(
        self, tenant: model.TenantId, refused: int, *, limits: model.ApiLimits
    ) -> model.Charged:
        """Count messages that were refused, as far as they fit."""
        return await self._tenants.charge(tenant, refused, limits=limits)

    async def tune(self, fairness: model.Fairness | None) -> None:
        """Change the fairness settings of all workers now; None goes back to the configured ones."""
        await self._tenants.tune(fairness)
        await if_it_is_there(self._queue_desk.tune(fairness))

    async def fairness(self) -> tuple[model.Fairness, bool]:
        """The fairness settings in force here, and whether `tune` gave them."""
        return await self._tenants.fairness()

    async def limit(self, kind: model.KindName, limit: model.SendLimit | None) -> None:
        """Set or lift the limit that all claims of a kind share."""
        await self._tenants.limit(kind, limit)
        await if_it_is_there(self._queue_desk.limit(kind, limit))

    async def standings(self, kind: model.KindName) -> builtins.list[model.Standing]:
        """How each tenant with work or history of this kind fares, least served first."""
        fairness, _ = await self._tenants.fairness()
        return await self._queue_desk.standings(kind, fairness)

    async def list(
        self, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.Tenant]:
        """The tenants, by id."""
        return await self._tenants.list(cursor=cursor, limit=limit)

    async def erase(self, tenant: model.TenantId, *, limit: int = 1000) -> model.Erased | None:
        """Take a tenant and everything of it away, in pages of messages; None if there is none."""
        busy = await if_it_is_there(self._queue_desk.busy(tenant)) or []
        erased, gone = await self._desk.erase(tenant, busy=busy, limit=limit)
        if erased is None:
            return None
        if erased.has_more:
            await self._share([tenant])  # it is disabled from now on
            await if_it_is_there(self._queue.drop(gone))
        else:
            await if_it_is_there(self._queue.drop(gone))
            await if_it_is_there(self._queue_desk.forget(tenant))
        return erased

    async def _share(self, ids: Sequence[model.TenantId]) -> None:
        if ids:
            await if_it_is_there(self._queue_desk.share(await self._desk.shares(ids)))


class PairedRecipients:
    """See `carteiro.ports.recipients.Recipients` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        self._recipients = ledger.backend.recipients
        self._desk = ledger.desk
        self._store = store

    async def show(
        self, recipient: model.RecipientId, *, tenant: model.TenantId
    ) -> model.Recipient | None:
        """One recipient of a tenant, deleted or not."""
        return await self._recipients.show(recipient, tenant=tenant)

    async def list(
        self,
        tenant: model.TenantId,
        *,
        external_id: str | None = None,
        email: str | None = None,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.Recipient]:
        """Recipients that match, newest first; deleted ones included."""
        return await self._recipients.list(
            tenant, external_id=external_id, email=email, cursor=cursor, limit=limit
        )

    async def delete(self, recipient: model.RecipientId, *, tenant: model.TenantId) -> bool:
        """Mark as deleted; False if there is none, or it is deleted already."""
        return await self._recipients.delete(recipient, tenant=tenant)

    async def erase(
        self, recipient: model.RecipientId, *, tenant: model.TenantId, limit: int = 1000
    ) -> model.Erased | None:
        """Take everything personal away, in pages of messages; None if there is no such recipient."""
        await self._recipients.delete(recipient, tenant=tenant)
        waiting = await self._desk.addressed(recipient, tenant=tenant, limit=limit)
        await self._store.cancel(waiting, tenant=tenant)
        return await self._recipients.erase(recipient, tenant=tenant, limit=limit)


class PairedDeadLetters:
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf, store: Paired) -> None:
        self._letters = ledger.backend.dead_letters
        self._desk = ledger.desk
        self._queue = queue.queue
        self._store = store

    async def find(
        self,
        wanted: model.DeadFilter = _ANY,
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.DeadLetter]:
        """The entries that match, newest first."""
        return await self._letters.find(wanted, cursor=cursor, limit=limit)

    async def group(self, by: GroupBy, wanted: model.DeadFilter = _ANY) -> list[model.DeadGroup]:
        """How many match, by what they have in common; the largest group first."""
        return await self._letters.group(by, wanted)

    async def show(self, message: model.MessageId) -> model.DeadLetter | None:
        """The entry of one message."""
        return await self._letters.show(message)

    async def redrive(
        self, ids: Sequence[model.MessageId], *, by: str, revision: model.Revision | None = None
    ) -> list[model.RedriveAnswer]:
        """Send them round again; ``by`` says on whose word."""
        answers = await self._letters.redrive(ids, by=by, revision=revision)
        redriven = [
            message
            for message, answer in zip(ids, answers, strict=True)
            if answer is model.RedriveAnswer.REDRIVEN
        ]
        if redriven:
            await if_it_is_there(self._queue.put(await self._desk.entries(redriven)))
        return answers

    async def drop(self, ids: Sequence[model.MessageId]) -> int:
        """Take entries out of the index; the messages stay, and can be redriven. Return how many went."""
        dropped = await self._letters.drop(ids)
        await self._store.show_dead(ids)
        return dropped

    async def outlived(self, *, limit: int = 1000) -> list[model.MessageId]:
        """Entries older than their time to live, the longest outlived first; none that is on its way."""
        return await self._letters.outlived(limit=limit)

    async def overfull(self, *, most: int, limit: int = 1000) -> list[model.DeadLetter]:
        """What must go so that ``most`` stay: again and again the oldest of the tenant with most entries."""
        return await self._letters.overfull(most=most, limit=limit)

    async def restore(self, letters: Sequence[model.DeadLetter]) -> int:
        """Put entries back whose messages are still dead and have none; return how many."""
        restored = await self._letters.restore(letters)
        await self._store.show_dead([letter.id for letter in letters])
        return restored

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[model.TenantId, int]]]:
        """How many entries there are, and the tenants with most of them."""
        return await self._letters.sizes(top=top)

    async def oldest(self) -> datetime | None:
        """When the oldest entry was moved here; None without any."""
        return await self._letters.oldest()

    async def moved(self, ids: Sequence[model.MessageId]) -> dict[model.MessageId, datetime]:
        """When those of the messages that have an entry were moved here."""
        return await self._letters.moved(ids)


class PairedReading:
    """See `carteiro.ports.reading.Reading` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        self._reading = ledger.backend.reading
        self._queue_desk = queue.desk

    async def message(
        self, message: model.MessageId, *, tenant: model.TenantId | None = None
    ) -> model.StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        return await self._reading.message(message, tenant=tenant)

    async def first(
        self, key: model.IdempotencyKey, *, tenant: model.TenantId
    ) -> model.Replayed | None:
        """The acceptance that a key of the tenant still stands for, if it was of this very request."""
        return await self._reading.first(key, tenant=tenant)

    async def messages(
        self, wanted: model.MessageFilter, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.StoredMessage]:
        """The messages that match, newest first, without their contents."""
        return await self._reading.messages(wanted, cursor=cursor, limit=limit)

    async def events(self, message: model.MessageId) -> list[model.TimelineEvent]:
        """The timeline of a message, oldest first."""
        return await self._reading.events(message)

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """Where the job of a message is; None when it has none."""
        return await self._queue_desk.place(message)

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next jobs that a claim could get now, behind those that are claimed."""
        return await self._queue_desk.due(tenant, kind, limit=limit)

    async def depths(self) -> list[model.Depth]:
        """How much is in the queue, by kind."""
        return await self._queue_desk.depths()

    async def unsettled(self, ids: Sequence[model.MessageId]) -> list[model.MessageId]:
        """Those of the ids whose message is not finished."""
        return await self._reading.unsettled(ids)

    async def states(self, *, tenant: model.TenantId | None = None) -> Mapping[model.State, int]:
        """How many messages rest in each state."""
        return await self._reading.states(tenant=tenant)


class PairedTracking:
    """See `carteiro.ports.tracking.Tracking` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        self._tracking = ledger.backend.tracking
        self._store = store

    async def note(self, told: Sequence[model.Feedback]) -> builtins.list[model.NoteAnswer]:
        """Put feedback on the timelines of its messages; the jobs of what is sent by it leave the queue."""
        answers = await self._tracking.note(told)
        await self._store.forget_sent(
            [
                each.message
                for each, answer in zip(told, answers, strict=True)
                if answer is model.NoteAnswer.RESOLVED
            ]
        )
        return answers


class PairedUpkeep:
    """See `carteiro.ports.upkeep.Upkeep` for what it promises."""

    def __init__(self, ledger: LedgerHalf, store: Paired) -> None:
        self._upkeep = ledger.backend.upkeep
        self._store = store

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return how many."""
        return await self._store.expire(limit=limit)

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        after: model.MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Look at the next ``limit`` messages and drop what is older than its retention."""
        return await self._upkeep.prune(
            bodies=bodies, histories=histories, after=after, limit=limit
        )

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        return await self._upkeep.lead(name, holder=holder, term=term)

    async def last_seen(self) -> datetime | None:
        """When a worker or a run from cron last led a task of upkeep; None: never."""
        return await self._upkeep.last_seen()

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        """Copy the ledger: a queue is made again out of it."""
        await self._upkeep.backup(target, progress)

    async def compact(self) -> int:
        """Give all room that is free back to the disk at once."""
        return await self._upkeep.compact()


class PairedTableQueue:
    """See `carteiro.ports.table_queue.TableQueue` for what it promises."""

    def __init__(
        self, requests: TableQueue, ledger: LedgerHalf, queue: QueueHalf, store: Paired
    ) -> None:
        self._requests = requests
        self._desk = ledger.desk
        self._queue = queue.queue
        self._store = store

    def rings(self) -> int:
        """How often a request was heard of."""
        return self._requests.rings()

    async def wait(self, timeout: timedelta, *, since: int) -> bool:
        """Return True once more requests were heard of than ``since``, False after ``timeout``."""
        return await self._requests.wait(timeout, since=since)

    async def has_requests(self) -> bool:
        """Whether any change is requested and not applied."""
        return await self._requests.has_requests()

    async def apply(self, wait_after: RetryWait, *, limit: int) -> AppliedChanges:
        """Apply the oldest requested changes; then their jobs are put anew, as the ledger has them."""
        applied = await self._requests.apply(wait_after, limit=limit)
        if applied.moved:
            await if_it_is_there(self._queue.drop(applied.moved))
            await if_it_is_there(self._queue.put(await self._desk.entries(applied.moved)))
            await self._store.show_dead(applied.moved)
        return applied


def _paired_table_queue(
    ledger: LedgerHalf, queue: QueueHalf, store: Paired
) -> PairedTableQueue | None:
    requests = ledger.backend.table_queue
    return None if requests is None else PairedTableQueue(requests, ledger, queue, store)


@model.value
class Pair:
    """A pair as the path sees it, and what its relay needs; who relays says how the queue is kept."""

    backend: Backend
    ledger: LedgerHalf
    queue: QueueHalf
    found: Callable[[], Awaitable[str]]


@asynccontextmanager
async def open_paired(
    ledger: AbstractAsyncContextManager[LedgerHalf], queue: AbstractAsyncContextManager[QueueHalf]
) -> AsyncIterator[Pair]:
    """All ports of a pair; both halves are closed when the block ends."""
    async with ledger as truth, queue as turns:
        store = Paired(truth, turns)
        backend = replace(
            truth.backend,
            store=store,
            tenants=PairedTenants(truth, turns),
            recipients=PairedRecipients(truth, store),
            dead_letters=PairedDeadLetters(truth, turns, store),
            reading=PairedReading(truth, turns),
            tracking=PairedTracking(truth, store),
            upkeep=PairedUpkeep(truth, store),
            wake=turns.wake,
            table_queue=_paired_table_queue(truth, turns, store),
        )
        yield Pair(backend, truth, turns, store.found)
