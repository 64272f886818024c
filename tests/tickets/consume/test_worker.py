"""The whole lane on a real broker and a real Redis: what becomes of tickets that fail, and of the others."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import orjson
import pytest
import redis

from carteiro.observability.otel import OtelTracing
from carteiro.observability.otlp import exporter_of
from carteiro.observability.tracing import Tracing
from carteiro.policy.retry import RetryPolicy
from carteiro.policy.span_budget import SpanLimits
from carteiro.tickets.consume.handlers import Tickets
from carteiro.tickets.consume.worker import TicketWorker
from carteiro.tickets.dead_letters.envelope import TOPIC_LIMIT, DeadTicket, opened
from carteiro.tickets.ticket import Ticket
from support.collector import CALLER, SPAN, TRACE, a_collector
from support.deaths import random_bytes, random_text, settings_of
from support.kafka_server import Broker, KafkaServer, a_kafka
from support.receiving import a_receiver
from support.redis_server import RedisServer, a_redis
from support.services import HOST, free_port
from support.shared_servers import shared_alertmanager, shared_kafka, shared_redis
from support.ticket_topic import QUICK, TicketTopic, until

pytestmark = pytest.mark.servers

SOON = RetryPolicy(max_attempts=3, base=timedelta(milliseconds=20), jitter=0)
NEVER_AGAIN = RetryPolicy(max_attempts=3, base=timedelta(hours=1), jitter=0)
NOTHING_COMMITTED = -1001


@pytest.fixture
def broker() -> Broker:
    """A broker that nobody stops."""
    return shared_kafka()


@pytest.fixture
def mortal() -> Iterator[KafkaServer]:
    """A broker that a test may stop and kill."""
    with a_kafka() as server:
        yield server


@pytest.fixture
def mortal_redis() -> Iterator[RedisServer]:
    """A Redis that a test may stop."""
    with a_redis() as server:
        yield server


class Site:
    """A topic, and handlers that do as tickets say and write down what they did."""

    def __init__(self, broker: Broker, folder: Path, *, partitions: int = 1) -> None:
        self.topic = TicketTopic(broker, partitions=partitions)
        self.folder = folder
        self.runs: list[tuple[str, int]] = []
        self.done: list[str] = []
        self.cancelled: list[str] = []
        self.gate = asyncio.Event()

    async def handle(self, ticket: Ticket) -> None:
        """Fail as often as the ticket says; wait, if it does."""
        self.runs.append((ticket.id, ticket.attempt))
        if ticket.fields.get("waits"):
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.append(ticket.id)
                raise
        if ticket.attempt <= ticket.fields.get("fails", 0):
            raise ConnectionError("away")
        self.done.append(ticket.id)

    @asynccontextmanager
    async def working(
        self,
        *,
        retry: RetryPolicy = SOON,
        redis: str | None = None,
        urls: Mapping[str, str] | None = None,
        tracing: Tracing | None = None,
        **settings: object,
    ) -> AsyncIterator[TicketWorker]:
        """A worker, until the end of the block."""
        properties = self.folder / "kafka.properties"
        lines = QUICK | {"reconnect.backoff.max.ms": "500"}
        properties.write_text("".join(f"{name}={each}\n" for name, each in lines.items()), "utf-8")
        given = {
            "bootstrap_servers": self.topic.broker.bootstrap_servers,
            "kafka_file": str(properties),
            "topic": self.topic.name,
            "group": self.topic.group,
            "dlq_topic": self.topic.dlq,
            "redis": shared_redis().url if redis is None else redis,
            "commit_every_ms": 20,
            "drain_ms": 5000,
        }
        tickets = Tickets()
        tickets.handler("BUILD", retry=retry)(self.handle)
        asked = settings_of(**(given | settings))
        worker = TicketWorker(asked, tickets, urls=urls or {}, tracing=tracing)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            async with asyncio.timeout(60):
                await running

    def dead(self) -> list[DeadTicket]:
        """Its dead letters."""
        return sorted((opened(each) for each in self.topic.dead()), key=lambda each: each.source)

    def id(self, name: str) -> str:
        """Return an id that no other test uses."""
        return f"{name}.{self.topic.name}"

    def put(self, name: str, *, partition: int = 0, **fields: object) -> str:
        """A ticket that says what its handler is to do."""
        self.topic.put({"ticket_id": self.id(name), **fields}, partition=partition)
        return self.id(name)


Opens = Callable[..., Site]


@pytest.fixture
def site(broker: Broker, tmp_path: Path) -> Opens:
    """Opens a site at a broker that nobody stops."""
    return lambda **options: Site(broker, tmp_path, **options)


def counted(id: str) -> tuple[str | None, int]:
    """Return Redis' count for a ticket, and for how many seconds it keeps that."""
    with redis.Redis.from_url(shared_redis().url, decode_responses=True) as client:
        key = f"ticket:retry_count:{id}"
        return client.get(key), client.ttl(key)


