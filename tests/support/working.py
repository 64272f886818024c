"""A worker on a store whose time jumps while no job runs, and a store that can be unreachable."""

import asyncio
import io
import random
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import orjson

from carteiro.email.message import make_email
from carteiro.email.submission import Submission, new_message
from carteiro.engine.worker import Lengths, Worker
from carteiro.errors import StoreUnavailable
from carteiro.jobs.kind import Deliver, Kind, Pool
from carteiro.model import (
    EMAIL,
    FINISHED,
    ZERO,
    AcceptAnswer,
    Accepted,
    Begun,
    CancelAnswer,
    Claimed,
    ClaimId,
    DeadLetter,
    DeadReason,
    End,
    EventType,
    KindName,
    Late,
    Lease,
    LeasedJob,
    MessageId,
    NewMessage,
    Outcome,
    Refused,
    Settled,
    Start,
    State,
    StoredMessage,
    Taken,
    Tenant,
    TenantId,
    TimelineEvent,
)
from carteiro.observability import log
from carteiro.path.confirm import confirm
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.ports import Backend, Handover, Parcel, Store
from carteiro.providers.sandbox.provider import SandboxProvider
from support.builders import ACME, BRASA, TASK, an_id, tenants_named
from support.clock import StoreClock
from support.quick_store import quick_backend

A_MOMENT = 0.002  # seconds, in real time
A_WHILE = 0.02  # most claims are answered by then; otherwise less is tested, and nothing fails
LONG = timedelta(seconds=30)
GATEWAY = PRESETS["gateway"]
TOO_LONG = 60.0  # seconds; a worker that is not done by then never will be, on any machine

# Texts that no log line may have: each is part of every e-mail that `Office.post` makes.
SECRET_SUBJECT = "subject-7f3a"
SECRET_BODY = "body-9c1d"
SECRET_NAME = "reply-4e2b"


class Through:
    """A store that passes everything on: a test overrides the method that it watches or breaks."""

    def __init__(self, store: Store) -> None:
        self.store = store

    async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        return await self.store.accept(new)

    async def claim(
        self,
        *,
        claim_id: ClaimId,
        kinds: Collection[KindName],
        limit: int,
        lease: timedelta,
        ahead: int = 0,
    ) -> Claimed:
        return await self.store.claim(
            claim_id=claim_id, kinds=kinds, limit=limit, lease=lease, ahead=ahead
        )

    async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
        return await self.store.declare(starts)

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        return await self.store.settle(ends)

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
        return await self.store.extend(leases, lease=lease)

    async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
        await self.store.release(leases, wait=wait)

    async def undo_claims(self, claims: Sequence[ClaimId]) -> None:
        await self.store.undo_claims(claims)

    async def cancel(self, ids: Sequence[MessageId], *, tenant: TenantId) -> list[CancelAnswer]:
        return await self.store.cancel(ids, tenant=tenant)

    async def reap(self, *, limit: int) -> int:
        return await self.store.reap(limit=limit)


class Away(Through):
    """A store whose first calls fail: ``Away(store, settle=3)``."""

    def __init__(self, store: Store, **times: int) -> None:
        super().__init__(store)
        self.left = Counter(times)
        self.is_back = asyncio.Event()

    def _answer(self, operation: str) -> None:
        if self.left[operation] > 0:
            self.left[operation] -= 1
            raise StoreUnavailable("the disk is busy")
        if operation in self.left and not self.left.total():
            self.is_back.set()

    async def claim(self, **asked: Any) -> Claimed:
        self._answer("claim")
        return await super().claim(**asked)

    async def declare(self, starts: Sequence[Start]) -> list[Begun | Refused]:
        self._answer("declare")
        return await super().declare(starts)

    async def settle(self, ends: Sequence[End]) -> list[Settled | Late]:
        self._answer("settle")
        return await super().settle(ends)

    async def extend(self, leases: Sequence[Lease], *, lease: timedelta) -> list[bool]:
        self._answer("extend")
        return await super().extend(leases, lease=lease)

    async def release(self, leases: Sequence[Lease], *, wait: timedelta = ZERO) -> None:
        self._answer("release")
        await super().release(leases, wait=wait)


