"""``carteiro tickets dlq``: the commands on the archive."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from carteiro.cli.exit_codes import ExitCode
from carteiro.observability import log
from carteiro.runtime.acting import user
from carteiro.tickets.archive.document import OURS
from carteiro.tickets.archive.mongo import MongoArchive
from carteiro.tickets.dead_letters.envelope import DeadTicket
from support.archiving import COLLECTION, clock_at, kept_in, tickets_settings
from support.command_line import CommandLine, Ran
from support.dead_tickets import a_dead_ticket, a_deep_ticket, a_ticket, an_oversized_ticket
from support.mongo_server import MongoServer
from support.redis_server import RedisServer
from support.services import HOST, free_port

pytestmark = pytest.mark.servers

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    """Restore the log of this process."""
    yield
    log.configure("off")


@dataclass(frozen=True)
class Dlq:
    """The commands, on a separate archive."""

    line: CommandLine
    mongo: MongoServer
    given: dict[str, str]

    def __call__(self, *arguments: str, **instead: str) -> Ran:
        """Run ``carteiro tickets dlq``, with these settings of the lane."""
        return self.line("tickets", "dlq", *arguments, **self.environment(**instead))

    def environment(self, **instead: str) -> dict[str, str]:
        """The settings of the lane, as variables."""
        given = self.given | instead
        return {f"CARTEIRO_TICKETS_{name}": each for name, each in given.items()}

    def asked(self, *arguments: str) -> dict[str, Any]:
        """The one document that a command prints."""
        return self(*arguments, "--json").document

    def listed(self, *arguments: str) -> list[dict[str, Any]]:
        """The documents that a command prints."""
        ran = self(*arguments, "--json")
        assert ran.code == ExitCode.OK, ran.err
        return ran.documents

    def keep(self, *dead: DeadTicket, ago: timedelta = timedelta(0)) -> None:
        """Archive these, dated that long ago."""
        asyncio.run(self._keep(dead, datetime.now(UTC) - ago))

    async def _keep(self, dead: Sequence[DeadTicket], at: datetime) -> None:
        archive = MongoArchive(tickets_settings(**self.given))
        await archive.prepare()
        await archive.keep(dead, now=clock_at(at))
        await archive.close()

    def put(self, id: str, state: str) -> None:
        """Set the state of a ticket."""
        with self.mongo.client() as client:
            tickets = client[self.given["MONGO_DATABASE"]][COLLECTION]
            tickets.update_one({"ticket_id": id}, {"$set": {f"{OURS}.state": state}})

    @property
    def states(self) -> dict[str, str]:
        """The state of each."""
        kept = kept_in(self.mongo, self.given["MONGO_DATABASE"])
        return {each["ticket_id"]: each[OURS]["state"] for each in kept}


@pytest.fixture
def dlq(tmp_path: Path, mongo: MongoServer, database: str) -> Dlq:
    """Without Kafka and Redis: commands that do not need them do not wait for them."""
    nowhere = f"{HOST}:{free_port()}"
    given = {
        "MONGO": mongo.url,
        "MONGO_DATABASE": database,
        "BOOTSTRAP_SERVERS": nowhere,
        "REDIS": f"redis://{nowhere}/0",
    }
    return Dlq(CommandLine(tmp_path), mongo, given)


@pytest.fixture
def with_kafka(dlq: Dlq, topics: dict[str, str], redis_server: RedisServer) -> Dlq:
    """With all that a redrive needs."""
    return Dlq(dlq.line, dlq.mongo, dlq.given | topics | {"REDIS": redis_server.url})


def _three() -> list[DeadTicket]:
    return [
        a_dead_ticket(a_ticket("A", "BUILD"), at=0, error_type="TimeoutError"),
        a_dead_ticket(a_ticket("B", "BUILD"), at=1, error_type="ValueError"),
        a_dead_ticket(a_ticket("C", "TEST"), at=2, error_type="ValueError"),
    ]


# --- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ((), "CBA"),
        (("--task-type", "BUILD"), "BA"),
        (("--error-type", "ValueError"), "CB"),
        (("--task-type", "TEST", "--error-type", "TimeoutError"), ""),
        (("--reason", "max_retries_exceeded"), "CBA"),
        (("--reason", "undecodable"), ""),
        (("--state", "dead"), "CBA"),
        (("--state", "redriven"), ""),
        (("--since", "1h"), "CBA"),
        (("--before", "1h"), ""),
        (("--limit", "2"), "CB"),
    ],
)
def test_dead_tickets_are_listed_and_filtered(
    dlq: Dlq, options: tuple[str, ...], found: str
) -> None:
    """The newest first."""
    dlq.keep(*_three())

    assert "".join(each["ticketId"] for each in dlq.listed("ls", *options)) == found


def test_content_nested_too_deep_is_shown_as_bytes(dlq: Dlq) -> None:
    dlq.keep(a_dead_ticket(a_deep_ticket()))

    shown = dlq.asked("show", "T-1")

    assert (shown["ticket"], b64decode(shown["raw"])) == (None, a_deep_ticket())
    assert "nested too deeply" in dlq("show", "T-1").out


def test_list_is_a_table_for_people(dlq: Dlq) -> None:
    """Id, type and reason come first."""
    dlq.keep(*_three())

    out = dlq("ls").out

    assert "TimeoutError" in out
    assert "no route to host" in out
    assert dlq("ls", "--task-type", "NONE").err == "No dead tickets found.\n"


def test_groups_are_counted(dlq: Dlq) -> None:
    """To see the most frequent failure."""
    dlq.keep(*_three())

    found = dlq.listed("group", "--by", "error_type")

    assert [(each["by"], each["key"], each["count"]) for each in found] == [
        ("error_type", "ValueError", 2),
        ("error_type", "TimeoutError", 1),
    ]


def test_oversized_tickets_are_a_separate_group(dlq: Dlq) -> None:
    """For any cause of death, as the metric counts them."""
    big = an_oversized_ticket(orjson.dumps(a_ticket("big")), at=41)
    dlq.keep(*_three(), big)

    found = dlq.listed("group", "--by", "reason")

    assert {each["key"]: each["count"] for each in found} == {
        "max_retries_exceeded": 3,
        "oversized": 1,
    }


def test_groups_exclude_redriven_tickets_by_default(dlq: Dlq) -> None:
    """They show the remaining work."""
    dlq.keep(*_three())
    dlq.put("A", "redriven")
    dlq.put("B", "done")

    def counted(*options: str) -> dict[str, int]:
        return {each["key"]: each["count"] for each in dlq.listed("group", *options)}

    assert counted() == {"ValueError": 1}
    assert counted("--state", "redriven") == {"TimeoutError": 1}
    assert counted("--state", "done", "--by", "task_type") == {"BUILD": 1}
    assert counted("--by", "state") == {"dead": 1, "redriven": 1, "done": 1}


# --- acknowledging ----------------------------------------------------------------------------


def test_acknowledged_ticket_waits_no_more_and_can_still_be_redriven(dlq: Dlq) -> None:
    """Its history has the user and the reason."""
    dlq.keep(*_three())

    assert dlq.asked("acknowledge", "A", "--why", "the team knows") == {"acknowledged": 1}
    assert dlq("acknowledge", "--all", "--task-type", "TEST", "--dry-run").out == (
        "Would be acknowledged: 1.\n"
    )
    assert dlq.asked("acknowledge", "--all", "--task-type", "TEST", "--yes") == {"acknowledged": 1}

    assert dlq.states == {"A": "acknowledged", "B": "dead", "C": "acknowledged"}
    [entry] = dlq.asked("show", "A")["history"]
    assert (entry["what"], entry["by"], entry["why"]) == ("acknowledged", user(), "the team knows")
    again = dlq("acknowledge", "A", "B")
    assert again.code == ExitCode.REFUSED
    assert "1 of 2; the others are not dead now" in again.err
    rows = dlq.listed("republish", "--all", "--dry-run")
    assert {each["ticketId"]: each["answer"] for each in rows} == dict.fromkeys("ABC", "redriven")
    assert dlq.asked("quarantine", "A") == {"quarantined": 1}


def test_acknowledged_ticket_that_dies_again_is_dead_again(dlq: Dlq) -> None:
    dlq.keep(a_dead_ticket())
    dlq("acknowledge", "T-1")
    dlq.keep(a_dead_ticket(at=7, redrives=1))

    assert dlq.states == {"T-1": "dead"}


def test_ticket_is_shown_with_its_history(dlq: Dlq) -> None:
    """Its content, its deaths and every action on it."""
    dlq.keep(a_dead_ticket(), a_dead_ticket(at=4, redrives=1))
    dlq("quarantine", "T-1", "--why", "it is wrong")

    shown = dlq.asked("show", "T-1")
    told = dlq("show", "T-1").out

    assert shown["ticket"] == a_ticket()
    assert (shown["deaths"], len(shown["occurrences"]), shown["redrives"]) == (2, 2, 1)
    assert [each["why"] for each in shown["history"]] == ["it is wrong"]
    assert "Deaths" in told
    assert "it is wrong" in told


def test_oversized_ticket_is_found_and_shown_with_its_location(dlq: Dlq) -> None:
    """For any cause of death; its payload is still in the topic."""
    big = an_oversized_ticket(orjson.dumps(a_ticket("big")), at=41)
    dlq.keep(a_dead_ticket(), big, a_dead_ticket(b"", at=2))

    [row] = dlq.listed("ls", "--reason", "oversized")
    shown, told = dlq.asked("show", "big"), dlq("show", "big").out

    assert (row["ticketId"], row["reason"]) == ("big", "max_retries_exceeded")
    assert [each["ticketId"] for each in dlq.listed("ls") if each["oversized"]] == ["big"]
    assert "max_retries_exceeded, oversized" in dlq("ls").out
    assert (shown["ticket"], shown["raw"]) == (None, None)
    size_bytes = shown["missing"]["sizeBytes"]
    assert size_bytes > 0
    assert f"{size_bytes} bytes, too large to be kept" in told
    assert "on execution.tickets, partition 0, offset 41" in " ".join(told.split())


def test_bytes_that_are_not_a_ticket_are_shown(dlq: Dlq) -> None:
    """To people shortened and without control characters; to programs in base64."""
    dlq.keep(a_dead_ticket(b"\xff\x00"), a_dead_ticket(b"<a>\x1b[2J" + b"b" * 600, at=1))
    short, long = (each["ticketId"] for each in reversed(dlq.listed("ls")))

    told = dlq("show", long).out

    assert dlq.asked("show", short)["raw"] == "/wA="
    assert r"2 bytes that are not a ticket: \xff\x00" in dlq("show", short).out
    assert r"607 bytes that are not a ticket: <a>\x1b[2Jb" in told
    assert "b… (the first 500)" in told
    assert "\x1b" not in told


def test_ticket_is_shown_with_every_digit(dlq: Dlq) -> None:
    """Unless its fields were edited: then these."""
    number = 10**25 + 1  # a float would round it
    body = b'{"ticket_id":"T-1",\n"task_type":"BUILD","number":%d}' % number
    dlq.keep(a_dead_ticket(body))

    assert dlq.asked("show", "T-1")["ticket"]["number"] == number
    assert str(number) in dlq("show", "T-1").out

    _set(dlq, "T-1", {"number": 7})
    assert dlq.asked("show", "T-1")["ticket"]["number"] == 7
    assert str(number) not in dlq("show", "T-1").out


# --- who did it -------------------------------------------------------------------------------


def _audited(dlq: Dlq, *options: str) -> list[dict[str, Any]]:
    ran = dlq.line("tickets", "audit", *options, "--json", **dlq.environment())
    assert ran.code == ExitCode.OK, ran.err
    return ran.documents


def test_every_change_of_dead_tickets_is_recorded(dlq: Dlq) -> None:
    """With user, host, action, before and after. Refused ones and dry runs are none; a purge leaves the rows."""
    dlq.keep(*_three(), ago=100 * DAY)
    dlq("acknowledge", "A", "--why", "call ana@x.example")
    dlq("quarantine", "--all", "--error-type", "ValueError", "--yes")
    dlq("quarantine", "--all", "--release", "--dry-run")
    dlq("quarantine", "B", "C", "--release")
    dlq("acknowledge", "nobody")
    dlq("purge", "--yes")

    rows = _audited(dlq)

    assert [(row["action"], row["object"]) for row in reversed(rows)] == [
        ("acknowledge", "A"),
        ("quarantine", ""),
        ("release", ""),
        ("purge", ""),
    ]
    assert {(row["via"], row["who"], row["origin"], row["kind"]) for row in rows} == {
        ("cli", user(), socket.gethostname(), "dead ticket")
    }
    purge, release, quarantine, acknowledge = rows
    assert acknowledge["before"] == {"states": ["dead"]}
    assert acknowledge["after"] == {
        "chosen": {"ids": ["A"]},
        "state": "acknowledged",
        "tickets": 1,
    }
    assert quarantine["after"]["chosen"]["errorType"] == "ValueError"
    assert quarantine["after"]["tickets"] == 2
    assert release["after"]["chosen"] == {"ids": ["B", "C"]}
    assert (purge["before"]["tickets"], sorted(purge["before"]["ids"])) == (3, ["A", "B", "C"])
    assert "ana@x.example" not in str(rows)
    assert [row["action"] for row in _audited(dlq, "--ticket", "A")] == ["acknowledge"]
    assert [row["action"] for row in _audited(dlq, "--action", "purge")] == ["purge"]
    assert len(_audited(dlq, "--who", user(), "--since", "1h", "--limit", "3")) == 3
    assert _audited(dlq, "--who", "nobody") == []
    assert "release dead ticket" in dlq.line("tickets", "audit", **dlq.environment()).out


def test_recorded_changes_are_deleted_after_their_retention(dlq: Dlq) -> None:
    """With the next change; as audit rows of a store."""
    dlq.keep(*_three())
    dlq("acknowledge", "A")
    with dlq.mongo.client() as client:
        changes = client[dlq.given["MONGO_DATABASE"]][f"{COLLECTION}_audit"]
        changes.update_many({}, {"$set": {"at": datetime.now(UTC) - 401 * DAY}})
    dlq("acknowledge", "B")

    assert [row["object"] for row in _audited(dlq)] == ["B"]


# --- wrong use --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("ls", "--reason", "tired"), "max_retries_exceeded"),
        (("ls", "--state", "gone"), "quarantined"),
        (("ls", "--since", "1h", "--before", "2h"), "the first must be earlier"),
        (("ls", "--since", "soon"), "is not a time"),
        (("ls", "--task-type", "TWO WORDS"), "--task-type 'TWO WORDS' is not a name"),
        (("ls", "--error-type", ""), "--error-type '' is not a name"),
        (("group", "--by", "colour"), "error_type"),
        (("republish",), "name the tickets, or say --all"),
        (("republish", "A", "--all"), "name the tickets, or say --all"),
        (("republish", "A", "--task-type", "BUILD"), "not both"),
        (("republish", "--all", "--rate", "0"), "is not a rate"),
        (("quarantine",), "name the tickets, or say --all"),
        (("purge", "--older-than", "old"), "is not a duration"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_invalid_options_are_refused(dlq: Dlq, arguments: tuple[str, ...], said: str) -> None:
    """The error has the allowed values, and nothing is done."""
    dlq.keep(*_three())

    ran = dlq(*arguments)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert said in " ".join(ran.err.replace("│", " ").split())
    assert set(dlq.states.values()) == {"dead"}


@pytest.mark.parametrize("command", ["show", "republish", "quarantine"])
def test_unknown_ticket_is_not_found(dlq: Dlq, command: str) -> None:
    """The error says how to list the existing ones."""
    ran = dlq(command, "nobody")

    assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert "carteiro tickets dlq ls" in ran.err


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(
    "arguments",
    [
        ("ls",),
        ("group",),
        ("show", "A"),
        ("republish", "A"),
        ("republish", "--all", "--yes"),
        ("quarantine", "A"),
        ("purge", "--yes"),
    ],
    ids=" ".join,
)
def test_unreachable_database_is_reported_with_advice(dlq: Dlq, arguments: tuple[str, ...]) -> None:
    """One line: the address, and the setting that holds it."""
    port = free_port()

    away = f"mongodb://user:secret@{HOST}:{port}/?serverSelectionTimeoutMS=100"
    ran = dlq(*arguments, MONGO=away)

    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert len(ran.err.splitlines()) == 1
    assert f"{HOST}:{port}" in ran.err
    assert "environment variable CARTEIRO_TICKETS_MONGO" in ran.err
    assert "secret" not in ran.err


# --- purge ------------------------------------------------------------------------------------


def test_purge_deletes_tickets_older_than_ninety_days(dlq: Dlq) -> None:
    """Or than the given age, if they match the options."""
    dlq.keep(a_dead_ticket(a_ticket("old")), ago=90 * DAY + timedelta(seconds=1))
    dlq.keep(a_dead_ticket(a_ticket("young"), at=1), ago=90 * DAY - timedelta(minutes=5))

    foreseen = dlq.asked("purge", "--dry-run")
    refused = dlq("purge")
    purged = dlq.asked("purge", "--yes")

    assert (foreseen["purged"], foreseen["matching"]) == (0, 1)
    assert (refused.code, "--yes" in refused.err) == (ExitCode.REFUSED, True)
    assert purged["purged"] == 1
    assert list(dlq.states) == ["young"]


def test_purge_is_logged_with_user_and_reason(dlq: Dlq, capfd: pytest.CaptureFixture[str]) -> None:
    """The histories are deleted with the tickets; a dry run writes no line."""
    dlq.keep(*_three(), ago=2 * DAY)
    chosen = ("purge", "--older-than", "1d", "--task-type", "BUILD", "--why", "they are done")

    dlq(*chosen, "--dry-run")
    dlq(*chosen, "--yes")

    line = orjson.loads(capfd.readouterr().err)
    assert (line["event"], line["records"], line["why"]) == ("dlq_purged", 2, "they are done")
    assert (line["chosen"]["taskType"], line["by"]) == ("BUILD", user())
    assert sorted(line["ticketIds"]) == ["A", "B"]


def test_purge_by_another_age_and_type(dlq: Dlq) -> None:
    """The filters are those of the lists."""
    dlq.keep(*_three(), ago=2 * DAY)

    assert dlq.asked("purge", "--older-than", "1d", "--task-type", "TEST", "--yes")["purged"] == 1
    assert list(dlq.states) == ["A", "B"]


def test_ticket_being_redriven_is_not_purged(dlq: Dlq) -> None:
    """The run after a killed one must find it."""
    dlq.keep(*_three(), ago=100 * DAY)
    _set(dlq, "A", {f"{OURS}.state": "redriving"})

    assert dlq.asked("purge", "--yes")["purged"] == 2
    assert list(dlq.states) == ["A"]


def _set(dlq: Dlq, id: str, changes: dict[str, Any]) -> None:
    with dlq.mongo.client() as client:
        tickets = client[dlq.given["MONGO_DATABASE"]][COLLECTION]
        tickets.update_one({"ticket_id": id}, {"$set": changes})


# --- quarantine -------------------------------------------------------------------------------


def test_quarantined_ticket_is_skipped_until_it_is_released(with_kafka: Dlq) -> None:
    """One by id, or all that match."""
    dlq = with_kafka
    dlq.keep(*_three())

    assert dlq.asked("quarantine", "A", "--why", "broken")["quarantined"] == 1
    assert dlq.asked("quarantine", "--all", "--task-type", "TEST", "--yes")["quarantined"] == 1
    assert dlq.states == {"A": "quarantined", "B": "dead", "C": "quarantined"}

    assert dlq.asked("republish", "--all", "--yes")["sent"] == 1
    assert dlq("republish", "A").code == ExitCode.REFUSED
    assert dlq.asked("quarantine", "A", "--release")["released"] == 1
    assert dlq.states == {"A": "dead", "B": "redriven", "C": "quarantined"}


def test_quarantine_of_all_that_match_asks_first(dlq: Dlq) -> None:
    """A dry run asks nothing, and does nothing; the same holds for a release."""
    dlq.keep(*_three())
    matching = ("quarantine", "--all", "--error-type", "ValueError")

    foreseen = dlq.asked(*matching, "--dry-run")
    unsure = dlq(*matching)
    before = dlq.states
    done = dlq.asked(*matching, "--yes")
    released = dlq.asked("quarantine", "B", "--release", "--dry-run")

    assert (foreseen, done) == ({"quarantined": 0, "matching": 2}, {"quarantined": 2})
    assert (unsure.code, "2" in unsure.err, "--yes" in unsure.err) == (ExitCode.REFUSED, True, True)
    assert set(before.values()) == {"dead"}
    assert released == {"released": 0, "matching": 1}
    assert dlq.states == {"A": "dead", "B": "quarantined", "C": "quarantined"}


def test_only_dead_tickets_are_quarantined(dlq: Dlq) -> None:
    """The error says why not another."""
    dlq.keep(*_three())
    dlq("quarantine", "A")

    ran = dlq("quarantine", "A", "B")

    assert (ran.code, "1 of 2" in ran.err) == (ExitCode.REFUSED, True)


# --- republish --------------------------------------------------------------------------------


def test_tickets_are_redriven_by_id(with_kafka: Dlq) -> None:
    """One line for each; the exit code says if one was not."""
    dlq = with_kafka
    dlq.keep(*_three())

    first = dlq("republish", "A", "B", "--json")
    second = dlq("republish", "A", "C", "--json")
    [row, _] = _audited(dlq, "--action", "republish")

    assert first.code == ExitCode.OK
    answers = [(each["ticketId"], each["answer"]) for each in second.documents]
    assert (second.code, sorted(answers)) == (
        ExitCode.REFUSED,
        [("A", "already"), ("C", "redriven")],
    )
    assert (row["after"]["state"], row["after"]["tickets"]) == ("redriven", 1)
    assert row["after"]["chosen"] == {"ids": ["A", "C"]}
    assert row["after"]["run"] == dlq.asked("show", "C")["history"][-1]["run"]


def test_redrive_of_all_that_match_asks_first(with_kafka: Dlq) -> None:
    """A dry run asks nothing, and does nothing."""
    dlq = with_kafka
    dlq.keep(*_three())
    matching = ("republish", "--all", "--error-type", "ValueError", "--why", "fixed")

    foreseen = dlq.listed(*matching, "--dry-run")
    unsure = dlq(*matching)
    sent = dlq.asked(*matching, "--yes")

    assert [each["answer"] for each in foreseen] == ["redriven", "redriven"]
    assert (unsure.code, "--yes" in unsure.err) == (ExitCode.REFUSED, True)
    assert (sent["sent"], sent["answers"]) == (2, {"redriven": 2})
    assert dlq.states == {"A": "dead", "B": "redriven", "C": "redriven"}
    [*_, last] = dlq.asked("show", "B")["history"]
    assert (last["what"], last["why"], last["run"]) == ("republished", "fixed", sent["run"])


def test_skipped_tickets_are_reported_with_advice(with_kafka: Dlq) -> None:
    """On stderr, apart from the data."""
    dlq = with_kafka
    dlq.keep(a_dead_ticket(a_ticket("round"), redrives=9), a_dead_ticket(b"?", at=1), *_three()[1:])

    ran = dlq("republish", "--all", "--yes")

    assert "Republished (run" in ran.out
    assert "1 were republished too often" in ran.err
    assert "--force" in ran.err
    assert "1 are not tickets, and were quarantined" in ran.err


def test_tickets_stay_dead_without_kafka(dlq: Dlq, redis_server: RedisServer) -> None:
    """The command fails."""
    dlq.keep(a_dead_ticket())

    ran = dlq("republish", "--all", "--yes", REDIS=redis_server.url)

    assert ran.code == ExitCode.FAILED
    assert "refused by Kafka" in ran.err
    assert dlq.states == {"T-1": "dead"}


def test_nothing_starts_without_redis(dlq: Dlq) -> None:
    """The error names the setting."""
    dlq.keep(a_dead_ticket())

    ran = dlq("republish", "--all", "--yes")

    assert ran.code == ExitCode.FAILED
    assert "tickets.redis" in ran.err
    assert dlq.states == {"T-1": "dead"}


def test_killed_run_is_continued_by_the_next(with_kafka: Dlq) -> None:
    """Each is sent, and a possible duplicate is announced."""
    dlq = with_kafka
    dlq.keep(*(a_dead_ticket(a_ticket(f"T-{each:02}"), at=each) for each in range(30)))
    command = [sys.executable, "-m", "carteiro.cli", "tickets", "dlq", "republish", "--all"]
    process = subprocess.Popen([*command, "--yes", "--rate", "20"], env=_environ(dlq))
    while "redriven" not in dlq.states.values():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    _as_if_killed_on_the_way(dlq)

    sent = dlq.asked("republish", "--all", "--yes")

    assert sent["answers"]["again"] == 1
    assert set(dlq.states.values()) == {"redriven"}


def _environ(dlq: Dlq) -> dict[str, str]:
    return os.environ | dlq.environment()


def _as_if_killed_on_the_way(dlq: Dlq) -> None:
    """One was claimed some minutes ago, and may have been sent."""
    waiting = next(id for id, state in dlq.states.items() if state != "redriven")
    before = datetime.now(UTC) - timedelta(minutes=5)
    _set(dlq, waiting, {f"{OURS}.state": "redriving", f"{OURS}.run_at": before})