# --- failures ---------------------------------------------------------------------------------


async def test_three_failures_make_a_dead_letter_as_others_know_it(site: Opens) -> None:
    """The ticket with what it died of among its fields, by its own key; then its counter is gone."""
    here = site()
    bad = here.put("bad", fails=9, repository="a/b")
    async with here.working():
        await here.topic.until_committed(1)

    [record] = here.topic.dead()
    value = orjson.loads(record.body)
    metadata = value.pop("dlq_metadata")
    assert here.runs == [(bad, 1), (bad, 2), (bad, 3)]
    assert value == {"ticket_id": bad, "task_type": "BUILD", "fails": 9, "repository": "a/b"}
    assert record.key == bad.encode()
    assert metadata["original_error"] == "away"
    assert metadata["error_type"] == "ConnectionError"
    assert metadata["retry_count"] == 3
    assert metadata["last_failure_timestamp"] <= metadata["dlq_published_at"]
    assert len(dict(record.headers)["dlq_id"]) == 64
    assert counted(bad)[0] is None


async def test_a_success_behind_a_failure_does_not_lose_the_failed_one(site: Opens) -> None:
    """Nothing is committed over it, and the next owner runs it alone, with what it has failed."""
    here = site()
    bad, good = here.put("bad", fails=1), here.put("good")
    async with here.working(retry=NEVER_AGAIN):
        await until(lambda: here.done == [good] and counted(bad)[0] == "1")
        assert 0 < counted(bad)[1] <= 604_800
    assert here.topic.committed() == [0]

    async with here.working():
        await here.topic.until_committed(2)
    assert here.runs == [(bad, 1), (good, 1), (bad, 2)]
    assert here.done == [good, bad]
    assert counted(bad)[0] is None


async def test_a_partition_says_nothing_about_another(site: Opens) -> None:
    """A success on one never commits the other."""
    here = site(partitions=2)
    here.put("bad", fails=9, partition=0)
    for number in range(5):
        here.put(f"good{number}", partition=1)
    async with here.working(retry=NEVER_AGAIN):
        await until(lambda: len(here.done) == 5 and len(here.runs) == 6)
    assert here.topic.committed() == [0, 5]


async def test_a_failing_ticket_has_a_thousand_keys_go_past_it(site: Opens) -> None:
    """They are all done while it waits, and a worker that comes next does not run them again."""
    here = site()
    here.put("bad", fails=1)
    here.topic.put(*({"ticket_id": here.id(f"good{number}")} for number in range(1000)))
    async with here.working(retry=NEVER_AGAIN):
        await until(lambda: len(here.done) == 1000)
    here.runs.clear()
    async with here.working():
        await here.topic.until_committed(1001)
    assert here.runs == [(here.id("bad"), 2)]


async def test_redis_outage_during_the_whole_life_of_a_ticket_changes_nothing(
    site: Opens,
) -> None:
    """It is counted here and with the commits: three failures, over two workers, and not one more."""
    here = site()
    bad = here.put("bad", fails=9)
    nobody = f"redis://{HOST}:{free_port()}/0"
    async with here.working(redis=nobody, retry=NEVER_AGAIN):
        await until(lambda: here.runs == [(bad, 1)])
        await until(lambda: noted_failures(here) == {0: 1}, every_s=0.05)
    async with here.working(redis=nobody):
        await here.topic.until_committed(1)
    assert here.runs == [(bad, 1), (bad, 2), (bad, 3)]
    [dead] = here.dead()
    assert dead.metadata["retry_count"] == 3


