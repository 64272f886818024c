"""The log in Kafka against a real broker: order, members that come and go, notes, outages, and its end."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from confluent_kafka import Consumer, TopicPartition

from carteiro.tickets.consume.kafka_log import KafkaLog
from carteiro.tickets.consume.notes import Noted, note_down
from carteiro.tickets.consume.ports import Commit, Given
from carteiro.tickets.ticket import Part, Record
from support.kafka_server import Broker, KafkaServer, a_kafka
from support.shared_servers import shared_kafka
from support.ticket_topic import TicketTopic, until

pytestmark = pytest.mark.servers

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


class Listener:
    """A keeper that writes down what it hears.

    When partitions go it answers what it has ``to_commit``, or, where all ``is_done``, how far it has read.
    """

    def __init__(self, *, is_done: bool = False) -> None:
        self.is_done = is_done
        self.parts: set[Part] = set()
        self.given: list[Given] = []
        self.records: list[Record] = []
        self.lost_parts: list[Part] = []
        self.revoked_parts: list[Part] = []
        self.to_commit: dict[Part, Commit] = {}
        self.gate = asyncio.Event()
        self.gate.set()
        self.leaving = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.may_leave.set()
        self.under_way = 0
        self.most_under_way = 0

    async def assigned(self, given: Sequence[Given]) -> None:
        """These are ours."""
        self.given += given
        self.parts |= {each.part for each in given}

    async def revoked(self, parts: Sequence[Part]) -> Sequence[Commit]:
        """These go, when it may be."""
        self.leaving.set()
        await self.may_leave.wait()
        self.revoked_parts += parts
        self.parts -= set(parts)
        if self.is_done:
            ends = {(each.topic, each.partition): each.offset + 1 for each in self.records}
            return [Commit(part, ends[part], "") for part in parts if part in ends]
        return [self.to_commit[part] for part in parts if part in self.to_commit]

    async def lost(self, parts: Sequence[Part]) -> None:
        """These are gone."""
        self.lost_parts += parts
        self.parts -= set(parts)

    async def arrived(self, records: Sequence[Record]) -> None:
        """Take them, when the gate is open."""
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await self.gate.wait()
        self.records += records
        self.under_way -= 1

    @property
    def offsets(self) -> list[int]:
        """Of all that came, in the order it came."""
        return [each.offset for each in self.records]

    def offsets_of(self, partition: int) -> list[int]:
        """Of all that came of a partition."""
        return [each.offset for each in self.records if each.partition == partition]


class Member:
    """A log in flight, what its keeper heard, and what it said that it waits for."""

    def __init__(self, topic: TicketTopic, options: dict[str, object], listener: Listener) -> None:
        self.listener = listener
        self.waits: list[str] = []
        self.log = KafkaLog(
            topic.options | options, topic=topic.name, group=topic.group, waits=self.waits.append
        )
        self.running = asyncio.create_task(self.log.run(listener))


@asynccontextmanager
async def a_member(
    topic: TicketTopic, listener: Listener | None = None, **options: object
) -> AsyncIterator[Member]:
    """A member of the group, until the end of the block."""
    named = {name.replace("_", "."): each for name, each in options.items()}
    member = Member(topic, named, listener or Listener())
    try:
        yield member
    finally:
        member.log.stop()
        async with asyncio.timeout(30):
            await member.running


def tickets(many: int, prefix: str = "t") -> list[dict[str, str]]:
    """Records, in this number."""
    return [{"ticket_id": f"{prefix}{each}"} for each in range(many)]


# --- records ----------------------------------------------------------------------------------


async def test_records_come_in_order_and_one_batch_after_the_other(broker: Broker) -> None:
    """Of each partition as it stands in the log, with all that a record has."""
    topic = TicketTopic(broker, partitions=2)
    topic.put(*tickets(2000), partition=0)
    topic.put(*tickets(2000), partition=1)

    async with a_member(topic) as member:
        heard = member.listener
        heard.gate.clear()
        await until(lambda: heard.under_way > 0)
        await asyncio.sleep(0.1)  # the thread goes on asking; it must not hand anything over
        heard.gate.set()
        await until(lambda: len(heard.records) == 4000)

    assert heard.offsets_of(0) == heard.offsets_of(1) == list(range(2000))
    assert heard.most_under_way == 1
    assert heard.records[0].key == b"t0"
    assert heard.records[0].time_ms > 0


async def test_where_partitions_end_is_known(broker: Broker) -> None:
    """As the broker last had it, for how far behind a worker is."""
    topic = TicketTopic(broker)
    topic.put(*tickets(7))

    async with a_member(topic) as member:
        part = (topic.name, 0)
        await until(lambda: member.log.ends([part]) == {part: 7})
        assert member.log.ends([(topic.name, 9)]) == {}


async def test_a_paused_partition_brings_nothing_and_the_others_go_on(broker: Broker) -> None:
    """Until it is resumed; partitions of others are ignored."""
    topic = TicketTopic(broker, partitions=2)
    async with a_member(topic) as member:
        heard = member.listener
        await until(lambda: len(heard.parts) == 2)
        member.log.pause([(topic.name, 0), (topic.name, 9)])
        assert await member.log.commit(
            [Commit((topic.name, 1), 0, "")]
        )  # an errand after the other

        topic.put(*tickets(3), partition=0)
        topic.put(*tickets(3), partition=1)
        await until(lambda: len(heard.records) == 3)
        assert heard.offsets_of(1) == [0, 1, 2]

        member.log.resume([(topic.name, 0), (topic.name, 9)])
        await until(lambda: len(heard.records) == 6)
    assert heard.offsets_of(0) == [0, 1, 2]


# --- members that come and go -----------------------------------------------------------------


async def test_members_share_partitions_and_only_moved_ones_are_revoked(broker: Broker) -> None:
    """A third one comes and goes: each record is read once, and what stays is not disturbed."""
    topic = TicketTopic(broker, partitions=6)
    listeners = [Listener(is_done=True) for _ in range(3)]
    for partition in range(6):
        topic.put(*tickets(10), partition=partition)

    async with a_member(topic, listeners[0]), a_member(topic, listeners[1]):
        await until(lambda: sorted(len(each.parts) for each in listeners) == [0, 3, 3])
        await until(lambda: sum(len(each.records) for each in listeners) == 60)
        before = [set(each.parts) for each in listeners]
        async with a_member(topic, listeners[2]):
            await until(lambda: [len(each.parts) for each in listeners] == [2, 2, 2])
            for old, now in zip(before[:2], listeners[:2], strict=True):
                assert now.parts < old
        await until(lambda: len(listeners[0].parts | listeners[1].parts) == 6)

    assert topic.committed() == [10] * 6
    assert not any(each.lost_parts for each in listeners)
    read = [(each.partition, each.offset) for one in listeners for each in one.records]
    assert len(read) == len(set(read))


async def test_a_partition_that_was_paused_when_it_went_is_not_when_it_comes_back(
    broker: Broker,
) -> None:
    """The worker that paused it is gone with it: nobody would ever resume it."""
    topic = TicketTopic(broker, partitions=2)
    async with a_member(topic) as member:
        heard = member.listener
        await until(lambda: len(heard.parts) == 2)
        member.log.pause([(topic.name, 0), (topic.name, 1)])
        async with a_member(topic) as other:
            await until(lambda: (len(heard.parts), len(other.listener.parts)) == (1, 1))
        await until(lambda: len(heard.parts) == 2)
        [moved] = heard.revoked_parts

        topic.put(*tickets(3), partition=moved[1])
        await until(lambda: heard.offsets_of(moved[1]) == [0, 1, 2])


async def test_a_partition_goes_when_its_work_has_ended_and_its_notes_go_with_it(
    broker: Broker,
) -> None:
    """Nobody else has it before; what is committed then is what the next one begins with."""
    topic = TicketTopic(broker)
    topic.put(*tickets(5))
    part = (topic.name, 0)
    noted = Noted(1, 4, {1: 2, 3: 0})
    first, second = Listener(), Listener()
    first.to_commit[part] = Commit(part, 1, note_down(noted)[0])
    first.may_leave.clear()

    async with a_member(topic, first) as leaving:
        await until(lambda: len(first.records) == 5)
        async with a_member(topic, second):
            leaving.log.stop()
            await first.leaving.wait()
            await asyncio.sleep(0.5)  # longer than the group takes
            assert second.parts == set()
            assert topic.committed() == [NOTHING_COMMITTED]

            first.may_leave.set()
            await until(lambda: len(second.records) == 4)

    assert second.given == [Given(part, noted, 1)]
    assert second.offsets == [1, 2, 3, 4]


async def test_commits_that_are_asked_for_while_a_partition_goes_do_not_come_after_the_last(
    broker: Broker,
) -> None:
    """The thread that would do them waits for the lane meanwhile: nobody waits for ever."""
    topic = TicketTopic(broker)
    topic.put(*tickets(5))
    part = (topic.name, 0)
    heard = Listener()
    heard.to_commit[part] = Commit(part, 5, "")
    heard.may_leave.clear()

    async with a_member(topic, heard) as member:
        await until(lambda: len(heard.records) == 5)
        member.log.stop()
        await heard.leaving.wait()
        asked = [asyncio.create_task(member.log.commit([Commit(part, 2, "")])) for _ in range(3)]
        await asyncio.sleep(0.05)
        heard.may_leave.set()
        async with asyncio.timeout(20):
            assert await asyncio.gather(*asked) == [True] * 3

    assert topic.committed() == [5]


async def test_an_offset_that_an_operator_moved_makes_the_notes_void(broker: Broker) -> None:
    """An operator who goes back wants those tickets run again, also the ones that were done."""
    topic = TicketTopic(broker)
    topic.put(*tickets(5))
    part = (topic.name, 0)
    written = note_down(Noted(3, 5, {3: 1}))[0]
    operator = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic.group})
    operator.commit(offsets=[TopicPartition(*part, 1, metadata=written)], asynchronous=False)
    operator.close()

    async with a_member(topic) as member:
        await until(lambda: len(member.listener.records) == 4)

    assert member.listener.given == [Given(part, None, 1)]
    assert member.listener.offsets == [1, 2, 3, 4]


async def test_notes_of_others_are_no_notes(broker: Broker) -> None:
    """The group may have belonged to another program before."""
    topic = TicketTopic(broker)
    topic.put(*tickets(2))
    part = (topic.name, 0)
    other = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic.group})
    other.commit(offsets=[TopicPartition(*part, 1, metadata="host-7")], asynchronous=False)
    other.close()

    async with a_member(topic) as member:
        await until(lambda: member.listener.offsets == [1])

    assert member.listener.given == [Given(part, None, 1)]


# --- partitions that are lost -----------------------------------------------------------------


async def test_a_member_that_stood_still_has_lost_its_partitions_and_harms_nobody(
    broker: Broker,
) -> None:
    """Another has them by then: what it commits late is not stored, and it goes on as a new member."""
    topic = TicketTopic(broker)
    topic.put(*tickets(3))
    part = (topic.name, 0)
    slow, quick = Listener(), Listener()
    quick.to_commit[part] = Commit(part, 6, "")

    async with a_member(topic, slow, session_timeout_ms=600, max_poll_interval_ms=600) as standing:
        await until(lambda: len(slow.records) == 3)
        slow.gate.clear()
        for number in range(4):  # more than may be on their way
            topic.put({"ticket_id": f"late{number}"})
            await asyncio.sleep(0.1)
        async with a_member(topic, quick) as other:
            await until(lambda: quick.offsets == [*range(7)])
            assert await other.log.commit([Commit(part, 6, "")])
            late = asyncio.create_task(standing.log.commit([Commit(part, 3, "")]))
            slow.gate.set()
            assert not await late
            await until(lambda: slow.lost_parts == [part])
            assert topic.committed() == [6]
        await until(lambda: slow.offsets[-1] == 6 and slow.parts == {part})


async def test_foreign_partition_is_not_committed(broker: Broker) -> None:
    """The broker would take it from any member: whose a partition is, it does not ask."""
    topic = TicketTopic(broker, partitions=2)
    first, second = Listener(), Listener()
    async with a_member(topic, first) as one, a_member(topic, second) as other:
        await until(lambda: len(first.parts) == len(second.parts) == 1)
        [mine], [theirs] = first.parts, second.parts
        assert await other.log.commit([Commit(theirs, 7, "")])

        assert not await one.log.commit([Commit(theirs, 3, ""), Commit(mine, 4, "")])

        assert topic.committed()[theirs[1]] == 7


# --- servers ----------------------------------------------------------------------------------


async def test_a_topic_that_does_not_exist_yet_is_waited_for(broker: Broker) -> None:
    """It says so, and goes on when somebody makes it."""
    topic = TicketTopic(broker)
    topic.name += "-later"
    async with a_member(topic) as member:
        await until(lambda: any("topic" in each for each in member.waits))
        broker.create_topic(topic.name)
        topic.put(*tickets(2))
        await until(lambda: len(member.listener.records) == 2)
        await until(lambda: member.waits[-1] == "")


async def test_a_broker_that_is_killed_and_comes_back_is_waited_for(mortal: KafkaServer) -> None:
    """It says what it waits for, does not run hot meanwhile, and needs no new record to say that it goes on."""
    topic = TicketTopic(mortal)
    topic.put(*tickets(3))
    part = (topic.name, 0)
    async with a_member(topic, session_timeout_ms=45000, reconnect_backoff_max_ms=500) as member:
        heard = member.listener
        await until(lambda: len(heard.records) == 3)
        assert await member.log.commit([Commit(part, 2, "")])

        mortal.kill()
        await until(lambda: "Kafka: " in member.waits[-1])
        before = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - before < 0.5

        mortal.start()
        await until(lambda: member.waits[-1] == "")
        assert len(heard.given) == 1  # its membership outlived that
        topic.put({"ticket_id": "new"})
        await until(lambda: heard.records[-1].offset == 3)
        await until_committed_by(member, Commit(part, 4, ""))
    assert topic.committed() == [4]


async def until_committed_by(member: Member, commit: Commit) -> None:
    """Try as the lane does: again and again."""
    async with asyncio.timeout(30):
        while not await member.log.commit([commit]):
            await asyncio.sleep(0.1)


async def test_log_with_an_unreachable_broker_can_be_stopped(mortal: KafkaServer) -> None:
    """Before it was ever there, and after it has gone: the process ends, and no commit is waited for."""
    topic = TicketTopic(mortal)
    topic.put(*tickets(3))
    part = (topic.name, 0)
    async with a_member(topic, session_timeout_ms=300_000) as member:
        await until(lambda: len(member.listener.records) == 3)
        member.listener.to_commit[part] = Commit(part, 3, "")
        mortal.kill()
        await until(lambda: "Kafka: " in member.waits[-1])
        assert not await member.log.commit([Commit(part, 2, "")])
    async with a_member(topic) as never:
        await until(lambda: bool(never.waits))
    assert never.listener.given == []


# --- its end ----------------------------------------------------------------------------------


async def test_ticket_that_ends_late_at_a_stop_is_committed(broker: Broker) -> None:
    """However long the keeper takes, it is a member till then: a member that is silent is soon taken for dead."""
    topic = TicketTopic(broker)
    topic.put(*tickets(3))
    part = (topic.name, 0)
    async with a_member(topic, session_timeout_ms=6000) as member:
        heard = member.listener
        await until(lambda: len(heard.records) == 3)
        heard.to_commit[part] = Commit(part, 3, "")
        heard.may_leave.clear()
        member.log.stop()
        await heard.leaving.wait()
        await asyncio.sleep(9)  # longer than a silent member is waited for
        assert await member.log.commit([Commit(part, 2, "")])
        heard.may_leave.set()
        await member.running
        assert heard.revoked_parts == [part]
    assert topic.committed() == [3]


async def test_a_broker_that_hangs_is_left_when_it_is_to_stop(
    mortal: KafkaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers nothing and refuses nothing, so that its client waits for minutes; the keeper lets go all the same."""
    monkeypatch.setattr("carteiro.tickets.consume.kafka_log._PARTING_S", 1.0)
    topic = TicketTopic(mortal)
    topic.put(*tickets(3))
    part = (topic.name, 0)
    async with a_member(topic) as member:
        await until(lambda: len(member.listener.records) == 3)
        member.listener.to_commit[part] = Commit(part, 3, "")
        [thread] = [each for each in threading.enumerate() if each.name == "tickets"]
        os.kill(mortal.pid, signal.SIGSTOP)
        try:
            member.log.stop()
            await member.running
            assert member.listener.revoked_parts == [part]
            assert thread.is_alive()
        finally:
            os.kill(mortal.pid, signal.SIGCONT)
        await asyncio.to_thread(thread.join, 60)
        assert not thread.is_alive()


