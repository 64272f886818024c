"""The loop: claim as many jobs as there are free slots, run those of a claim along the path together, settle.

A worker runs from `run` until `stop` (SIGTERM). Then it claims nothing more, jobs in flight have the
grace period to end, and the rest is released. `stop_now` (a second signal) does not wait. A killed
worker leaves leases that expire and, for running calls, open attempts.
"""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from carteiro import model
from carteiro.engine import storing
from carteiro.engine.judging import confirm_at_once, confirm_slowly, replays_in
from carteiro.engine.lanes import Lanes
from carteiro.engine.one_shot import A_MOMENT, OneShot
from carteiro.engine.run import Run
from carteiro.engine.settling import Exits, Settling
from carteiro.engine.slots import Orphans, Quiet, Slots
from carteiro.engine.storing import stored
from carteiro.errors import StoreError, StoreUnavailable
from carteiro.jobs.confirmation import Confirmed, NeedsCloserLook, Unfit, Unrendered
from carteiro.jobs.kind import Pool
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.observability.tracing import Tracing
from carteiro.path import settle
from carteiro.path.claim import Claims
from carteiro.path.declare import arrival, start
from carteiro.path.judge import are_plain, is_orphan, judge_claim, may_kill
from carteiro.policy import classify
from carteiro.ports.provider import Handover
from carteiro.ports.store import Store
from carteiro.ports.wake import Wake

_LONGEST_NAP = timedelta(seconds=5)  # polls even without a wake-up
_LONGEST_BACK_OFF = timedelta(hours=1)  # of a job that failed with an internal error
_MOST_LATE = 10_000  # jobs remembered as late
_ENDS = (asyncio.CancelledError, KeyboardInterrupt)  # of the worker itself
_DEAF_S = 5.0  # after this, a call that ignores its cancel is left to go on
_STALE_S = 2.0  # for a job that was claimed ahead
_LOOKS_EVERY = 4  # jobs, at the clock
_TURN_S = 0.01  # of confirming jobs, then others have a turn of the event loop
_DECLARED_S = 0.01  # the longest that jobs claimed ahead wait for the list before them
_ORPHANS_PER_LEASE = 30  # at least, for any duration: most that kill do it at once


