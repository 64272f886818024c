"""The named crash points: between every two steps of every operation, in the test's own process only.

Ports, kinds, the hand-over and the writer's connection are wrapped from outside; the product has no
hook for it. The life of an operation as points: ``asked``, ``half`` (after its first change, inside
the transaction), ``uncommitted``, ``committed``, ``answered``.
"""

import asyncio
import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from carteiro.jobs.confirmation import Confirmation
from carteiro.jobs.kind import Chain, Kind
from carteiro.model import LeasedJob, Outcome
from carteiro.ports import Backend, Handover, Parcel
from carteiro.stores.sqlite import opening, writer

Action: TypeAlias = Literal["kill", "stop"]

OPERATIONS = (
    "accept",
    "cancel",
    "claim",
    "declare",
    "delivered",
    "expire",
    "extend",
    "fold",
    "judge",
    "keep",
    "move",
    "reap",
    "redrive",
    "release",
    "send",
    "set",
    "settle",
    "spread",
    "start",
)
OF_ALERTS = frozenset({"delivered", "move", "spread"})
STEPS = ("asked", "half", "uncommitted", "committed", "answered")
POINTS = (
    *(f"{operation}.{step}" for operation in OPERATIONS for step in STEPS),
    "batch.between",  # two operations of one transaction
    "confirm.asked",
    "confirm.answered",
    "deliver.asked",
    "handover.asked",  # the last check of the deadline comes next
    "handover.begun",
    "deliver.answered",
)
SCRIPTS = ("put", "claim", "extend", "settle", "release", "reap", "leased", "bury")
QUEUE_POINTS = tuple(
    f"queue.{script}.{step}" for script in SCRIPTS for step in ("asked", "answered")
)
# A process stopped here is in a transaction, and holds locks: no other can take anything over
# meanwhile.
LOCKED = frozenset({f"{each}.{step}" for each in OPERATIONS for step in ("half", "uncommitted")})
LOCKED |= {"batch.between"}

under_way: ContextVar[str] = ContextVar("under_way", default="")  # the operation


@dataclass(frozen=True)
class Plan:
    """The event at a point, at the nth time it is reached."""

    point: str
    occurrence: int = 1
    action: Action = "kill"

    def __str__(self) -> str:
        """The name of its test."""
        return f"{self.point}-{self.occurrence}"


class Points:
    """Carries the plan out; without one it only counts."""

    def __init__(
        self, plan: Plan | None = None, *, say: Callable[[str], None] = print, blocked: str = ""
    ) -> None:
        self._plan = plan
        self._left = plan.occurrence if plan is not None else 0
        self._say = say
        self._blocked = blocked
        self.running = 0  # deliveries in flight in this process
        self.is_inside = plan is not None and plan.point in LOCKED
        self.is_about_alerts = plan is not None and plan.point.partition(".")[0] in OF_ALERTS
        self.in_transaction = (
            threading.Lock()
        )  # held from BEGIN to COMMIT, while the writer has the file's lock

    def reach(self, point: str) -> None:
        """Die or stop here, if that is the plan."""
        if self._plan is None or point != self._plan.point:
            return
        self._left -= 1
        if self._left == 0:
            self._say(point)
            if self._plan.action == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            # A process that is stopped with the file's lock by chance would stop all
            # others.
            with nullcontext() if point in LOCKED else self.in_transaction:
                # To this very thread: it goes no further, whichever thread the
                # kernel would have picked.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)

    async def pass_block(self, operation: str) -> None:
        """Wait for ever in front of the operation that is blocked."""
        if operation == self._blocked:
            await asyncio.Event().wait()


def watched_backend(backend: Backend, points: Points) -> Backend:
    """The same ports, with a point before and after each operation."""
    ports: dict[str, Any] = {
        field.name: _WatchedPort(getattr(backend, field.name), points) for field in fields(backend)
    }
    return Backend(**ports)


def watched_kind(kind: Kind, points: Points, look: Callable[[LeasedJob], None]) -> Kind:
    """The same kind, with points around its confirm and deliver; ``look`` gets each confirmed message."""

    def confirm(job: LeasedJob) -> Confirmation:
        assert kind.confirm is not None
        points.reach("confirm.asked")
        look(job)
        confirmation = kind.confirm(job)
        points.reach("confirm.answered")
        return confirmation

    @contextmanager
    def a_call() -> Iterator[None]:
        points.running += 1
        try:
            points.reach("deliver.asked")
            yield
            points.reach("deliver.answered")
        finally:
            points.running -= 1

    async def deliver(parcel: Parcel, handover: Handover) -> Outcome:
        with a_call():
            return await kind.deliver(parcel, handover)

    async def function(content: object) -> None:
        assert kind.function is not None
        with a_call():
            await kind.function(content)

    return replace(
        kind,
        confirm=kind.confirm and confirm,
        deliver=deliver,
        function=kind.function and function,
    )


