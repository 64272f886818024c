"""The library: open a store, send, define tasks, run a worker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeAlias

from uuid_utils import uuid7

from carteiro.app import email_kind, open_backend, retry_policy
from carteiro.config import Settings, load
from carteiro.email import Email, make_email
from carteiro.errors import (
    FieldError,
    InvalidMessage,
    NotAccepted,
    StoreError,
    StoreUnavailable,
    TenantMissing,
)
from carteiro.gather import Gatherer
from carteiro.kinds import Pool
from carteiro.model import (
    EMAIL,
    AcceptAnswer,
    Accepted,
    Delivery,
    NewMessage,
    NotStored,
    Replayed,
    StoreAnswer,
    TenantId,
    TenantUnknown,
)
from carteiro.path.accept import accept_each, email_message
from carteiro.policy.names import NAME_RULE, is_name
from carteiro.policy.retry import PRESETS, PresetName, RetryPolicy
from carteiro.ports import Backend
from carteiro.tasks import Function, Task, TaskOptions
from carteiro.upkeep.expire import expire
from carteiro.upkeep.prune import prune
from carteiro.upkeep.reap import reap
from carteiro.worker import Lengths, Worker

_MOST_WAITING = 10_000  # messages not yet committed: beyond it a sender is told to come again
_MOST_AT_ONCE, _MOST_BYTES_AT_ONCE = 1000, 4 * 1024 * 1024


SendAnswer: TypeAlias = StoreAnswer | NotAccepted


class Carteiro:
    """A post office. `Carteiro.open` makes one; everything it offers is ready until the block ends."""

    def __init__(
        self, backend: Backend, settings: Settings, *, threads: ThreadPoolExecutor
    ) -> None:
        self.backend = backend
        self.settings = settings
        self._threads = threads
        self._tasks: dict[str, Task] = {}
        self._tenants: set[TenantId] = set()
        self._workers: set[Worker] = set()
        self._accept: Gatherer[NewMessage, AcceptAnswer] = Gatherer(
            backend.store.accept, size=lambda new: len(new.content), bound=_MOST_WAITING
        )

    @classmethod
    @asynccontextmanager
    async def open(
        cls, store: str | None = None, *, settings: Settings | None = None, **overrides: object
    ) -> AsyncIterator["Carteiro"]:
        """Open the store (``sqlite:///file.db``, ``memory://``) with the settings in force.

        ``overrides`` are settings by their names in the default file, a section's as a mapping:
        ``provider="noop", delivery={"lease_ms": 500}``.
        """
        if settings is None:
            given = _flat({"store": store, **overrides})
            settings = load(overrides=given)
        threads = ThreadPoolExecutor(
            settings.workers.sync_task_threads, thread_name_prefix="carteiro-task"
        )
        try:
            async with open_backend(settings) as backend:
                email_kind(
                    settings, backend
                )  # a wrong provider is told before anything is accepted
                yield cls(backend, settings, threads=threads)
        finally:
            threads.shutdown(wait=False, cancel_futures=True)

    # --- sending

    async def send(self, *, tenant: str, **fields: Any) -> Accepted | Replayed:  # noqa: ANN401 - the fields of an e-mail
        """Accept one e-mail, durably; an unknown tenant is created. Raises `InvalidMessage` on bad input."""
        [answer] = await self.send_many([{"tenant": tenant, **fields}])
        match answer:
            case NotAccepted(faults):
                raise InvalidMessage(faults)
            case NotStored(reason):
                raise StoreUnavailable(reason)
        return answer

    async def send_many(self, items: Sequence[Mapping[str, Any]]) -> list[SendAnswer]:
        """Accept many e-mails, each with its ``tenant``; an answer for each, in order.

        Raises `StoreError` only while nothing of the list is stored.
        """
        return await accept_each([self._made(item) for item in items], self._commit)

    async def accept_email(
        self, email: Email, *, tenant: TenantId, request_id: str
    ) -> Accepted | Replayed:
        """Accept one judged e-mail of a known tenant, gathered with what others send at the same time."""
        message = email_message(
            email,
            tenant=tenant,
            request_id=request_id,
            default_ttl=self.settings.delivery.default_ttl,
        )
        return _known(await self._accept(message))

    def _made(self, item: Mapping[str, Any]) -> NewMessage | NotAccepted:
        if not isinstance(item, Mapping):
            return NotAccepted((FieldError("item", "must be a mapping of an e-mail's fields"),))
        fields = dict(item)
        tenant = fields.pop("tenant", None)
        if not is_name(tenant):
            return NotAccepted((FieldError("tenant", NAME_RULE, missing=tenant is None),))
        try:
            email = make_email(fields)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))
        return email_message(
            email,
            tenant=TenantId(tenant),
            request_id=str(uuid7()),
            default_ttl=self.settings.delivery.default_ttl,
        )

    async def _commit(self, messages: Sequence[NewMessage]) -> list[StoreAnswer]:
        """Commit in lists of a bearable size; tenants that are new here are created first."""
        unseen = {message.tenant for message in messages} - self._tenants
        if unseen:
            await self.backend.tenants.ensure(sorted(unseen))
            self._tenants |= unseen
        answers: list[StoreAnswer] = []
        try:
            for some in _bearable(messages):
                answers += [_known(answer) for answer in await self.backend.store.accept(some)]
        except StoreError as error:
            if not answers:
                raise
            answers += [NotStored(str(error))] * (len(messages) - len(answers))
        return answers

    # --- tasks

    def task(  # noqa: PLR0913 - the options of a task, each by its name
        self,
        name: str,
        *,
        retry: RetryPolicy | PresetName | None = None,
        ttl: timedelta | None = None,
        timeout: timedelta | None = None,
        delivery: Delivery | str = Delivery.AT_LEAST_ONCE,
        priority: int = 5,
    ) -> Callable[[Function], Task]:
        """Make a task of a function, async or not; workers of this process run it.

        ``retry`` is a policy or the name of a preset; without it the settings decide.
        """
        policy = _policy(retry) or retry_policy(self.settings)
        options = TaskOptions(
            policy=lambda _: policy,
            ttl=ttl or self.settings.delivery.default_ttl,
            timeout=timeout,
            delivery=Delivery(delivery),
            priority=priority,
        )

        def define(function: Function) -> Task:
            if name in self._tasks or name == EMAIL:
                text = f"a task named {name!r} is defined already"
                raise ValueError(text)
            self._tasks[name] = Task(name, function, options, self._commit)
            return self._tasks[name]

        return define

    # --- working

    def run_worker(self) -> Coroutine[Any, Any, None]:
        """Work on e-mail and this process's tasks until `stop`, with upkeep beside it.

        From this call on it can be stopped, even before it is awaited.
        """
        lengths = Lengths(
            self.settings.delivery.lease,
            self.settings.delivery.hold_margin,
            self.settings.delivery.grace,
        )
        worker = Worker(self.backend.store, self.backend.wake, self._pools(), lengths=lengths)
        self._workers.add(worker)
        return self._run(worker)

    async def _run(self, worker: Worker) -> None:
        upkeep = asyncio.gather(*self._upkeep())
        try:
            await worker.run()
        finally:
            self._workers.discard(worker)
            upkeep.cancel()
            await asyncio.gather(upkeep, return_exceptions=True)

    def stop(self) -> None:
        """Let the workers of this process finish what is in flight, within the grace period."""
        for worker in self._workers:
            worker.stop()

    def stop_now(self) -> None:
        """Stop the workers of this process without waiting for what is in flight."""
        for worker in self._workers:
            worker.stop_now()

    def _pools(self) -> list[Pool]:
        workers = self.settings.workers
        email, is_network = email_kind(self.settings, self.backend)
        asynchronous = tuple(t.kind(self._threads) for t in self._tasks.values() if t.is_async)
        synchronous = tuple(t.kind(self._threads) for t in self._tasks.values() if not t.is_async)
        return [
            Pool("email", workers.email_slots_for(network=is_network), (email,)),
            Pool("async tasks", workers.async_task_slots, asynchronous),
            Pool("sync tasks", workers.sync_task_threads, synchronous),
        ]

    def _upkeep(self) -> list[Any]:
        ports, retention = self.backend, self.settings.retention
        return [
            reap(ports.store, every=self.settings.delivery.lease / 6),
            expire(ports.upkeep),
            prune(ports.upkeep, bodies=retention.bodies, histories=retention.history),
        ]


def _bearable(messages: Sequence[NewMessage]) -> Iterator[list[NewMessage]]:
    """The messages in lists that one transaction can bear."""
    some: list[NewMessage] = []
    weight = 0
    for message in messages:
        weight += len(message.content)
        if some and (len(some) == _MOST_AT_ONCE or weight > _MOST_BYTES_AT_ONCE):
            yield some
            some, weight = [], len(message.content)
        some.append(message)
    if some:
        yield some


def _policy(given: RetryPolicy | PresetName | None) -> RetryPolicy | None:
    if given is None or isinstance(given, RetryPolicy):
        return given
    if given not in PRESETS:
        text = f"retry={given!r} is neither a RetryPolicy nor one of {', '.join(PRESETS)}"
        raise ValueError(text)
    return PRESETS[given]


def _known(answer: AcceptAnswer) -> Accepted | Replayed:
    if isinstance(answer, TenantUnknown):
        text = f"there is no tenant {answer.tenant!r}"
        raise TenantMissing(text)
    return answer


def _flat(overrides: Mapping[str, object]) -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, given in overrides.items():
        if isinstance(given, Mapping):
            flat |= {f"{key}.{name}": each for name, each in given.items()}
        else:
            flat[key] = given
    return flat
