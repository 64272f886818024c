"""A log in memory, a counter in memory and a topic of dead letters in memory, for fast tests of the lane."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from carteiro.tickets.consume.notes import read_notes
from carteiro.tickets.consume.ports import Commit, Given, Keeper, LastError, TicketStanding
from carteiro.tickets.dead_letters.envelope import Headers
from carteiro.tickets.deaths import Death
from carteiro.tickets.errors import PublishFailed
from carteiro.tickets.ticket import Part, Record, Ticket, TicketId, Unreadable

TOPIC = "execution.tickets"


class MemoryLog:
    """A topic whose partitions come and go as the test says; commits outlive a worker."""

    def __init__(self, partitions: int = 1) -> None:
        self.records: dict[Part, list[Record]] = {(TOPIC, each): [] for each in range(partitions)}
        self.commits: dict[Part, Commit] = {}
        self.history: list[Commit] = []
        self.paused: set[Part] = set()
        self.refuses_commits = False
        self.most_at_once = 50
        self._places: dict[Part, int] = {}
        self._keeper: Keeper | None = None
        self._stopping = asyncio.Event()
        self._news = asyncio.Event()

    def put(
        self,
        id: str | None = None,
        type: str = "BUILD",
        *,
        key: str | None = None,
        partition: int = 0,
        body: bytes | None = None,
        headers: Headers = (),
        **fields: Any,
    ) -> Record:
        """Write a ticket, or any ``body``, at the end of a partition."""
        records = self.records[TOPIC, partition]
        ticket = {"ticket_id": id, "task_type": type, **fields}
        written = orjson.dumps(ticket) if body is None else body
        named = (key or id or "").encode()
        record = Record(TOPIC, partition, len(records), named, written, headers)
        records.append(record)
        self._news.set()
        return record

    async def run(self, keeper: Keeper) -> None:
        """Give all partitions to the keeper, then their records, until it is stopped."""
        self._keeper = keeper
        await self.give(*self.records)
        while not self._stopping.is_set():
            self._news.clear()
            await self._bring(keeper)
            await self._news.wait()
        await self.revoke(*self._places)

    async def give(self, *parts: Part) -> None:
        """Assign these to the worker, with their commits."""
        assert self._keeper is not None
        given = []
        for part in parts:
            commit = self.commits.get(part)
            self._places[part] = commit.offset if commit else 0
            noted = read_notes(commit.notes) if commit else None
            given.append(Given(part, noted, commit.offset if commit else None))
        await self._keeper.assigned(given)
        self._news.set()

    async def revoke(self, *parts: Part) -> None:
        """Take them away in good order."""
        assert self._keeper is not None
        for commit in await self._keeper.revoked(parts):
            self._store(commit)
        self._drop(parts)

    async def lose(self, *parts: Part) -> None:
        """They were reassigned already."""
        assert self._keeper is not None
        self._drop(parts)
        await self._keeper.lost(parts)

    def stop(self) -> None:
        """Take no more."""
        self._stopping.set()
        self._news.set()

    def pause(self, parts: Sequence[Part]) -> None:
        self.paused |= set(parts)

    def resume(self, parts: Sequence[Part]) -> None:
        self.paused -= set(parts)
        self._news.set()

    def ends(self, parts: Sequence[Part]) -> Mapping[Part, int]:
        """Their end offsets."""
        return {part: len(self.records[part]) for part in parts}

    async def commit(self, commits: Sequence[Commit]) -> bool:
        """Store them, unless the test says otherwise."""
        is_refused = self.refuses_commits
        if not is_refused:
            for each in commits:
                self._store(each)
        await asyncio.sleep(0)
        return not is_refused

    @property
    def committed(self) -> int:
        """The committed offset of the first partition."""
        commit = self.commits.get((TOPIC, 0))
        return commit.offset if commit else 0

    async def _bring(self, keeper: Keeper) -> None:
        for part in [each for each in self._places if each not in self.paused]:
            begin = self._places[part]
            records = self.records[part][begin : begin + self.most_at_once]
            if records:
                self._places[part] = begin + len(records)
                await keeper.arrived(records)
                self._news.set()

    def _store(self, commit: Commit) -> None:
        self.commits[commit.part] = commit
        self.history.append(commit)

    def _drop(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._places.pop(part, None)
            self.paused.discard(part)


class MemoryCounter:
    """Counts as Redis would; while it is ``away`` it has no data, and keeps none."""

    def __init__(self) -> None:
        self.failures: dict[TicketId, int] = defaultdict(int)
        self.ended_at: dict[TicketId, str] = {}
        self.errors: dict[TicketId, LastError] = {}
        self.away = False
        self.up_to: dict[Part, int] | None = None
        self.questions = 0
        self.counts: list[list[TicketId]] = []  # by question
        self.ends: list[list[TicketId]] = []

    async def look(self, ids: Sequence[TicketId]) -> list[TicketStanding]:
        """The counted failures of each."""
        self.questions += 1
        if self.away:
            return [TicketStanding(0, "") for _ in ids]
        return [TicketStanding(self.failures.get(id, 0), self.ended_at.get(id, "")) for id in ids]

    async def counted_up_to(self, parts: Sequence[Part]) -> list[int] | None:
        """As a test says; if it says nothing, each ticket is looked at."""
        up_to = self.up_to
        return None if up_to is None or self.away else [up_to.get(part, 0) for part in parts]

    async def failed(self, failures: Sequence[tuple[TicketId, int, str]]) -> list[int]:
        """One more of each."""
        self.counts.append([id for id, _, _ in failures])
        if self.away:
            return [at_least for _, at_least, _ in failures]
        for id, at_least, _ in failures:
            self.failures[id] = max(self.failures[id] + 1, at_least)
        return [self.failures[id] for id, _, _ in failures]

    async def ended(self, places: Sequence[tuple[TicketId, str]]) -> None:
        """Forget their failures, remember their places."""
        self.ends.append([id for id, _ in places])
        for id, place in () if self.away else places:
            self.failures.pop(id, None)
            self.errors.pop(id, None)
            self.ended_at[id] = place

    async def keep_errors(self, errors: Sequence[tuple[TicketId, LastError]]) -> None:
        """Store them."""
        if not self.away:
            self.errors |= dict(errors)

    async def kept_errors(self, ids: Sequence[TicketId]) -> list[LastError | None]:
        """The stored error of each."""
        return [None if self.away else self.errors.get(id) for id in ids]


class MemoryDeadLetters:
    """Keeps dead letters in a list; ``fails`` is the number of next publications that fail."""

    def __init__(self) -> None:
        self.deaths: list[Death] = []
        self.dones: list[tuple[TicketId, int]] = []
        self.batches: list[list[TicketId]] = []
        self.fails = 0
        self.refused: set[TicketId] = set()
        self.keeps_all = True
        self.before: Callable[[Death], None] = lambda _: None

    async def publish(self, deaths: Sequence[Death]) -> list[bool | Exception]:
        """Keep them, or fail."""
        self.batches.append([each.ticket.id for each in deaths])
        results = [self._published(each) for each in deaths]
        await asyncio.sleep(0)
        return results

    def _published(self, death: Death) -> bool | Exception:
        try:
            self.before(death)
        except Exception as error:  # noqa: BLE001 - whatever the test raises
            return error
        if self.fails or death.ticket.id in self.refused:
            self.fails -= self.fails > 0
            return PublishFailed("away", error_type="TimeoutError")
        self.deaths.append(death)
        return self.keeps_all

    async def publish_done(self, ticket: Ticket | Unreadable, *, redrives: int) -> None:
        """Note it, or fail."""
        await asyncio.sleep(0)
        if self.fails:
            self.fails -= 1
            raise PublishFailed("away", error_type="TimeoutError")
        self.dones.append((ticket.id, redrives))

    @property
    def reasons(self) -> Mapping[TicketId, str]:
        """The reason of each death."""
        return {each.ticket.id: each.reason for each in self.deaths}