async def test_a_stop_before_it_has_joined_ends_it(broker: Broker) -> None:
    """At any moment."""
    topic = TicketTopic(broker)
    for pause in (0, 0.01, 0.05, 0.1, 0.2):
        async with a_member(topic):
            await asyncio.sleep(pause)
    assert topic.committed() == [NOTHING_COMMITTED]


async def test_a_log_that_is_cancelled_leaves_its_group_first(broker: Broker) -> None:
    """The event loop must not wait for a thread that waits for the event loop."""
    topic = TicketTopic(broker)
    topic.put(*tickets(3))
    async with a_member(topic) as member:
        await until(lambda: len(member.listener.records) == 3)
        member.running.cancel()
        with suppress(asyncio.CancelledError):
            await member.running
        assert member.listener.revoked_parts == [(topic.name, 0)]
        member.running = asyncio.create_task(asyncio.sleep(0))
    await until(lambda: not any(each.name == "tickets" for each in threading.enumerate()))


async def test_a_keeper_that_breaks_ends_the_log_with_its_error(broker: Broker) -> None:
    """The records were not taken in: to go on would lose them, silently."""

    class Broken(Listener):
        async def arrived(self, records: Sequence[Record]) -> None:
            raise LookupError(f"broken at {records[0].offset}")

    topic = TicketTopic(broker)
    topic.put(*tickets(3))
    async with a_member(topic, Broken()) as member:
        async with asyncio.timeout(20):
            with pytest.raises(LookupError, match="broken"):
                await member.running
        member.running = asyncio.create_task(asyncio.sleep(0))
