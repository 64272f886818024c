"""The second half of the path: judge the outcomes of calls, settle them in lists, track them."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import Any

from carteiro import model
from carteiro.engine.judging import judge_outcome, replays_in
from carteiro.engine.lanes import DONE
from carteiro.engine.run import Run
from carteiro.engine.storing import stored
from carteiro.errors import StoreError
from carteiro.observability import log
from carteiro.observability.metrics.tally import Tally
from carteiro.observability.tracing import Made, Tracing
from carteiro.path import settle
from carteiro.path.judge import doubts, judge
from carteiro.path.track import Attempt, track, track_sent
from carteiro.policy import classify
from carteiro.ports.store import Store

_MOST_ENDS = 1000  # in one settle: on SQLite about 7 ms of the event loop
_TRICKLE = 8  # running calls to one that has ended
_SOON_S, _LATER_S = 0.003, 0.006  # later while calls wait for a connection


@model.value
class Exits:
    """Where runs go from here: they have left, or failed; later work on a result; how many are in the worker."""

    left: Callable[[list[Run]], None]
    failed: Callable[[Run, BaseException], None]
    later: Callable[[Awaitable[None]], object]
    running: Callable[[], int]


class Settling:
    """The ended runs of one worker until they are stored; an outcome is never dropped."""

    def __init__(  # noqa: PLR0913 - what it works on, and how
        self,
        store: Store,
        exits: Exits,
        tally: Tally,
        *,
        chance: Callable[[], float],
        give_up: asyncio.Event,
        tracing: Tracing | None = None,
    ) -> None:
        self._store = store
        self._exits = exits
        self._tally = tally
        self._chance = chance
        self._give_up = give_up
        self._tracing = tracing
        self._ended: list[Run] = []
        self._is_running = False
        self._waiting: asyncio.Future[None] | None = None  # for more to end
        self._tasks: set[asyncio.Task[None]] = set()  # never cancelled
        self._is_stuck = False  # ends cannot be stored: they keep their slots
        self.states: Counter[model.State] | None = None  # if jobs are to be counted

    def end(self, run: Run, end: model.End) -> None:
        """Settle it together with others, without an outcome to be judged."""
        run.is_handed_on = True
        run.end = end
        run.ended_at = time.monotonic()
        self.end_all([run])

    def end_all(self, runs: Sequence[Run]) -> None:
        """Judge the outcomes of calls and settle them together with others.

        Their slots are free from now on, so that the next claim goes into the same transaction.
        """
        if not self._is_stuck:
            slotted = [run for run in runs if run.has_slot]
            for run in slotted:
                run.has_slot = False
            for pool, slots in Counter([run.pool for run in slotted]).items():
                pool.give_back(slots)
        self._ended += runs
        if not self._is_running:
            self._is_running = True
            self._go(self._settle_all())

    async def finished(self) -> None:
        """Wait until all is stored, or given up."""
        while self._tasks:
            await asyncio.wait(list(self._tasks))

    def _go(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle_all(self) -> None:
        while self._ended:
            await asyncio.sleep(0)  # others still join
            if self._is_trickle():
                await self._for_a_while(_LATER_S if self._ended[0].pool.has_spare else _SOON_S)
            runs, self._ended = self._ended[:_MOST_ENDS], self._ended[_MOST_ENDS:]
            try:
                await self._settle(self._judge(runs))
            except Exception as error:  # noqa: BLE001 - other ends must still be stored
                log.unexpected("worker", error)
            self._is_stuck = False
        self._is_running = False

    async def _for_a_while(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_later(seconds, self.hurry)
        await self._waiting
        timer.cancel()

    def hurry(self) -> None:
        """Settle what has ended, in the same commit as jobs that are declared now."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _is_trickle(self) -> bool:
        """True if few of many calls have ended, and most slots are taken: then nobody waits for this commit."""
        pool = self._ended[0].pool
        is_busy = pool.free * 2 < pool.slots
        return is_busy and len(self._ended) * _TRICKLE < self._exits.running()

    # --- judge

    def _judge(self, runs: list[Run]) -> list[Run]:
        """Set the ends of attempts; those that fail here are given back, and left out."""
        called = [run for run in runs if run.end is None and run.outcome is not None]
        self._count_calls(called)
        done = {run.kind.provider: _sent_by(run.kind.provider) for run in called[:1]}
        for run in called:
            outcome, kind = run.outcome, run.kind
            if outcome is DONE and kind.provider in done:  # as `_sent`, without a call for each
                duration = timedelta(0, run.ended_at - run.received)
                job, verdict = run.job, done[kind.provider]
                run.end = model.End(job.lease, verdict, (), duration, 0, True, job.revision)  # noqa: FBT003 - names take longer
            elif outcome is not None:
                try:
                    run.end = self._end_of(run, outcome)
                except Exception as error:  # noqa: BLE001 - it affects no other job
                    self._unjudged(run, outcome, error)
        return [run for run in runs if run.end is not None]

    def _count_calls(self, called: Sequence[Run]) -> None:
        try:
            for provider in {run.kind.provider for run in called}:
                some = [run for run in called if run.kind.provider == provider]
                self._tally.called(provider, [run.ended_at - run.called_at for run in some])
        except Exception as error:  # noqa: BLE001 - a figure must not cost an outcome
            log.unexpected("worker", error)

    def _end_of(self, run: Run, outcome: model.Outcome) -> model.End:
        kind = run.kind
        if outcome.__class__ is model.Taken and not outcome.refused:
            if kind.chain is not None:
                kind.chain.sent(run.job)
            return _sent(run, outcome.provider_id)
        self._tally.answered_by(kind.provider, outcome)
        duration = timedelta(seconds=run.ended_at - run.received)
        verdict = judge_outcome(outcome, partial(self._verdict, run, outcome, duration))
        return settle.ended(run.job, verdict, outcome, duration=duration, declared=kind.declares)

    def _unjudged(self, run: Run, outcome: model.Outcome, error: Exception) -> None:
        """A taken message ends as sent all the same: an open attempt would be repeated."""
        if isinstance(outcome, model.Taken):
            log.unexpected("worker", error)
            run.end = _sent(run)
        else:
            self._exits.failed(run, error)

    def _verdict(self, run: Run, outcome: model.Outcome, duration: timedelta) -> model.Verdict:
        kind, job = run.kind, run.job
        elsewhere = None
        if kind.chain is not None:
            elsewhere = kind.chain.elsewhere(job, outcome, kind.provider)
        lesson = None
        if kind.lesson is not None and isinstance(outcome, model.Deferred):
            lesson = kind.lesson(job, outcome.failure)
        last = job.provider if doubts(job) else kind.provider
        return judge(
            outcome,
            provider=kind.provider,
            charged_before=job.charged,
            in_doubt_before=doubts(job),
            delivery=job.delivery,
            policy=kind.policy(job),
            expires_in=job.expires_in - duration,
            chance=self._chance(),
            replays_in=replays_in(kind, job, last=last),
            elsewhere=elsewhere,
            lesson=lesson,
        )

    # --- settle

    async def _settle(self, runs: list[Run], *, apart: bool = False) -> None:
        """Store the ends in one commit, until it succeeds. Then track them."""
        ends = [run.end for run in runs if run.end is not None]
        if not ends:
            return
        try:
            answers = await stored(
                "settle",
                self._store.settle,
                ends,
                apart=apart,
                in_trouble=_nothing if apart else partial(self._keep_slots, runs),
                give_up=self._give_up,
            )
        except StoreError:  # we stop: jobs that are not declared are released
            return
        except Exception as error:  # noqa: BLE001 - only one that is settled apart raises
            self._unsettled(runs[0], error)
            return
        if answers is None:
            for run in runs:
                self._go(self._settle([run], apart=True))
        else:
            self._track(runs, ends, answers)

    def _keep_slots(self, runs: list[Run]) -> None:
        """Outcomes must not pile up while they cannot be stored."""
        self._is_stuck = True
        for run in runs:
            run.take_slot()

    def _unsettled(self, run: Run, error: Exception) -> None:
        """An end that cannot be stored: a taken message is stored as sent and nothing else."""
        if not isinstance(run.outcome, model.Taken) or run.is_surely_sent:
            self._exits.failed(run, error)
            return
        log.unexpected("worker", error)
        run.is_surely_sent = True
        self.end(run, _sent(run))

    # --- track

    def _track(
        self, runs: list[Run], ends: list[model.End], answers: list[model.Settled | model.Late]
    ) -> None:
        """Log and count the results; most are sent, and are counted together."""
        together = list(zip(runs, ends, answers, strict=True))
        if self._tracing is not None:
            self._trace(self._tracing, together)
        sent = [
            (run, end)
            for run, end, answer in together
            if answer.__class__ is model.Settled
            and end.verdict.__class__ is model.Sent
            and run.attempt
            and not end.in_doubt
        ]
        are_sent = {run for run, _ in sent}
        for run, end, answer in [each for each in together if each[0] not in are_sent]:
            try:
                self._track_one(run, end, answer)
            except Exception as error:  # noqa: BLE001 - it is stored, and affects no other job
                log.unexpected("worker", error)
        for run, end, _ in [each for each in together if each[0].kind.learn is not None]:
            try:
                if _has_refused(run.outcome):
                    self._learn(run, end)
            except Exception as error:  # noqa: BLE001 - as above
                log.unexpected("worker", error)
        try:
            self._track_sent(sent)
        except Exception as error:  # noqa: BLE001 - as above
            log.unexpected("worker", error)
        finally:
            self._exits.left(runs)

    def _trace(
        self,
        tracing: Tracing,
        ended: list[tuple[Run, model.End, model.Settled | model.Late]],
    ) -> None:
        for run, end, answer in ended:
            made = Made(
                *(run.kind.provider, run.attempt, run.received, run.called_at, run.ended_at),
                *(run.outcome, run.kind.declares, run.kind.span),
            )
            try:
                tracing.ended(run.job, made, end, answer)
            except Exception as error:  # noqa: BLE001 - as above
                log.unexpected("worker", error)

    def _track_one(self, run: Run, end: model.End, answer: model.Settled | model.Late) -> None:
        job, kind = run.job, run.kind
        if self.states is not None and isinstance(answer, model.Settled):
            self.states[answer.state] += 1
        limit = kind.policy(job).max_attempts if isinstance(end.verdict, model.Retry) else 0
        attempt = Attempt(run.attempt or None, kind.provider, limit)
        track(job, end, answer, attempt, self._tally)

    def _track_sent(self, sent: list[tuple[Run, model.End]]) -> None:
        if not sent:
            return
        if self.states is not None:
            self.states[model.State.SENT] += len(sent)
        jobs, numbers = [run.job for run, _ in sent], [run.attempt for run, _ in sent]
        track_sent(jobs, numbers, [end for _, end in sent], self._tally)

    def _learn(self, run: Run, end: model.End) -> None:
        if run.kind.learn is not None and run.parcel is not None and run.outcome is not None:
            self._exits.later(run.kind.learn(run.parcel, run.outcome, end.verdict))


def _nothing() -> None:
    """An end that is refused while others are stored holds up nobody."""


def _has_refused(outcome: model.Outcome | None) -> bool:
    return outcome.__class__ is not model.Taken or bool(outcome.refused)


@cache
def _sent_by(provider: str) -> model.Sent:
    return model.Sent(provider, "")


def _sent(run: Run, provider_id: str = "") -> model.End:
    """The end of a taken message, as `judge` and `settle.ended` make it; without an id it can always be stored."""
    job, kind = run.job, run.kind
    verdict = _sent_by(kind.provider)
    if provider_id:
        verdict = model.Sent(kind.provider, classify.one_line(provider_id))
    duration = timedelta(0, run.ended_at - run.received)  # takes less than ``seconds=``
    return model.End(job.lease, verdict, (), duration, 0, not kind.declares, job.revision)
