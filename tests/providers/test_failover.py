"""A chain of providers: a message goes to the next one on proof alone, and a failing one is not called."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from carteiro.engine.worker import Worker
from carteiro.jobs.kind import Kind, Pool
from carteiro.model import (
    Category,
    Deferred,
    EventType,
    Failure,
    LeasedJob,
    MessageId,
    NotMade,
    Outcome,
    Rejected,
    Scope,
    State,
    Taken,
    TenantId,
    Unknown,
)
from carteiro.policy import classify
from carteiro.policy.breaker import FIRST_PAUSE_S, TRIPS_AFTER
from carteiro.policy.routing import Routes
from carteiro.ports import Handover, Parcel
from carteiro.providers.failover import Chain
from carteiro.providers.rate_limiter import Limits, Pacer
from carteiro.providers.ses.rules import classify_ses
from support.builders import ACME, BRASA
from support.steps import claimed_alone
from support.working import Gate, Office, an_office

AWAY: Outcome = Deferred(classify.network("connection refused"))
SUSPENDED: Outcome = Rejected(classify_ses("AccountSuspendedException", "The account is suspended"))
GREYLISTED: Outcome = Deferred(classify.classify_smtp("450 4.7.1 Greylisted, come back later"))
NOBODY: Outcome = Rejected(classify.classify_smtp("550 5.1.1 No such user"))
SILENT: Outcome = Unknown(classify.timeout("first"))
TOO_FAST: Outcome = Deferred(
    Failure(
        code="RESEND_RATE_LIMIT_EXCEEDED",
        category=Category.QUOTA_ERROR,
        retryable=True,
        scope=Scope.PROVIDER,
        reason="Too many requests",
        rule="resend.rate_limit_exceeded",
    )
)


@dataclass
class Played:
    """A provider with prepared outcomes, one a call; then it accepts everything."""

    name: str
    outcomes: list[Outcome] = field(default_factory=list)
    asked: list[MessageId] = field(default_factory=list)

    async def deliver(self, parcel: Parcel, handover: Handover) -> Outcome:
        handover.begin()
        self.asked.append(parcel.message)
        return self.outcomes.pop(0) if self.outcomes else Taken(f"{self.name}-1")


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def through(
    office: Office, *providers: Played, routes: Routes | None = None, **options: Any
) -> Kind:
    """Mail through these, in order."""
    kinds = {
        each.name: office.email_kind(provider=each.name, deliver=each.deliver) for each in providers
    }
    usual = Routes(tuple(kinds), {}, {})
    chain = Chain(kinds, routes or usual, chance=lambda: 0.5, **options)
    return office.email_kind(chain=chain)


async def worked(office: Office, kind: Kind, *, slots: int = 1) -> None:
    """Work until every message is finished."""
    await office.work(Pool("email", slots, (kind,)))


async def sent_by(office: Office, message: MessageId) -> tuple[str | None, int]:
    """The provider that accepted a message, and the number of the attempt."""
    row = await office.row(message)
    assert row.state is State.SENT, row
    return row.provider, row.attempts


async def posted(office: Office, count: int, **fields: Any) -> list[MessageId]:
    """This many messages."""
    return [await office.post("a@example.com", **fields) for _ in range(count)]


async def test_refusal_of_the_first_goes_to_the_second_at_once() -> None:
    """Proof that nothing was handed over, and a fault of the provider itself."""
    async with an_office() as office:
        first, second = Played("first", [AWAY]), Played("second")
        [message] = await posted(office, 1)
        before = office.clock()

        await worked(office, through(office, first, second))

        assert await sent_by(office, message) == ("second", 2)
        assert office.clock() == before, "nobody waited"
        story = await office.story(message)
        assert story.count(EventType.RETRY_SCHEDULED) == 1


async def test_closed_account_does_not_end_a_message() -> None:
    """A permanent failure with one provider says nothing of another."""
    async with an_office() as office:
        [message] = await posted(office, 1)

        await worked(office, through(office, Played("first", [SUSPENDED]), Played("second")))

        assert await sent_by(office, message) == ("second", 2)


async def test_each_provider_is_tried_before_a_delay_or_an_end() -> None:
    """In order, at once, and uncharged: the message has not failed while a provider is left."""
    async with an_office() as office:
        first, second, third = Played("first", [AWAY]), Played("second", [AWAY]), Played("third")
        [message] = await posted(office, 1)
        before = office.clock()

        await worked(office, through(office, first, second, third))

        assert await sent_by(office, message) == ("third", 3)
        assert (office.clock(), (await office.row(message)).charged) == (before, 0)


async def test_sent_message_is_forgotten() -> None:
    """Sent again by a redrive, it begins with the first provider."""
    async with an_office() as office:
        kind = through(office, Played("first", [AWAY]), Played("second"))
        [message] = await posted(office, 1)

        await worked(office, kind)

        assert isinstance(kind.chain, Chain)
        assert await sent_by(office, message) == ("second", 2)
        assert not kind.chain._tried


async def test_message_waits_when_all_providers_are_down() -> None:
    """Each round of all of them counts once, and is followed by the delay of the policy."""
    async with an_office() as office:
        first, second = Played("first", [AWAY] * 3), Played("second", [AWAY] * 2)
        [message] = await posted(office, 1)
        before = office.clock()

        await worked(office, through(office, first, second))

        assert await sent_by(office, message) == ("second", 6)
        assert (await office.row(message)).charged == 2
        assert office.clock() - before > 2_000, "one second, then two, a quarter more or less"


async def test_closed_account_ends_nothing_while_another_is_busy() -> None:
    """The message waits for it."""
    async with an_office() as office:
        clock = Clock()
        first, second = Played("first", [SUSPENDED] * 100), Played("second", [AWAY] * TRIPS_AFTER)
        kind = through(office, second, first, clock=clock)
        await posted(office, 1)
        assert kind.chain is not None
        job = await claimed_alone(office.backend.store)
        chosen = kind.chain.choose(job)
        assert isinstance(chosen, Kind)
        assert chosen.link is not None
        for _ in range(TRIPS_AFTER):
            chosen.link.heard(chosen.link.begin(), AWAY)

        busy = kind.chain.elsewhere(job, SUSPENDED, "first")
        later = kind.chain.elsewhere(job, AWAY, "first")

        assert busy is not None
        assert busy.total_seconds() == FIRST_PAUSE_S
        assert later is None, "what may pass is tried again as the policy says"


async def test_call_that_was_not_made_is_made_elsewhere() -> None:
    """A provider that asks for an hour's delay blocks nothing that another can accept."""
    async with an_office() as office:
        unmade = NotMade(classify.timeout("first"), timedelta(hours=1))
        first, second = Played("first", [unmade]), Played("second")
        [message] = await posted(office, 1)

        await worked(office, through(office, first, second))

        assert await sent_by(office, message) == ("second", 2)