def noted_failures(here: Site) -> Mapping[int, int]:
    """Return the notes of the last commit of the first partition."""
    [noted] = here.topic.notes()
    return noted.failures if noted else {}


async def test_redis_that_goes_and_comes_back_has_the_counts(
    site: Opens, mortal_redis: RedisServer
) -> None:
    """A missed count is written when it is there again."""
    here = site()
    bad = here.put("bad", fails=9)
    async with here.working(redis=mortal_redis.url, retry=NEVER_AGAIN):
        await until(lambda: here.topic.committed() == [0], every_s=0.05)
        mortal_redis.stop()
        worse = here.put("worse", fails=9)
        await until(lambda: (worse, 1) in here.runs)
        mortal_redis.start()
        with redis.Redis.from_url(mortal_redis.url, decode_responses=True) as client:
            keys = [f"ticket:retry_count:{id}" for id in (bad, worse)]
            await until(lambda: client.mget(keys) == ["1", "1"], every_s=0.05)
            assert all(0 < client.ttl(key) <= 604_800 for key in keys)


# --- poison -----------------------------------------------------------------------------------


async def test_record_that_is_not_a_ticket_dies_at_once_with_its_bytes(site: Opens) -> None:
    """Garbage, nothing, and two without an id, which are not taken for the same."""
    here = site()
    bodies = [b"\xff\x00garbage", None, b"", b'{"task_type":"BUILD"}', b'{"task_type":"BUILD"}']
    here.topic.put_bytes(*bodies)
    here.put("stranger", task_type="NOBODY")
    here.put("good")
    async with here.working():
        await here.topic.until_committed(7)

    assert here.done == [here.id("good")]
    dead = here.dead()
    assert [each.reason for each in dead] == ["undecodable"] * 5 + ["unknown_task_type"]
    assert dead[0].raw == bodies[0]
    assert len({each.id for each in dead}) == 6
    assert dead[3].id == f"poison:{here.topic.name}:0:3"


async def test_two_mebibytes_that_do_not_compress_go_through(site: Opens) -> None:
    """With what they died of they are more than the topic takes; they are reported all the same, and committed."""
    here = site()
    here.put("large", fails=9, blob=random_text(TOPIC_LIMIT))
    here.topic.put_bytes(b"\xff" + random_bytes(TOPIC_LIMIT))
    async with here.working():
        await here.topic.until_committed(2)

    ticket, garbage = here.dead()
    assert (ticket.id, ticket.reason) == (here.id("large"), "max_retries_exceeded")
    assert (garbage.source, garbage.missing is None) == (f"{here.topic.name}|0|1", False)


async def test_without_dead_letters_a_dead_ticket_is_held_with_its_key(site: Opens) -> None:
    """Others go on; nothing is committed over it."""
    here = site()
    bad = here.put("bad", fails=9, key="k")
    here.put("behind", key="k")
    good = here.put("good")
    async with here.working(dlq_enabled=False) as worker:
        await until(lambda: len(here.runs) == 4 and b"tickets_held_keys 1" in worker.page())
        await until(lambda: here.topic.committed() == [0], every_s=0.05)
    assert sorted(here.runs) == sorted([(bad, 1), (bad, 2), (bad, 3), (good, 1)])
    assert here.topic.committed() == [0]


async def test_held_key_is_reported_to_the_alertmanager_until_it_is_released(site: Opens) -> None:
    """By the worker that holds it, with what it died of; released, it is a dead letter that says the same."""
    here = site()
    bad = here.put("bad", fails=9)
    told = shared_alertmanager().url
    async with here.working(dlq_enabled=False, alertmanager=told):
        await until(lambda: bad in alerted("TicketHeld"), every_s=0.1)
        await until(lambda: here.topic.committed() == [0], every_s=0.05)
    async with here.working(alertmanager=told):
        await here.topic.until_committed(1)

    assert len(here.runs) == 3
    [dead] = here.dead()
    assert (dead.metadata["error_type"], dead.metadata["original_error"]) == (
        "ConnectionError",
        "away",
    )


