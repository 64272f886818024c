"""Store, transitions: a message only moves along `model.TRANSITIONS`, and each move leaves its event."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from typing import TypeAlias

import pytest

from carteiro.errors import TransitionRefused
from carteiro.model import (
    FINISHED,
    TRANSITIONS,
    DeadReason,
    End,
    Event,
    Lease,
    LeasedJob,
    NewMessage,
    Settled,
    Start,
    State,
    Verdict,
)
from carteiro.ports import Backend, Store
from support.builders import a_claim_id, a_message, a_task, dead, retry, sent
from support.clock import StoreClock, past
from support.steps import (
    HOLD,
    IN_DOUBT,
    LEASE,
    RECEIVED,
    VALIDATED,
    VALIDATION_FAILED,
    accepted,
    claimed,
    everything_about,
)

LATER = timedelta(minutes=5)
_STATE_NAMES = {state.value for state in State}


@dataclass
class Life:
    """One message on its way through a store, and the worker that lost it at the start."""

    backend: Backend
    clock: StoreClock
    new: NewMessage
    lost: Lease
    held: Lease

    @property
    def store(self) -> Store:
        """The store of the message."""
        return self.backend.store

    async def claim(self) -> LeasedJob | None:
        """Take the job, waiting for it if need be; None when it is no longer in the queue."""
        self.clock.advance(past(LATER))
        jobs = await claimed(self.store, kinds=[self.new.kind])
        if not jobs:
            return None
        self.held = jobs[0].lease
        return jobs[0]

    async def attempt(self, verdict: Verdict) -> None:
        """One whole attempt, as a worker makes it."""
        job = await self.claim()
        if job is not None and self.new.declares:
            await self.declare(job)
        await self.settle(verdict, attempted=not self.new.declares)

    async def declare(self, job: LeasedJob) -> None:
        """Declare with the events of the stages before it."""
        doubt = (IN_DOUBT,) if job.open_attempt else ()
        events = (*doubt, RECEIVED, VALIDATED)
        start = Start(job.lease, "sandbox", HOLD, open_attempt=job.open_attempt, events=events)
        await self.store.declare([start])

    async def settle(
        self, verdict: Verdict, *, events: tuple[Event, ...] = (), attempted: bool = False
    ) -> None:
        """Settle under the last claim, live or not."""
        await self.store.settle([End(self.held, verdict, events=events, attempted=attempted)])


Step: TypeAlias = Callable[[Life], Awaitable[object]]


async def _nothing(_life: Life) -> None:
    """Stay as accepted."""


async def _declared(life: Life) -> None:
    job = await life.claim()
    assert job is not None
    await life.declare(job)


async def _cancelled(life: Life) -> None:
    await life.store.cancel([life.new.id], tenant=life.new.tenant)


async def _run_out_of_time(life: Life) -> None:
    life.clock.advance(life.new.ttl)
    await life.backend.upkeep.expire(limit=10)


WAYS_TO_REST: dict[State, Step] = {
    State.ENQUEUED: _nothing,
    State.SENT_ATTEMPT: _declared,
    State.RETRY_SCHEDULED: lambda life: life.attempt(retry(LATER)),
    State.SENT: lambda life: life.attempt(sent()),
    State.FAILED: lambda life: life.attempt(dead()),
    State.EXPIRED: _run_out_of_time,
    State.CANCELLED: _cancelled,
}


async def _invalid(life: Life) -> None:
    job = await life.claim()
    doubt = (IN_DOUBT,) if job is not None and job.open_attempt else ()
    events = (*doubt, RECEIVED, VALIDATION_FAILED)
    await life.settle(dead(DeadReason.VALIDATION_FAILED, charged=False), events=events)


async def _crashing(life: Life) -> None:
    await life.claim()
    await life.settle(dead(DeadReason.CRASHES_WORKER, charged=False))


async def _late(life: Life, verdict: Verdict) -> None:
    await life.store.settle([End(life.lost, verdict)])


async def _late_start(life: Life) -> None:
    await life.store.declare([Start(life.lost, "sandbox", HOLD, events=(RECEIVED, VALIDATED))])


async def _strange_end(life: Life) -> None:
    await life.store.settle([End(Lease(life.new.id, a_claim_id()), dead())])


async def _cancelled_in_flight(life: Life) -> None:
    if (job := await life.claim()) is not None and life.new.declares:
        await life.declare(job)
    await _cancelled(life)
    await life.settle(retry(LATER))


async def _released(life: Life) -> None:
    await life.claim()
    await life.store.release([life.held])


async def _undone(life: Life) -> None:
    await life.claim()
    await life.store.undo_claims([life.held.claim])


async def _vanished(life: Life) -> None:
    await life.claim()
    life.clock.advance(past(LEASE))
    await life.store.reap(limit=10)


OPERATIONS: dict[str, Step] = {
    "accept again": lambda life: life.store.accept([life.new]),
    "attempt: sent": lambda life: life.attempt(sent("again")),
    "attempt: retry": lambda life: life.attempt(retry(LATER)),
    "attempt: dead": lambda life: life.attempt(dead()),
    "attempt: retry too late": lambda life: life.attempt(retry(timedelta(days=9))),
    "find invalid": _invalid,
    "give up on a crashing one": _crashing,
    "settle sent again": lambda life: life.settle(sent("again")),
    "settle dead again": lambda life: life.settle(dead()),
    "late sent": lambda life: _late(life, sent("late")),
    "late retry": lambda life: _late(life, retry()),
    "late dead": lambda life: _late(life, dead()),
    "late declare": _late_start,
    "settle with a strange claim": _strange_end,
    "cancel": _cancelled,
    "cancel in flight": _cancelled_in_flight,
    "release": _released,
    "undo its claim": _undone,
    "vanish": _vanished,
    "extend": lambda life: life.store.extend([life.held], lease=LEASE),
    "expire": _run_out_of_time,
    "redrive": lambda life: life.backend.dead_letters.redrive([life.new.id], by="ana"),
}


async def _life(backend: Backend, clock: StoreClock, new: NewMessage) -> Life:
    """A message whose first worker claimed it, and lost the claim."""
    await accepted(backend.store, new)
    [job] = await claimed(backend.store, kinds=[new.kind])
    clock.advance(past(LEASE))
    await backend.store.reap(limit=10)
    return Life(backend, clock, new, lost=job.lease, held=job.lease)


async def _walk(life: Life) -> list[State]:
    """The states of the timeline, with those that a kind without declaring passes silently."""
    events = await life.backend.reading.events(life.new.id)
    told = [State(event.type.value) for event in events if event.type.value in _STATE_NAMES]
    if life.new.declares:
        return told
    return [State.ENQUEUED, *(step for state in told for step in _with_what_is_passed(state))]


def _with_what_is_passed(state: State) -> list[State]:
    if state is State.RETRY_SCHEDULED:
        return [State.RECEIVED, State.SENT_ATTEMPT, state]
    return [state]


async def _assert_lawful(life: Life, what: str = "") -> None:
    walk = await _walk(life)
    row = await life.backend.reading.message(life.new.id)
    assert row is not None
    assert row.state == walk[-1], what
    assert [(a, b) for a, b in pairwise(walk) if b not in TRANSITIONS[a]] == [], what


async def _end(life: Life) -> None:
    """End it, so that it does not affect the next lives in this store."""
    await life.attempt(sent())
    row = await life.backend.reading.message(life.new.id)
    assert row is not None
    assert row.state in FINISHED


KINDS: dict[str, Callable[[], NewMessage]] = {"e-mail": a_message, "task": a_task}
CASES = [
    pytest.param(new, state, id=f"{name}-{state}")
    for name, new in KINDS.items()
    for state in WAYS_TO_REST
    if new().declares or state is not State.SENT_ATTEMPT  # only a declared attempt rests in it
]


@pytest.mark.parametrize(("new", "state"), CASES)
async def test_operation_never_leaves_the_table(
    backend: Backend, clock: StoreClock, new: Callable[[], NewMessage], state: State
) -> None:
    """From every state in which a message may rest, every operation moves it along the table or not at all."""
    for name, operation in OPERATIONS.items():
        life = await _life(backend, clock, new())
        await WAYS_TO_REST[state](life)
        rested = await backend.reading.message(life.new.id)
        assert rested is not None
        assert rested.state is state, name

        await operation(life)

        await _assert_lawful(life, name)
        await _end(life)


async def test_every_way_to_rest_is_tested() -> None:
    """Transient states are never rested in; all others are tested above."""
    passed = {State.RECEIVED, State.VALIDATED, State.VALIDATION_FAILED}

    assert set(WAYS_TO_REST) == set(State) - passed


async def _sent_at_last(life: Life) -> None:
    await life.attempt(retry(LATER))
    await _declared(life)
    await life.attempt(sent())


async def _expired_while_open(life: Life) -> None:
    await _declared(life)
    await life.claim()
    await life.settle(dead(DeadReason.EXPIRED))


async def _refused_in_time(life: Life, *events: Event) -> None:
    """The worker finds it expired after the stages of these events."""
    await life.claim()
    await life.settle(dead(DeadReason.EXPIRED), events=events)


async def _cancelled_before_the_attempt(life: Life, *events: Event) -> None:
    """Cancelled while in doubt; the next claimer is refused and settles after these stages."""
    await _declared(life)
    await _cancelled(life)
    await life.claim()
    await life.settle(retry(), events=(IN_DOUBT, *events))


async def _in_turn(life: Life, *steps: Step) -> None:
    for step in steps:
        await step(life)


_redriven = OPERATIONS["redrive"]

LIVES: list[Step] = [
    _sent_at_last,
    _expired_while_open,
    _invalid,
    _crashing,
    _cancelled,
    _cancelled_in_flight,
    lambda life: _late(life, sent("late")),
    lambda life: _refused_in_time(life, RECEIVED),
    lambda life: _refused_in_time(life, RECEIVED, VALIDATED),
    lambda life: _cancelled_before_the_attempt(life, RECEIVED),
    lambda life: _cancelled_before_the_attempt(life, RECEIVED, VALIDATED),
    lambda life: _in_turn(life, WAYS_TO_REST[State.RETRY_SCHEDULED], _run_out_of_time),
    lambda life: _in_turn(life, WAYS_TO_REST[State.RETRY_SCHEDULED], _cancelled),
    lambda life: _in_turn(life, WAYS_TO_REST[State.RETRY_SCHEDULED], _crashing),
    lambda life: _in_turn(
        life, WAYS_TO_REST[State.RETRY_SCHEDULED], lambda life: _late(life, sent("late"))
    ),
    lambda life: _in_turn(life, WAYS_TO_REST[State.FAILED], _redriven),
    lambda life: _in_turn(life, WAYS_TO_REST[State.FAILED], lambda life: _late(life, sent())),
    lambda life: _in_turn(life, _run_out_of_time, _redriven),
    lambda life: _in_turn(life, _run_out_of_time, lambda life: _late(life, sent("late"))),
    lambda life: _in_turn(life, _declared, WAYS_TO_REST[State.FAILED]),
]


async def test_every_move_of_the_table_is_made(backend: Backend, clock: StoreClock) -> None:
    """The table promises no move that a store cannot make; a task's silent step is its only gap."""
    seen: set[tuple[State, State]] = set()
    for play in LIVES:
        life = await _life(backend, clock, a_message())
        await play(life)
        await _assert_lawful(life)
        seen |= set(pairwise(await _walk(life)))
        await _end(life)

    silent = {(State.RECEIVED, State.SENT_ATTEMPT)}
    promised = {(a, b) for a, following in TRANSITIONS.items() for b in following}
    assert promised - seen == silent


async def test_refused_move_gets_the_current_state(backend: Backend, clock: StoreClock) -> None:
    """A stale end of a finished message is acknowledged with the state it has."""
    life = await _life(backend, clock, a_message())
    await life.attempt(sent())

    answers = await backend.store.settle([End(life.held, dead())])

    assert answers == [Settled(State.SENT)]


@pytest.mark.parametrize("verdict", [sent(), retry(LATER)], ids=["sent", "retry"])
async def test_undeclared_attempt_of_a_declaring_kind_cannot_end(
    backend: Backend, clock: StoreClock, verdict: Verdict
) -> None:
    """A move outside of the table is a bug: it is an error, and nothing is written."""
    life = await _life(backend, clock, a_message())
    await life.claim()
    before = await everything_about(backend, life.new.id)

    with pytest.raises(TransitionRefused):
        await life.settle(verdict)

    assert await everything_about(backend, life.new.id) == before
