"""The loop: claim as many jobs as there are free slots, run those of a claim along the path together, settle.

A worker runs from `run` until `stop` (SIGTERM). Then it claims nothing more, jobs in flight have the
grace period to end, and the rest is released. `stop_now` (a second signal) does not wait. A killed
worker leaves leases that expire and, for running calls, open attempts.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from carteiro import model
from carteiro.engine import storing
from carteiro.engine.judging import confirm_at_once, confirm_slowly, judge_outcome
from carteiro.engine.run import Run
from carteiro.engine.slots import Orphans, Quiet, Slots
from carteiro.engine.storing import stored
from carteiro.errors import StoreError, StoreUnavailable
from carteiro.jobs.confirmation import Confirmed, NeedsCloserLook, Unfit, Unrendered
from carteiro.jobs.kind import Kind, Pool
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.path import settle
from carteiro.path.claim import Claims
from carteiro.path.declare import start
from carteiro.path.deliver import deliver
from carteiro.path.judge import doubts, is_orphan, is_plain, judge, judge_claim, may_kill
from carteiro.path.track import Attempt, track
from carteiro.policy import classify
from carteiro.ports.provider import Handover, Parcel
from carteiro.ports.store import Store
from carteiro.ports.wake import Wake

_LONGEST_NAP = timedelta(seconds=5)  # polls even without a wake-up
_A_MOMENT = timedelta(milliseconds=20)  # between empty claims, until idle
_UNLIMITED = timedelta(days=365)  # of a call without a limit
_LONGEST_BACK_OFF = timedelta(hours=1)  # of a job that failed with an internal error
_MOST_LATE = 10_000  # jobs remembered as late
_MOST_ENDS = 500  # in one settle
_TURN_S = 0.01  # of confirming jobs, then others have a turn of the event loop
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
            grace=max(lengths.extends_every, timedelta(seconds=storing.LONGEST_WAIT_S)),
        )
        self._wake = wake
        self._lengths = lengths
        self._chance = chance or random.Random()  # noqa: S311 - jitter, not a secret
        self._tally = tally or Tally()
        self._pools = [Slots(pool) for pool in pools if pool.kinds]
        self._runs: dict[model.Lease, Run] = {}  # until they are settled or given back
        self._tasks: set[asyncio.Task[None]] = set()  # of stages; a run has that of its call
        self._confirmed: list[Run] = []  # by themselves, to be declared
        self._is_declaring = False
        self._ended: list[Run] = []  # to be settled
        self._is_settling = False
        self._settling: set[asyncio.Task[None]] = set()  # never cancelled
        self._is_stuck = False  # ends cannot be stored: they keep their slots
        self._unreleased: set[model.Lease] = set()  # the store failed: released by the timer
        self._late: set[model.MessageId] = set()  # returned once for being late
        self._quiet = Quiet(clock=clock, debt=lengths.warm_up)
        self._orphans = Orphans(
            sum(pool.slots for pool in self._pools),
            longest=lengths.lease / _ORPHANS_PER_LEASE,
            clock=clock,
        )
        self._one_shot: _OneShot | None = None
        self._left = asyncio.Event()  # a job has left the worker
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
                self._stopping_now.set()  # from now on what cannot be stored is given up
                calls = [run.task for run in self._runs.values() if run.task is not None]
                await _cancelled([extending, *self._tasks, *calls])
                await self._give_back_all()
                await self._close_kinds()

    # --- claiming

    async def _feed(self, pool: Slots) -> None:
        """Claim whenever slots are free; sleep when there is nothing."""
        wait = storing.FIRST_WAIT_S
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
                wait = min(2 * wait, storing.LONGEST_WAIT_S)
                continue
            wait = storing.FIRST_WAIT_S
            if not claimed.jobs:
                await self._nap(claimed.idle_for, rings)

    async def _claim_for(self, pool: Slots) -> model.Claimed:
        """Claim as many jobs as there are slots; until idle, no more than the limit, one pool after the other."""
        shot = self._one_shot
        if shot is None:
            return await self._claim(pool, pool.wanted)
        async with shot.claiming:
            wanted = pool.wanted if shot.left is None else min(pool.wanted, shot.left)
            is_idle = not (self._runs or self._tasks or self._orphans.are_to_come)
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
                await self._release([job.lease for job in got.jobs])
            raise
        received = time.monotonic()
        runs = {job.lease: Run(job, pool, received) for job in claimed.jobs}
        try:
            self._start(pool, await self._without_surplus(runs))
        except asyncio.CancelledError:
            await self._release(list(runs))
            raise
        return claimed

    async def _without_surplus(self, runs: dict[model.Lease, Run]) -> list[Run]:
        """The runs to start. Surplus orphans are given back first, or they would be claimed at the next death, too."""
        rounds = self._orphans.surplus([run.job for run in runs.values()])
        if not rounds:
            return list(runs.values())
        try:
            for wait, surplus in rounds:
                await self._release(surplus, wait=wait)
        except Exception:
            for lease in runs:
                self._orphans.end(lease)
            self._unreleased.update(runs)
            raise
        given_back = {lease for _, surplus in rounds for lease in surplus}
        if self._one_shot is not None:
            self._one_shot.put_off(len(given_back))
        return [run for lease, run in runs.items() if lease not in given_back]

    def _start(self, pool: Slots, runs: list[Run]) -> None:
        """Start the jobs of a claim: together, but those that may kill the worker wait to be alone."""
        together = []
        for run in runs:
            job = run.job
            self._runs[job.lease] = run
            if job.claims > 1 and may_kill(job):
                self._start_alone(run)
                continue
            if job.claims > 1 and is_orphan(job):
                after = self._lengths.lease / _ORPHANS_PER_LEASE
                run.timer = _in(after, partial(self._orphans.end, job.lease))
            run.has_slot = True
            together.append(run)
        if together:
            pool.take(len(together))
            self._quiet.enter(len(together))
            chosen = [run for run in together if self._choose(run)]  # before the next claim
            self._go(self._work(chosen), *chosen)

    def _start_alone(self, run: Run) -> None:
        place = self._quiet.place_alone(run.job.tenant)
        if isinstance(place, timedelta):  # others are claimed meanwhile
            self._quiet.enter(1)
            self._go(self._give_back(run, place))
        else:
            run.place = place
            run.take_slot()
            self._go(self._work_alone(run), run)

    async def _work_alone(self, run: Run) -> None:
        if not await self._quiet.is_alone(self._lengths.lease):
            await self._give_back(run, self._lengths.lease)
            return
        if run.place is not None:
            run.timer = _in(self._lengths.lease, run.place.share)
        if self._choose(run):
            await self._work([run])

    def _choose(self, run: Run) -> bool:
        """Choose the provider of a chain; False if none can be called now, and the job is given back."""
        chain = run.kind.chain
        if chain is None:
            return True
        try:
            chosen = chain.choose(run.job)
        except Exception as error:  # noqa: BLE001 - it affects no other job
            self._fail(run, error)
            return False
        if isinstance(chosen, timedelta):
            self._go(self._give_back(run, chosen))
            return False
        run.kind, run.link = chosen, chosen.link
        return True

    async def _nap(self, idle_for: timedelta | None, rings: int) -> None:
        nap = _LONGEST_NAP if idle_for is None else min(idle_for, _LONGEST_NAP)
        if nap > timedelta(0):
            await self._wake.wait(nap, since=rings)

    async def _keep_leases(self) -> None:
        """One timer for all leases of the process, and for the holds of calls that only await a reply."""
        every = self._lengths.extends_every.total_seconds()
        while True:
            await asyncio.sleep(every)
            leases = [lease for lease, run in self._runs.items() if run.is_to_be_extended]
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

    # --- the path: confirm, declare, deliver, judge, settle, track

    async def _work(self, runs: list[Run]) -> None:
        """Confirm and declare; a job that needs longer goes on by itself."""
        ready: list[Run] = []
        turn_ends = time.monotonic() + _TURN_S
        for run in runs:
            try:
                if self._confirm(run):
                    ready.append(run)
            except StoreError as error:
                self._go(self._give_back_unrendered(run, error))
            except Exception as error:  # noqa: BLE001 - it affects no other job
                self._fail(run, error)
            if time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + _TURN_S
        await self._declare(ready)

    def _confirm(self, run: Run) -> bool:
        """Judge the claim and validate; True if it can be attempted now."""
        job, kind = run.job, run.kind
        if job.cancel_requested and not kind.declares:  # requested while a dead worker had it
            return self._end(run, settle.not_made(job))
        if not is_plain(job):
            replays_in = _replays_in(kind, job, last=job.provider)
            doomed = judge_claim(job, kind.policy(job), replays_in=replays_in)
            if doomed is not None:
                return self._end(run, settle.unrun(job, doomed))
        if kind.confirm is None:
            return True
        found = confirm_at_once(kind, job)
        if isinstance(found, Unrendered | NeedsCloserLook):
            self._go(self._confirm_slowly(run, found), run)
            return False
        return self._is_fit(run, found)

    async def _confirm_slowly(self, run: Run, found: Unrendered | NeedsCloserLook) -> None:
        try:
            is_fit = self._is_fit(run, await confirm_slowly(run.kind, run.job, found))
        except StoreError as error:
            await self._give_back_unrendered(run, error)
        else:
            if is_fit:
                self._confirmed.append(run)
                if not self._is_declaring:
                    await self._declare_confirmed()

    async def _declare_confirmed(self) -> None:
        """Declare jobs that were confirmed by themselves; those that come meanwhile are the next list."""
        self._is_declaring = True
        try:
            while self._confirmed:
                runs, self._confirmed = self._confirmed, []
                await self._guarded(self._declare(runs), tuple(runs))
        finally:
            self._is_declaring = False

    async def _give_back_unrendered(self, run: Run, error: StoreError) -> None:
        log.store_failed("render", error, wait=self._lengths.lease)
        await self._give_back(run, self._lengths.lease)

    def _is_fit(self, run: Run, found: Confirmed | Unfit) -> bool:
        if isinstance(found, Unfit):
            return self._end(run, settle.unfit(run.job, found, duration=_since(run.received)))
        run.confirmed = found
        return True

    async def _declare(self, runs: list[Run]) -> None:
        """Make attempts durable, all in one commit, before they are made; some kinds need none."""
        declared: list[Run] = []
        for run in runs:
            if not run.kind.declares:
                self._call(run, run.job.attempts + 1)
            elif self._is_late(run):
                self._go(self._give_back(run))
            else:
                run.handover = Handover(run.kind.call_limit or _UNLIMITED)
                declared.append(run)
        if declared:
            await self._declare_together(declared)

    async def _declare_together(self, runs: list[Run]) -> None:
        starts = [self._start_of(run) for run in runs]
        answers = await stored("declare", self._store.declare, starts)
        if answers is None:
            for run in runs:
                self._go(self._declare_together([run]), run)
            return
        for run, answer in zip(runs, answers, strict=True):
            self._declared(run, answer)

    def _start_of(self, run: Run) -> model.Start:
        job, kind = run.job, run.kind
        hold = (kind.call_limit or self._lengths.lease) + self._lengths.hold_margin
        return start(
            job, provider=kind.provider, hold=hold, received=run.received, confirmed=run.confirmed
        )

    def _declared(self, run: Run, answer: model.Begun | model.Refused) -> None:
        job = run.job
        if isinstance(answer, model.Begun):
            run.is_declared = True
            if job.open_attempt:
                duration = _since(run.received)
                log.attempt_in_doubt(
                    job, classify.in_doubt(), attempt=job.attempts, duration=duration
                )
            self._call(run, answer.attempt)
        elif (end := settle.refused(job, answer)) is not None:
            self._end(run, end)
        else:
            self._go(self._give_back(run, answer.wait))

    def _call(self, run: Run, attempt: int) -> None:
        job, confirmed = run.job, run.confirmed
        content = job.content if confirmed is None else confirmed.email
        parcel = Parcel(job.lease.job, job.tenant, content, attempt, job.revision, job.request_id)
        handover = run.handover or Handover(run.kind.call_limit or _UNLIMITED)
        run.parcel, run.handover, run.is_handed_on = parcel, handover, True
        run.task = asyncio.get_running_loop().create_task(self._deliver(run, parcel, handover))

    async def _deliver(self, run: Run, parcel: Parcel, handover: Handover) -> None:
        run.called_at = time.monotonic()
        try:
            run.outcome = await deliver(run.kind, parcel, handover)
            if run.outcome is None:
                raise TypeError(f"{run.kind.name} has returned no outcome")  # noqa: TRY301 - of the provider
        except asyncio.CancelledError:
            if self._stopping_now.is_set():
                raise
            self._fail(run, RuntimeError("the call has cancelled itself"))
        except Exception as error:  # noqa: BLE001 - it affects no other job
            self._fail(run, error)
        else:
            self._end(run)

    def _end(self, run: Run, end: model.End | None = None) -> bool:
        """Settle it together with others; without an ``end`` its outcome is judged. Returns False.

        The slot is free from now on, so that the next claim goes into the same transaction.
        """
        run.is_handed_on = True
        run.end = end
        run.ended_at = time.monotonic()
        if not self._is_stuck:
            run.free_slot()
        self._ended.append(run)
        if not self._is_settling:
            self._is_settling = True
            self._settle_in_a_task(self._settle_all())
        return False

    def _settle_in_a_task(self, settle: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(settle)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    async def _settle_all(self) -> None:
        await asyncio.sleep(0)  # what ends in this turn of the loop still joins
        while self._ended:
            runs, self._ended = self._ended[:_MOST_ENDS], self._ended[_MOST_ENDS:]
            await self._settle([run for run in runs if self._has_end(run)])
            self._is_stuck = False
        self._is_settling = False

    def _has_end(self, run: Run) -> bool:
        return run.end is not None or (run.outcome is not None and self._judge(run, run.outcome))

    def _judge(self, run: Run, outcome: model.Outcome) -> bool:
        """Set the end of an attempt; False if it failed and the job is given back.

        A taken message ends as sent even if something fails here: an open attempt would be repeated.
        """
        kind, job = run.kind, run.job
        duration = timedelta(seconds=run.ended_at - run.received)
        try:
            self._tally.called(kind.provider, outcome, run.ended_at - run.called_at)
            verdict = judge_outcome(outcome, partial(self._verdict, run, outcome, duration))
            declared = kind.declares
            run.end = settle.ended(job, verdict, outcome, duration=duration, declared=declared)
        except Exception as error:  # noqa: BLE001 - it affects no other job
            if not isinstance(outcome, model.Taken):
                self._fail(run, error)
                return False
            log.unexpected("worker", error)
            run.end = _sent_for_sure(run, duration)
        return True

    def _verdict(self, run: Run, outcome: model.Outcome, duration: timedelta) -> model.Verdict:
        kind, job = run.kind, run.job
        elsewhere = (
            None if kind.chain is None else kind.chain.elsewhere(job, outcome, kind.provider)
        )
        if isinstance(outcome, model.Taken):
            return model.Sent(kind.provider, classify.one_line(outcome.provider_id))
        return judge(
            outcome,
            provider=kind.provider,
            charged_before=job.charged,
            in_doubt_before=doubts(job),
            delivery=job.delivery,
            policy=kind.policy(job),
            expires_in=job.expires_in - duration,
            chance=self._chance.random(),
            replays_in=_replays_in(kind, job, last=job.provider if doubts(job) else kind.provider),
            elsewhere=elsewhere,
        )

    async def _settle(self, runs: list[Run], *, apart: bool = False) -> None:
        """Store the ends in one commit, until it succeeds: an outcome is never dropped. Then track them."""
        ends = [run.end for run in runs if run.end is not None]
        hold = partial(self._keep_slots, runs, apart=apart)
        try:
            answers = await stored(
                "settle", self._store.settle, ends, in_trouble=hold, give_up=self._stopping_now
            )
        except StoreError:  # we stop: jobs that are not declared are released
            return
        except Exception as error:  # noqa: BLE001 - of the only one
            self._unsettled(runs[0], error)
            return
        if answers is None:
            for run in runs:
                self._settle_in_a_task(self._settle([run], apart=True))
            return
        for run, end, answer in zip(runs, ends, answers, strict=True):
            try:
                self._track(run, end, answer)
            except Exception as error:  # noqa: BLE001 - it affects no other job
                self._fail(run, error)

    def _keep_slots(self, runs: list[Run], *, apart: bool) -> None:
        """Outcomes must not pile up while they cannot be stored."""
        self._is_stuck = self._is_stuck or not apart
        for run in runs:
            run.take_slot()

    def _unsettled(self, run: Run, error: Exception) -> None:
        """An end that cannot be stored: a taken message is stored as sent and nothing else."""
        duration = timedelta(seconds=run.ended_at - run.received)
        sure = _sent_for_sure(run, duration)
        if not isinstance(run.outcome, model.Taken) or run.end == sure:
            self._fail(run, error)
            return
        log.unexpected("worker", error)
        self._end(run, sure)

    def _track(self, run: Run, end: model.End, answer: model.Settled | model.Late) -> None:
        job, kind = run.job, run.kind
        if self._one_shot is not None and isinstance(answer, model.Settled):
            self._one_shot.states[answer.state] += 1
        number = None if run.parcel is None else run.parcel.attempt
        limit = kind.policy(job).max_attempts if isinstance(end.verdict, model.Retry) else 0
        track(job, end, answer, Attempt(number, kind.provider, limit), self._tally)
        self._leave(run)
        if kind.learn is not None and run.parcel is not None and run.outcome is not None:
            self._go(kind.learn(run.parcel, run.outcome, end.verdict))

    # --- leaving the path

    def _is_late(self, run: Run) -> bool:
        """True if it must be claimed again; only once, as its own preparation may always take too long."""
        within, message = run.kind.start_within, run.job.lease.job
        if within is None or _since(run.received) <= within:
            return False
        if message in self._late or may_kill(run.job):  # a suspect had to wait
            self._late.discard(message)
            return False
        if len(self._late) >= _MOST_LATE:
            self._late.clear()
        self._late.add(message)
        return True

    def _fail(self, run: Run, error: Exception) -> None:
        """An internal error affects no other job, and does not count as a crash of the worker."""
        run.is_handed_on = True
        log.unexpected("worker", error)
        made = model.made_at(run.job.lease.job)
        age = model.ZERO if made is None else timedelta(seconds=time.time() - made)
        back_off = min(max(self._lengths.lease, age / 2), _LONGEST_BACK_OFF)  # the waits grow
        self._go(self._give_back(run, back_off))

    async def _give_back(self, run: Run, wait: timedelta = model.ZERO) -> None:
        run.is_handed_on = True
        try:
            await self._release([run.job.lease], wait=wait)
        finally:
            if not self._stopping_now.is_set():  # else it is released with the others
                self._leave(run)

    def _leave(self, run: Run) -> None:
        """The job is settled or given back."""
        job = run.job
        if self._runs.pop(job.lease, None) is None:
            return
        run.free_slot()
        if run.place is None:
            self._quiet.leave()
        else:
            run.place.leave()
        if run.timer is not None:
            run.timer.cancel()
        if job.claims > 1:
            self._orphans.end(job.lease)
        if run.link is not None and run.task is None:
            run.link.unused()
        self._left.set()

    def _go(self, work: Awaitable[None], *runs: Run) -> None:
        """Start a part of the path; if it fails, these runs fail that it has not handed on."""
        task = asyncio.get_running_loop().create_task(self._guarded(work, runs))
        self._tasks.add(task)
        task.add_done_callback(partial(self._gone, work))

    async def _guarded(self, work: Awaitable[None], runs: tuple[Run, ...]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 - any error
            open_ = [run for run in runs if not run.is_handed_on]
            for run in open_:
                self._fail(run, error)
            if not open_:
                log.unexpected("worker", error)

    def _gone(self, work: Awaitable[None], task: "asyncio.Task[None]") -> None:
        if isinstance(work, Coroutine):
            work.close()  # if it was cancelled before it began
        self._tasks.discard(task)
        self._left.set()

    # --- stopping

    async def _wait_for_jobs(self) -> None:
        """Let jobs in flight end, within the grace period."""
        if not (self._runs or self._tasks) or self._stopping_now.is_set():
            return
        log.worker_stopping(in_flight=len(self._runs), grace=self._lengths.grace)
        grace = self._lengths.grace.total_seconds()
        await _first_of(self._all_left(), self._stopping_now.wait(), timeout=grace)

    async def _all_left(self) -> None:
        while self._runs or self._tasks:
            self._left.clear()
            await self._left.wait()

    async def _give_back_all(self) -> None:
        """Return jobs without an attempt; outcomes that wait to be stored go first, or they would be late."""
        while self._settling:
            await asyncio.wait(list(self._settling))
        await _cancelled(list(self._tasks))  # of the last ends
        leases = [lease for lease, run in self._runs.items() if not run.is_declared]
        await self._release(leases)
        try:
            await self._claims.undo_failed()
        except StoreError as error:  # then their leases expire
            log.store_failed("undo_claims", error, wait=self._lengths.lease)
        log.worker_stopped(released=len(leases))

    async def _close_kinds(self) -> None:
        kinds = [kind for pool in self._pools for kind in pool.kinds.values()]
        await asyncio.gather(*(kind.close() for kind in kinds if kind.close is not None))

    async def _release(self, leases: Sequence[model.Lease], wait: timedelta = timedelta(0)) -> None:
        try:
            if leases:
                await self._store.release(leases, wait=wait)
        except StoreError as error:
            log.store_failed("release", error, wait=self._lengths.extends_every)
            self._unreleased.update(leases)


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


def _sent_for_sure(run: Run, duration: timedelta) -> model.End:
    """The end of a taken message that can always be stored."""
    verdict, taken = model.Sent(run.kind.provider, ""), model.Taken("")
    return settle.ended(run.job, verdict, taken, duration=duration, declared=run.kind.declares)


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
