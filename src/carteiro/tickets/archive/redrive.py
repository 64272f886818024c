"""Redrive archived tickets: each is claimed, its count cleared, then it is produced and marked.

How far it came stands in the documents, so that it can be stopped anywhere and asked again. Killed
between producing and marking, a ticket is produced a second time: that is said, and handlers must stand it
anyway. The count goes first: a ticket that arrives with an old count would go straight back.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol, TypeAlias
from uuid import uuid4

from carteiro.errors import CarteiroError
from carteiro.model import Cursor, Page, value
from carteiro.tickets.archive.document import Archived, ArchiveState, Step, Wanted, dumped
from carteiro.tickets.dead_letters.envelope import METADATA, REDRIVES, Envelope, Missing, carried
from carteiro.tickets.errors import CountsAway
from carteiro.tickets.json_members import with_members
from carteiro.tickets.ticket import Record, Ticket, TicketId, read

Answer: TypeAlias = Literal[
    "redriven",  # it is on its topic again
    "again",  # so it is, perhaps for the second time: an earlier run was killed on the way
    "already",  # it went before, and has not died since
    "elsewhere",  # another run has it, or had it until a moment ago
    "quarantined",  # it is not to be sent
    "undecodable",  # it is not a ticket; from now on it is quarantined
    "nothing_kept",  # its payload is not in the archive, nor any more where it came from
    "too_often",  # it was redriven too often for an accident
    "failed",  # Kafka did not take it; it is dead as before
    "changed",  # it died again, or somebody else did something with it, meanwhile
]

MOST_REDRIVES = 5
PAGE = 20  # with payloads of up to 2 MiB each; larger ones go one by one
MOST_FAILED = 20  # in a row: then it is Kafka, and the others would only be tried in vain
STALE_AFTER = timedelta(seconds=60)  # longer than a run needs from claiming a portion to marking it
# A redriving one is what a run left behind that was killed.
RESTING: tuple[ArchiveState, ...] = ("dead", "acknowledged", "redriving")
SENT: frozenset[Answer] = frozenset({"redriven", "again"})


class Archive(Protocol):
    """Where dead tickets are."""

    async def find(
        self, wanted: Wanted, *, cursor: Cursor | None, limit: int, is_whole: bool = False
    ) -> Page[Archived]:
        """A page of those that match."""

    async def mark(
        self, tickets: Sequence[Archived], state: ArchiveState, step: Step
    ) -> list[Archived]:
        """Put them into a state; return those that were as given until then."""


class Counts(Protocol):
    """The failure counts of tickets, kept elsewhere."""

    async def forget(self, ids: Sequence[TicketId]) -> None:
        """Forget all of these, acknowledged; raises `CountsAway`."""


class Producer(Protocol):
    """Puts records on a topic."""

    async def send(
        self, topic: str, envelopes: Sequence[Envelope]
    ) -> Sequence[CarteiroError | None]:
        """Return, of each, what went wrong: None once the broker has acknowledged it."""


Fetch: TypeAlias = Callable[[str], Awaitable[Record | None]]
"""The record at TOPIC|PARTITION|OFFSET; None if it is not there any more."""


@value
class RedriveTerms:
    """The conditions of a redrive: on whose word, and how freely."""

    by: str
    why: str = ""
    is_raw: bool = False  # bytes that are no ticket, as they were
    is_forced: bool = False  # however often it went round
    most_redrives: int = MOST_REDRIVES


@value
class Redriven:
    """The result for one ticket."""

    ticket: Archived
    answer: Answer
    error: str = ""


@dataclass(frozen=True)
class Redrive:
    """One redrive of many tickets; its ``id`` stands in the history of all it touched."""

    archive: Archive
    counts: Counts
    producer: Producer
    _: KW_ONLY
    fetch: Fetch
    topic: str
    terms: RedriveTerms
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    id: str = field(default_factory=lambda: uuid4().hex)

    def run(
        self, wanted: Wanted, *, rate: float | None = None, limit: int = 0
    ) -> AsyncIterator[list[Redriven]]:
        """Send what matches, page by page: at most ``rate`` a second and ``limit`` in all (0: any number).

        It ends early when Kafka takes none.

        What dies again meanwhile is newer than what is looked at, and waits for another time.
        """
        return self._walk(wanted, self._sent, rate, limit)

    def look(self, wanted: Wanted, *, limit: int = 0) -> AsyncIterator[list[Redriven]]:
        """Return the results that `run` would have, without sending."""
        return self._walk(wanted, self._foreseen, None, limit)

    async def _walk(
        self,
        wanted: Wanted,
        work: Callable[[Sequence[Archived]], Awaitable[list[Redriven]]],
        rate: float | None,
        limit: int,
    ) -> AsyncIterator[list[Redriven]]:
        sent, failed_in_a_row, cursor = 0, 0, None
        while failed_in_a_row < MOST_FAILED:
            size = min(_page_size(rate), limit - sent) if limit else _page_size(rate)
            page = await self.archive.find(wanted, cursor=cursor, limit=size, is_whole=True)
            done = [
                each
                for portion in _portions(page.rows)
                for each in await work([await self._whole(ticket) for ticket in portion])
            ]
            yield done
            sent_now = sum(each.answer in SENT for each in done)
            failed_now = sum(each.answer == "failed" for each in done)
            failed_in_a_row = 0 if sent_now else failed_in_a_row + failed_now
            sent, cursor = sent + sent_now, page.next
            if cursor is None or (limit and sent >= limit):
                return
            if rate is not None:
                await self.sleep(sent_now / rate)

    async def _whole(self, ticket: Archived) -> Archived:
        """With its payload, if that was too large for the archive and still is where it came from."""
        if ticket.missing is None or ticket.state not in RESTING:
            return ticket
        record = await self.fetch(ticket.source)
        if record is None or record.body is None:
            return ticket
        if Missing.of(record.body).sha256 != ticket.missing.sha256:
            return ticket  # the topic was made anew, and has other records at the same places
        return replace(ticket, raw=record.body, headers=carried(record))

    async def _foreseen(self, page: Sequence[Archived]) -> list[Redriven]:
        answers = [judge(each, self.terms, now=self.now()) for each in page]
        return [
            Redriven(each, _success(each.state) if isinstance(answer, Envelope) else answer)
            for each, answer in zip(page, answers, strict=True)
        ]

    async def _sent(self, page: Sequence[Archived]) -> list[Redriven]:
        now = self.now()
        judged = {each.id: judge(each, self.terms, now=now) for each in page}
        sendable = [each for each in page if isinstance(judged[each.id], Envelope)]
        refused = [
            Redriven(each, answer)
            for each in page
            if not isinstance(answer := judged[each.id], Envelope)
        ]
        odd = [each.ticket for each in refused if each.answer == "undecodable"]
        why = "it is not a ticket: once released, republish --raw sends its bytes as they were"
        await self.archive.mark(odd, "quarantined", self._step("quarantined", why=why))
        claimed = await self.archive.mark(sendable, "redriving", self._step("republishing"))
        lost = {each.id for each in sendable} - {each.id for each in claimed}
        changed = [Redriven(each, "changed") for each in sendable if each.id in lost]
        envelopes = [each for id in _ids(claimed) if isinstance(each := judged[id], Envelope)]
        was = {each.id: each.state for each in sendable}
        return [*refused, *changed, *await self._produced(claimed, envelopes, was)]

    async def _produced(
        self,
        claimed: Sequence[Archived],
        envelopes: Sequence[Envelope],
        was: Mapping[TicketId, ArchiveState],
    ) -> list[Redriven]:
        if not claimed:
            return []
        try:
            await self.counts.forget(_ids(claimed))
        except CountsAway as error:
            await self.archive.mark(claimed, "dead", self._step("republish failed", why=str(error)))
            raise
        faults = await self.producer.send(self.topic, envelopes)
        answers = list(zip(claimed, faults, strict=True))
        await self.archive.mark(
            [each for each, fault in answers if fault is None],
            "redriven",
            self._step("republished"),
        )
        for each, fault in answers:
            if fault is not None:
                step = self._step("republish failed", why=str(fault))
                await self.archive.mark([each], "dead", step)
        return [
            Redriven(each, "failed", str(fault))
            if fault is not None
            else Redriven(each, _success(was[each.id]))
            for each, fault in answers
        ]

    def _step(self, what: str, *, why: str = "") -> Step:
        return Step(what, self.terms.by, why or self.terms.why, self.now(), self.id)


def judge(ticket: Archived, terms: RedriveTerms, *, now: datetime) -> Envelope | Answer:  # noqa: PLR0911 - an answer a line
    """Return the record to produce for a ticket, or why there is none."""
    if ticket.state in {"redriven", "done"}:
        return "already"
    if ticket.state == "quarantined":
        return "quarantined"
    if ticket.state == "redriving" and ticket.run_at and now - ticket.run_at < STALE_AFTER:
        return "elsewhere"
    if ticket.redrives >= terms.most_redrives and not terms.is_forced:
        return "too_often"
    body = _pending(ticket)
    if body is not None:
        return _envelope(ticket, body)
    if ticket.raw is None:
        return "nothing_kept"
    return _envelope(ticket, ticket.raw) if terms.is_raw else "undecodable"


def fields_of(ticket: Archived) -> dict[str, Any] | None:
    """Return the ticket's fields; None if they are not kept, or are not those of a ticket."""
    if ticket.fields is not None:
        return dict(ticket.fields)
    return _read(ticket.raw)


