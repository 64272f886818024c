"""A pair: how often the queue is asked, and what happens where the ledger does not know who has a job."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta

import pytest

from carteiro.errors import QueueAway, StoreError
from carteiro.model import (
    EMAIL,
    Begun,
    CancelAnswer,
    ClaimId,
    End,
    Late,
    LeasedJob,
    MessageFilter,
    MessageId,
    RedriveAnswer,
    Settled,
    Start,
    State,
)
from carteiro.ports import Backend
from carteiro.ports.queue import Ticket
from carteiro.stores.paired import Paired
from carteiro.stores.redis.server import Argument, Server
from support.builders import (
    ACME,
    BRASA,
    TASK,
    a_message,
    a_task,
    dead,
    messages,
    retry,
    sent,
    tenants_named,
)
from support.clock import StoreClock
from support.set_ups import SET_UPS, SetUp
from support.steps import HOLD, LEASE, accepted, claimed

pytestmark = pytest.mark.servers

PAIRS = [each for each in SET_UPS if each.is_pair]


@pytest.fixture(params=PAIRS, ids=lambda each: each.name)
async def backend(request: pytest.FixtureRequest, clock: StoreClock) -> AsyncIterator[Backend]:
    """Each pair, with the tenants ACME and BRASA."""
    set_up: SetUp = request.param
    async with set_up.opened(clock) as opened:
        await opened.tenants.define(tenants_named([ACME, BRASA]))
        yield opened


@pytest.fixture
def clock() -> StoreClock:
    """The clock of the pair."""
    return StoreClock()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> list[str]:
    """The scripts that the queue has run since."""
    names: list[str] = []
    run = Server.run

    async def noted(
        self: Server, operation: str, *arguments: Argument, **options: object
    ) -> object:
        names.append(operation)
        return await run(self, operation, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Server, "run", noted)
    return names


@pytest.fixture
def redriven(monkeypatch: pytest.MonkeyPatch, backend: Backend) -> list[MessageId]:
    """Messages to be redriven just before the next ended jobs leave the queue."""
    wanted: list[MessageId] = []
    run = Server.run

    async def after_redrive(
        self: Server, operation: str, *arguments: Argument, **options: object
    ) -> object:
        if operation == "settle" and wanted:
            ids = wanted.copy()
            wanted.clear()
            assert await backend.dead_letters.redrive(ids, by="ana") == [RedriveAnswer.REDRIVEN]
        return await run(self, operation, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Server, "run", after_redrive)
    return wanted


def _starts(jobs: list[LeasedJob]) -> list[Start]:
    return [Start(job.lease, "sandbox", HOLD) for job in jobs]


def _ends(jobs: list[LeasedJob]) -> list[End]:
    return [End(job.lease, sent(), attempted=job.kind == TASK) for job in jobs]


async def test_queue_is_called_once_for_each_step_of_a_batch(
    backend: Backend, asked: list[str]
) -> None:
    """To claim it, to hold it and to remove it."""
    store = backend.store
    await accepted(store, *messages(5, ACME), *messages(5, BRASA))

    jobs = await claimed(store)
    begun = await store.declare(_starts(jobs))
    ends = await store.settle(_ends(jobs))

    assert asked == ["put", "claim", "extend", "settle"]
    assert begun == [Begun(1)] * 10
    assert ends == [Settled(State.SENT)] * 10


async def test_queue_is_not_asked_who_has_a_task(backend: Backend, asked: list[str]) -> None:
    """Its lease has not expired."""
    store = backend.store
    await accepted(store, *(a_task() for _ in range(5)))

    ends = await store.settle(_ends(await claimed(store, kinds=[TASK])))

    assert asked == ["put", "claim", "settle"]
    assert ends == [Settled(State.SENT)] * 5


@pytest.mark.parametrize(("count", "order"), [(8, ["open", "claim"]), (9, ["claim", "open"])])
async def test_few_new_messages_are_read_while_they_are_claimed(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, count: int, order: list[str]
) -> None:
    """They are read once, before the claim is answered or after it."""
    store = backend.store
    await accepted(store, *(a_task() for _ in range(count)))

    async def go_on() -> None:
        """The read has come first."""

    steps = _steps(backend, monkeypatch, before_claim=go_on if order[0] == "open" else None)

    jobs = await claimed(store, kinds=[TASK])
    await claimed(store, kinds=[TASK])

    assert len(jobs) == count
    assert steps == [*order, "claim"]


async def test_message_that_failed_after_it_was_read_is_read_again(
    backend: Backend, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has claimed it, and it is due again, before our claim is run."""
    store = backend.store
    await accepted(store, a_task())

    async def fail() -> None:
        [job] = await claimed(store, kinds=[TASK])
        clock.advance(timedelta(milliseconds=1))  # an accept and a settle are never in the same
        await store.settle([End(job.lease, retry(), attempted=True)])

    steps = _steps(backend, monkeypatch, before_claim=fail)
    [job] = await claimed(store, kinds=[TASK])

    assert (job.attempts, job.charged) == (1, 1)
    assert steps == ["open", "claim", "open", "claim", "open"]