async def test_single_provider_behaves_as_without_a_chain() -> None:
    """A closed account ends a message that has nowhere else to go."""
    async with an_office() as office:
        [message] = await posted(office, 1)

        await worked(office, through(office, Played("first", [SUSPENDED])))

        assert await office.state(message) is State.FAILED


async def test_failure_of_the_recipient_goes_to_no_other_provider() -> None:
    """An unknown user is unknown everywhere; and a greylist wants to see the same sender again."""
    async with an_office() as office:
        first, second = Played("first", [NOBODY, GREYLISTED]), Played("second")
        [nobody] = await posted(office, 1)
        await worked(office, through(office, first, second))
        [later] = await posted(office, 1)
        await worked(office, through(office, first, second))

        assert await office.state(nobody) is State.FAILED
        assert await sent_by(office, later) == ("first", 2)
        assert second.asked == []


async def test_message_in_doubt_stays_with_its_provider() -> None:
    """Another could only deliver it twice."""
    async with an_office() as office:
        first, second = Played("first", [SILENT]), Played("second")
        [message] = await posted(office, 1)

        await worked(office, through(office, first, second))

        assert await sent_by(office, message) == ("first", 2)
        assert second.asked == []
        assert EventType.IN_DOUBT in await office.story(message)


async def test_message_in_doubt_waits_while_its_provider_fails() -> None:
    """As long as any other would: it does not loop."""
    async with an_office() as office:
        first, second = Played("first", [SILENT, AWAY]), Played("second")
        [message] = await posted(office, 1)
        before = office.clock()

        await worked(office, through(office, first, second))

        assert await sent_by(office, message) == ("first", 3)
        assert second.asked == []
        assert office.clock() - before > 1_300, "one wait alone is shorter"


