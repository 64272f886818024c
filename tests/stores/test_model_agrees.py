"""Every store answers as the model does, for any sequence of operations.

`MODEL_EXAMPLES` is the number of random lives, `MODEL_STEPS` the length of each.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, TypeVar

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

from carteiro.errors import DomainClaimed, TierUnknown
from carteiro.model import (
    EMAIL,
    FINISHED,
    TRANSITIONS,
    Accepted,
    ApiLimits,
    Begun,
    Claimed,
    ClaimId,
    DeadFilter,
    DeadLetter,
    DeadReason,
    Depth,
    End,
    Erased,
    Fairness,
    IdempotencyKey,
    KindName,
    LeasedJob,
    MessageFilter,
    MessageId,
    NewMessage,
    NewRecipient,
    QueuePlace,
    RecipientId,
    Revision,
    SendLimit,
    Sent,
    Standing,
    Start,
    State,
    StoredMessage,
    Tenant,
    TenantId,
    TimelineEvent,
    Verdict,
)
from carteiro.ports import Backend
from support.builders import TASK, a_message, a_task, dead, retry, sent
from support.clock import MILLISECOND, StoreClock
from support.set_ups import (
    Opened,
    on_model,
    on_postgres,
    on_redis_and_postgres,
    on_redis_and_sqlite,
    on_sqlite,
)
from support.steps import IN_DOUBT, RECEIVED, VALIDATED, VALIDATION_FAILED

Opens: TypeAlias = Callable[[Path, StoreClock, Fairness], Opened]

RECENTLY = StoreClock().at()
# The store, and its share of the lives: a server takes ten times as long for one.
STORES: dict[str, tuple[Opens, float]] = {
    "sqlite": (on_sqlite, 1),
    "postgres": (on_postgres, 0.2),
    "redis+sqlite": (on_redis_and_sqlite, 0.3),
    "redis+postgres": (on_redis_and_postgres, 0.1),
}

EXAMPLES = int(os.environ.get("MODEL_EXAMPLES", "80"))
STEPS = int(os.environ.get("MODEL_STEPS", "50"))


@pytest.mark.timeout(400 + 4 * EXAMPLES)  # a failure is made small for up to 300 s
@pytest.mark.parametrize(
    "name",
    [pytest.param(each, marks=[] if each == "sqlite" else pytest.mark.servers) for each in STORES],
)
def test_a_store_answers_as_the_model(name: str) -> None:
    """Random lives of messages leave the same answers, readings and standings in every store."""
    opens_store, share = STORES[name]

    class Beside(StoreBesideModel):
        opens = staticmethod(opens_store)
        has_two_parts = "+" in name

    run_state_machine_as_test(
        Beside,
        settings=settings(
            max_examples=max(1, round(EXAMPLES * share)),
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# --- random choices ---------------------------------------------------------------------------

T = TypeVar("T")

KINDS = (EMAIL, TASK)
TENANTS = (TenantId("ana"), TenantId("bia"), TenantId("caio"))
STRANGER = TenantId("nobody")
MOST_MESSAGES = 16  # each is read back after every step


def among(*choices: T) -> st.SearchStrategy[T]:
    """One of the choices; the first is the simplest."""
    return st.sampled_from(choices)


def waits(*milliseconds: int) -> st.SearchStrategy[timedelta]:
    """One of the durations."""
    return st.sampled_from([count * MILLISECOND for count in milliseconds])


class Ask:
    """A call to a port of any store; readable where a failing life is printed."""

    def __init__(self, port: str, operation: str, *arguments: Any, **options: Any) -> None:
        self.port, self.operation = port, operation
        self.arguments, self.options = arguments, options

    async def __call__(self, backend: Backend) -> object:
        """The answer of this store, or its error."""
        asked = getattr(getattr(backend, self.port), self.operation)
        try:
            return await asked(*self.arguments, **self.options)
        except (DomainClaimed, TierUnknown) as refused:
            return f"{type(refused).__name__}: {refused}"

    def __repr__(self) -> str:
        """The call as text."""
        return f"Ask({self.port}.{self.operation}, {self.arguments}, {self.options})"


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
REQUESTS = among(
    None,
    IdempotencyKey("order-1", "as before"),
    IdempotencyKey("order-1", "otherwise"),
    IdempotencyKey("order-2", "as before"),
)
API_LIMITS = among(None, ApiLimits(None, None, None), ApiLimits(2, None, 4), ApiLimits(None, 3, 4))
# Mostly less than a lease, so that not every message dies of old age.
TIMES = waits(1, 50, 999, 1_001, 3 * SECOND, 5 * SECOND, 31 * SECOND, 41 * SECOND) | waits(
    3 * SECOND, 16 * MINUTE, HOUR, 23 * HOUR, -1, -500, -1_500, -MINUTE, -HOUR
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
    disabled=RARELY,
    retry_preset=among(None, "classic"),
    from_domains=among((), ("acme.example",), ("ACME.example", "brasa.example")),
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
RULES_OF_SHARING = st.one_of(
    st.builds(partial(Ask, "tenants", "define"), st.tuples(SHARES)),
    st.builds(partial(Ask, "tenants", "define"), st.tuples(st.builds(Tenant, among(*TENANTS)))),
    st.builds(partial(Ask, "tenants", "weigh_tier"), st.just("gold"), among(1.0, 2.0, 4.0)),
    st.builds(partial(Ask, "tenants", "limit"), among(*KINDS), SEND_LIMITS),
    st.builds(partial(Ask, "tenants", "tune"), TUNINGS),
)
UPKEEP = st.one_of(
    st.builds(partial(Ask, "store", "reap"), limit=among(100, 1)),
    st.builds(partial(Ask, "upkeep", "expire"), limit=among(100, 1)),
    st.builds(
        partial(Ask, "upkeep", "lead"), st.just("relay"), holder=among("one", "two"), term=LEASES
    ),
    st.builds(
        partial(Ask, "upkeep", "prune"),
        bodies=waits(SECOND, HOUR) | st.none(),
        histories=waits(3 * SECOND, HOUR) | st.none(),
        after=among(None, MessageId("m-003")),
        limit=among(1000, 2),
    ),
)
FILTERS = st.builds(
    DeadFilter,
    tenant=among(None, *TENANTS),
    reason=among(None, DeadReason.EXPIRED, DeadReason.IN_DOUBT),
    code=among(None, "550", "421"),
    text=among(None, "ANA@", "later"),
    is_redriven=st.none() | st.booleans(),
)
DESK = st.one_of(
    st.builds(partial(Ask, "dead_letters", "find"), FILTERS, limit=among(100, 1)),
    st.builds(partial(Ask, "dead_letters", "group"), among("code", "tenant", "reason"), FILTERS),
    st.builds(partial(Ask, "dead_letters", "sizes"), top=among(9, 1)),
    st.builds(partial(Ask, "dead_letters", "outlived"), limit=among(100, 1)),
)
WANTED = st.builds(
    MessageFilter,
    tenant=among(None, *TENANTS),
    kind=among(None, *KINDS),
    state=among(None, *State),
    to=among(None, None, None, "ana@example.com"),
    provider_id=among(None, None, None, sent().provider_id),
    recipient_external_id=among(None, None, None, "x-1"),
)
REVISION = Revision(
    "{}", "x@example.test", "Again", NewRecipient("x@example.test", external_id="x-1")
)
VERDICTS = st.one_of(
    st.just(sent()),
    st.builds(retry, waits(0, 100, 3 * SECOND, MINUTE, HOUR), charged=st.booleans()),
    st.builds(dead, charged=st.booleans()),
)


@dataclass
class Hand:
    """A job of a worker, as that worker sees it."""

    job: LeasedJob
    has_declared: bool = False

    @property
    def may_end(self) -> bool:
        """True if the worker made an attempt, or needs no permission to make one."""
        return self.has_declared or self.job.kind == TASK

    def start(self, hold: timedelta) -> Start:
        """The attempt, with the events of the stages before it."""
        doubt = (IN_DOUBT,) if self.job.open_attempt else ()
        events = (*doubt, RECEIVED, VALIDATED)
        return Start(
            self.job.lease, "sandbox", hold, open_attempt=self.job.open_attempt, events=events
        )

    def end(self, verdict: Verdict, is_unknown: bool) -> End:
        """The result of the attempt."""
        if self.job.kind == TASK:
            return End(self.job.lease, verdict, attempted=True, duration=5 * MILLISECOND)
        is_unknown = is_unknown and not isinstance(verdict, Sent)
        events = (IN_DOUBT,) if is_unknown else ()
        return End(self.job.lease, verdict, events, 20 * MILLISECOND, in_doubt=int(is_unknown))

    def given_up(self) -> End:
        """The end of a job that is not attempted: in doubt once too often, or not valid."""
        doubt = (IN_DOUBT,) if self.job.open_attempt else ()
        if self.job.in_doubt:
            verdict = dead(DeadReason.IN_DOUBT, charged=False)
            return End(self.job.lease, verdict, doubt, in_doubt=len(doubt))
        verdict = dead(DeadReason.VALIDATION_FAILED, charged=False)
        received = replace(RECEIVED, ago=3 * MILLISECOND)
        events = (*doubt, received, VALIDATION_FAILED)
        return End(self.job.lease, verdict, events, in_doubt=len(doubt))


@dataclass
class Declare:
    """The worker is about to make attempts, for the first time or again."""

    hold: timedelta


@dataclass
class Settle:
    """The worker reports the results of attempts: in time, late or again."""

    verdict: Verdict
    is_unknown: bool


@dataclass
class Extend:
    """The worker extends its leases."""

    lease: timedelta


@dataclass
class Release:
    """The worker releases jobs that it has not begun."""

    wait: timedelta


@dataclass
class Undo:
    """The worker undoes whole claims."""


@dataclass
class GiveUp:
    """The worker will not attempt it, and says why."""


Act: TypeAlias = Declare | Settle | Extend | Release | Undo | GiveUp

SETTLES = st.builds(Settle, VERDICTS, RARELY)
WORK = st.one_of(
    st.tuples(st.builds(Declare, HOLDS), SETTLES),
    st.tuples(st.builds(Declare, HOLDS)),
    st.tuples(SETTLES),
    st.tuples(SETTLES, st.builds(Declare, HOLDS), SETTLES),
    st.tuples(
        st.builds(Extend, LEASES)
        | st.builds(Release, waits(0, 700))
        | st.builds(Undo)
        | st.builds(GiveUp)
    ),
)


def each_once(hand: Hand, more: list[Hand]) -> list[Hand]:
    """The jobs without repetition: a batch names a job once."""
    return list({id(each): each for each in (hand, *more)}.values())


@dataclass
class Side:
    """One store, and names for its generated ids: stores agree on them by order of appearance."""

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
        return self.renamed(held) if name in {"jobs", "messages"} else held


# --- the machine ------------------------------------------------------------------------------


class StoreBesideModel(RuleBasedStateMachine):
    """Makes the same calls to a store and to the model, and compares every answer."""

    messages: Bundle[MessageId] = Bundle("messages")
    hands: Bundle[Hand] = Bundle("hands")

    opens: Opens
    has_two_parts: bool

    def __init__(self) -> None:
        super().__init__()
        self.clock = StoreClock()
        self.accepted: list[MessageId] = []
        self.has_held = False
        self.kept_elsewhere: list[DeadLetter] = []
        self.ids = count()
        self.claims = 0
        self.loop = asyncio.new_event_loop()
        self.open = AsyncExitStack()
        self.sides = [self._opened(each) for each in (on_model, self.opens)]

    def _opened(self, opens: Opens) -> Side:
        folder = Path(self.open.enter_context(TemporaryDirectory()))
        opened = self.open.enter_async_context(opens(folder, self.clock, Fairness()))
        return Side(self.loop.run_until_complete(opened))

    def teardown(self) -> None:
        """Close both stores."""
        self.loop.run_until_complete(self.open.aclose())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def both(self, ask: Callable[[Backend], Coroutine[Any, Any, T]]) -> T:
        """The answer of both stores."""
        expected, answer = (
            side.renamed(self.loop.run_until_complete(ask(side.backend))) for side in self.sides
        )
        assert answer == expected
        found: T = expected
        return found

    # --- the path of a message

    @initialize(target=messages)
    def begin(self) -> MultipleResults[MessageId]:
        """Some tenants are known from the start, and have work."""
        tenants = [Tenant(name) for name in TENANTS]
        self.both(lambda backend: backend.tenants.define(tenants))
        return multiple(
            *self._accept([*TENANTS, *TENANTS], a_message), *self._accept(TENANTS, a_task)
        )

    @precondition(lambda self: len(self.accepted) < MOST_MESSAGES)
    @rule(
        target=messages,
        tenants=st.lists(among(*TENANTS), min_size=1, max_size=4),
        make=among(a_message, a_task),
        priority=among(5, 1),
        delay=among(None, 0, 500, 5 * SECOND),
        ttl=waits(HOUR, 2 * SECOND, MINUTE),
        recipient=RECIPIENTS,
        key=REQUESTS,
        limits=API_LIMITS,
        tags=among((), ("b", "a")),
    )
    def accept(
        self,
        tenants: list[TenantId],
        make: Callable[..., NewMessage],
        delay: int | None,
        **changes: Any,
    ) -> MultipleResults[MessageId]:
        """New messages, now or for later."""
        due = None if delay is None else self.clock.at(delay * MILLISECOND)
        return multiple(*self._accept(tenants, make, due=due, **changes))

    def _accept(
        self, tenants: Sequence[TenantId], make: Callable[..., NewMessage], **changes: Any
    ) -> list[MessageId]:
        new = [
            make(tenant, id=MessageId(f"m-{next(self.ids):03}"), **changes) for tenant in tenants
        ]
        answers = self.both(lambda backend: backend.store.accept(new))
        again = [*new, a_message(STRANGER, id=MessageId("m-stranger"))]
        self.both(lambda backend: backend.store.accept(again))
        ids = [answer.id for answer in answers if isinstance(answer, Accepted)]
        self.accepted += ids
        return ids

    @rule(
        target=hands,
        kinds=among((EMAIL,), (TASK,), KINDS),
        limit=among(4, 1, 2, 7, 20),
        ahead=among(0, 0, 3),
        lease=LEASES,
    )
    def claim(
        self, kinds: tuple[KindName, ...], limit: int, ahead: int, lease: timedelta
    ) -> MultipleResults[Hand]:
        """A worker with free slots, and room for jobs ahead."""
        self.claims += 1
        claim_id = ClaimId(f"c-{self.claims:03}")
        naps: list[timedelta] = []

        async def ask(backend: Backend) -> Claimed:
            claimed = await backend.store.claim(
                claim_id=claim_id, kinds=kinds, limit=limit, lease=lease, ahead=ahead
            )
            naps.append(timedelta.max if claimed.idle_for is None else claimed.idle_for)
            return replace(claimed, idle_for=None)

        claimed = self.both(ask)
        assert naps[1] <= naps[0]  # too early costs a query, too late a delay
        ids = [job.lease.job for job in claimed.jobs]
        assert len(set(ids)) == len(ids) <= limit + ahead
        assert self.both(lambda backend: backend.reading.unsettled(ids)) == ids
        return multiple(*(Hand(job) for job in claimed.jobs))

    @rule(hand=hands, more=st.lists(hands, max_size=2), acts=WORK)
    def work(self, hand: Hand, more: list[Hand], acts: tuple[Act, ...]) -> None:
        """Actions of workers on jobs that they hold, or believe to hold."""
        some = each_once(hand, more)
        leases = [each.job.lease for each in some]
        for act in acts:
            match act:
                case Declare(hold):
                    self._declare([each for each in some if each.job.kind == EMAIL], hold)
                case Settle(verdict, is_unknown):
                    self._settle([each.end(verdict, is_unknown) for each in some if each.may_end])
                case GiveUp():
                    self._settle([each.given_up() for each in some if not each.may_end])
                case Extend(lease):
                    self.both(Ask("store", "extend", leases, lease=lease))
                case Release(wait):
                    self.both(Ask("store", "release", leases, wait=wait))
                case Undo():
                    claims = sorted({each.claim for each in leases})
                    self.both(Ask("store", "undo_claims", claims))

    def _declare(self, mails: list[Hand], hold: timedelta) -> None:
        self.has_held = True
        starts = [each.start(hold) for each in mails]
        answers = self.both(lambda backend: backend.store.declare(starts))
        for each, answer in zip(mails, answers, strict=True):
            each.has_declared = each.has_declared or isinstance(answer, Begun)

    def _settle(self, ends: list[End]) -> None:
        self.both(lambda backend: backend.store.settle(ends))

    @rule(hand=consumes(hands))
    def crash(self, hand: Hand) -> None:
        """A worker disappears."""

    # --- recovery

    @rule(ids=st.tuples(messages) | st.tuples(messages, messages), tenant=among(*TENANTS, None))
    def cancel_or_redrive(self, ids: tuple[MessageId, ...], tenant: TenantId | None) -> None:
        """A tenant cancels its own or another message, or people redrive, perhaps one twice."""
        if tenant is not None:
            self.both(Ask("store", "cancel", ids, tenant=tenant))
        else:
            self.both(Ask("dead_letters", "redrive", ids, by="ops"))

    @rule(ask=DESK, message=messages, is_revised=RARELY)
    def look_at_the_desk(self, ask: Ask, message: MessageId, is_revised: bool) -> None:
        """People read dead letters, and now and then edit one."""
        self.both(ask)
        if is_revised:
            self.both(Ask("dead_letters", "redrive", [message], by="ops", revision=REVISION))

    @rule(wanted=WANTED, limit=among(100, 1, 3))
    def look_through(self, wanted: MessageFilter, limit: int) -> None:
        """People list messages, page by page."""
        self.both(lambda backend: listed(backend, wanted, limit))

    @rule(tenant=among(*TENANTS), limit=among(100, 1), is_meant=RARELY)
    def erase(self, tenant: TenantId, limit: int, is_meant: bool) -> None:
        """A tenant is erased as far as possible now; an erased one comes back empty."""
        if is_meant:
            erased = self.both(lambda backend: erased_page(backend, tenant, limit))
            if erased is None or not erased.has_more:
                self.both(Ask("tenants", "ensure", [tenant]))

    @rule(most=among(3, 0, 1), limit=among(100, 1), is_restored=st.booleans())
    def tidy(self, most: int, limit: int, is_restored: bool) -> None:
        """Excess dead letters leave the index; earlier ones may come back."""
        going = self.both(lambda backend: backend.dead_letters.overfull(most=most, limit=limit))
        self.both(Ask("dead_letters", "drop", [letter.id for letter in going]))
        if is_restored:
            self.both(Ask("dead_letters", "restore", [*self.kept_elsewhere, *going]))
        self.kept_elsewhere += going

    @rule(ask=UPKEEP)
    def keep_up(self, ask: Ask) -> None:
        """Expired leases come back, overdue messages end, old finished ones are deleted."""
        self.both(ask)

    # --- time and tenants

    @rule(by=TIMES)
    def time_passes(self, by: timedelta) -> None:
        """Leases, holds and lives run out; now and then the clock is set back.

        Only the queue has seen the end of a hold: set back, the ledger waits for its end once more,
        where a store in one part knows that it was over.
        """
        if by >= timedelta(0) or not (self.has_two_parts and self.has_held):
            self.clock.advance(by)

    @rule(ask=RULES_OF_SHARING)
    def share(self, ask: Ask) -> None:
        """Weights, tiers, caps, rates, pauses, disabled tenants, the send limit; fair or plain."""
        self.both(ask)

    # --- after every step

    @invariant()
    def readings_agree(self) -> None:
        """Both return the same of every message and tenant, and it is consistent."""
        books = self.both(lambda backend: books_of(backend, self.accepted))
        for message, events in zip(books.messages, books.timelines, strict=True):
            follows_the_table(message, events)
        unfinished = [
            (each.tenant, each.kind)
            for each in books.messages
            if each is not None and each.state not in FINISHED
        ]
        queued = {
            (each.tenant, each.kind): each.waiting + each.in_flight for each in books.standings
        }
        assert {key: count for key, count in queued.items() if count} == Counter(unfinished)


@dataclass
class Books:
    """All readable data of a store."""

    messages: list[StoredMessage | None]
    timelines: list[list[TimelineEvent]]
    standings: list[Standing]
    dead_letters: list[DeadLetter]
    states: Mapping[State, int]
    places: list[QueuePlace | None]
    depths: list[Depth]


async def books_of(backend: Backend, ids: list[MessageId]) -> Books:
    """All readable data of a store.

    The time of a tenant's next turn is the store's own, as long as its jobs are claimed alike.
    """
    standings = [await backend.tenants.standings(kind) for kind in KINDS]
    return Books(
        messages=[await backend.reading.message(each) for each in ids],
        timelines=[await backend.reading.events(each) for each in ids],
        standings=[each for of_kind in standings for each in of_kind],
        dead_letters=(await backend.dead_letters.find()).rows,
        states=await backend.reading.states(),
        places=[_awake(await backend.reading.place(each)) for each in ids],
        depths=[_rough(each) for each in await backend.reading.depths()],
    )


def _rough(depth: Depth) -> Depth:
    """True if something could be claimed; a lease that ran out may be ready again or not yet."""
    return depth if depth.oldest_due_at is None else replace(depth, oldest_due_at=RECENTLY)


def _awake(place: QueuePlace | None) -> QueuePlace | None:
    """Without what depends on when due jobs are made ready."""
    depends = {"tenant_wakes_at": None, "waits_since": None, "ahead": 0, "parked_ahead": 0}
    return None if place is None else replace(place, **depends)  # type: ignore[arg-type]


async def erased_page(backend: Backend, tenant: TenantId, limit: int) -> Erased | None:
    """A page, and all of the rest after the last message: stores delete figures in pages, too."""
    erased = await backend.tenants.erase(tenant, limit=limit)
    own = MessageFilter(tenant=tenant)
    while erased is not None and erased.has_more:
        if (await backend.reading.messages(own, limit=1)).rows:
            break
        page = await backend.tenants.erase(tenant, limit=limit)
        erased = replace(erased, has_more=page is not None and page.has_more)
    return erased


async def listed(backend: Backend, wanted: MessageFilter, limit: int) -> list[StoredMessage]:
    """Every page of a list; the page ends are the store's own."""
    rows: list[StoredMessage] = []
    page = await backend.reading.messages(wanted, limit=limit)
    while page.next is not None:
        rows += page.rows
        page = await backend.reading.messages(wanted, cursor=page.next, limit=limit)
    return rows + page.rows


def follows_the_table(message: StoredMessage | None, events: list[TimelineEvent]) -> None:
    """Each state may follow the one before; a task's last event stands for its whole way through the table."""
    states = [State(event.type.value) for event in events if event.type.value in set(State)]
    if message is not None and message.kind == TASK:  # its acceptance leaves no event
        states.insert(0, State.ENQUEUED)
    assert states[-1:] == ([] if message is None else [message.state])
    skipped = (State.RECEIVED, State.SENT_ATTEMPT) if message and message.kind == TASK else ()
    for before, after in pairwise(states):
        way = pairwise((before, *skipped, after))
        assert after in TRANSITIONS[before] or all(then in TRANSITIONS[now] for now, then in way)