class Jump:
    """A `Wake` under which the store's time jumps to the end of a wait once nothing is in flight.

    When every message is finished it stops its worker.
    """

    def __init__(self, backend: Backend, clock: StoreClock) -> None:
        self._backend = backend
        self._clock = clock
        self.worker: Worker | None = None

    def rings(self) -> int:
        """It never rings."""
        return 0

    async def wait(self, timeout: timedelta, *, since: int, kinds: object = ()) -> bool:  # noqa: ARG002
        """Let the time pass at once."""
        assert self.worker is not None
        assert since == self.rings()
        if self.worker._runs or self.worker._left.is_set():  # the claim did not see what left since
            await self.worker._all_left()
            self.worker._left.clear()
        elif set(await self._backend.reading.states()) <= FINISHED:
            self.worker.stop()
        else:
            self._clock.advance(timeout)
            await asyncio.sleep(0)
        return True


@dataclass(slots=True)
class Office:
    """A store that knows ACME and BRASA, and the parts of a worker on it."""

    backend: Backend
    clock: StoreClock
    sandbox: SandboxProvider

    # --- input

    async def post(
        self, to: str = "ok@sandbox.test", *, tenant: str = ACME, **fields: Any
    ) -> MessageId:
        """Accept one e-mail; ``fields`` are those of a request."""
        given = {"to": to, "subject": SECRET_SUBJECT, "html": f"<p>{SECRET_BODY}</p>"} | fields
        given.setdefault("replyTo", f"{SECRET_NAME}@example.com")
        submission = Submission(make_email(given), Tenant(TenantId(tenant)), "request-1")
        return await self.put(new_message(submission))

    async def post_raw(self, content: str, **changes: Any) -> MessageId:
        """Accept an e-mail with exactly this stored content, as another entry point might leave it."""
        email = make_email({"to": "ok@sandbox.test", "subject": "s", "text": "t"})
        message = new_message(Submission(email, Tenant(ACME), "request-1"))
        return await self.put(replace(message, content=content, **changes))

    async def put(self, message: NewMessage) -> MessageId:
        """Accept a new message."""
        [answer] = await self.backend.store.accept([message])
        assert isinstance(answer, Accepted), answer
        return message.id

    async def task(self, arguments: str = "{}", **changes: Any) -> MessageId:
        """Accept one task that does not declare."""
        fields: dict[str, Any] = {
            "id": an_id(),
            "tenant": ACME,
            "kind": TASK,
            "declares": False,
            "ttl": LONG,
        }
        return await self.put(
            NewMessage(content=arguments, request_id="request-1", **(fields | changes))
        )

    # --- workers

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Deliver to the sandbox; an address that never answers is given up after a moment."""
        is_silent = parcel.content.to in {"timeout@sandbox.test", "lost-reply@sandbox.test"}
        async with asyncio.timeout(A_MOMENT if is_silent else None):
            return await self.sandbox.deliver(parcel, handover)

    def email_kind(self, **changes: Any) -> Kind:
        """E-mail through the sandbox; ``changes`` are fields of `Kind`."""
        usual = Kind(
            name=EMAIL,
            provider="sandbox",
            confirm=confirm,
            deliver=self.deliver,
            policy=always(GATEWAY),
            declares=True,
            call_limit=LONG,
        )
        return replace(usual, **changes)

    def worker(
        self, *pools: Pool, store: Store | None = None, wake: Any = None, **options: Any
    ) -> Worker:
        """A worker for these pools, else for e-mail through the sandbox."""
        jump = Jump(self.backend, self.clock)
        usual: dict[str, Any] = {
            "chance": random.Random(1),
            "clock": lambda: self.clock.now_ms / 1000,
        }
        options = usual | options
        pools = pools or (Pool("email", 5, (self.email_kind(),)),)
        jump.worker = Worker(store or self.backend.store, wake or jump, pools, **options)
        return jump.worker

    async def work(self, *pools: Pool, **options: Any) -> None:
        """Work until every message is finished; ``options`` are those of `worker`."""
        await until_done(self.worker(*pools, **options))

    # --- results

    async def row(self, message: MessageId) -> StoredMessage:
        """The ledger row of a message."""
        row = await self.backend.reading.message(message)
        assert row is not None
        return row

    async def state(self, message: MessageId) -> State:
        """The state of a message."""
        return (await self.row(message)).state

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message."""
        return await self.backend.reading.events(message)

    async def story(self, message: MessageId) -> list[str]:
        """The timeline of a message, types only."""
        return [event.type for event in await self.events(message)]

    async def event(self, message: MessageId, type: EventType) -> TimelineEvent:
        """The one event of that type."""
        [event] = [each for each in await self.events(message) if each.type is type]
        return event

    async def letter(self, message: MessageId) -> DeadLetter:
        """The dead letter of a message."""
        letter = await self.backend.dead_letters.show(message)
        assert letter is not None
        return letter

    async def dead_for(self, message: MessageId) -> DeadReason | None:
        """The reason why a message is a dead letter, None if it is not one."""
        letter = await self.backend.dead_letters.show(message)
        return None if letter is None else letter.reason

    async def deliveries(self, message: MessageId) -> int:
        """The number of times that the sandbox accepted the message."""
        return len(await self.backend.inbox.list(message=message))


