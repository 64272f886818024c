"""The library: open a store, send, define tasks, run a worker."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from carteiro import model
from carteiro.channels.loops import AlertLoops
from carteiro.config import Settings, load
from carteiro.engine.tasks import Function, Task, TaskOptions
from carteiro.engine.worker import Lengths, Worker
from carteiro.errors import ConfigError, InvalidMessage, KeyReused, NotAccepted, StoreUnavailable
from carteiro.jobs.kind import Pool
from carteiro.maintenance.automatic_redrives import redrive_automatically, start_automatic_redrives
from carteiro.maintenance.expire import expire, expire_once
from carteiro.maintenance.prune import prune
from carteiro.maintenance.reap import reap
from carteiro.maintenance.redrives import Redriving, WorkLeft, redrive_once, run_redrives
from carteiro.maintenance.report import open_circuits, report
from carteiro.maintenance.requests import apply_all, apply_requests
from carteiro.maintenance.rollups import roll_up
from carteiro.maintenance.tidy import tidy
from carteiro.observability.metrics import Metrics, Tally, measured_dead_letters, measured_store
from carteiro.observability.tracing import Tracing, open_tracing
from carteiro.path.accept import Accepting, SendAnswer
from carteiro.policy.retry import RetryPolicy
from carteiro.policy.waiting import Waiting
from carteiro.ports import Backend
from carteiro.providers import choice
from carteiro.providers.email_kind import email_kind, retry_policy, table_queue_wait
from carteiro.runtime.lessons import Lessons
from carteiro.runtime.messages import cancel_message, explain_message, find_message
from carteiro.runtime.polling import polls
from carteiro.stores.open import dead_letter_folder, open_backend

_MOMENT_S = 0.1


class Carteiro:
    """The library. `Carteiro.open` makes one; it can be used until the block ends."""

    def __init__(
        self,
        backend: Backend,
        settings: Settings,
        *,
        threads: ThreadPoolExecutor,
        tracing: Tracing | None = None,
    ) -> None:
        self.tally = Tally()
        self.tracing = tracing
        letters, redrives = measured_dead_letters(
            backend.dead_letters, backend.redrives, self.tally
        )
        store = measured_store(backend.store, self.tally)
        self.backend = replace(backend, store=store, dead_letters=letters, redrives=redrives)
        self.settings = settings
        self.metrics = Metrics(
            self.backend,
            self.tally,
            top=settings.metrics.top_tenants,
            least=settings.alerts.min_messages,
        )
        self._threads = threads
        self._tasks: dict[str, Task] = {}
        self._workers: set[Worker] = set()
        self._stops = 0  # requests to stop
        self._refusal: ConfigError | None = None  # why they must not go on
        self._lessons = Lessons(backend.failures) if settings.retry.learn == "apply" else None
        self.accepting = Accepting(self.backend, settings.sending_rules)
        self.alert_loops = AlertLoops(self.backend, settings, self.accepting)

    @classmethod
    @asynccontextmanager
    async def open(
        cls, store: str | None = None, *, settings: Settings | None = None, **overrides: object
    ) -> AsyncIterator["Carteiro"]:
        """Open the store (``sqlite:///file.db``, ``memory://``) with the settings in force.

        ``overrides`` are settings by their names in the default file; a section is a mapping:
        ``provider="noop", delivery={"lease_ms": 500}``.
        """
        if settings is None:
            given = _flat({"store": store, **overrides})
            settings = load(overrides=given, origin=lambda key: f"argument {key.partition('.')[0]}")
        threads = ThreadPoolExecutor(
            settings.workers.sync_task_threads, thread_name_prefix="carteiro-task"
        )
        try:
            async with (
                open_tracing(settings.tracing.target, settings.tracing.limits) as tracing,
                open_backend(settings) as backend,
            ):
                email_kind(settings, backend)  # report a wrong provider before anything is accepted
                yield cls(backend, settings, threads=threads, tracing=tracing)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    # --- sending

    async def send(
        self,
        *,
        tenant: str,
        connection: object = None,
        **fields: Any,  # noqa: ANN401 - the fields of an e-mail
    ) -> model.Accepted | model.Replayed:
        """Accept one e-mail, durably; an unknown tenant is created. Raises `InvalidMessage` on bad input.

        A tenant with a ``/`` in its name can send, but the HTTP API cannot address it.
        With an ``idempotency_key``, repetitions within a day are accepted once; raises `KeyReused` if
        the key belongs to another e-mail.

        With a ``connection`` to the store's own Postgres database (asyncpg, or SQLAlchemy's
        AsyncConnection or AsyncSession) it is accepted in that connection's transaction: the commit
        sends it, a rollback leaves nothing. Raises `CannotJoin` if that is not possible.

        ``traceparent`` and ``tracestate``, as in the headers of W3C, name the span that its attempts belong to;
        one that is not valid is ignored. If tracing is on, it is the current span of OpenTelemetry otherwise.
        """
        [answer] = await self.send_many([{"tenant": tenant, **fields}], connection=connection)
        match answer:
            case model.Accepted() | model.Replayed():
                return answer
            case NotAccepted(faults):
                raise InvalidMessage(faults)
            case model.NotStored(reason):
                raise StoreUnavailable(reason)
            case model.KeyConflict(first):
                text = f"the idempotency key belongs to message {first}, which is a different one: use a new key"
                raise KeyReused(text)
            case model.OverLimit(limit):  # counted only over HTTP
                raise AssertionError(limit)

    async def send_many(
        self, items: Sequence[Mapping[str, Any]], *, connection: object = None
    ) -> list[SendAnswer]:
        """Accept many e-mails, each with its ``tenant``; return an answer for each, in order.

        Raises `StoreError` only if nothing of the list is stored. ``connection`` as in `send`.
        """
        if self.tracing is None or all(map(_brings_trace, items)):
            return await self.accepting.items(items, connection=connection)
        with self.tracing.sending(model.EMAIL, len(items)) as trace:
            return await self.accepting.items(items, connection=connection, trace=trace)

    # --- one message; with a ``tenant``, only that tenant's is found

    async def get(self, message: str, *, tenant: str | None = None) -> model.StoredMessage | None:
        """Return the message with this id; None if there is none."""
        return await find_message(self.backend.reading, message, tenant=tenant)

    async def timeline(
        self, message: str, *, tenant: str | None = None
    ) -> list[model.TimelineEvent]:
        """Return the events of a message, oldest first; empty if there is no such message."""
        found = await self.get(message, tenant=tenant)
        return [] if found is None else await self.backend.reading.events(found.id)

    async def wait(
        self,
        message: str,
        *,
        tenant: str | None = None,
        timeout: timedelta | float = timedelta(seconds=30),
    ) -> model.StoredMessage | None:
        """Wait until the message is finished: sent, cancelled, failed or expired. None if there is none.

        After ``timeout``, a timedelta or seconds, return it unfinished. Needs a running worker, in this
        process or another.
        """
        within = timeout if isinstance(timeout, timedelta) else timedelta(seconds=timeout)
        async for _ in polls(within=within):
            found = await self.get(message, tenant=tenant)
            if found is None or found.state in model.FINISHED:
                break
        return found

    async def explain(self, message: str, *, tenant: str | None = None) -> Waiting | None:
        """Return why a message is not sent yet, until when, and an estimate of when it is; None if there is none."""
        found = await self.get(message, tenant=tenant)
        plan = self.settings.automatic_plan
        return None if found is None else await explain_message(self.backend, found, plan=plan)

    async def cancel(self, message: str, *, tenant: str | None = None) -> model.CancelAnswer:
        """Cancel a waiting message; for one in flight, prevent another attempt."""
        return await cancel_message(self.backend, message, tenant=tenant)

    async def redrive(
        self, message: str, *, tenant: str | None = None, by: str = "library"
    ) -> model.RedriveAnswer:
        """Send a failed or expired message again: a new round of attempts, a new time to live.

        The timeline records ``by`` as the requester.
        """
        found = await self.get(message, tenant=tenant)
        if found is None:
            return model.RedriveAnswer.NOT_FOUND
        [answer] = await self.backend.dead_letters.redrive([found.id], by=by)
        return answer

    # --- tasks

    def task(  # noqa: PLR0913 - the options of a task, each by its name
        self,
        name: str,
        *,
        retry: RetryPolicy | str | None = None,
        ttl: timedelta | None = None,
        timeout: timedelta | None = None,
        delivery: model.Delivery | str = model.Delivery.AT_LEAST_ONCE,
        priority: int = 5,
    ) -> Callable[[Function], Task]:
        """Make a task of a function, async or not; the workers of this process run it.

        ``retry`` is a policy or the name of a preset (default: the settings).
        """
        policy = _policy(retry, self.settings.presets) or retry_policy(self.settings)
        options = TaskOptions(
            policy=lambda _: policy,
            ttl=ttl or self.settings.delivery.default_ttl,
            timeout=timeout,
            delivery=model.Delivery(delivery),
            priority=priority,
        )

        def define(function: Function) -> Task:
            if name in self._tasks or name == model.EMAIL:
                raise ValueError(f"a task named {name!r} is defined already: choose another name")
            commit, tracing = self.accepting.commit, self.tracing
            self._tasks[name] = Task(name, function, options, commit, tracing=tracing)
            return self._tasks[name]

        return define

    # --- working

    def run_worker(self) -> Coroutine[Any, Any, None]:
        """Process e-mail and this process's tasks until `stop`, with maintenance alongside.

        `stop` works from this call on, even before the result is awaited. Raises `ConfigError` if no
        provider is set here and another process has set one.
        """
        lease = self.settings.delivery.lease  # of jobs whose worker died before this start
        return self._run(self._worker(warm_up=lease))

    async def work_off(self, *, limit: int | None = None) -> Mapping[model.State, int]:
        """Process due jobs, at most ``limit``, and return their number by state.

        Can be stopped like a worker. Jobs that wait for a retry stay in the queue. Raises
        `StoreUnavailable` if nothing can be claimed, `ConfigError` as `run_worker`.
        """
        await choice.check(self.settings, self.backend.marks)
        if self.backend.queue is not None:
            await self.backend.queue.complete()
        if self.backend.table_queue is not None:
            await apply_all(self.backend.table_queue, table_queue_wait)
        await expire_once(self.backend.upkeep, self.tally)
        if self._lessons is not None:
            await self._lessons.refresh()
        states, stops = await self._work_once(limit), self._stops
        await start_automatic_redrives(self.backend.upkeep, self.backend.rollups, self._redriving())
        while stops == self._stops and (limit is None or states.total() < limit):
            progress = await redrive_once(self.backend.upkeep, self._redriving())
            if progress is WorkLeft.NOTHING:
                break
            await asyncio.sleep(0 if progress is WorkLeft.MORE else _MOMENT_S)
            states += await self._work_once(None if limit is None else limit - states.total())
        return states

    async def _work_once(self, limit: int | None) -> Counter[model.State]:
        worker = self._worker()
        try:
            states = await worker.run(until_idle=True, limit=limit)
        finally:
            self._workers.discard(worker)
        if self._refusal is not None:
            raise self._refusal
        return states

    def _worker(self, *, warm_up: timedelta = model.ZERO) -> Worker:
        lengths = Lengths(
            self.settings.delivery.lease,
            self.settings.delivery.hold_margin,
            self.settings.delivery.grace,
            warm_up,
            self.settings.workers.claim_ahead,
        )
        ports, self._refusal = self.backend, None
        store = choice.checked_store(ports.store, self.settings, ports.marks, self._refuse)
        worker = Worker(
            *(store, ports.wake, self._pools()),
            lengths=lengths,
            tally=self.tally,
            tracing=self.tracing,
        )
        self._workers.add(worker)
        return worker

    async def _run(self, worker: Worker) -> None:
        upkeep = asyncio.gather(*self._upkeep())
        try:
            await choice.check(self.settings, self.backend.marks)
            await worker.run()
        finally:
            self._workers.discard(worker)
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)
        if self._refusal is not None:
            raise self._refusal

    def _refuse(self, error: ConfigError) -> None:
        self._refusal = error
        self.stop()

    def stop(self) -> None:
        """Let the workers of this process finish what is in flight, within the grace period."""
        self._stops += 1
        for worker in self._workers:
            worker.stop()

    def stop_now(self) -> None:
        """Stop the workers of this process without waiting for what is in flight."""
        self._stops += 1
        for worker in self._workers:
            worker.stop_now()

    def _pools(self) -> list[Pool]:
        workers = self.settings.workers
        email, is_network = email_kind(self.settings, self.backend, lessons=self._lessons)
        if email.chain is not None:
            self.tally.providers = email.chain.standings
        asynchronous = tuple(t.kind(self._threads) for t in self._tasks.values() if t.is_async)
        synchronous = tuple(t.kind(self._threads) for t in self._tasks.values() if not t.is_async)
        return [
            Pool("email", workers.email_slots_for(network=is_network), (email,)),
            Pool("async tasks", workers.async_task_slots, asynchronous),
            Pool("sync tasks", workers.sync_task_threads, synchronous),
        ]

    def _redriving(self) -> Redriving:
        ports, plan = self.backend, self.settings.automatic_plan
        automatic, circuits = ports.automatic_redrives, self._open_circuits
        return Redriving(ports.redrives, ports.dead_letters, automatic, circuits, plan)

    async def _open_circuits(self) -> set[str]:
        reports = await self.backend.reports.show()
        return open_circuits(self.tally.providers(), reports, datetime.now(UTC))

    def _upkeep(self) -> list[Any]:
        ports, retention, rollups = self.backend, self.settings.retention, self.settings.rollups
        requests = ports.table_queue
        return [
            *self.alert_loops.loops(),  # first: it raises if a channel cannot be opened
            *([apply_requests(requests, ports.upkeep, table_queue_wait)] if requests else []),
            *([self._lessons.keep()] if self._lessons else []),
            reap(ports.store, every=self.settings.delivery.lease / 6),
            expire(ports.upkeep, self.tally),
            run_redrives(ports.upkeep, self._redriving()),
            redrive_automatically(ports.upkeep, ports.rollups, self._redriving()),
            report(ports.reports, self.tally.providers, ports.queue),
            prune(
                ports.upkeep,
                bodies=retention.bodies,
                histories=retention.history,
                kept=retention.kept,
            ),
            roll_up(
                ports.upkeep,
                ports.rollups,
                ports.failures,
                ports.reading,
                minutes=rollups.minutes,
                hours=rollups.hours,
                groups=rollups.failures,
                most=rollups.max_tenants,
            ),
            tidy(
                ports.upkeep,
                ports.dead_letters,
                ports.reading,
                most=self.settings.dead_letters.max_entries,
                folder=dead_letter_folder(self.settings),
            ),
        ]


def _brings_trace(item: object) -> bool:
    return isinstance(item, Mapping) and item.get("traceparent") is not None


def _policy(
    given: RetryPolicy | str | None, presets: Mapping[str, RetryPolicy]
) -> RetryPolicy | None:
    if given is None or isinstance(given, RetryPolicy):
        return given
    if given not in presets:
        text = f"retry={given!r} is not a RetryPolicy and not one of {', '.join(presets)}"
        raise ValueError(text)
    return presets[given]


def _flat(overrides: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, given in overrides.items():
        if isinstance(given, Mapping):
            flat |= {f"{key}.{name}": each for name, each in given.items()}
        else:
            flat[key] = given
    return flat