def watched_chain(chain: Chain, watched: Callable[[Kind], Kind]) -> Chain:
    """The same chain, with all its kinds watched."""
    return cast("Chain", _WatchedChain(chain, watched))


class _WatchedChain:
    def __init__(self, chain: Chain, watched: Callable[[Kind], Kind]) -> None:
        self._chain = chain
        self._watched = watched

    def choose(self, job: LeasedJob) -> Kind | timedelta:
        chosen = self._chain.choose(job)
        return chosen if isinstance(chosen, timedelta) else self._watched(chosen)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)


@contextmanager
def points_inside(points: Points) -> Iterator[None]:
    """Put points into the hand-over and into the transactions of this process, until the block ends."""
    begin, connect, do = Handover.begin, opening.connect, writer.Writer.do

    def watched_begin(handover: Handover) -> None:
        points.reach("handover.asked")
        begin(handover)
        points.reach("handover.begun")

    def watched_connect(path: Path, **options: Any) -> Any:
        return _WatchedConnection(connect(path, **options), points)

    async def watched_do(self: writer.Writer, operation: Any, *, durable: bool = True) -> Any:
        name = under_way.get()
        watched = _within(name, operation) if name else operation
        return await do(self, watched, durable=durable)

    patches: list[tuple[Any, str, Any, Any]] = [
        (Handover, "begin", begin, watched_begin),
        (writer, "connect", connect, watched_connect),
        (writer.Writer, "do", do, watched_do),
    ]
    for owner, name, _, watched in patches:
        setattr(owner, name, watched)
    try:
        yield
    finally:
        for owner, name, plain, _ in patches:
            setattr(owner, name, plain)


class _WatchedPort:
    """A port with crash points before and after each operation."""

    def __init__(self, port: object, points: Points) -> None:
        self._port = port
        self._points = points

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._watched(name, method) if name in OPERATIONS else method

    def _watched(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        async def operation(*arguments: object, **named: object) -> Any:
            self._points.reach(f"{name}.asked")
            await self._points.pass_block(name)
            token = under_way.set(name)
            try:
                answer = await method(*arguments, **named)
            finally:
                under_way.reset(token)
            self._points.reach(f"{name}.answered")
            return answer

        return operation


class _WatchedConnection:
    """The writer's connection; knows which operations wrote in the current transaction."""

    def __init__(self, connection: sqlite3.Connection, points: Points) -> None:
        self._connection = connection
        self._points = points
        self._current = ""
        self._changes_before = 0
        self._is_half = False
        self._written: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def enter(self, operation: str) -> None:
        self._current = operation
        self._changes_before = self._connection.total_changes
        self._is_half = False

    def leave(self) -> None:
        self._look_for_change()  # a statement that returns rows counts its changes when all are read
        if self._is_half:
            self._written.append(self._current)
        self._current = ""

    def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
        match statement:
            case "BEGIN IMMEDIATE":
                return self._begin()
            case "COMMIT":
                return self._commit()
            case "ROLLBACK":
                return self._end_with("ROLLBACK")
        cursor = self._connection.execute(statement, parameters)
        if statement == "RELEASE operation":
            self._points.reach("batch.between")
        self._look_for_change()
        return cursor

    def _look_for_change(self) -> None:
        if self._current and not self._is_half:
            self._is_half = self._connection.total_changes > self._changes_before
            if self._is_half:
                self._points.reach(f"{self._current}.half")

    def _commit(self) -> sqlite3.Cursor:
        for operation in self._written:
            self._points.reach(f"{operation}.uncommitted")
        cursor = self._end_with("COMMIT")
        for operation in self._written:
            self._points.reach(f"{operation}.committed")
        return cursor

    def _begin(self) -> sqlite3.Cursor:
        self._written.clear()
        self._points.in_transaction.acquire()
        try:
            return self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error:
            self._points.in_transaction.release()
            raise

    def _end_with(self, statement: str) -> sqlite3.Cursor:
        cursor = self._connection.execute(statement)
        self._points.in_transaction.release()
        return cursor


def _within(name: str, operation: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The operation, known by its name to its connection."""

    def watched(db: Any) -> Any:
        db.enter(name)
        try:
            return operation(db)
        finally:
            db.leave()

    return watched
