"""A store made of two: a ledger, which is the source of truth, and a queue, which can be lost and rebuilt.

The ledger decides which worker may attempt a message, the queue only decides whose turn it is. The queue learns of a
change after the commit, and not at all while it is unreachable. `carteiro.maintenance.relay` puts a missing job
later; a job that should not exist is detected when it is claimed, and is never sent.

If killed between the two halves, the ledger is ahead, and everything above holds.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from carteiro import model
from carteiro.errors import StoreError, StoreUnavailable
from carteiro.observability import log
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.ports.ledger import LEASED, SENT, Closed, LedgerHalf, Told
from carteiro.ports.queue import Delay, QueueEntry, QueueHalf, Ticket
from carteiro.stores.columns import in_ms

Answer = TypeVar("Answer")
Item = TypeVar("Item")

_PAGE = 500  # tenants
_FEW = 8  # messages that are read while their jobs are claimed: of a worker that has little to do


class Paired:
    """See `carteiro.ports.store.Store` for what it promises."""

    def __init__(self, ledger: LedgerHalf, queue: QueueHalf) -> None:
        self._ledger = ledger.ledger
        self._desk = ledger.desk
        self._tenants = ledger.backend.tenants
        self._queue = queue.queue
        self._queue_desk = queue.desk
        self._founding = asyncio.Lock()
        self._new: list[
            Ticket
        ] = []  # jobs as the next claim may give them; more than a few count as many
        self.reap = queue.queue.reap

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages, then put their jobs; a known id or key is replayed."""
        answers = await self._ledger.accept(new)
        accepted = [
            (message, answer)
            for message, answer in zip(new, answers, strict=True)
            if isinstance(answer, model.Accepted)
        ]
        entries = _entries(accepted)
        if entries:
            due = [(*each[:3], 1, each[4]) for each in entries[: _FEW + 1 - len(self._new)]]
            self._new += due
            await if_it_is_there(self._queue.put(entries))
        return answers

    # --- claim --------------------------------------------------------------------------------

    async def claim(self, *, claim_id: model.ClaimId, **asked: Any) -> model.Claimed:  # noqa: ANN401 - as the port has it
        """Lease ready jobs of the kinds that are asked for, tenants taking turns."""
        ask = partial(self._queue.claim, claim_id=claim_id, **asked)
        new, self._new = self._new, []
        reading = None
        if 0 < len(new) <= _FEW:
            reading = asyncio.create_task(self._read_early(claim_id, new))
        tickets = await ask()
        if tickets is None:
            await self.found()
            tickets = await ask()
        if tickets is None:  # the queue was lost again
            return model.Claimed([], model.ZERO)
        if not tickets.jobs:
            return model.Claimed([], tickets.idle_for)
        early = {} if reading is None else await reading
        jobs = [early[each] for each in tickets.jobs if each in early]
        if len(jobs) < len(tickets.jobs):
            jobs = await self._opened(claim_id, tickets.jobs)
        return model.Claimed(jobs, tickets.idle_for if jobs else model.ZERO)

    async def _read_early(
        self, claim: model.ClaimId, new: Sequence[Ticket]
    ) -> Mapping[Ticket, model.LeasedJob]:
        """The messages of jobs that this process has just put, by the tickets that a first claim of them gives.

        Another claim in between, or a redrive, changes claims or due time. A cancel in between takes the job out of
        the queue; if it is killed before that, it has not answered.
        """
        try:
            messages = await self._ledger.open(claim, new)
        except StoreError:
            return {}
        found = zip(new, messages, strict=True)
        return {each: job for each, job in found if isinstance(job, model.LeasedJob)}

    async def _opened(
        self, claim: model.ClaimId, tickets: Sequence[Ticket]
    ) -> list[model.LeasedJob]:
        """The messages of claimed jobs; finished ones leave the queue, those that must wait go back to it."""
        try:
            messages = await self._ledger.open(claim, tickets)
        except BaseException:
            # Nobody will run them: they must not count as claimed while the ledger is unreachable.
            leases = [model.Lease(ticket[0], claim) for ticket in tickets]
            await if_it_is_there(self._queue.release(leases, wait=model.ZERO))
            raise
        jobs = [each for each in messages if each.__class__ is model.LeasedJob]
        if len(jobs) < len(tickets):
            opened = zip(tickets, messages, strict=True)
            over = [ticket[0] for ticket, each in opened if each is None]
            again = [each for each in messages if isinstance(each, Delay)]
            await if_it_is_there(self._queue.settle(over, again))
            await self._put_redriven(over)
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
        """Make attempts durable before they are made; the hold replaces the lease.

        The queue hears of it at the same time, where the ledger need not wait for its answer.
        """
        holding = self._hold(starts)
        if len(self._sure([each.lease for each in starts])) == len(starts):
            declaring = self._ledger.declare(starts, [LEASED] * len(starts))
            left, answers = await asyncio.gather(holding, declaring)
            open_ = [place for place, answer in enumerate(answers) if answer is None]
        else:
            left, answers = await holding, [None] * len(starts)
            open_ = list(range(len(starts)))
        if open_:
            told = [None if left is None else left[place] is not None for place in open_]
            late = await self._ledger.declare([starts[place] for place in open_], told)
            for place, answer in zip(open_, late, strict=True):
                answers[place] = answer
        await self._unhold(starts, left, answers)
        return [answer for answer in answers if answer is not None]

    async def _hold(self, starts: Sequence[model.Start]) -> Sequence[int | None] | None:
        """The time that each lease had left; None: unknown. Whatever the queue says, the ledger has the attempts."""
        try:
            return await self._queue.hold(
                [(each.lease, each.hold // MILLISECOND) for each in starts]
            )
        except StoreUnavailable:
            return None
        except StoreError as error:
            log.unexpected("queue", error)
            return None

    async def _unhold(
        self,
        starts: Sequence[model.Start],
        left: Sequence[int | None] | None,
        answers: Sequence[object],
    ) -> None:
        """Return the leases of attempts that are not made to the ends that they had before."""
        not_made = [
            (start.lease, ms)
            for start, ms, answer in zip(starts, left or (), answers, strict=left is not None)
            if ms is not None and answer.__class__ is model.Refused
        ]
        if not_made:
            await if_it_is_there(self._queue.unhold(not_made))

    async def settle(self, ends: Sequence[model.End]) -> list[model.Settled | model.Late]:
        """Store the verdicts: state, events and dead letter in one transaction; then move the jobs.

        The queue is asked who has a job only where neither its lease nor the ledger tells.
        """
        sure = self._sure([end.lease for end in ends])
        told: list[Told] = [LEASED] * len(ends)
        unsure = [place for place, end in enumerate(ends) if end.lease not in sure]
        await self._ask(ends, unsure, told)
        closed = await self._ledger.settle(ends, told)
        open_ = [place for place, each in enumerate(closed) if each is None]
        if open_:
            await self._ask(ends, open_, told)
            late = await self._ledger.settle(
                [ends[place] for place in open_], [told[place] for place in open_]
            )
            for place, each in zip(open_, late, strict=True):
                closed[place] = each
        answered = [each for each in closed if each is not None]
        await self._follow(ends, answered)
        return [each.answer for each in answered]

    def _sure(self, leases: Sequence[model.Lease]) -> set[model.Lease]:
        """The leases that cannot have expired yet; none if a message is named twice: its items are applied in order."""
        if len({lease.job for lease in leases}) < len(leases):
            return set()
        sure = {claim for claim in {each.claim for each in leases} if self._queue.is_sure(claim)}
        return {lease for lease in leases if lease.claim in sure}

    async def _ask(
        self, ends: Sequence[model.End], places: Sequence[int], told: list[Told]
    ) -> None:
        """Ask the queue which of these ends are of the claim that has the job."""
        if places:
            asked = self._queue.standing([ends[place].lease for place in places])
            for place, said in zip(places, await self._told(asked, len(places)), strict=True):
                told[place] = said

    async def _follow(self, ends: Sequence[model.End], closed: Sequence[Closed]) -> None:
        """Apply what the ledger stored to the queue: finished jobs leave, retries are parked."""
        others = [(end.lease, e) for end, e in zip(ends, closed, strict=True) if e is not SENT]
        over = [end.lease.job for end, e in zip(ends, closed, strict=True) if e is SENT]
        over += [lease.job for lease, each in others if each.answer.state in model.FINISHED]
        dead = [lease.job for lease, each in others if each.answer.state in model.DEAD]
        again = [
            Delay(lease, each.again, each.again) for lease, each in others if each.again is not None
        ]
        if over or again:
            buried = await self._desk.buried(dead) if dead else None
            await if_it_is_there(self._queue.settle(over, again, buried))
            await self._put_redriven(dead)

    async def _put_redriven(self, ids: Sequence[model.MessageId]) -> None:
        """Put those that were redriven before their old job left: as a known job it was not put then."""
        entries = await self._desk.entries(ids) if ids else ()
        if entries:
            await if_it_is_there(self._queue.put(entries))

    async def forget(self, ids: Sequence[model.MessageId]) -> None:
        """Finished messages: their jobs leave the queue, and its index shows those that are dead letters."""
        if ids:
            buried = await self._desk.buried(ids)
            await if_it_is_there(self._queue.settle(ids, dead=buried))
            await self._put_redriven(ids)

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
        over = with_answer(model.CancelAnswer.CANCELLED, ids, answers)
        if over:
            await if_it_is_there(self._queue.settle(over))
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
            await self.forget(buried)
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


def with_answer(wanted: object, items: Sequence[Item], answers: Sequence[object]) -> list[Item]:
    """The items that got this answer."""
    return [item for item, answer in zip(items, answers, strict=True) if answer is wanted]


def _entries(
    accepted: Sequence[tuple[model.NewMessage, model.Accepted]],
) -> list[QueueEntry]:
    """The jobs of new messages; most are of one moment, and due at once."""
    moments = {answer.received_at for _, answer in accepted}
    now = {moment: in_ms(moment) for moment in moments}
    entries = []
    for message, answer in accepted:
        due_at = now[answer.received_at]
        if message.due is not None:
            due_at = max(due_at, in_ms(message.due))
        entries.append((message.id, message.kind, message.tenant, message.priority, due_at, due_at))
    return entries