async def test_doubt_after_a_failover_is_replayed_where_that_is_safe() -> None:
    """The second one's own call is repeated: also of a message that may be sent at most once."""
    async with an_office() as office:
        first, second = Played("first", [AWAY]), Played("second", [SILENT])
        kinds = {
            each.name: office.email_kind(
                provider=each.name, deliver=each.deliver, replays_for=timedelta(days=1)
            )
            for each in (first, second)
        }
        chain = Chain(kinds, Routes(tuple(kinds), {}, {}), chance=lambda: 0.5)
        message = await office.post("a@example.com", delivery="at_most_once")

        await worked(office, office.email_kind(chain=chain))

        assert await sent_by(office, message) == ("second", 3)
        assert first.asked == [message]


async def test_message_in_doubt_stays_when_its_route_is_changed() -> None:
    """While its provider exists at all; when it is gone, others are called."""
    async with an_office() as office:
        routes = Routes(("second",), {}, {TenantId(BRASA): ("first",)})
        kind = through(office, Played("first"), Played("second"), routes=routes)
        await posted(office, 1)
        job = await claimed_alone(office.backend.store)

        assert chosen_for(kind, replace(job, in_doubt=1, provider="first")) == "first"
        assert chosen_for(kind, replace(job, in_doubt=1, provider="gone")) == "second"
        assert chosen_for(kind, replace(job, provider="first")) == "second"


def chosen_for(kind: Kind, job: LeasedJob) -> str:
    """The provider chosen for a message."""
    assert kind.chain is not None
    chosen = kind.chain.choose(job)
    assert isinstance(chosen, Kind)
    return chosen.provider


async def test_failing_provider_is_not_called_any_more() -> None:
    """Once its circuit is open, messages go to the next one without a failed attempt first."""
    async with an_office() as office:
        first, second = Played("first", [AWAY] * 100), Played("second")
        messages = await posted(office, 3 * TRIPS_AFTER)

        await worked(office, through(office, first, second, clock=Clock()))

        assert len(first.asked) == TRIPS_AFTER
        attempts = [(await sent_by(office, each))[1] for each in messages]
        assert sorted(attempts) == [1] * 2 * TRIPS_AFTER + [2] * TRIPS_AFTER


async def test_open_circuit_is_probed_with_one_message_and_closed_on_success() -> None:
    """It recovers by itself."""
    async with an_office() as office:
        clock = Clock()
        first, second = Played("first", [AWAY] * TRIPS_AFTER), Played("second")
        kind = through(office, first, second, clock=clock)
        await posted(office, TRIPS_AFTER)
        await worked(office, kind)

        clock.now += FIRST_PAUSE_S
        messages = await posted(office, 10)
        await worked(office, kind, slots=10)

        assert len(first.asked) > TRIPS_AFTER
        takers = [(await sent_by(office, each))[0] for each in messages]
        assert takers.count("first") >= 1
        [last] = await posted(office, 1)
        await worked(office, kind)
        assert await sent_by(office, last) == ("first", 1)


async def test_open_circuit_is_visible_with_its_reason() -> None:
    """In the store, in the metrics of this process; and so is its recovery."""
    async with an_office() as office:
        clock = Clock()
        first, second = Played("first", [AWAY] * TRIPS_AFTER), Played("second")
        pacers = {"first": Pacer("first", office.backend.rates, Limits())}
        kind = through(office, first, second, clock=clock, pacers=pacers)
        assert kind.chain is not None
        before = kind.chain.standings()[0].trouble_at
        await posted(office, TRIPS_AFTER)
        await worked(office, kind)
        [trouble] = await office.backend.rates.show()
        [standing, _] = kind.chain.standings()
        clock.now += FIRST_PAUSE_S
        await posted(office, 1)
        await worked(office, kind)
        [healed] = await office.backend.rates.show()

        assert (trouble.is_open, trouble.trouble) == (True, "NETWORK_ERROR: connection refused")
        assert before is None
        assert standing.is_open
        assert standing.trouble_at == standing.open_since is not None
        assert kind.chain.standings()[0].open_since is None
        assert (healed.is_open, healed.trouble) == (False, trouble.trouble)


