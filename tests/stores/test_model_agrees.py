"""The memory store is the model: whatever happens, every other store answers as it does.

`CARTEIRO_MODEL_EXAMPLES` says how many random lives are tried, `CARTEIRO_MODEL_STEPS` how long each is.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from carteiro.model import (
    EMAIL,
    FINISHED,
    TRANSITIONS,
    Accepted,
    Begun,
    Claimed,
    ClaimId,
    DeadReason,
    End,
    Event,
    Fairness,
    KindName,
    LeasedJob,
    MessageId,
    NewRecipient,
    RecipientId,
    SendLimit,
    Sent,
    Standing,
    Start,
    State,
    StoredMessage,
    Tenant,
    TenantId,
    Verdict,
)
from carteiro.ports import Backend
from support.builders import TASK, a_message, a_task, dead, retry, sent
from support.clock import MILLISECOND, StoreClock
from support.set_ups import SetUp, in_memory, on_sqlite
from support.steps import IN_DOUBT, RECEIVED, VALIDATED, VALIDATION_FAILED

MODEL = SetUp("memory", in_memory)
STORES = (SetUp("sqlite", on_sqlite, durable=True),)

EXAMPLES = int(os.environ.get("CARTEIRO_MODEL_EXAMPLES", "60"))
STEPS = int(os.environ.get("CARTEIRO_MODEL_STEPS", "50"))


@pytest.mark.timeout(60 + 4 * EXAMPLES)
@pytest.mark.parametrize("set_up", STORES, ids=lambda set_up: set_up.name)
def test_a_store_answers_as_the_model(set_up: SetUp) -> None:
    """Random lives of messages leave the same answers, readings and standings in every store."""

    class Beside(StoreBesideModel):
        other = set_up

    run_state_machine_as_test(
        Beside,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# --- what may be drawn ------------------------------------------------------------------------

T = TypeVar("T")

KINDS = (EMAIL, TASK)
TENANTS = (TenantId("ana"), TenantId("bia"), TenantId("caio"))
STRANGER = TenantId("nobody")
MOST_MESSAGES = 16  # each is read back after every step


def among(*choices: T) -> st.SearchStrategy[T]:
    """One of the choices; the first is the simplest."""
    return st.sampled_from(choices)


def waits(*milliseconds: int) -> st.SearchStrategy[Any]:
    """One of the lengths of time."""
    return st.sampled_from([count * MILLISECOND for count in milliseconds])


SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
LEASES = waits(30 * SECOND, SECOND)
HOLDS = waits(40 * SECOND, SECOND)
RECIPIENTS = among(
    None,
    NewRecipient("x@example.test", external_id="x-1"),
    NewRecipient("x@example.test", external_id="x-1", cpf_cnpj_hash="h-1", nome="Xavier"),
    NewRecipient("y@example.test", cpf_cnpj_hash="h-1", razao_social="Y Ltda"),
    NewRecipient("z@example.test", recipient_id=RecipientId("given")),
)
RARELY = st.sampled_from([False, False, False, True])
SHARES = st.builds(
    Tenant,
    id=among(*TENANTS),
    tier=among(None, "gold"),
    weight=among(None, 0.5, 2.0, 3.0),
    cap=among(None, 1, 2),
    rate_per_second=among(None, 0.5, 2.5, 50.0),
    paused=RARELY,
)
TUNINGS = among(
    None,
    Fairness(enable_round_robin=False),
    Fairness(max_jobs_per_tenant_batch=1),
    Fairness(max_jobs_per_tenant_batch=5, priority_increment_per_round=2),
)
SEND_LIMITS = among(
    None, SendLimit(2, SECOND * MILLISECOND), SendLimit(3, 10 * SECOND * MILLISECOND)
)
VERDICTS = st.one_of(
    st.just(sent()),
    st.builds(retry, waits(0, 100, 3 * SECOND, MINUTE, HOUR), charged=st.booleans()),
    st.builds(dead, charged=st.booleans()),
)


@dataclass
class Hand:
    """A job in the hands of a worker, as that worker sees it."""

    job: LeasedJob
    has_declared: bool = False

    def start(self, hold: Any) -> Start:
        """The attempt, with the events of the stages before it."""
        doubt = (IN_DOUBT,) if self.job.open_attempt else ()
        events = (*doubt, RECEIVED, VALIDATED)
        return Start(
            self.job.lease, "sandbox", hold, open_attempt=self.job.open_attempt, events=events
        )

    def end(self, verdict: Verdict, *, is_unknown: bool) -> End:
        """The end of the job. What was never declared can only be given up, in doubt or invalid."""
        if self.job.kind == TASK:
            return End(self.job.lease, verdict, attempted=True, duration=5 * MILLISECOND)
        if not self.has_declared:
            return self._given_up()
        events = (IN_DOUBT,) if is_unknown else ()
        return End(self.job.lease, verdict, events, 20 * MILLISECOND, in_doubt=int(is_unknown))

    def _given_up(self) -> End:
        if self.job.open_attempt:
            return End(
                self.job.lease, dead(DeadReason.IN_DOUBT, charged=False), (IN_DOUBT,), in_doubt=1
            )
        events: tuple[Event, ...] = (replace(RECEIVED, ago=3 * MILLISECOND), VALIDATION_FAILED)
        return End(self.job.lease, dead(DeadReason.VALIDATION_FAILED, charged=False), events)


def each_once(hand: Hand, more: list[Hand]) -> list[Hand]:
    """The hands without repetition: a batch names a job once."""
    return list({id(each): each for each in (hand, *more)}.values())


@dataclass
class Side:
    """One store, and names for the ids it makes by itself: stores agree on them by order of appearance."""

    backend: Backend
    names: dict[RecipientId, str] = field(default_factory=dict)

    def renamed(self, answer: Any) -> Any:
        """The answer with our names in place of the store's own ids."""
        if isinstance(answer, list):
            return [self.renamed(each) for each in answer]
        if not is_dataclass(answer) or isinstance(answer, type):
            return answer
        held = {each.name: getattr(answer, each.name) for each in fields(answer)}
        return replace(answer, **{name: self._renamed_field(name, held[name]) for name in held})

    def _renamed_field(self, name: str, held: Any) -> Any:
        if name == "recipient_id" and held is not None:
            return self.names.setdefault(held, f"recipient {len(self.names) + 1}")
        if name == "recipient" and held is not None:
            return replace(held, id=self.names[held.id])
        return self.renamed(held) if name == "jobs" else held


