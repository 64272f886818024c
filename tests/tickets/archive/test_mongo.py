"""The promises of the archive, on a real server."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import BulkWriteError, DocumentTooLarge, OperationFailure, WriteError

from carteiro.errors import ConfigError
from carteiro.tickets.archive.document import OURS, ArchiveState, Kept, Step, Wanted
from carteiro.tickets.archive.mongo import LARGEST_DOCUMENT, MongoArchive
from carteiro.tickets.dead_letters.envelope import Done
from carteiro.tickets.errors import ArchiveAway, ArchiveUnfit
from support.archiving import COLLECTION, clock_at, kept_in, tickets_settings
from support.dead_tickets import a_dead_ticket, a_ticket
from support.mongo_server import MongoServer
from support.services import free_port

pytestmark = pytest.mark.servers

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def _step(what: str = "looked at") -> Step:
    return Step(what, "ana", "curious", NOW)


async def test_it_has_the_indexes_that_people_rely_on(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """Made once: to prepare again changes nothing."""
    await archive.prepare()

    with mongo.client() as client:
        found = client[database][COLLECTION].index_information()
    keys = {tuple(name for name, _ in each["key"]): each.get("unique") for each in found.values()}
    assert keys == {
        ("_id",): None,
        ("ticket_id",): True,
        ("task_type",): None,
        ("dlq_metadata.dlq_published_at",): None,
        ("task_type", "dlq_metadata.error_type"): None,
        ("processed_at", "ticket_id"): None,
        (f"{OURS}.state", "task_type", "dlq_metadata.error_type"): None,
    }


async def test_a_ticket_that_dies_twice_is_one_document_with_two_deaths(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """In one batch or in two."""
    first, second, third = (a_dead_ticket(at=each) for each in range(3))

    await archive.keep([first], now=clock_at(NOW))
    await archive.keep([second, third], now=clock_at(NOW))

    [document] = kept_in(mongo, database)
    assert [each["dlq_id"] for each in document[OURS]["occurrences"]] == [
        each.dlq_id for each in (first, second, third)
    ]


async def test_dead_letter_archived_twice_is_written_once(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """Read again after a crash, it is known; nobody hears of it a second time."""
    deaths = [a_dead_ticket(a_ticket(f"T-{each}"), at=each) for each in range(3)]

    fresh = await archive.keep(deaths, now=clock_at(NOW))
    before = kept_in(mongo, database)
    again = await archive.keep([*deaths, deaths[0]], now=clock_at(NOW + DAY))

    assert (fresh, again) == (deaths, [])
    assert kept_in(mongo, database) == before


async def test_it_says_when_a_death_was_written(
    archive: MongoArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not when it was read: the server may have been slow to say what it has."""
    clock = {"now": NOW}
    noted = archive._noted

    async def slow(ids: Sequence[str]) -> dict[str, Any]:
        found = await noted(ids)
        clock["now"] = NOW + DAY
        return found

    monkeypatch.setattr(archive, "_noted", slow)
    await archive.keep([a_dead_ticket()], now=lambda: clock["now"])

    kept = await archive.show("T-1")
    assert kept is not None
    assert kept.processed_at == NOW + DAY