async def test_paused_type_is_reported_to_the_alertmanager(site: Opens) -> None:
    """While nothing of it can reach what it needs."""
    here = site()
    for number in range(10):
        here.put(f"bad{number}", fails=9)
    async with here.working(retry=NEVER_AGAIN, alertmanager=shared_alertmanager().url) as worker:
        await until(lambda: worker.paused == ["BUILD"])
        await until(lambda: "TicketTypePaused" in names_alerted(), every_s=0.1)
    assert {attempt for _, attempt in here.runs} == {1}


def names_alerted() -> set[str]:
    """The alerts that there are."""
    return {each["labels"]["alertname"] for each in shared_alertmanager().alerts()}


def alerted(name: str) -> set[str]:
    """The tickets that alerts of a name tell of."""
    found = shared_alertmanager().alerts()
    return {
        each["annotations"].get("ticket_id", "")
        for each in found
        if each["labels"]["alertname"] == name
    }


async def test_unreachable_broker_gets_the_dead_letter_when_it_is_back(
    mortal: KafkaServer, tmp_path: Path
) -> None:
    """The ticket is not run again for that, and it is waited for as long as it takes."""
    here = Site(mortal, tmp_path)
    bad = here.put("bad", fails=9, waits=True)
    async with here.working():
        await until(lambda: here.runs == [(bad, 1)])
        mortal.kill()
        here.gate.set()
        await until(lambda: len(here.runs) == 3)
        mortal.start()
        await here.topic.until_committed(1)
    assert here.runs == [(bad, 1), (bad, 2), (bad, 3)]
    assert {each.dlq_id for each in here.dead()} == {here.dead()[0].dlq_id}


# --- rebalances -------------------------------------------------------------------------------


async def test_ticket_that_waits_for_a_retry_goes_to_the_next_owner(
    site: Opens,
) -> None:
    """With what it has failed; the one who had it keeps the others waiting."""
    here = site(partitions=2)
    ids = [here.put(f"bad{each}", fails=1, partition=each) for each in range(2)]
    async with here.working(retry=NEVER_AGAIN):
        await until(lambda: [counted(id)[0] for id in ids] == ["1", "1"])
        async with here.working():
            await until(lambda: sorted(here.topic.committed()) == [0, 1], every_s=0.05)
    [moved] = here.done
    assert sorted(here.runs) == sorted([(ids[0], 1), (ids[1], 1), (moved, 2)])
    assert counted(moved)[0] is None


async def test_running_handler_may_end_before_its_partition_is_revoked(site: Opens) -> None:
    """The new worker waits for it, and finds it done."""
    here = site(partitions=2)
    ids = [here.put(f"slow{each}", waits=True, partition=each) for each in range(2)]
    async with here.working():
        await until(lambda: len(here.runs) == 2)
        async with here.working() as other:
            await asyncio.sleep(0.5)
            assert not other._runner._partitions
            here.gate.set()
            await until(lambda: len(other._runner._partitions) == 1)
    assert here.topic.committed() == [1, 1]
    assert sorted(here.done) == ids
    assert len(here.runs) == 2


async def test_a_handler_that_takes_too_long_to_go_is_interrupted_and_not_charged(
    site: Opens,
) -> None:
    """Its ticket runs again elsewhere, as the same attempt."""
    here = site(partitions=2)
    ids = [here.put(f"slow{each}", waits=True, partition=each) for each in range(2)]
    async with here.working(drain_ms=100):
        await until(lambda: len(here.runs) == 2)
        async with here.working(drain_ms=100):
            await until(lambda: len(here.runs) == 3)
            here.gate.set()
            await here.topic.until_committed(1, 1)
    assert len(here.cancelled) == 1
    assert sorted(here.done) == ids
    assert [attempt for _, attempt in here.runs] == [1, 1, 1]


async def test_a_clean_stop_commits_the_safe_prefix_only(site: Opens) -> None:
    """A ticket that did not end in time is read again, with what is done beyond it known."""
    here = site()
    here.put("first")
    slow = here.put("slow", waits=True)
    here.put("last")
    async with here.working(drain_ms=50):
        await until(lambda: len(here.done) == 2 and len(here.runs) == 3)
    assert here.topic.committed() == [1]

    here.runs.clear()
    here.gate.set()
    async with here.working():
        await here.topic.until_committed(3)
    assert here.runs == [(slow, 1)]


