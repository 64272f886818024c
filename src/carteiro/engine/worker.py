"""The loop: claim as many jobs as there are free slots, run each along the path, settle.

A worker runs from `run` until `stop` (SIGTERM). Then it claims nothing more, jobs in flight have the
grace period to end, and the rest is released. `stop_now` (a second signal) does not wait. A killed
worker leaves leases that expire and, for running calls, open attempts.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from carteiro import model
from carteiro.engine.judging import confirm_job, judge_outcome
from carteiro.engine.slots import Orphans, Place, Quiet, Slots
from carteiro.errors import StoreError, StoreUnavailable
from carteiro.jobs.confirmation import Confirmed, Unfit
from carteiro.jobs.kind import Kind, Pool
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.path import settle
from carteiro.path.claim import Claims
from carteiro.path.declare import start
from carteiro.path.deliver import deliver
from carteiro.path.judge import doubts, is_orphan, judge, judge_claim, may_kill
from carteiro.path.track import Attempt, track
from carteiro.policy import classify
from carteiro.ports.provider import Handover, Parcel
from carteiro.ports.store import Store
from carteiro.ports.wake import Wake
from carteiro.runtime.batcher import Answer, Gatherer, Item

_LONGEST_NAP = timedelta(seconds=5)  # polls even without a wake-up
_A_MOMENT = timedelta(milliseconds=20)  # between empty claims, until idle
_UNLIMITED = timedelta(days=365)  # of a call without a limit
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0  # between tries while the store is down, in seconds
_LONGEST_BACK_OFF = timedelta(hours=1)  # of a job that failed with an internal error
_MOST_LATE = 10_000  # jobs remembered as late
_ORPHANS_PER_LEASE = 30  # at least, for any duration: most that kill do it at once


@model.value
class Lengths:
    """Time limits of a worker; ``warm_up``: the time before it runs a suspect."""

    lease: timedelta = timedelta(seconds=30)
    hold_margin: timedelta = timedelta(seconds=10)
    grace: timedelta = timedelta(seconds=40)
    warm_up: timedelta = model.ZERO

    @property
    def extends_every(self) -> timedelta:
        """Interval to extend leases, and holds of calls that await a reply: it leaves them the whole margin."""
        return min(self.lease / 3, self.hold_margin / 2)


class Worker:
    """Runs the pools of one process."""

    def __init__(  # noqa: PLR0913 - what it works on, and how
        self,
        store: Store,
        wake: Wake,
        pools: Sequence[Pool],
        *,
        lengths: Lengths = Lengths(),  # noqa: B008 - a value, never changed
        chance: random.Random | None = None,
        tally: Tally | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._claims = Claims(
            store,
            most_failing=min(lengths.lease, lengths.hold_margin) / 2,
            grace=max(lengths.extends_every, timedelta(seconds=_LONGEST_WAIT)),
        )
        self._wake = wake
        self._lengths = lengths
        self._chance = chance or random.Random()  # noqa: S311 - jitter, not a secret
        self._tally = tally or Tally()
        self._pools = [Slots(pool) for pool in pools if pool.kinds]
        self._pool_of = {name: pool for pool in self._pools for name in pool.kinds}
        self._declare: Gatherer[model.Start, model.Begun | model.Refused] = Gatherer(store.declare)
        self._settle: Gatherer[model.End, model.Settled | model.Late] = Gatherer(store.settle)
        self._leases: set[model.Lease] = (
            set()
        )  # claimed and not declared: kept alive, released at the end
        self._unreleased: set[model.Lease] = set()  # the store failed: released by the timer
        self._calls: dict[
            model.Lease, Handover
        ] = {}  # declared; extended while only a reply is missing
        self._jobs: set[asyncio.Task[None]] = set()
        self._late: set[model.MessageId] = set()  # returned once for being late
        self._quiet = Quiet(clock=clock, debt=lengths.warm_up)
        self._orphans = Orphans(
            sum(pool.slots for pool in self._pools),
            longest=lengths.lease / _ORPHANS_PER_LEASE,
            clock=clock,
        )
        self._one_shot: _OneShot | None = None
        self._stopping = asyncio.Event()
        self._stopping_now = asyncio.Event()

    def stop(self) -> None:
        """Stop claiming; finish jobs in flight, within the grace period."""
        self._stopping.set()

    def stop_now(self) -> None:
        """Stop without finishing jobs in flight."""
        self._stopping.set()
        self._stopping_now.set()

    async def run(
        self, *, until_idle: bool = False, limit: int | None = None
    ) -> Counter[model.State]:
        """Run until stopped; return when all jobs are settled or returned.

        ``until_idle``: stop after ``limit`` jobs, or when nothing is due and nothing in flight may hold others
        back. Only then jobs are counted, by their final state, and `StoreUnavailable` is raised if nothing could
        be claimed.
        """
        if until_idle:
            self._one_shot = _OneShot(limit)
        await self._run_pools()
        return Counter() if self._one_shot is None else self._one_shot.result()

    async def _run_pools(self) -> None:
        kinds = [kind for pool in self._pools for kind in pool.kinds]
        log.worker_started(kinds=kinds, slots=sum(pool.slots for pool in self._pools))
        loops = [asyncio.create_task(self._feed(pool)) for pool in self._pools]
        extending = asyncio.create_task(self._keep_leases())
        try:
            await _first_of(self._stopping.wait(), *loops)
        finally:
            self._stopping.set()
            try:
                await _cancelled(loops)
                await self._wait_for_jobs()
            finally:  # also on a second cancel: that is a `stop_now`
                self._stopping_now.set()  # from now on leases of cancelled jobs are kept, to be released
                await _cancelled([extending, *self._jobs])
                await self._give_back_all()
                await self._close_kinds()

    # --- claiming

    async def _feed(self, pool: Slots) -> None:
        """Claim whenever slots are free; sleep when there is nothing."""
        wait = _FIRST_WAIT
        while not self._stopping.is_set():
            await pool.has_free_slot()
            await self._quiet.is_over()
            held = pool.held_for()
            if held > model.ZERO:  # claimed jobs would only be returned
                await pool.has_freed_slot(within=held)
                continue
            rings = self._wake.rings()
            try:
                if self._claims.has_failed:
                    await self._claims.recover()
                with self._quiet.claiming():
                    claimed = await self._claim_for(pool)
            except Exception as error:  # noqa: BLE001 - after any error the next claim may succeed
                log.store_failed("claim", error, wait=timedelta(seconds=wait))
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LONGEST_WAIT)
                continue
            wait = _FIRST_WAIT
            if not claimed.jobs:
                await self._nap(claimed.idle_for, rings)

    async def _claim_for(self, pool: Slots) -> model.Claimed:
        """Claim as many jobs as there are slots; until idle, no more than the limit, one pool after the other."""
        shot = self._one_shot
        if shot is None:
            return await self._claim(pool, pool.wanted)
        async with shot.claiming:
            wanted = pool.wanted if shot.left is None else min(pool.wanted, shot.left)
            is_idle = not self._jobs and not self._orphans.are_to_come
            try:
                claimed = await self._claim(pool, wanted) if wanted else model.Claimed([], None)
            except StoreUnavailable as error:
                if is_idle:  # a one-shot run does not wait for the store
                    shot.failure = error
                    self.stop()
                raise
            if shot.is_over(pool, claimed, is_idle=is_idle, of=len(self._pools)):
                self.stop()
        return claimed if claimed.jobs else model.Claimed([], _A_MOMENT)

    async def _claim(self, pool: Slots, limit: int) -> model.Claimed:
        """Claim and start; a claim that is running at a stop is finished, so that nothing leaks."""
        asked = asyncio.ensure_future(
            self._claims.claim(kinds=pool.kinds, limit=limit, lease=self._lengths.lease)
        )
        try:
            claimed = await asyncio.shield(asked)
        except asyncio.CancelledError:
            [got] = await asyncio.gather(asked, return_exceptions=True)
            if isinstance(got, model.Claimed):
                await self._give_back([job.lease for job in got.jobs])
            raise
        received = time.monotonic()
        loop = asyncio.get_running_loop()
        for job in await self._without_surplus(claimed.jobs):
            place = self._quiet.place_alone(job.tenant) if may_kill(job) else self._quiet.place()
            self._leases.add(job.lease)
            if isinstance(place, timedelta):  # a suspect: others are claimed meanwhile
                task = loop.create_task(self._give_back([job.lease], wait=place))
            else:
                pool.take(job.lease)
                task = loop.create_task(self._run_in(pool, job, received, place))
            self._jobs.add(task)
            task.add_done_callback(self._jobs.discard)
        if claimed.jobs and pool.is_limited:
            await asyncio.sleep(0)  # let them take their slots before the next claim
        return claimed

    async def _without_surplus(self, jobs: Sequence[model.LeasedJob]) -> Sequence[model.LeasedJob]:
        """The jobs to run. Surplus orphans are given back first, or they would be claimed at the next death, too."""
        rounds = self._orphans.surplus(jobs)
        if not rounds:
            return jobs
        leases = [job.lease for job in jobs]
        self._leases.update(leases)  # in case we stop now
        try:
            for wait, surplus in rounds:
                await self._give_back(surplus, wait=wait)
        except Exception:
            for lease in leases:
                self._orphans.end(lease)
            self._unreleased.update(leases)
            self._leases.difference_update(leases)
            raise
        given_back = {lease for _, surplus in rounds for lease in surplus}
        if self._one_shot is not None:
            self._one_shot.put_off(len(given_back))
        return [job for job in jobs if job.lease not in given_back]

    async def _nap(self, idle_for: timedelta | None, rings: int) -> None:
        nap = _LONGEST_NAP if idle_for is None else min(idle_for, _LONGEST_NAP)
        if nap > timedelta(0):
            await self._wake.wait(nap, since=rings)

    async def _keep_leases(self) -> None:
        """One timer for all leases of the process, and for the holds of calls that only await a reply."""
        every = self._lengths.extends_every.total_seconds()
        while True:
            await asyncio.sleep(every)
            awaiting = (lease for lease, call in self._calls.items() if call.awaits_reply)
            leases = [*self._leases, *awaiting]
            try:
                if leases:
                    await self._store.extend(leases, lease=self._lengths.lease)
                await self._claims.undo_again()
                if self._unreleased:
                    late = list(self._unreleased)
                    await self._store.release(late)
                    self._unreleased.difference_update(late)
            except StoreError as error:
                log.store_failed("extend", error, wait=timedelta(seconds=every))
            except Exception as error:  # noqa: BLE001 - leases that run out look like crashes of their jobs
                log.unexpected("worker", error)

    # --- one job

    async def _run_in(
        self, pool: Slots, job: model.LeasedJob, received: float, place: Place
    ) -> None:
        """Run the job; an internal error affects no other job, and does not count as a crash of the worker."""
        alone: asyncio.TimerHandle | None = None
        try:
            if job.claims > 1 and is_orphan(job):
                _in(self._lengths.lease / _ORPHANS_PER_LEASE, partial(self._orphans.end, job.lease))
            if place.is_alone:
                if not await self._quiet.is_alone(self._lengths.lease):
                    await self._give_back([job.lease], wait=self._lengths.lease)
                    return
                alone = _in(self._lengths.lease, place.share)
            await self._run(pool.kinds[job.kind], job, received)
        except Exception as error:  # noqa: BLE001 - any error
            log.unexpected("worker", error)
            await self._give_back([job.lease], wait=self._back_off(job))
        finally:
            if alone is not None:
                alone.cancel()
            place.leave()
            if job.claims > 1:
                self._orphans.end(job.lease)
            self._calls.pop(job.lease, None)
            if not self._stopping_now.is_set():
                self._leases.discard(job.lease)
            pool.give_back(job.lease)

    async def _run(self, kind: Kind, job: model.LeasedJob, received: float) -> None:
        """The path of one job: judge the claim, confirm, declare, deliver, judge, settle, track."""
        chosen = kind.chain.choose(job) if kind.chain is not None else kind
        if isinstance(chosen, timedelta):
            await self._give_back([job.lease], wait=chosen)
            return
        declared: tuple[Parcel, Handover] | None = None
        try:
            declared = await self._prepare(chosen, job, received)
        finally:
            if declared is None and chosen.link is not None:
                chosen.link.unused()
        if declared is not None:
            await self._attempt(chosen, job, received, *declared)

    async def _prepare(
        self, kind: Kind, job: model.LeasedJob, received: float
    ) -> tuple[Parcel, Handover] | None:
        """Judge the claim, confirm and declare; None if there is no call to make."""
        policy = kind.policy(job)
        if job.cancel_requested and not kind.declares:  # requested while a dead worker had it
            await self._end(kind, job, settle.not_made(job))
            return None
        replays_in = _replays_in(kind, job, last=job.provider)
        doomed = judge_claim(job, policy, replays_in=replays_in)
        if doomed is not None:
            await self._end(kind, job, settle.unrun(job, doomed))
            return None
        try:
            confirmed = await confirm_job(kind, job)
        except StoreError as error:
            log.store_failed("render", error, wait=self._lengths.lease)
            await self._give_back([job.lease], wait=self._lengths.lease)
            return None
        if isinstance(confirmed, Unfit):
            await self._end(kind, job, settle.unfit(job, confirmed, duration=_since(received)))
            return None
        handover = Handover(kind.call_limit or _UNLIMITED)
        attempt = await self._begin(kind, job, confirmed, received)
        return None if attempt is None else (_parcel(job, confirmed, attempt), handover)

    async def _attempt(
        self, kind: Kind, job: model.LeasedJob, received: float, parcel: Parcel, handover: Handover
    ) -> None:
        """Deliver, judge, settle and track.

        A taken message is settled as sent even if something fails here: an open attempt would be repeated.
        """
        self._calls[job.lease] = handover
        called = time.monotonic()
        outcome = await deliver(kind, parcel, handover)
        try:
            self._tally.called(kind.provider, outcome, time.monotonic() - called)
            duration = _since(received)
            left = job.expires_in - duration
            verdict = judge_outcome(
                outcome, lambda: self._verdict(kind, job, outcome, expires_in=left)
            )
            end = settle.ended(job, verdict, outcome, duration=duration, declared=kind.declares)
            await self._end(kind, job, end, parcel.attempt)
        except Exception as error:
            if not isinstance(outcome, model.Taken):
                raise
            log.unexpected("worker", error)
            verdict = model.Sent(kind.provider, "")
            end = settle.ended(
                job, verdict, model.Taken(""), duration=_since(received), declared=kind.declares
            )
            await self._end(kind, job, end, parcel.attempt)
        if kind.learn is not None:
            await kind.learn(parcel, outcome, verdict)

    def _verdict(
        self, kind: Kind, job: model.LeasedJob, outcome: model.Outcome, *, expires_in: timedelta
    ) -> model.Verdict:
        return judge(
            outcome,
            provider=kind.provider,
            charged_before=job.charged,
            in_doubt_before=doubts(job),
            delivery=job.delivery,
            policy=kind.policy(job),
            expires_in=expires_in,
            chance=self._chance.random(),
            replays_in=_replays_in(kind, job, last=job.provider if doubts(job) else kind.provider),
            elsewhere=_elsewhere(kind, job, outcome),
        )

    async def _begin(
        self, kind: Kind, job: model.LeasedJob, confirmed: Confirmed | None, received: float
    ) -> int | None:
        """Declare the attempt; None if it must not be made."""
        if not kind.declares:
            return job.attempts + 1
        if self._is_late(kind, job, received):
            await self._give_back([job.lease])
            return None
        hold = (kind.call_limit or self._lengths.lease) + self._lengths.hold_margin
        begin = start(
            job, provider=kind.provider, hold=hold, received=received, confirmed=confirmed
        )
        try:
            answer = await self._declare(begin)
        except StoreError as error:
            answer = await _stored("declare", self._declare, begin, error)
        if isinstance(answer, model.Begun):
            self._leases.discard(job.lease)  # the hold replaces it
            if job.open_attempt:
                log.attempt_in_doubt(
                    job, classify.in_doubt(), attempt=job.attempts, duration=_since(received)
                )
            return answer.attempt
        end = settle.refused(job, answer)
        if end is not None:
            await self._end(kind, job, end)
        else:
            await self._give_back([job.lease], wait=answer.wait)
        return None

    def _is_late(self, kind: Kind, job: model.LeasedJob, received: float) -> bool:
        """True if it must be claimed again; only once, as its own preparation may always take too long."""
        message = job.lease.job
        if kind.start_within is None or _since(received) <= kind.start_within:
            return False
        if message in self._late or may_kill(job):  # a suspect had to wait
            self._late.discard(message)
            return False
        if len(self._late) >= _MOST_LATE:
            self._late.clear()
        self._late.add(message)
        return True

    def _back_off(self, job: model.LeasedJob) -> timedelta:
        """Wait of a job after an internal error: half its age, so that the waits grow."""
        made = model.made_at(job.lease.job)
        age = model.ZERO if made is None else timedelta(seconds=time.time() - made)
        return min(max(self._lengths.lease, age / 2), _LONGEST_BACK_OFF)

    async def _end(
        self, kind: Kind, job: model.LeasedJob, end: model.End, attempt: int | None = None
    ) -> None:
        """Settle until it is stored: an outcome is never dropped.

        The slot is free from now on, so that the next claim goes into the same transaction.
        """
        pool = self._pool_of[kind.name]
        pool.give_back(job.lease)
        try:
            answer = await self._settle(end)
        except StoreError as error:
            pool.take(job.lease)  # outcomes must not pile up while they cannot be stored
            answer = await _stored("settle", self._settle, end, error)
        if self._one_shot is not None and isinstance(answer, model.Settled):
            self._one_shot.states[answer.state] += 1
        limit = kind.policy(job).max_attempts
        track(job, end, answer, Attempt(attempt, kind.provider, limit), self._tally)

    # --- stopping

    async def _wait_for_jobs(self) -> None:
        """Let jobs in flight end, within the grace period."""
        if not self._jobs or self._stopping_now.is_set():
            return
        log.worker_stopping(in_flight=len(self._jobs), grace=self._lengths.grace)
        grace = self._lengths.grace.total_seconds()
        await _first_of(asyncio.wait(list(self._jobs)), self._stopping_now.wait(), timeout=grace)

    async def _give_back_all(self) -> None:
        """Return jobs without an attempt; outcomes that wait to be stored go first, or they would be late."""
        await self._settle.drained()
        leases = list(self._leases)
        await self._give_back(leases)
        try:
            await self._claims.undo_failed()
        except StoreError as error:  # then their leases expire
            log.store_failed("undo_claims", error, wait=self._lengths.lease)
        await self._declare.drained()
        log.worker_stopped(released=len(leases))

    async def _close_kinds(self) -> None:
        kinds = [kind for pool in self._pools for kind in pool.kinds.values()]
        await asyncio.gather(*(kind.close() for kind in kinds if kind.close is not None))

    async def _give_back(
        self, leases: Sequence[model.Lease], wait: timedelta = timedelta(0)
    ) -> None:
        try:
            if leases:
                await self._store.release(leases, wait=wait)
        except StoreError as error:
            log.store_failed("release", error, wait=self._lengths.extends_every)
            self._unreleased.update(leases)
        self._leases.difference_update(leases)


class _OneShot:
    """A run until nothing is due: its limit, its end, and the results of its jobs."""

    def __init__(self, limit: int | None) -> None:
        self.left = limit
        self.claiming = asyncio.Lock()
        self.states: Counter[model.State] = Counter()
        self.failure: StoreUnavailable | None = None
        self._dry: set[Slots] = set()

    def is_over(self, pool: Slots, claimed: model.Claimed, *, is_idle: bool, of: int) -> bool:
        """True if the limit is reached, or every pool found nothing since the last job ended."""
        if claimed.jobs:
            self._dry.clear()
        elif is_idle and (claimed.idle_for is None or claimed.idle_for > _A_MOMENT):
            self._dry.add(pool)  # otherwise a slot freed a millisecond ago may not show yet
        if self.left is not None:
            self.left -= len(claimed.jobs)
        return self.left == 0 or len(self._dry) == of

    def put_off(self, jobs: int) -> None:
        """These jobs of a claim are not run: they do not count against the limit."""
        if self.left is not None:
            self.left += jobs

    def result(self) -> Counter[model.State]:
        """The number of jobs by state; raises the failure if there are none."""
        if self.failure is not None and not self.states:
            raise self.failure
        return self.states


def _parcel(job: model.LeasedJob, confirmed: Confirmed | None, attempt: int) -> Parcel:
    content = confirmed.email if confirmed is not None else job.content
    return Parcel(job.lease.job, job.tenant, content, attempt, job.revision, job.request_id)


def _elsewhere(kind: Kind, job: model.LeasedJob, outcome: model.Outcome) -> timedelta | None:
    return None if kind.chain is None else kind.chain.elsewhere(job, outcome, kind.provider)


def _replays_in(kind: Kind, job: model.LeasedJob, *, last: str | None) -> timedelta:
    """The time for which the provider surely still recognizes the key of this message.

    Counted from the message's id, which is older than its first call. A key that was ``last`` used with
    another provider is known only there.
    """
    made = model.made_at(job.lease.job)
    if kind.replays_for is None or made is None or last not in {None, kind.provider}:
        return model.ZERO
    return kind.replays_for - timedelta(seconds=time.time() - made)


def _in(wait: timedelta, act: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(wait.total_seconds(), act)


def _since(moment: float) -> timedelta:
    return timedelta(seconds=time.monotonic() - moment)


async def _stored(
    operation: str, write: Gatherer[Item, Answer], item: Item, error: StoreError
) -> Answer:
    """Write again after a failure, until the store is back: the write may be repeated."""
    wait = _FIRST_WAIT
    while True:
        log.store_failed(operation, error, wait=timedelta(seconds=wait))
        await asyncio.sleep(wait)
        wait = min(2 * wait, _LONGEST_WAIT)
        try:
            return await write(item)
        except StoreError as again:
            error = again


async def _first_of(*waits: Awaitable[object], timeout: float | None = None) -> None:
    """Wait for the first to end and raise its error; those that were not tasks before are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task, wait in zip(tasks, waits, strict=True):
            if task is not wait:
                task.cancel()


async def _cancelled(tasks: Sequence["asyncio.Future[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