async def test_tickets_without_an_id_do_not_collide(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """Each has one that is made from its place, or a unique index would take only the first."""
    nameless = [a_dead_ticket({"task_type": "BUILD"}, at=each) for each in range(2)]

    await archive.keep(nameless, now=clock_at(NOW))

    assert [each["ticket_id"] for each in kept_in(mongo, database)] == [
        "poison:execution.tickets:0:0",
        "poison:execution.tickets:0:1",
    ]


@pytest.mark.parametrize(
    "odd",
    [
        {"$set": 1},
        {"a": {"b.c": 1}},
        {"a": [{"$x": 1}]},
        {"": 1},
        {"_id": "its own"},
        {"n": 2**64 - 1},
        {"a\x00b": 1},
    ],
    ids=str,
)
async def test_ticket_that_no_document_can_hold_is_stored_as_bytes(
    archive: MongoArchive, odd: dict[str, Any]
) -> None:
    """One odd ticket holds up neither itself nor the others of its batch."""
    deaths = [a_dead_ticket(a_ticket("odd", **odd)), a_dead_ticket(a_ticket("plain"), at=1)]

    await archive.keep(deaths, now=clock_at(NOW))

    kept = await archive.show("odd")
    assert kept is not None
    assert (kept.fields, kept.raw is not None) == (None, True)
    assert await archive.show("plain") is not None


async def test_a_ticket_that_is_too_large_as_a_document_is_kept_as_bytes(
    archive: MongoArchive,
) -> None:
    """Two bytes of JSON become twelve: what a topic takes may be more than a document can be."""
    fields, dead = a_ticket(numbers=[1] * 1_500_000), a_dead_ticket()
    large = replace(dead, fields=fields, record=dead.record._replace(body=orjson.dumps(fields)))

    await archive.keep([large], now=clock_at(NOW))

    kept = await archive.show("T-1")
    assert kept is not None
    assert (kept.fields, len(kept.raw or b"") > 1_000_000) == (None, True)


async def test_oversized_ticket_leaves_a_pointer(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """It must not stop all that comes after it."""
    monster = replace(a_dead_ticket(b"?"), raw=bytes(LARGEST_DOCUMENT + 1))

    await archive.keep([monster, a_dead_ticket(at=1)], now=clock_at(NOW))

    pointer = next(each for each in kept_in(mongo, database) if each["ticket_id"] == monster.id)
    assert pointer[OURS]["payload_bytes"] == LARGEST_DOCUMENT + 1
    assert pointer[OURS]["source"] == "execution.tickets|0|0"


@pytest.mark.parametrize("code", [24, 46, 112, 202, 11601, 16500, None])
async def test_a_refusal_that_may_pass_costs_no_payload(
    archive: MongoArchive, monkeypatch: pytest.MonkeyPatch, code: int | None
) -> None:
    """Only what is said of a document makes it poorer; all else is waited for."""
    with monkeypatch.context() as refusing:
        _refuse(refusing, WriteError("Request rate is large", code))
        with pytest.raises(ArchiveAway, match="Request rate is large"):
            await archive.keep([a_dead_ticket()], now=clock_at(NOW))

    assert await archive.show("T-1") is None
    await archive.keep([a_dead_ticket()], now=clock_at(NOW))
    kept = await archive.show("T-1")
    assert kept is not None
    assert kept.fields == a_ticket()


@pytest.mark.parametrize(
    "error",
    [
        WriteError("nested too deeply", 15),
        OperationFailure("object to insert too large", 10334),
        DocumentTooLarge("BSON document too large"),
    ],
    ids=str,
)
async def test_a_document_that_is_refused_for_good_is_kept_poorer(
    archive: MongoArchive, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """By the server or by the driver: as bytes, and the archive goes on."""
    _refuse(monkeypatch, error, times=1)

    await archive.keep([a_dead_ticket()], now=clock_at(NOW))

    kept = await archive.show("T-1")
    assert kept is not None
    assert (kept.fields, kept.raw) == (None, orjson.dumps(a_ticket()))


def _refuse(monkeypatch: pytest.MonkeyPatch, error: Exception, *, times: int = 1_000) -> None:
    """Have the server refuse whatever is written, so often."""
    written, left = AsyncCollection.replace_one, [times]

    async def together(*_: object, **__: object) -> None:
        if not isinstance(error, WriteError):
            raise error
        details = {"code": error.code, "errmsg": str(error)}
        raise BulkWriteError({"writeErrors": [details], "writeConcernErrors": []})

    async def alone(*given: Any, **named: Any) -> object:
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return await written(*given, **named)

    monkeypatch.setattr(AsyncCollection, "bulk_write", together)
    monkeypatch.setattr(AsyncCollection, "replace_one", alone)


async def test_foreign_fields_in_a_document_stop_nothing(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """It would be met again at each start."""
    with mongo.client() as client:
        odd = {"ticket_id": "T-1", OURS: {"occurrences": 5, "history": 7}}
        client[database][COLLECTION].insert_one(odd)

    await archive.keep([a_dead_ticket(), a_dead_ticket(a_ticket("T-2"), at=1)], now=clock_at(NOW))

    kept = await archive.show("T-1")
    assert kept is not None
    assert (kept.deaths, b'"ticket_id":"T-1"' in (kept.raw or b"")) == (1, True)
    assert await archive.show("T-2") is not None


async def test_several_that_write_at_once_do_not_fail(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """The second writer looks again: there is one document in the end, and nobody is stuck."""
    deaths = [a_dead_ticket(at=each) for each in range(5)]

    await asyncio.gather(*(archive.keep([each], now=clock_at(NOW)) for each in deaths))

    assert [each["ticket_id"] for each in kept_in(mongo, database)] == ["T-1"]


async def test_a_collection_with_a_ticket_twice_is_refused(
    unprepared: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """And it says what to do."""
    with mongo.client() as client:
        client[database][COLLECTION].insert_many([{"ticket_id": "T-1"}, {"ticket_id": "T-1"}])

    with pytest.raises(ArchiveUnfit, match=r"share a ticket_id.*mongo_collection"):
        await unprepared.prepare()


async def test_documents_of_other_programs_are_adopted(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """It can be listed and marked, and becomes one of ours when it dies again."""
    with mongo.client() as client:
        client[database][COLLECTION].insert_one(
            {"ticket_id": "T-1", "task_type": "BUILD", "processed_at": NOW, "priority": 1}
        )

    page = await archive.find(Wanted(states=("dead",)), cursor=None, limit=5)
    marked = await archive.mark(page.rows, "quarantined", _step())
    await archive.keep([a_dead_ticket()], now=clock_at(NOW))

    assert [each.id for each in marked] == ["T-1"]
    [document] = kept_in(mongo, database)
    assert (document["priority"], document[OURS]["state"]) == (5, "quarantined")


# --- looking ----------------------------------------------------------------------------------


async def _filled(archive: MongoArchive) -> None:
    kinds = [
        ("A", "BUILD", "TimeoutError", 0),
        ("B", "BUILD", "ValueError", 1),
        ("C", "TEST", "TimeoutError", 2),
        ("D", "TEST", "TimeoutError", 2),
    ]
    for at, (id, type_, error, days) in enumerate(kinds):
        dead = a_dead_ticket(a_ticket(id, type_), at=at, error_type=error)
        await archive.keep([dead], now=clock_at(NOW + days * DAY))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), "DCBA"),
        (Wanted(type="BUILD"), "BA"),
        (Wanted(error_type="TimeoutError"), "DCA"),
        (Wanted(type="TEST", error_type="ValueError"), ""),
        (Wanted(reason="max_retries_exceeded"), "DCBA"),
        (Wanted(reason="undecodable"), ""),
        (Wanted(since=NOW + DAY), "DCB"),
        (Wanted(before=NOW + DAY), "A"),
        (Wanted(since=NOW + DAY, before=NOW + 2 * DAY), "B"),
        (Wanted(ids=("A", "C", "none")), "CA"),
        (Wanted(states=("dead",)), "DCBA"),
        (Wanted(states=("redriven",)), ""),
    ],
)
async def test_dead_tickets_are_found_by_common_fields(
    archive: MongoArchive, wanted: Wanted, found: str
) -> None:
    """The last archived first, page by page; counted alike."""
    await _filled(archive)

    ids, cursor = [], None
    for _ in range(10):
        page = await archive.find(wanted, cursor=cursor, limit=1)
        ids += [each.id for each in page.rows]
        cursor = page.next
        if cursor is None:
            break

    assert "".join(ids) == found
    assert await archive.count(wanted) == len(found)


async def test_a_list_has_no_payloads(archive: MongoArchive) -> None:
    """A page of large tickets must not fill the memory; callers ask for payloads."""
    await archive.keep([a_dead_ticket(a_ticket(large="x" * 1000))], now=clock_at(NOW))

    [listed] = (await archive.find(Wanted(), cursor=None, limit=5)).rows
    [whole] = (await archive.find(Wanted(), cursor=None, limit=5, is_whole=True)).rows

    assert "large" not in (listed.fields or {})
    assert (whole.fields or {})["large"] == "x" * 1000


async def test_groups_are_counted_the_largest_first(archive: MongoArchive) -> None:
    """With the oldest and the newest of each."""
    await _filled(archive)

    first, second = await archive.group("error_type", Wanted())

    assert (first.key, first.count, first.oldest, first.newest) == (
        "TimeoutError",
        3,
        NOW,
        NOW + 2 * DAY,
    )
    assert (second.key, second.count) == ("ValueError", 1)
    by_state = await archive.group("state", Wanted(type="TEST"))
    assert [(each.key, each.count) for each in by_state] == [("dead", 2)]


# --- doing ------------------------------------------------------------------------------------


async def test_only_unchanged_tickets_are_marked(archive: MongoArchive) -> None:
    """Two people who mark the same do not both succeed; what died meanwhile is not marked."""
    await archive.keep([a_dead_ticket(), a_dead_ticket(a_ticket("T-2"), at=1)], now=clock_at(NOW))
    seen = (await archive.find(Wanted(), cursor=None, limit=5)).rows
    await archive.keep([a_dead_ticket(a_ticket("T-2"), at=2)], now=clock_at(NOW))

    marked = await archive.mark(seen, "redriving", _step())
    again = await archive.mark(seen, "redriving", _step())

    assert ([each.id for each in marked], again) == (["T-1"], [])


async def test_actions_are_in_the_history(archive: MongoArchive) -> None:
    """It records by whom, when and why; it survives the next death."""
    await archive.keep([a_dead_ticket()], now=clock_at(NOW))
    seen = (await archive.find(Wanted(), cursor=None, limit=5)).rows
    await archive.mark(seen, "redriven", Step("republished", "ana", "fixed", NOW, "run-1"))
    await archive.keep([a_dead_ticket(at=1)], now=clock_at(NOW))

    found = await archive.show("T-1")

    assert found is not None
    entry = {"at": NOW, "what": "republished", "by": "ana", "why": "fixed", "run": "run-1"}
    assert (found.state, found.history) == ("dead", (entry,))


async def test_purge_ends_exactly_where_it_says(archive: MongoArchive) -> None:
    """A ticket exactly 90 days old stays; a millisecond more, and it goes."""
    at = {"old": NOW - 90 * DAY - timedelta(milliseconds=1), "edge": NOW - 90 * DAY, "young": NOW}
    for place, (id, moment) in enumerate(at.items()):
        await archive.keep([a_dead_ticket(a_ticket(id), at=place)], now=clock_at(moment))

    purged = await archive.purge(Wanted(before=NOW - 90 * DAY))

    assert purged == 1
    left = (await archive.find(Wanted(), cursor=None, limit=5)).rows
    assert [each.id for each in left] == ["young", "edge"]


# --- away -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("collected")
async def test_unreachable_server_is_named_without_its_password() -> None:
    """A reader of the log learns where to look, and nothing else."""
    port = free_port()
    archive = MongoArchive(
        tickets_settings(
            MONGO=f"mongodb://user:secret@127.0.0.1:{port}/?serverSelectionTimeoutMS=1"
        )
    )

    with pytest.raises(ArchiveAway) as told:
        await archive.keep([a_dead_ticket()], now=clock_at(NOW))

    assert f"127.0.0.1:{port}" in str(told.value)
    assert "secret" not in str(told.value)
    assert len(str(told.value)) < 300
    await archive.close()


def test_an_address_that_makes_no_sense_is_a_setting_that_is_wrong() -> None:
    """Not something to wait for."""
    with pytest.raises(ConfigError, match=r"tickets\.mongo"):
        MongoArchive(tickets_settings(MONGO="mongodb://host:port:port/"))


# --- how many there are, and good ends --------------------------------------------------------


async def test_all_are_counted_by_state_type_and_error(
    archive: MongoArchive, mongo: MongoServer, database: str
) -> None:
    """A document of another writer has no state: it is dead."""
    tickets = [a_dead_ticket(a_ticket(f"T-{each}"), at=each) for each in range(3)]
    await archive.keep([*tickets, a_dead_ticket(a_ticket("U", "TEST"), at=9)], now=clock_at(NOW))
    page = await archive.find(Wanted(ids=("T-0",)), cursor=None, limit=1)
    await archive.mark(page.rows, "acknowledged", _step())
    with mongo.client() as client:
        client[database][COLLECTION].insert_one({"ticket_id": "other", "task_type": "TEST"})

    found = sorted(
        await archive.census(), key=lambda each: (each.state, each.type, each.error_type)
    )

    assert found == [
        Kept("acknowledged", "BUILD", "ConnectionError", 1),
        Kept("dead", "BUILD", "ConnectionError", 2),
        Kept("dead", "TEST", "", 1),
        Kept("dead", "TEST", "ConnectionError", 1),
    ]


@pytest.mark.parametrize(
    ("state", "died_of", "done_of", "after"),
    [
        ("redriven", 0, 1, "done"),
        ("redriving", 0, 1, "done"),  # faster than the run that sent it could mark it
        ("dead", 0, 1, "done"),  # it was sent, though the run heard nothing of that
        ("acknowledged", 0, 1, "done"),
        ("redriven", 1, 2, "done"),
        ("redriven", 1, 1, "redriven"),  # the end of another copy, before it died for the last time
        ("dead", 1, 1, "dead"),
        ("dead", 2, 1, "dead"),
        ("quarantined", 0, 1, "quarantined"),
    ],
)
async def test_a_good_end_counts_unless_it_died_since(
    archive: MongoArchive, state: ArchiveState, died_of: int, done_of: int, after: ArchiveState
) -> None:
    """By the number of redrives; tickets that the archive does not know are skipped."""
    await archive.keep([a_dead_ticket(redrives=died_of)], now=clock_at(NOW))
    page = await archive.find(Wanted(), cursor=None, limit=1)
    if state != "dead":
        await archive.mark(page.rows, state, _step())

    dones = [Done("T-1", done_of), Done("unknown", 1)]
    for _ in range(2):  # as after a crash
        await archive.finish(dones, "workers", now=NOW)

    found = await archive.show("T-1")
    assert found is not None
    assert found.state == after
    assert [each["what"] for each in found.history].count("done") == (after == "done")


async def test_a_done_ticket_that_dies_once_more_is_dead(archive: MongoArchive) -> None:
    """Another copy of it was on its way."""
    await archive.keep([a_dead_ticket()], now=clock_at(NOW))
    await archive.finish([Done("T-1", 1)], "workers", now=NOW)
    await archive.keep([a_dead_ticket(at=5, redrives=1)], now=clock_at(NOW))

    found = await archive.show("T-1")
    assert found is not None
    assert (found.state, found.deaths) == ("dead", 2)


async def test_close_does_not_wait_for_a_lost_lock(
    archive: MongoArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancellation at the wrong moment makes the driver lose one, before Python 3.12."""
    monkeypatch.setattr("carteiro.tickets.archive.mongo._PARTING_S", 0.01)
    lock = archive._client._topology._lock
    await lock.acquire()

    await archive.close()

    lock.release()
    await archive._client.close()