# --- the machine ------------------------------------------------------------------------------


class StoreBesideModel(RuleBasedStateMachine):
    """Asks the same of a store and of the model, and compares every answer."""

    messages: Bundle[MessageId] = Bundle("messages")
    hands: Bundle[Hand] = Bundle("hands")

    other: SetUp

    def __init__(self) -> None:
        super().__init__()
        self.clock = StoreClock()
        self.accepted: list[MessageId] = []
        self.claims = 0
        self.loop = asyncio.new_event_loop()
        self.open = AsyncExitStack()
        self.sides = [self._opened(each) for each in (MODEL, self.other)]

    def _opened(self, set_up: SetUp) -> Side:
        entered = self.open.enter_async_context(set_up.opened(self.clock))
        return Side(self.loop.run_until_complete(entered))

    def teardown(self) -> None:
        """Close both stores."""
        self.loop.run_until_complete(self.open.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def both(self, ask: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """What both stores answer."""
        expected, answer = (
            side.renamed(self.loop.run_until_complete(ask(side.backend))) for side in self.sides
        )
        assert answer == expected
        found: T = expected
        return found

    # --- the path of a message

    @initialize()
    def know_tenants(self) -> None:
        """Some tenants are known from the start."""
        tenants = [Tenant(name) for name in TENANTS]
        self.both(lambda backend: backend.tenants.define(tenants))

    @precondition(lambda self: len(self.accepted) < MOST_MESSAGES)
    @rule(
        target=messages,
        tenants=st.lists(among(*TENANTS), min_size=1, max_size=4),
        make=among(a_message, a_task),
        priority=among(5, 1),
        delay=among(None, 0, 500, 5 * SECOND),
        ttl=waits(HOUR, 2 * SECOND, MINUTE),
        recipient=RECIPIENTS,
    )
    def accept(
        self,
        tenants: list[TenantId],
        make: Callable[..., Any],
        delay: int | None,
        **changes: Any,
    ) -> MultipleResults[MessageId]:
        """New messages, now or for later."""
        changes["due"] = None if delay is None else self.clock.at(delay * MILLISECOND)
        first = len(self.accepted)
        new = [
            make(tenant, id=MessageId(f"m-{first + each:03}"), **changes)
            for each, tenant in enumerate(tenants)
        ]
        answers = self.both(lambda backend: backend.store.accept(new))
        assert all(isinstance(answer, Accepted) for answer in answers)
        self.accepted += [message.id for message in new]
        return multiple(*(message.id for message in new))

    @rule(known=messages, tenant=among(*TENANTS, STRANGER))
    def accept_again(self, known: MessageId, tenant: TenantId) -> None:
        """A repeated message, and one of a tenant that nobody knows."""
        new = [a_message(tenant, id=known), a_message(STRANGER, id=MessageId("m-stranger"))]
        if self._stored(known) is not None:
            self.both(lambda backend: backend.store.accept(new))

    @rule(
        target=hands,
        kinds=among((EMAIL,), (TASK,), KINDS),
        limit=among(1, 2, 4, 7, 20),
        lease=LEASES,
    )
    def claim(self, kinds: tuple[KindName, ...], limit: int, lease: Any) -> MultipleResults[Hand]:
        """A worker with free slots."""
        self.claims += 1
        claim_id = ClaimId(f"c-{self.claims:03}")
        claimed: Claimed = self.both(
            lambda backend: backend.store.claim(
                claim_id=claim_id, kinds=kinds, limit=limit, lease=lease
            )
        )
        ids = [job.lease.job for job in claimed.jobs]
        assert len(set(ids)) == len(ids) <= limit
        assert self.both(lambda backend: backend.reading.unsettled(ids)) == ids
        return multiple(*(Hand(job) for job in claimed.jobs))

    @rule(hand=hands, more=st.lists(hands, max_size=2), hold=HOLDS)
    def declare(self, hand: Hand, more: list[Hand], hold: Any) -> None:
        """Attempts about to be made, for the first time or again."""
        mails = [each for each in each_once(hand, more) if each.job.kind == EMAIL]
        starts = [each.start(hold) for each in mails]
        answers = self.both(lambda backend: backend.store.declare(starts))
        for each, answer in zip(mails, answers, strict=True):
            each.has_declared = each.has_declared or isinstance(answer, Begun)

    @rule(
        hand=hands,
        more=st.lists(hands, max_size=2),
        verdict=VERDICTS,
        is_unknown=RARELY,
    )
    def settle(self, hand: Hand, more: list[Hand], verdict: Verdict, *, is_unknown: bool) -> None:
        """Verdicts, in time, late or told again."""
        doubt = is_unknown and not isinstance(verdict, Sent)
        ends = [each.end(verdict, is_unknown=doubt) for each in each_once(hand, more)]
        self.both(lambda backend: backend.store.settle(ends))

    # --- what keeps it honest

    @rule(hand=hands, more=st.lists(hands, max_size=2), lease=LEASES)
    def extend(self, hand: Hand, more: list[Hand], lease: Any) -> None:
        """A worker that is still at it."""
        leases = [each.job.lease for each in each_once(hand, more)]
        self.both(lambda backend: backend.store.extend(leases, lease=lease))

    @rule(hand=hands, more=st.lists(hands, max_size=2), wait=waits(0, 700))
    def release(self, hand: Hand, more: list[Hand], wait: Any) -> None:
        """A worker that gives back what it has not begun."""
        leases = [each.job.lease for each in each_once(hand, more)]
        self.both(lambda backend: backend.store.release(leases, wait=wait))

    @rule(hand=consumes(hands))
    def crash(self, hand: Hand) -> None:
        """A worker that is never heard of again."""

    @rule(message=messages, tenant=among(*TENANTS))
    def cancel(self, message: MessageId, tenant: TenantId) -> None:
        """Whoever asks: only the tenant's own messages are found."""
        self.both(lambda backend: backend.store.cancel([message], tenant=tenant))

    @rule(limit=among(100, 1))
    def reap(self, limit: int) -> None:
        """What nobody holds any more comes back."""
        self.both(lambda backend: backend.store.reap(limit=limit))

    @rule(limit=among(100, 1))
    def expire(self, limit: int) -> None:
        """What waited too long ends."""
        self.both(lambda backend: backend.upkeep.expire(limit=limit))

    @rule(message=messages, more=st.lists(messages, max_size=2))
    def redrive(self, message: MessageId, more: list[MessageId]) -> None:
        """Dead letters go round again, the same one perhaps twice."""
        ids = [message, *more]
        self.both(lambda backend: backend.dead_letters.redrive(ids, by="ops"))

    @rule(
        bodies=among(None, HOUR * MILLISECOND),
        histories=among(None, 2 * HOUR * MILLISECOND),
        after=among(None, MessageId("m-003")),
        limit=among(1000, 2),
    )
    def prune(self, **page: Any) -> None:
        """What finished long ago goes."""
        self.both(lambda backend: backend.upkeep.prune(**page))

    @rule(holder=among("one", "other"), term=LEASES)
    def lead(self, holder: str, term: Any) -> None:
        """Processes that want to do the upkeep."""
        self.both(lambda backend: backend.upkeep.lead("expire", holder=holder, term=term))

    # --- time and tenants

    @rule(by=waits(1, 50, 999, 5 * SECOND, 45 * SECOND, 16 * MINUTE, 2 * HOUR))
    def time_passes(self, by: Any) -> None:
        """Leases, holds and lives run out."""
        self.clock.advance(by)

    @rule(by=waits(1, 500, 1_500, MINUTE, HOUR))
    def clock_steps_back(self, by: Any) -> None:
        """Somebody sets the clock right."""
        self.clock.back(by)

    @rule(tenant=SHARES)
    def share(self, tenant: Tenant) -> None:
        """A tenant's weight, tier, cap, rate and pause."""
        self.both(lambda backend: backend.tenants.define([tenant]))

    @rule(name=among(*TENANTS))
    def pause_or_resume(self, name: TenantId) -> None:
        """Only the pause changes."""
        [tenant] = self.both(lambda backend: backend.tenants.find([name]))
        assert tenant is not None
        changed = replace(tenant, paused=not tenant.paused)
        self.both(lambda backend: backend.tenants.define([changed]))

    @rule(weight=among(1.0, 2.0, 4.0))
    def weigh_tier(self, weight: float) -> None:
        """Tenants without a weight of their own follow."""
        self.both(lambda backend: backend.tenants.weigh_tier("gold", weight))

    @rule(kind=among(*KINDS), limit=SEND_LIMITS)
    def limit(self, kind: KindName, limit: SendLimit | None) -> None:
        """The limit that all claims of a kind share."""
        self.both(lambda backend: backend.tenants.limit(kind, limit))

    @rule(fairness=TUNINGS)
    def tune(self, fairness: Fairness | None) -> None:
        """Fair or plain, and how much in a turn."""
        self.both(lambda backend: backend.tenants.tune(fairness))

    # --- what must hold after every step

    @invariant()
    def readings_agree(self) -> None:
        """Messages, timelines, dead letters and counts are the same, and no timeline leaves the table."""
        for message in self.accepted:
            self._follows_the_table(message)
        self.both(lambda backend: backend.dead_letters.find())
        self.both(lambda backend: backend.reading.states())

    @invariant()
    def standings_agree(self) -> None:
        """How tenants fare is the same; what waits or is in flight is exactly what is not finished."""
        unfinished = self._unfinished()
        for kind in KINDS:
            standings = self._standings(kind)
            counted = {each.tenant: each.waiting + each.in_flight for each in standings}
            for tenant in TENANTS:
                assert counted.get(tenant, 0) == unfinished.count((tenant, kind))

    def _follows_the_table(self, message: MessageId) -> None:
        """Each state may follow the one before; a task's last event stands for its whole way through the table."""
        stored, states = self._stored(message), self._states(message)
        if stored is None:
            assert not states
            return
        skipped = (State.RECEIVED, State.SENT_ATTEMPT) if stored.kind == TASK else ()
        for before, after in pairwise(states):
            way = pairwise((before, *skipped, after))
            assert after in TRANSITIONS[before] or all(
                then in TRANSITIONS[now] for now, then in way
            )
        assert states[-1] == stored.state

    def _stored(self, message: MessageId) -> StoredMessage | None:
        return self.both(lambda backend: backend.reading.message(message))

    def _states(self, message: MessageId) -> list[State]:
        events = self.both(lambda backend: backend.reading.events(message))
        return [State(event.type.value) for event in events if event.type.value in set(State)]

    def _standings(self, kind: KindName) -> list[Standing]:
        return self.both(lambda backend: backend.tenants.standings(kind))

    def _unfinished(self) -> list[tuple[TenantId, KindName]]:
        found = [self._stored(message) for message in self.accepted]
        return [(each.tenant, each.kind) for each in found if each and each.state not in FINISHED]
