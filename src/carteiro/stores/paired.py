"""A store made of two: a ledger, which is the source of truth, and a queue, which can be lost and rebuilt.

The ledger decides which worker may attempt a message, the queue only decides whose turn it is. The queue learns of a
change after the commit, and not at all while it is unreachable. `carteiro.maintenance.relay` puts a missing job
later; a job that should not exist is detected when it is claimed, and is never sent.

If killed between the two halves, the ledger is ahead, and everything above holds.
"""

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from carteiro import model
from carteiro.errors import StoreUnavailable
from carteiro.ports.ledger import Closed, LedgerHalf
from carteiro.ports.queue import ClaimedEntry, Delay, Hold, QueueEntry, QueueHalf
from carteiro.stores.columns import in_ms

Answer = TypeVar("Answer")

_PAGE = 500  # tenants


class Paired:
    """See `carteiro.ports.store.Store` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        self._ledger = ledger.ledger
        self._desk = ledger.desk
        self._tenants = ledger.backend.tenants
        self._queue = queue.queue
        self._queue_desk = queue.desk
        self._founding = asyncio.Lock()
        self.reap = queue.queue.reap

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages, then put their jobs; a known id or key is replayed."""
        answers = await self._ledger.accept(new)
        entries = [
            _entry(message, in_ms(answer.received_at))
            for message, answer in zip(new, answers, strict=True)
            if isinstance(answer, model.Accepted)
        ]
        if entries:
            await if_it_is_there(self._queue.put(entries))
        return answers

    # --- claim --------------------------------------------------------------------------------

    async def claim(
        self,
        *,
        claim_id: model.ClaimId,
        kinds: Collection[model.KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> model.Claimed:
        """Lease at most ``limit`` ready jobs of these kinds, tenants taking turns."""
        ask = partial(
            self._queue.claim,
            claim_id=claim_id,
            kinds=kinds,
            limit=limit,
            lease=lease,
            ahead=ahead,
        )
        tickets = await ask()
        if tickets is None:
            await self.found()
            tickets = await ask()
        if tickets is None:  # the queue was lost again
            return model.Claimed([], model.ZERO)
        if not tickets.jobs:
            return model.Claimed([], tickets.idle_for)
        jobs = await self._opened(tickets.jobs)
        return model.Claimed(jobs, tickets.idle_for if jobs else model.ZERO)

    async def _opened(self, tickets: Sequence[ClaimedEntry]) -> list[model.LeasedJob]:
        """The messages of claimed jobs; finished ones leave the queue, those that must wait go back to it."""
        jobs: list[model.LeasedJob] = []
        delays: list[Delay] = []
        over: list[model.MessageId] = []
        try:
            messages = await self._ledger.open(tickets)
        except (
            BaseException
        ):  # nobody will run them: they must not count as claimed while the ledger is unreachable
            await if_it_is_there(
                self._queue.release([ticket.lease for ticket in tickets], wait=model.ZERO)
            )
            raise
        for ticket, opened in zip(tickets, messages, strict=True):
            if isinstance(opened, model.LeasedJob):
                jobs.append(opened)
            elif isinstance(opened, Delay):
                delays.append(opened)
            else:
                over.append(ticket.lease.job)
        await if_it_is_there(self._queue.drop(over))
        await if_it_is_there(self._queue.delay(delays))
        return jobs

    async def found(self) -> str:
        """Send the tenants' shares to an empty queue: before that, no job may be claimed from it."""
        async with self._founding:
            fairness, is_tuned = await self._tenants.fairness()
            await self._queue_desk.tune(fairness if is_tuned else None)
            for kind, limit in (await self._desk.limits()).items():
                await self._queue_desk.limit(kind, limit)
            after: model.TenantId | None = None
            while shares := await self._desk.all_shares(after=after, limit=_PAGE):
                await self._queue_desk.share(shares)
                after = shares[-1].tenant
            return await self._queue_desk.founded()

    # --- declare and settle -------------------------------------------------------------------

    async def declare(self, starts: Sequence[model.Start]) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made; the hold replaces the lease."""
        asked = self._queue.hold([(start.lease, start.hold) for start in starts])
        holds = await if_it_is_there(asked) or [Hold(None)] * len(starts)
        answers = await self._ledger.declare(starts, [hold.stands for hold in holds])
        not_made = [
            (start.lease, hold.left)
            for start, hold, answer in zip(starts, holds, answers, strict=True)
            if hold.stands and isinstance(answer, model.Refused)
        ]
        if not_made:
            await if_it_is_there(self._queue.unhold(not_made))
        return answers

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events and dead letter in one transaction; then move the jobs."""
        leases = [end.lease for end in ends]
        told = await self._told(self._queue.standing(leases), len(ends))
        closed = await self._ledger.settle(ends, told)
        await self._follow([(end.lease, each) for end, each in zip(ends, closed, strict=True)])
        return [each.answer for each in closed]

    async def _follow(self, closed: Sequence[tuple[model.Lease, Closed]]) -> None:
        """Apply what the ledger stored to the queue: finished jobs leave, retries are parked."""
        over = [lease.job for lease, each in closed if each.answer.state in model.FINISHED]
        dead = [lease.job for lease, each in closed if each.answer.state in model.DEAD]
        again = [
            Delay(lease, each.again, each.again) for lease, each in closed if each.again is not None
        ]
        await if_it_is_there(self._queue.drop(over))
        await if_it_is_there(self._queue.delay(again))
        await self.show_dead(dead)

    async def forget_sent(self, ids: Sequence[model.MessageId]) -> None:
        """Feedback proved messages sent: their jobs leave the queue, and the index of dead letters."""
        if ids:
            await if_it_is_there(self._queue.drop(ids))
            await self.show_dead(ids)

    async def show_dead(self, ids: Sequence[model.MessageId]) -> None:
        """Make the queue's index show exactly those of the messages that are dead letters."""
        if not ids:
            return
        buried = await self._desk.buried(ids)
        if buried:
            await if_it_is_there(self._queue_desk.bury(buried))
        gone = [each for each in ids if each not in buried]
        if gone:
            await if_it_is_there(self._queue_desk.unbury(gone))

    # --- leases -------------------------------------------------------------------------------

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> list[bool]:
        """Extend live claims and their holds; False if the claim no longer has the job."""
        told = await self._told(self._queue.extend(leases, lease=lease), len(leases))
        standing = [each for each, is_its in zip(leases, told, strict=True) if is_its is not False]
        if standing:
            await self._ledger.extend(standing, lease=lease)
        return [is_its is not False for is_its in told]

    async def release(self, leases: Sequence[model.Lease], *, wait: timedelta = model.ZERO) -> None:
        """Return claimed jobs without an attempt, as if they had never been claimed.

        Raises while the queue is unreachable: nothing repairs a claim that was not undone.
        """
        await self._queue.release(await self._ledger.undeclared(leases), wait=wait)

    async def undo_claims(self, claims: Sequence[model.ClaimId]) -> None:
        """Release all jobs of these claims that have no attempt, as if they had never been claimed."""
        leases = await self._queue.leases_of(claims)
        if leases:
            await self._queue.release(await self._ledger.undeclared(leases), wait=model.ZERO)

    async def cancel(
        self, ids: Sequence[model.MessageId], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages; mark those in flight or in doubt, so that a retry becomes CANCELLED."""
        told = await self._told(self._queue.leased(ids), len(ids))
        answers = await self._ledger.cancel(ids, told, tenant=tenant)
        over = [
            message
            for message, answer in zip(ids, answers, strict=True)
            if answer is model.CancelAnswer.CANCELLED
        ]
        await if_it_is_there(self._queue.drop(over))
        return answers

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages whose time to live is over, except those in flight."""
        after, expired = None, 0
        while expired < limit:
            page, after = await self._ledger.overdue(after=after, limit=limit)
            page = page[: limit - expired]
            if not page:
                break
            told = await self._told(self._queue.leased(page), len(page))
            buried = await self._ledger.expire(page, told)
            await if_it_is_there(self._queue.drop(buried))
            await self.show_dead(buried)
            expired += len(buried)
            if after is None:
                break
        return expired

    async def _told(self, asked: Awaitable[list[bool | None]], count: int) -> Sequence[bool | None]:
        """The queue's answer for each job; None while the queue is unreachable."""
        told = await if_it_is_there(asked)
        return [None] * count if told is None else told


async def if_it_is_there(asked: Awaitable[Answer]) -> Answer | None:
    """The queue's answer; None while it is unreachable: the relay or a claim repairs the difference later."""
    try:
        return await asked
    except StoreUnavailable:
        return None


def _entry(message: model.NewMessage, now: int) -> QueueEntry:
    due_at = now if message.due is None else max(now, in_ms(message.due))
    return QueueEntry(message.id, message.kind, message.tenant, message.priority, due_at, due_at)