@model.value
class Lengths:
    """Time limits of a worker; ``warm_up``: the time before it runs a suspect.

    ``ahead``: it claims no more jobs ahead of its free slots than it works off in this time.
    """

    lease: timedelta = timedelta(seconds=30)
    hold_margin: timedelta = timedelta(seconds=10)
    grace: timedelta = timedelta(seconds=40)
    warm_up: timedelta = model.ZERO
    ahead: timedelta = timedelta(milliseconds=200)

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
        tracing: Tracing | None = None,
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
        self._pools = [Slots(pool, ahead=lengths.ahead) for pool in pools if pool.kinds]
        self._runs: dict[model.Lease, Run] = {}  # until they are settled or given back
        self._tasks: set[asyncio.Task[None]] = set()  # of stages; a run has that of its call
        self._confirmed: list[Run] = []  # by themselves, to be declared
        self._is_declaring = False
        self._unreleased: set[model.Lease] = set()  # the store failed: released by the timer
        self._late: set[model.MessageId] = set()  # returned once for being late
        self._quiet = Quiet(clock=clock, debt=lengths.warm_up)
        self._orphans = Orphans(
            sum(pool.slots for pool in self._pools),
            longest=lengths.lease / _ORPHANS_PER_LEASE,
            clock=clock,
        )
        self._one_shot: OneShot | None = None
        self._left = asyncio.Event()  # a job has left the worker
        self._stopping = asyncio.Event()
        self._stopping_now = asyncio.Event()
        self._settling = Settling(
            store,
            Exits(self._leave, self._fail, self._go, self._runs.__len__),
            tally or Tally(),
            chance=(chance or random.Random()).random,  # noqa: S311 - jitter, not a secret
            give_up=self._stopping_now,
            tracing=tracing,
        )
        self._lanes = Lanes(self._settling.end_all, self._fail, give_up=self._stopping_now)

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
            self._one_shot = OneShot(limit)
            self._settling.states = self._one_shot.states
        await self._run_pools()
        return Counter() if self._one_shot is None else self._one_shot.result()

    async def _run_pools(self) -> None:
        kinds = [kind for pool in self._pools for kind in pool.kinds]
        log.worker_started(kinds=kinds, slots=sum(pool.slots for pool in self._pools))
        works = [work for pool in self._pools for work in (self._feed(pool), self._refill(pool))]
        loops = [asyncio.create_task(work) for work in works]
        extending = asyncio.create_task(self._keep_leases())
        try:
            await _first_of(self._stopping.wait(), *loops)
        finally:
            self._stopping.set()
            try:
                await _cancelled(loops)
                await self._give_back_waiting()
                await self._wait_for_jobs()
            finally:  # also on a second cancel: that is a `stop_now`
                self._stopping_now.set()  # from now on what cannot be stored is given up
                await _cancelled(loops)
                calls = [run.task for run in self._runs.values() if run.task is not None]
                if deaf := await _cancelled([extending, *self._tasks, *calls], within=_DEAF_S):
                    log.handlers_go_on(deaf)
                await self._give_back_all()
                every = [kind for pool in self._pools for kind in pool.kinds.values()]
                await asyncio.gather(*(kind.close() for kind in every if kind.close is not None))

    # --- claiming

    async def _feed(self, pool: Slots) -> None:
        """Claim whenever slots are free; sleep when there is nothing."""
        wait = storing.FIRST_WAIT_S
        while not self._stopping.is_set():
            await pool.has_room()
            await self._quiet.is_over()
            held = pool.held_for()
            if held > model.ZERO:  # claimed jobs would only be returned
                await pool.has_freed_slot(within=held)
                continue
            rings, has_slot = self._wake.rings(), pool.wanted > 0
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
            if has_slot:
                await self._nap(pool, claimed.idle_for, rings)
            elif not claimed.jobs:  # tenants with limits are claimed for free slots only
                await pool.has_free_slot()

    async def _refill(self, pool: Slots) -> None:
        """Start jobs that were claimed ahead as slots become free."""
        while True:
            begun = self._begin(pool, await pool.next_waiting())
            if begun is not None:
                # Slots that become free until these are declared are for one list, not for many short ones.
                await asyncio.wait([begun], timeout=_DECLARED_S)

    async def _claim_for(self, pool: Slots) -> model.Claimed:
        """Claim as many jobs as there are slots; until idle, no more than the limit, one pool after the other."""
        shot = self._one_shot
        if shot is None:
            return await self._claim(pool, pool.wanted, pool.wanted_ahead)
        async with shot.claiming:
            wanted, ahead = pool.wanted, pool.wanted_ahead
            if shot.left is not None:
                wanted, ahead = min(wanted, shot.left), 0
            is_idle = not (self._runs or self._tasks or self._orphans.are_to_come)
            try:
                claimed = model.Claimed([], None)
                if wanted or ahead:
                    claimed = await self._claim(pool, wanted, ahead)
            except StoreUnavailable as error:
                if is_idle:  # a one-shot run does not wait for the store
                    shot.failure = error
                    self.stop()
                raise
            if shot.is_over(pool, claimed, is_idle=is_idle, of=len(self._pools)):
                self.stop()
        return model.Claimed(claimed.jobs, model.ZERO if claimed.jobs else A_MOMENT)

    async def _claim(self, pool: Slots, limit: int, ahead: int) -> model.Claimed:
        """Claim and start; a claim that is running at a stop is finished, so that nothing leaks."""
        lease = self._lengths.lease
        asked = asyncio.ensure_future(
            self._claims.claim(kinds=pool.kinds, limit=limit, lease=lease, ahead=ahead)
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
        pool.got(claimed.jobs, wanted=limit)
        try:
            self._start(pool, await self._without_surplus(runs), limit)
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

    def _start(self, pool: Slots, runs: list[Run], limit: int) -> None:
        """Start the jobs of a claim: together, but those that may kill the worker wait to be alone.

        The first ones, up to the limit, were claimed for slots: they go before jobs that were claimed ahead.
        """
        self._runs.update([(run.job.lease, run) for run in runs])
        alone: set[Run] = set()
        for run in [run for run in runs if run.job.claims > 1]:
            if may_kill(run.job):
                alone.add(run)
                self._start_alone(run)
            elif is_orphan(run.job):
                after = self._lengths.lease / _ORPHANS_PER_LEASE
                run.timer = _in(after, partial(self._orphans.end, run.job.lease))
        together = [run for run in runs if run not in alone] if alone else runs
        self._quiet.enter(len(together))
        # If others wait, they begin with those: in longer lists.
        at_once = 0 if pool.waiting else max(0, pool.free)
        self._begin(pool, together[:at_once])
        pool.queue(together[at_once:limit], together[max(at_once, limit) :])

    def _begin(self, pool: Slots, runs: list[Run]) -> "asyncio.Task[None] | None":
        """Run jobs along the path, together; the task ends when their calls have begun."""
        if not runs:
            return None
        for run in runs:
            run.has_slot = True
        pool.take(len(runs))
        # The provider of a chain is chosen before the next claim.
        chosen = [run for run in runs if run.kind.chain is None or self._choose(run)]
        if not chosen:
            return None
        begun = self._go(self._work(chosen))
        if pool.has_spare:
            self._settling.hurry()
        return begun

    def _start_alone(self, run: Run) -> None:
        place = self._quiet.place_alone(run.job.tenant)
        if isinstance(place, timedelta):  # others are claimed meanwhile
            self._quiet.enter(1)
            self._go(self._give_back(run, place))
        else:
            run.place = place
            self._go(self._work_alone(run), run)

    async def _work_alone(self, run: Run) -> None:
        if not await self._quiet.is_alone(self._lengths.lease):
            await self._give_back(run, self._lengths.lease)
            return
        run.take_slot()
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

    async def _nap(self, pool: Slots, idle_for: timedelta | None, rings: int) -> None:
        """Sleep until there may be work; not at all if the claim has left some."""
        nap = _LONGEST_NAP if idle_for is None else min(idle_for, _LONGEST_NAP)
        if nap > timedelta(0):
            await self._wake.wait(nap, since=rings, kinds=pool.kinds)

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
                await self._give_back_waiting(before=time.monotonic() - _STALE_S)
            except StoreError as error:
                log.store_failed("extend", error, wait=timedelta(seconds=every))
            except Exception as error:  # noqa: BLE001 - leases that run out look like crashes of their jobs
                log.unexpected("worker", error)

    # --- the path: confirm, declare, deliver, judge, settle, track

    async def _work(self, runs: list[Run]) -> None:
        """Confirm, declare and deliver; `Settling` does the rest."""
        ready = await self._confirm(runs)
        await self._guarded(self._declare(ready), tuple(ready))

    async def _confirm(self, runs: list[Run]) -> list[Run]:
        """Judge the claims and validate; those that can be attempted now. One that needs longer goes on by itself."""
        is_plain = are_plain([run.job for run in runs])
        if is_plain and not [run for run in runs if run.kind.confirm is not None]:
            return runs
        ready: list[Run] = []
        turn_ends = time.monotonic() + _TURN_S
        for number, run in enumerate(runs):
            try:
                if self._may_run(run, is_plain=is_plain):
                    ready.append(run)
            except StoreError as error:
                self._go(self._give_back_unrendered(run, error))
            except _ENDS:
                raise
            except BaseException as error:  # noqa: BLE001 - it affects no other job
                self._fail(run, error)
            if not number % _LOOKS_EVERY and time.monotonic() > turn_ends:
                await asyncio.sleep(0)
                turn_ends = time.monotonic() + _TURN_S
        return ready

    def _may_run(self, run: Run, *, is_plain: bool = False) -> bool:
        job, kind = run.job, run.kind
        if job.cancel_requested and not kind.declares:  # requested while a dead worker had it
            self._settling.end(run, settle.not_made(job))
            return False
        if not (is_plain or are_plain([job])):
            left = replays_in(kind, job, last=job.provider)
            doomed = judge_claim(job, kind.policy(job), replays_in=left)
            if doomed is not None:
                self._settling.end(run, settle.unrun(job, doomed))
                return False
        if kind.confirm is None:
            return True
        found = confirm_at_once(kind, job)
        if isinstance(found, Confirmed):
            run.confirmed = found
            return True
        if isinstance(found, Unfit):
            return self._is_fit(run, found)
        self._go(self._confirm_slowly(run, found), run)
        return False

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
            end = settle.unfit(run.job, found, duration=_since(run.received))
            self._settling.end(run, end)
            return False
        run.confirmed = found
        return True

    async def _declare(self, runs: list[Run]) -> None:
        """Make attempts durable, all in one commit, before they are made; some kinds need none."""
        ready = [run for run in runs if not run.kind.declares]
        for run in ready:
            run.attempt = run.job.attempts + 1
        if ready:
            self._lanes.call(ready)
        if len(ready) == len(runs):
            return
        declared: list[Run] = []
        for run in runs:
            kind = run.kind
            if not kind.declares:
                continue
            if kind.start_within is not None and self._is_late(run):
                self._go(self._give_back(run))
            else:
                run.handover = Handover(kind.call_limit)
                declared.append(run)
        if declared:
            await self._declare_together(declared)

    async def _declare_together(self, runs: list[Run], *, apart: bool = False) -> None:
        arrivals = {received: arrival(received) for received in {run.received for run in runs}}
        lease, margin = self._lengths.lease, self._lengths.hold_margin
        starts = [
            start(
                run.job,
                provider=run.kind.provider,
                hold=(run.kind.call_limit or lease) + margin,
                arrival=arrivals[run.received],
                confirmed=run.confirmed,
            )
            for run in runs
        ]
        answers = await stored("declare", self._store.declare, starts, apart=apart)
        if answers is None:
            for run in runs:
                run.is_handed_on = True
                self._go(self._declare_apart(run))
            return
        begun: list[Run] = []
        for run, answer in zip(runs, answers, strict=True):
            try:
                if isinstance(answer, model.Begun):
                    run.is_declared = True
                    run.attempt = answer.attempt
                    if run.job.open_attempt:
                        self._tell_doubt(run)
                    begun.append(run)
                else:
                    self._not_begun(run, answer)
            except Exception as error:  # noqa: BLE001 - it affects no other job
                self._fail(run, error)
        if begun:
            self._lanes.call(begun)

    async def _declare_apart(self, run: Run) -> None:
        try:
            await self._declare_together([run], apart=True)
        except Exception as error:  # noqa: BLE001 - it affects no other job
            self._fail(run, error)

    def _tell_doubt(self, run: Run) -> None:
        job, duration = run.job, _since(run.received)
        log.attempt_in_doubt(job, classify.in_doubt(), attempt=job.attempts, duration=duration)

    def _not_begun(self, run: Run, answer: model.Refused) -> None:
        if (end := settle.refused(run.job, answer)) is not None:
            self._settling.end(run, end)
        else:
            self._go(self._give_back(run, answer.wait))

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

    def _fail(self, run: Run, error: BaseException) -> None:
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
                self._leave([run])

    def _leave(self, runs: list[Run]) -> None:
        """The jobs are settled or given back."""
        together = 0
        held = self._runs
        for run in runs:  # without a call for each
            lease = run.job.lease
            if lease not in held:
                continue
            del held[lease]
            if run.has_slot:
                run.free_slot()
            if run.place is None:
                together += 1
            else:
                run.place.leave()
            if run.timer is not None:
                run.timer.cancel()
            if run.job.claims > 1:
                self._orphans.end(lease)
            if run.link is not None and run.task is None:
                run.link.unused()
        self._quiet.leave(together)
        self._left.set()

    def _go(self, work: Awaitable[None], *runs: Run) -> "asyncio.Task[None]":
        """Start a part of the path; if it fails, these runs fail that it has not handed on."""
        task = asyncio.get_running_loop().create_task(self._guarded(work, runs))
        self._tasks.add(task)
        task.add_done_callback(partial(self._gone, work))
        return task

    async def _guarded(self, work: Awaitable[None], runs: tuple[Run, ...]) -> None:
        try:
            await work
        except _ENDS:
            raise
        except BaseException as error:  # noqa: BLE001 - any error
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

    async def _give_back_waiting(self, *, before: float = math.inf) -> None:
        """Return jobs that were claimed ahead before this time, and still wait for a slot."""
        for pool in self._pools:
            runs = pool.take_waiting(before)
            try:
                await self._release([run.job.lease for run in runs])
            except Exception as error:  # noqa: BLE001 - those that run have a right to end
                log.unexpected("worker", error)
            self._leave(runs)

    async def _give_back_all(self) -> None:
        """Return jobs without an attempt; outcomes that wait to be stored go first, or they would be late."""
        await self._settling.finished()
        await _cancelled(list(self._tasks), within=_DEAF_S)  # of the last ends
        leases = [lease for lease, run in self._runs.items() if not run.may_be_called]
        await self._release([*leases, *self._unreleased])
        try:
            await self._claims.undo_failed()
        except StoreError as error:  # then their leases expire
            log.store_failed("undo_claims", error, wait=self._lengths.lease)
        log.worker_stopped(released=len(leases))

    async def _release(self, leases: Sequence[model.Lease], wait: timedelta = timedelta(0)) -> None:
        try:
            if leases:
                await self._store.release(leases, wait=wait)
        except StoreError as error:
            log.store_failed("release", error, wait=self._lengths.extends_every)
            self._unreleased.update(leases)


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


async def _cancelled(tasks: Sequence["asyncio.Future[Any]"], *, within: float | None = None) -> int:
    """Cancel them and wait for their end, no longer than this; the number of those that go on."""
    for task in tasks:
        task.cancel()
    _, deaf = await asyncio.wait(tasks, timeout=within) if tasks else ((), ())
    return len(deaf)