async def test_failed_probe_costs_one_message_an_attempt() -> None:
    """With any number of concurrent choices: the others go to the next one."""
    async with an_office() as office:
        clock = Clock()
        first, second = Played("first", [AWAY] * 100), Played("second")
        kind = through(office, first, second, clock=clock)
        await posted(office, TRIPS_AFTER)
        await worked(office, kind)

        clock.now += FIRST_PAUSE_S
        messages = await posted(office, 10)
        await worked(office, kind, slots=10)

        assert len(first.asked) == TRIPS_AFTER + 1
        attempts = [(await sent_by(office, each))[1] for each in messages]
        assert sorted(attempts) == [1] * 9 + [2]


async def test_throttling_does_not_open_the_circuit() -> None:
    """At any number: the same provider is called again, later."""
    async with an_office() as office:
        first, second = Played("first", [TOO_FAST] * 4 * TRIPS_AFTER), Played("second")
        messages = await posted(office, 4 * TRIPS_AFTER)

        await worked(office, through(office, first, second, clock=Clock()), slots=100)

        assert {await sent_by(office, each) for each in messages} == {("first", 2)}
        assert second.asked == []


async def test_nothing_is_claimed_or_charged_while_all_circuits_are_open() -> None:
    """Messages wait as if they were new; the first successful call lets all others through."""
    async with an_office() as office:
        only = Played("only", [AWAY] * TRIPS_AFTER)
        messages = await posted(office, 2 * TRIPS_AFTER)

        await worked(office, through(office, only))

        attempts = [(await sent_by(office, each))[1] for each in messages]
        assert sum(attempts) == len(only.asked) == 3 * TRIPS_AFTER
        rows = [await office.row(each) for each in messages]
        assert sum(row.charged for row in rows) == TRIPS_AFTER


async def test_tenant_and_template_type_have_their_own_routes() -> None:
    """The route of the type wins over that of the tenant."""
    async with an_office() as office:
        usual, own, archive = Played("usual"), Played("own"), Played("archive")
        routes = Routes(("usual",), {"invoice": ("archive",)}, {TenantId(BRASA): ("own",)})
        kind = through(office, usual, own, archive, routes=routes)
        plain = await office.post("a@example.com", tenant=ACME)
        theirs = await office.post("a@example.com", tenant=BRASA)

        await worked(office, kind)

        assert (await sent_by(office, plain))[0] == "usual"
        assert (await sent_by(office, theirs))[0] == "own"
        assert archive.asked == []


async def test_worker_that_waits_for_a_provider_stops_at_once() -> None:
    """It holds nothing."""
    async with an_office() as office:
        only = Played("only", [AWAY] * 100)
        await posted(office, 1)
        worker: Worker = office.worker(Pool("email", 1, (through(office, only, clock=Clock()),)))
        running = asyncio.create_task(worker.run())
        async with asyncio.timeout(10):
            while len(only.asked) < TRIPS_AFTER:
                await asyncio.sleep(0.001)
            worker.stop()
            await running


async def test_concurrent_calls_are_bounded_across_processes() -> None:
    """With any number of slots; a message that waits for a place is neither declared nor charged."""
    async with an_office() as office:
        gate = Gate()
        pacer = Pacer("only", office.backend.rates, Limits(concurrency=2))
        only = office.email_kind(provider="only", deliver=gate.deliver)
        chain = Chain({"only": only}, Routes(("only",), {}, {}), pacers={"only": pacer})
        messages = await posted(office, 6)
        pool = Pool("email", 10, (office.email_kind(chain=chain),))
        working = asyncio.create_task(office.work(pool))
        async with asyncio.timeout(10):
            while gate.inside < 2:
                await asyncio.sleep(0.001)
            waiting = [await office.row(each) for each in messages]
            gate.open.set()
            await working
        await pacer.close()

        assert gate.most_inside == 2
        assert sorted(row.attempts for row in waiting) == [0] * 4 + [1] * 2
        assert {await sent_by(office, each) for each in messages} == {("only", 1)}


async def test_message_that_is_not_sent_keeps_no_place() -> None:
    """An invalid message is found out after its provider was chosen."""
    async with an_office() as office:
        pacer = Pacer("only", office.backend.rates, Limits(concurrency=1))
        only = Played("only")
        unfit = [await office.post_raw("{}") for _ in range(3)]
        [message] = await posted(office, 1)

        await worked(office, through(office, only, pacers={"only": pacer}), slots=5)
        await pacer.close()

        assert {await office.state(each) for each in unfit} == {State.FAILED}
        assert await sent_by(office, message) == ("only", 1)
        assert only.asked == [message]
