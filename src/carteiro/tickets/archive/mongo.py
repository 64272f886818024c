"""The archive of dead tickets: a collection of MongoDB, or of a server that speaks its protocol.

Nothing is taken from a newer server than speaks version 4.2: no transactions, no updates by pipeline, no
indexes that expire. Who writes a document first wins, by its ``archive.version``; the other looks again.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import bson
from bson.errors import BSONError
from pymongo import DESCENDING, AsyncMongoClient, ReplaceOne, UpdateOne
from pymongo import errors as mongo_errors
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.write_concern import WriteConcern

from carteiro.config import TicketSettings
from carteiro.errors import ConfigError
from carteiro.model import MILLISECOND, AuditFilter, AuditRow, Cursor, DeadGroup, Page, Via
from carteiro.policy.audit import harmless
from carteiro.policy.masking import without_quoted
from carteiro.tickets import events
from carteiro.tickets.archive.document import (
    OURS,
    PAYLOAD_BYTES,
    Archived,
    ArchiveState,
    Document,
    GroupBy,
    Kept,
    Step,
    Wanted,
    bare,
    documents,
    ends_with,
    is_noted,
    restored,
    state_of,
)
from carteiro.tickets.dead_letters.envelope import OVERSIZED, DeadTicket, Done
from carteiro.tickets.errors import ArchiveAway, ArchiveUnfit
from carteiro.tickets.ticket import TicketId

LARGEST_DOCUMENT = 16 * 1024 * 1024 - 16 * 1024  # what the server adds must fit, too
_ANSWER_MS = 30_000
_PARTING_S = 10.0
_PATIENCE_MS = {
    "serverSelectionTimeoutMS": 5_000,
    "connectTimeoutMS": 5_000,
    "socketTimeoutMS": _ANSWER_MS,
}
_DUPLICATE = 11000
_ROUNDS = 6  # of looking again: somebody else was faster, or it has to be poorer
_NEVER = 0  # the version of no document
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# About the document, for good. All else may pass: then it is waited, and no payload is thrown away.
_DOCUMENT_CODES = frozenset(
    {
        *(2, 9, 15, 22),  # a bad value, not understood, nested too deeply, no BSON
        *(52, 53, 54, 55, 56, 57),  # names of fields
        *(10334, 17280, 17419, 17420),  # too large, itself or as a key
    }
)
_PATHS: dict[GroupBy, str] = {
    "error_type": "dlq_metadata.error_type",
    "task_type": "task_type",
    "reason": f"{OURS}.reason",
    "state": f"{OURS}.state",
}
_KEPT = {name: _PATHS[name] for name in ("state", "task_type", "error_type")}
_BY_AGE = [("processed_at", DESCENDING), ("ticket_id", DESCENDING)]
_BY_TIME = [("at", DESCENDING), ("_id", DESCENDING)]
_INDEXES: tuple[Any, ...] = (
    "task_type",
    "dlq_metadata.dlq_published_at",
    ["task_type", "dlq_metadata.error_type"],
    _BY_AGE,
    [*_KEPT.values()],
)
# What has to be known of a document to write it anew: never the payload.
_TO_NOTE = ("version", "state", "first_seen_at", "deaths", "occurrences", "history")
_IN_LISTS = ("version", "state", "reason", "source", "redrives", "deaths", "published_at", "kept")
_OF_A_RUN = ("run", "run_at")


class MongoArchive:
    """The archive; every method raises `ArchiveAway` while the server cannot do it."""

    def __init__(self, settings: TicketSettings) -> None:
        try:
            self._client: AsyncMongoClient[Document] = AsyncMongoClient(
                settings.mongo, tz_aware=True, appname="carteiro", **_patience(settings.mongo)
            )
        except (mongo_errors.ConfigurationError, ValueError, OSError) as error:
            said = without_quoted(_reason(error))
            raise ConfigError(f"tickets.mongo cannot be used: {said}; correct it") from None
        self.address = _address(self._client)
        self._name = f"{settings.mongo_database}.{settings.mongo_collection}"
        acknowledged = WriteConcern(w="majority", wtimeout=_ANSWER_MS)
        database = self._client[settings.mongo_database]
        self._tickets: AsyncCollection[Document] = database.get_collection(
            settings.mongo_collection, write_concern=acknowledged
        )
        self._changes: AsyncCollection[Document] = database.get_collection(
            f"{settings.mongo_collection}_audit", write_concern=acknowledged
        )

    async def close(self) -> None:
        """End its connections and tasks; wait a limited time only, as a cancellation may leave its locks taken."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_PARTING_S):
                await self._client.close()

    # --- what comes in ------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Have the indexes; raises `ArchiveUnfit` if the collection has one ticket twice."""
        async with self._asked():
            await self._have_unique_index()
            for keys in _INDEXES:
                await self._tickets.create_index(keys)

    async def _have_unique_index(self) -> None:
        try:
            await self._tickets.create_index("ticket_id", unique=True)
        except mongo_errors.OperationFailure as error:
            # FerretDB 1 has no code for it.
            if error.code != _DUPLICATE and "UNIQUE constraint" not in str(error):
                raise
            raise ArchiveUnfit(
                f"{self._name} has documents that share a ticket_id, or more than one without: the "
                "archive keeps one for each ticket. Take out those too many, or name another "
                "collection (tickets.mongo_collection)"
            ) from error

    async def keep(
        self, dead: Sequence[DeadTicket], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> list[DeadTicket]:
        """Keep all of these deaths, acknowledged; return those that were not in the archive yet.

        What cannot be kept whole is kept as bytes, and what is too large for that as a pointer.
        """
        fresh: dict[str, DeadTicket] = {}
        poorer: Counter[TicketId] = Counter()
        for round_ in range(_ROUNDS):
            known = await self._noted([each.id for each in dead])
            # The time is read as late as possible: the documents carry it.
            every = {each.id: _Plan(each.id, known.get(each.id)) for each in dead}
            at = now()
            for each in dead:
                every[each.id].add(each, poorer=poorer[each.id], now=at)
            plans = [plan for plan in every.values() if plan.deaths]
            fresh |= {each.dlq_id: each for plan in plans for each in plan.deaths}
            # Together first; if the server had to refuse one, each by itself, to know which and why.
            is_done = await (
                self._written(plans, poorer) if round_ else self._written_together(plans)
            )
            if is_done:
                return list(fresh.values())
        raise ArchiveAway(f"{self._told} refuses a dead ticket in every form")

    async def _noted(self, ids: Sequence[TicketId]) -> dict[TicketId, Document]:
        wanted = {"ticket_id": {"$in": sorted(set(ids))}}
        shown = ["ticket_id", *_ours(_TO_NOTE)]
        async with self._asked():
            return {each["ticket_id"]: each async for each in self._tickets.find(wanted, shown)}

    async def _written_together(self, plans: Sequence["_Plan"]) -> bool:
        async with self._asked():
            try:
                writes = [ReplaceOne(each.was, each.document, upsert=True) for each in plans]
                if writes:
                    await self._tickets.bulk_write(writes, ordered=False)
            except mongo_errors.BulkWriteError as error:
                self._refuse_unacknowledged(error)
                return False
            except (mongo_errors.OperationFailure, BSONError) as error:
                if not _is_of_the_document(error):
                    raise
                return False
            except KeyError:  # what the driver makes of an error of FerretDB 1
                return False
        return True

    def _refuse_unacknowledged(self, error: mongo_errors.BulkWriteError) -> None:
        for each in (error.details or {}).get("writeConcernErrors", ()):
            raise ArchiveAway(f"{self._told} does not acknowledge: {each.get('errmsg')}")

    async def _written(self, plans: Sequence["_Plan"], poorer: Counter[TicketId]) -> bool:
        """Write each by itself; what the server will never take is to be poorer the next time."""
        is_done = True
        for plan in plans:
            async with self._asked():
                try:
                    await self._tickets.replace_one(plan.was, plan.document, upsert=True)
                except mongo_errors.DuplicateKeyError:  # somebody else wrote it meanwhile
                    is_done = False
                except (mongo_errors.OperationFailure, BSONError) as error:
                    if not _is_of_the_document(error):
                        raise
                    poorer[plan.id] += 1
                    is_done = False
        return is_done

    async def finish(self, dones: Sequence[Done], by: str, *, now: datetime) -> int:
        """Mark republished tickets as done; those unknown, or dead since, are not changed."""
        latest = {each.id: each for each in sorted(dones, key=lambda done: done.redrives)}
        step, marked = Step("done", by, "", now), 0
        for _ in range(_ROUNDS):
            page = await self.find(Wanted(ids=tuple(latest)), cursor=None, limit=len(latest))
            fit = [each for each in page.rows if ends_with(each, latest[each.id])]
            marked += len(await self.mark(fit, "done", step))
            if not fit:
                break
        return marked

    # --- what is there ------------------------------------------------------------------------

    async def find(
        self, wanted: Wanted, *, cursor: Cursor | None, limit: int, is_whole: bool = False
    ) -> Page[Archived]:
        """A page of those that match, the last archived first; without payloads, unless they are asked for."""
        query = _query(wanted)
        if cursor is not None:
            query = {"$and": [query, _after(cursor, "processed_at", "ticket_id")]}
        async with self._asked():
            asked = self._tickets.find(query, None if is_whole else _SHOWN_IN_LISTS)
            found = await asked.sort(_BY_AGE).limit(limit + 1).to_list()
        rows = [restored(each) for each in found[:limit]]
        end = _cursor(rows[-1].processed_at, rows[-1].id) if len(found) > limit else None
        return Page(rows, end)

    async def show(self, id: TicketId) -> Archived | None:
        """The ticket of this id, if it is here."""
        async with self._asked():
            found = await self._tickets.find_one({"ticket_id": id})
        return None if found is None else restored(found)

    async def count(self, wanted: Wanted) -> int:
        """Count the matching tickets."""
        async with self._asked():
            return await self._tickets.count_documents(_query(wanted))

    async def group(self, by: GroupBy, wanted: Wanted) -> list[DeadGroup]:
        """Count the matching tickets by what they have in common; the largest group first.

        Counted here: not every server that speaks the protocol can say the oldest of a group.
        """
        groups: dict[str, DeadGroup] = {}
        shown = [_PATHS[by], "processed_at", f"{OURS}.{PAYLOAD_BYTES}"]
        async with self._asked():
            async for each in self._tickets.find(_query(wanted), shown):
                key, at = _key(each, by), restored(each).processed_at
                group = groups.get(key) or DeadGroup(key, 0, at, at)
                groups[key] = DeadGroup(
                    key, group.count + 1, min(group.oldest, at), max(group.newest, at)
                )
        return sorted(groups.values(), key=lambda group: (-group.count, group.key))

    async def census(self) -> list[Kept]:
        """Count all tickets by state, type and error."""
        by = {name: f"${path}" for name, path in _KEPT.items()}
        counting = [{"$group": {"_id": by, "count": {"$sum": 1}}}]
        async with self._asked():
            found = await (await self._tickets.aggregate(counting)).to_list()
        return [_kept(each["_id"], each["count"]) for each in found]

    # --- what people do -----------------------------------------------------------------------

    async def mark(
        self, tickets: Sequence[Archived], state: ArchiveState, step: Step
    ) -> list[Archived]:
        """Put them into a state; return those that were as given until then, the others are not changed."""
        if not tickets:
            return []
        mark = uuid4().hex
        after = [_after_step(each, state, step) for each in tickets]
        writes = [
            UpdateOne(_as_it_was(each.id, each.version), _changes(each, step, mark))
            for each in after
        ]
        async with self._asked():
            await self._tickets.bulk_write(writes, ordered=False)
            ids = [each.id for each in tickets]
            mine = {"ticket_id": {"$in": ids}, f"{OURS}.mark": mark}
            marked = self._tickets.find(mine, ["ticket_id", f"{OURS}.version"])
            versions = {each["ticket_id"]: each[OURS]["version"] async for each in marked}
        return [replace(each, version=versions[each.id]) for each in after if each.id in versions]

    async def purge(self, wanted: Wanted) -> int:
        """Take those that match out of the archive for good; return how many it were."""
        async with self._asked():
            answer = await self._tickets.delete_many(_query(wanted))
        return int(answer.deleted_count)

    # --- who did it ---------------------------------------------------------------------------

    async def note(self, row: AuditRow, *, kept: timedelta | None) -> None:
        """Record a change; call it before the change. Rows that are older than this are deleted."""
        document = asdict(row) | {"_id": row.id, "via": row.via.value}
        async with self._asked():
            await self._changes.create_index(_BY_TIME)
            await self._changes.insert_one(document)
            if kept is not None:
                await self._changes.delete_many({"at": {"$lt": row.at - kept}})

    async def changes(
        self, wanted: AuditFilter, *, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[AuditRow]:
        """The recorded changes that match, newest first."""
        names = {"who": wanted.who, "action": wanted.action, "object": wanted.object}
        query: Document = {name: harmless(each) for name, each in names.items() if each is not None}
        if wanted.since is not None:
            query["at"] = {"$gte": wanted.since}
        if cursor is not None:
            query = {"$and": [query, _after(cursor, "at", "_id")]}
        async with self._asked():
            found = await self._changes.find(query).sort(_BY_TIME).limit(limit + 1).to_list()
        rows = [_changed(each) for each in found[:limit]]
        return Page(rows, _cursor(rows[-1].at, rows[-1].id) if len(found) > limit else None)

    # --- what goes wrong ----------------------------------------------------------------------

    @property
    def _told(self) -> str:
        return f"MongoDB at {self.address}"

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[None]:
        try:
            yield
        except mongo_errors.PyMongoError as error:
            raise ArchiveAway(f"{self._told} cannot be used: {_reason(error)}") from error


class _Plan:
    """The write of one ticket's document, and the deaths that it adds."""

    def __init__(self, id: TicketId, before: Document | None) -> None:
        self.id = id
        self.was = (
            {"ticket_id": id, f"{OURS}.version": _NEVER}
            if before is None
            else _as_it_was(id, before.get(OURS, {}).get("version"))
        )
        self.document: Document = before or {}
        self.deaths: list[DeadTicket] = []

    def add(self, dead: DeadTicket, *, poorer: int, now: datetime) -> None:
        """Note a death that is not noted yet; ``poorer`` is how many forms were refused.

        Whatever is wrong with one dead letter, or with what others left in its document, ends here: it would
        be met again at every start.
        """
        try:
            if is_noted(self.document, dead):
                return
            self.document = _poorer(self.document, dead, poorer, now)
        except Exception as error:  # noqa: BLE001 - one letter must not hold up all others
            events.dlq_not_understood(dead.record, type(error).__name__)
            self.document = _poorer({}, bare(dead), poorer, now)
        self.deaths.append(dead)


def _poorer(before: Document, dead: DeadTicket, poorer: int, now: datetime) -> Document:
    """Return the first form that fits, from this one on; the last one always does."""
    forms = list(documents(before, dead, now=now))
    *richer, poorest = forms[min(poorer, len(forms) - 1) :]
    return next((each for each in richer if _fits(each)), poorest)


def _fits(document: Document) -> bool:
    try:
        return len(bson.encode(document)) <= LARGEST_DOCUMENT and not _has_odd_names(document)
    except (BSONError, OverflowError, ValueError, TypeError, RecursionError):
        return False


def _is_of_the_document(error: mongo_errors.OperationFailure | BSONError) -> bool:
    return isinstance(error, BSONError) or error.code in _DOCUMENT_CODES


def _has_odd_names(found: object) -> bool:
    """Names that are operators or paths to the server; some take them, none can look for them."""
    if isinstance(found, Mapping):
        return any(
            name.startswith("$") or "." in name or not name or _has_odd_names(each)
            for name, each in found.items()
        )
    return isinstance(found, list) and any(map(_has_odd_names, found))


def _as_it_was(id: TicketId, version: int | None) -> Document:
    was: object = {"$exists": False} if version is None else version
    return {"ticket_id": id, f"{OURS}.version": was}


def _after_step(ticket: Archived, state: ArchiveState, step: Step) -> Archived:
    redrives = ticket.redrives + (state == "redriven")
    return replace(ticket, state=state, redrives=redrives, run=step.run, run_at=step.at)


def _changes(after: Archived, step: Step, mark: str) -> Document:
    return {
        "$set": {
            f"{OURS}.state": after.state,
            f"{OURS}.redrives": after.redrives,
            f"{OURS}.mark": mark,
            f"{OURS}.run": after.run,
            f"{OURS}.run_at": after.run_at,
        },
        "$inc": {f"{OURS}.version": 1},
        "$push": {f"{OURS}.history": step.as_document()},
    }


def _query(wanted: Wanted) -> Document:
    query: Document = {}
    if wanted.ids is not None:
        query["ticket_id"] = {"$in": list(wanted.ids)}
    for path, wish in (("task_type", wanted.type), ("dlq_metadata.error_type", wanted.error_type)):
        if wish is not None:
            query[path] = wish
    if wanted.reason is not None:
        query["$or"] = _of_reason(wanted.reason)
    if wanted.states is not None:
        # What something else archived has no state: it is dead.
        named = [*wanted.states, *([None] if "dead" in wanted.states else [])]
        query[f"{OURS}.state"] = {"$in": named}
    if wanted.since or wanted.before:
        ends = {"$gte": wanted.since, "$lt": wanted.before}
        query["processed_at"] = {name: each for name, each in ends.items() if each is not None}
    return query


def _of_reason(reason: str) -> list[Document]:
    """Match the reason of the death; a ticket too large to be kept is oversized as well."""
    said: Document = {_PATHS["reason"]: reason}
    return [said, {f"{OURS}.{PAYLOAD_BYTES}": {"$exists": True}}] if reason == OVERSIZED else [said]


def _kept(of: Mapping[str, Any], count: int) -> Kept:
    type_, error_type = (str(of.get(name) or "") for name in ("task_type", "error_type"))
    return Kept(state_of(of.get("state")), type_, error_type, count)


def _ours(names: Sequence[str]) -> list[str]:
    return [f"{OURS}.{name}" for name in names]


_SHOWN_IN_LISTS = [
    *("ticket_id", "task_type", "dlq_metadata", "processed_at"),
    *_ours((*_IN_LISTS, PAYLOAD_BYTES, *_OF_A_RUN)),
]


def _key(document: Mapping[str, Any], by: GroupBy) -> str:
    """Return the group that it is counted in; as in the metric, a payload too large makes it oversized."""
    if by == "reason" and PAYLOAD_BYTES in document.get(OURS, {}):
        return OVERSIZED
    return state_of(_at(document, _PATHS[by])) if by == "state" else _at(document, _PATHS[by])


def _at(document: Mapping[str, Any], path: str) -> str:
    found: Any = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return str(found or "")


def _cursor(at: datetime, id: str) -> Cursor:
    return Cursor(f"{(at - _EPOCH) // MILLISECOND}:{id}")


def _after(cursor: Cursor, time: str, key: str) -> Document:
    at_ms, _, id = cursor.partition(":")
    at = _EPOCH + int(at_ms) * MILLISECOND
    return {"$or": [{time: {"$lt": at}}, {time: at, key: {"$lt": id}}]}


def _changed(document: Document) -> AuditRow:
    stored = {name: each for name, each in document.items() if name != "_id"}
    return AuditRow(**stored | {"via": Via(stored["via"])})


def _patience(url: str) -> dict[str, Any]:
    """Return the timeouts that the address does not set."""
    said = url.lower()
    return {name: each for name, each in _PATIENCE_MS.items() if f"{name.lower()}=" not in said}


def _address(client: AsyncMongoClient[Document]) -> str:
    """Where it is, without names and passwords."""
    seeds = sorted(client.topology_description.server_descriptions())
    return ",".join(f"{host}:{port}" if port else host for host, port in seeds)


def _reason(error: Exception) -> str:
    """Return the error, without the driver's list of servers."""
    return str(error).partition(", Timeout:")[0].partition(", full error:")[0]
