"""A pair: how often the queue is asked, and what happens where the ledger does not know who has a job."""

from collections.abc import AsyncIterator

import pytest

from carteiro.errors import QueueAway, StoreError
from carteiro.model import (
    EMAIL,
    Begun,
    CancelAnswer,
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