# --- the handler of those without Python ------------------------------------------------------


@asynccontextmanager
async def an_http_server() -> AsyncIterator[tuple[str, list[tuple[int, dict[str, str]]]]]:
    """Answers with the status that a ticket asks for, 0 is none; tells what it was asked."""
    asked: list[tuple[int, dict[str, str]]] = []
    closing = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
        headers = dict(line.lower().split(": ", 1) for line in head)
        body = orjson.loads(await reader.readexactly(int(headers["content-length"])))
        asked.append((body["status"], headers))
        if body["status"]:
            said = f"HTTP/1.1 {body['status']} Said\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno"
            writer.write(said.encode())
        else:
            await closing.wait()
        writer.close()

    server = await asyncio.start_server(answer, HOST, 0)
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}/tickets", asked
    finally:
        closing.set()
        server.close()
        await server.wait_closed()


async def test_tickets_are_posted_and_the_answer_decides(site: Opens) -> None:
    """2xx is done, what may pass is tried three times, any other answer is for good."""
    here = site()
    for status in (200, 204, 302, 400, 429, 500, 0):
        here.put(f"s{status}", task_type="POST", status=status)
    here.put("refused", task_type="REFUSED", status=1)
    async with an_http_server() as (url, asked):
        urls = {"POST": url, "REFUSED": f"http://{HOST}:{free_port()}/"}
        # Its type has no policy of its own: a second, then two.
        async with here.working(urls=urls, time_limit_ms=1500):
            await here.topic.until_committed(8)

    times = {status: [each for each, _ in asked].count(status) for status, _ in asked}
    assert times == {200: 1, 204: 1, 302: 1, 400: 1, 429: 3, 500: 3, 0: 3}
    assert {each["idempotency-key"] for status, each in asked if status == 500} == {here.id("s500")}
    assert [each["ticket-attempt"] for status, each in asked if status == 500] == ["1", "2", "3"]
    dead = {
        each.id.split(".")[0]: (each.reason, each.metadata["error_type"]) for each in here.dead()
    }
    assert dead == {
        "s302": ("permanent_error", "HTTP_302"),
        "s400": ("permanent_error", "HTTP_400"),
        "s429": ("max_retries_exceeded", "HTTP_429"),
        "s500": ("max_retries_exceeded", "HTTP_500"),
        "s0": ("max_retries_exceeded", "Timeout"),
        "refused": ("max_retries_exceeded", "NETWORK_ERROR"),
    }


# --- traces -----------------------------------------------------------------------------------


async def test_a_ticket_is_one_trace_from_its_header_through_every_execution(site: Opens) -> None:
    """The first is a child of the producer's span, a later one has a link to it; a URL gets it in a header."""
    here = site()
    with a_collector() as collector:
        tracing = OtelTracing(exporter_of(collector.url), SpanLimits(of_all=100, of_one=100))
        async with a_receiver() as receiver:
            headers = [("traceparent", CALLER.encode()), ("tracestate", b"a=1")]
            fields = {"ticket_id": here.id("flaky"), "fails": 1}
            here.topic.put(fields, headers=headers)
            posted = {"ticket_id": here.id("posted"), "task_type": "POST"}
            here.topic.put(posted, headers=headers)
            here.put("bare")
            async with here.working(urls={"POST": receiver.url}, tracing=tracing):
                await here.topic.until_committed(3)
        tracing.close()

    *builds, bare = sorted(collector.named("process BUILD"), key=lambda each: each.trace != TRACE)
    first, second = builds
    assert {(each.trace, each.parent, each.kind) for each in builds} == {(TRACE, SPAN, "CONSUMER")}
    assert (first.failed, second.failed) == (True, False)
    assert (first.links, second.links) == ([], [first.id])
    assert (bare.parent, bare.links) == ("", [])
    post = collector.one("process POST")
    [request] = receiver.received
    assert request.headers["traceparent"] == f"00-{TRACE}-{post.id}-01"
    assert request.headers["tracestate"] == "a=1"