@asynccontextmanager
async def an_office(*, seed: int = 0) -> AsyncIterator[Office]:
    """A new store with a clock that stands still while a job runs."""
    clock = StoreClock()
    async with quick_backend(clock=clock) as backend:
        await backend.tenants.define(tenants_named([ACME, BRASA]))
        yield Office(backend, clock, SandboxProvider(backend.inbox, seed=seed))


async def until_done(worker: Worker) -> None:
    """Run a worker that something else stops."""
    async with asyncio.timeout(TOO_LONG):
        await worker.run()


def always(policy: RetryPolicy) -> Any:
    """The same policy for every job."""
    return lambda _job: policy


def short(**changes: Any) -> Lengths:
    """Short durations for tests."""
    usual = Lengths(lease=timedelta(milliseconds=6), hold_margin=LONG, grace=timedelta(seconds=5))
    return replace(usual, **changes)


def a_kind(deliver: Deliver, **changes: Any) -> Kind:
    """A task that runs this; ``changes`` are fields of `Kind`."""
    usual = Kind(
        name=TASK,
        provider="task",
        confirm=None,
        deliver=deliver,
        policy=always(GATEWAY),
        declares=False,
        call_limit=None,
    )
    return replace(usual, **changes)


@dataclass(slots=True)
class Gate:
    """A provider that accepts parcels when the gate is opened, and knows those that wait before it."""

    began: list[Parcel] = field(default_factory=list)
    inside: int = 0
    most_inside: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    open: asyncio.Event = field(default_factory=asyncio.Event)

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        """Begin the hand-over and wait."""
        handover.begin()
        self.began.append(parcel)
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.arrived.set()
        try:
            await self.open.wait()
        finally:
            self.inside -= 1
        return Taken(f"gate-{parcel.message}")


def gated(office: Office, gate: Gate, *, slots: int = 5) -> Pool:
    """E-mail that waits before the gate."""
    return Pool("email", slots, (office.email_kind(deliver=gate.deliver),))


async def running(worker: Worker, gate: Gate) -> "asyncio.Task[None]":
    """The worker, with a job before the gate."""
    task = asyncio.create_task(until_done(worker))
    await asyncio.wait_for(gate.arrived.wait(), TOO_LONG)
    return task


def a_job(**facts: Any) -> LeasedJob:
    """An e-mail claimed for the first time, unless the facts say otherwise."""
    usual: dict[str, Any] = {
        "lease": Lease(an_id(), ClaimId("claim-1")),
        "kind": EMAIL,
        "tenant": ACME,
        "claims": 1,
        "content": "{}",
        "ledger_tenant": ACME,
        "request_id": "request-1",
        "delivery": "at_least_once",
        "attempts": 0,
        "charged": 0,
        "in_doubt": 0,
        "revision": 1,
        "open_attempt": False,
        "expires_in": timedelta(days=1),
    }
    return LeasedJob(**usual | facts)


def a_parcel(content: Any = "{}", *, attempt: int = 1) -> Parcel:
    """The parcel that a provider gets."""
    return Parcel(an_id(), ACME, content, attempt, revision=1, request_id="request-1")


@contextmanager
def logged() -> Iterator[list[dict[str, Any]]]:
    """The log lines of a block at level info; afterwards the log is silent again."""
    stream = io.BytesIO()
    lines: list[dict[str, Any]] = []
    log.configure("info", stream)
    try:
        yield lines
    finally:
        log.configure("off")
        lines += [orjson.loads(line) for line in stream.getvalue().splitlines()]