async def test_message_that_was_cancelled_after_it_was_read_is_not_claimed(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its job has left the queue."""
    store = backend.store
    [message] = await accepted(store, a_task())

    async def cancel() -> None:
        assert await store.cancel([message], tenant=ACME) == [CancelAnswer.CANCELLED]

    _steps(backend, monkeypatch, before_claim=cancel)

    assert await claimed(store, kinds=[TASK]) == []


def _steps(
    backend: Backend,
    monkeypatch: pytest.MonkeyPatch,
    before_claim: Callable[[], Awaitable[None]] | None = None,
) -> list[str]:
    """The reads of the ledger and the claims of the queue from now on; the first claim waits for an early read."""
    store = backend.store
    assert isinstance(store, Paired)
    ledger, run, steps, waits = store._ledger, Server.run, [], [before_claim]
    read = ledger.open

    async def noted_open(claim: ClaimId, tickets: Sequence[Ticket]) -> object:
        found = await read(claim, tickets)
        steps.append("open")
        return found

    async def noted_run(
        self: Server, operation: str, *arguments: Argument, **options: object
    ) -> object:
        if operation == "claim":
            act = waits.pop() if waits else None
            while act is not None and "open" not in steps:
                await asyncio.sleep(0.001)
            if act is not None:
                await act()
            arguments = (self.now, *arguments[1:])  # a server would read its clock now
            steps.append("claim")
        return await run(self, operation, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ledger, "open", noted_open)
    monkeypatch.setattr(Server, "run", noted_run)
    return steps


async def test_queue_is_asked_about_an_old_lease(
    backend: Backend, clock: StoreClock, asked: list[str]
) -> None:
    """Another worker may have the job by now, and then its end is late."""
    store = backend.store
    await accepted(store, a_task())
    old = await claimed(store, kinds=[TASK])
    clock.advance(LEASE)
    new = await claimed(store, kinds=[TASK])
    asked.clear()

    late, settled = [*await store.settle(_ends(old)), *await store.settle(_ends(new))]

    assert "extend" in asked
    assert isinstance(late, Late)
    assert isinstance(settled, Late | Settled)
    assert settled.state is State.SENT


async def test_cancelled_message_has_lost_its_lease(backend: Backend, asked: list[str]) -> None:
    """Only the ledger and the queue know it: an unexpired lease is not enough."""
    store = backend.store
    await accepted(store, *messages(1))
    [job] = await claimed(store)
    assert await store.cancel([job.lease.job], tenant=ACME) == [CancelAnswer.CANCELLED]
    asked.clear()

    [answer] = await store.settle(_ends([job]))

    assert asked[0] == "extend"
    assert isinstance(answer, Late)


async def test_attempt_is_made_although_the_queue_refuses_to_hold_it(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is declared by then: as a failure it would be in doubt."""
    store = backend.store
    await accepted(store, *messages(1))
    jobs = await claimed(store)
    with monkeypatch.context() as broken:
        broken.setattr(Server, "run", _refuses)
        begun = await store.declare(_starts(jobs))

    assert begun == [Begun(1)]


async def _refuses(self: Server, operation: str, *_: Argument, **__: object) -> object:
    raise StoreError(operation)


async def test_message_redriven_while_its_dead_job_leaves_is_claimed(
    backend: Backend, redriven: list[MessageId]
) -> None:
    """Its new job was not put: the old one was still there."""
    store = backend.store
    await accepted(store, *messages(1))
    [job] = await claimed(store)
    await store.declare(_starts([job]))

    redriven.append(job.lease.job)
    await store.settle([End(job.lease, dead())])

    assert [again.lease.job for again in await claimed(store)] == [job.lease.job]


async def test_message_redriven_while_it_expires_is_claimed(
    backend: Backend, clock: StoreClock, redriven: list[MessageId]
) -> None:
    """As above, where upkeep removes the job."""
    await accepted(backend.store, a_message(ttl=LEASE))
    clock.advance(LEASE)

    redriven.extend(each.id for each in (await backend.reading.messages(MessageFilter())).rows)
    await backend.upkeep.expire(limit=10)

    assert len(await claimed(backend.store)) == 1


async def test_message_redriven_while_its_stale_job_is_found_is_claimed(
    backend: Backend, clock: StoreClock, redriven: list[MessageId], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue was unreachable when the message died, so that a later claim finds its job."""
    store = backend.store
    await accepted(store, *messages(1))
    [job] = await claimed(store)
    await store.declare(_starts([job]))
    with monkeypatch.context() as cut_off:
        cut_off.setattr(Server, "run", _is_unreachable)
        await store.settle([End(job.lease, dead())])
    clock.advance(HOLD)

    redriven.append(job.lease.job)
    assert await claimed(store) == []

    assert [again.lease.job for again in await claimed(store)] == [job.lease.job]


async def _is_unreachable(self: Server, operation: str, *_: Argument, **__: object) -> object:
    raise QueueAway(operation)


async def test_retries_and_ends_of_one_batch_move_in_one_step(
    backend: Backend, asked: list[str]
) -> None:
    """Finished jobs leave, others wait for their next attempt."""
    store = backend.store
    await accepted(store, *messages(4))
    jobs = await claimed(store)
    await store.declare(_starts(jobs))
    asked.clear()

    ends = [*_ends(jobs[:2]), *(End(job.lease, retry(LEASE)) for job in jobs[2:])]
    answers = await store.settle(ends)

    assert asked == ["settle"]
    assert [each.state for each in answers] == [State.SENT] * 2 + [State.RETRY_SCHEDULED] * 2
    [depth] = [each for each in await backend.reading.depths() if each.kind == EMAIL]
    assert (depth.unfinished, depth.in_flight) == (2, 0)