def own_text(ticket: Archived) -> bytes | None:
    """The ticket as it was written, where its bytes are kept; None if there is none.

    People may have fixed the fields: then these are meant.
    """
    read_again = _read(ticket.raw)
    if ticket.raw is None or read_again is None or ticket.fields not in (None, read_again):
        return None
    return with_members(ticket.raw, {}, without=METADATA)


def _pending(ticket: Archived) -> bytes | None:
    """Return the ticket as it is sent, from its own bytes if they are there; None if it is not a ticket."""
    own = own_text(ticket)
    if own is not None:
        return with_members(own, {"status": b'"PENDING"'}, without=METADATA)
    return None if ticket.fields is None else dumped({**ticket.fields, "status": "PENDING"})


def _read(raw: bytes | None) -> dict[str, Any] | None:
    found = read(Record("", 0, 0, None, raw))
    if not isinstance(found, Ticket):
        return None
    return {name: each for name, each in found.fields.items() if name != METADATA}


def _envelope(ticket: Archived, body: bytes) -> Envelope:
    round_ = str(ticket.redrives + 1).encode()
    return Envelope(
        key=ticket.id.encode(), value=body, headers=(*ticket.headers, (REDRIVES, round_))
    )


def _portions(page: Sequence[Archived]) -> list[list[Archived]]:
    """Split into what is claimed and sent together: a fetched payload may be larger than all the others."""
    kept = [each for each in page if each.missing is None]
    fetched = [[each] for each in page if each.missing is not None]
    return [kept, *fetched] if kept else fetched


def _success(before: ArchiveState) -> Answer:
    return "again" if before == "redriving" else "redriven"


def _ids(tickets: Sequence[Archived]) -> list[TicketId]:
    return [each.id for each in tickets]


def _page_size(rate: float | None) -> int:
    return PAGE if rate is None else max(1, min(PAGE, int(rate)))
