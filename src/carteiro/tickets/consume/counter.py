"""Failures of each ticket, counted in Redis, where the next worker finds them: ``ticket:retry_count:{ticket_id}``.

Redis is never waited for: while it is down every question is answered at once by what is known here, what
should have been written is owed, and one task tries to pay it until it succeeds. So an outage costs a
patience once, not once a ticket. Each key has a time to live from the moment that it is written.

``ticket:counted_up_to:{topic}|{partition}`` is after the last record of which there is a key: nobody asks beyond it.
"""

import asyncio
import random
import re
from asyncio import CancelledError, Future, Task
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import timedelta
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, TypeVar

import hiredis
import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from carteiro.model import value
from carteiro.stores.redis.server import client_of, close, said_by, shown
from carteiro.tickets import events
from carteiro.tickets.consume.ports import LastError, TicketStanding
from carteiro.tickets.errors import CountsAway
from carteiro.tickets.ticket import Part, TicketId

TIME_TO_LIVE_S = 604_800  # 7 days, as long as the topic keeps a ticket
PATIENCE = timedelta(milliseconds=200)
MOST_OWED = 100_000  # tickets; beyond it the oldest debts are forgotten

_COUNT, _ENDED, _ERROR = "ticket:retry_count:", "ticket:dlq_done:", "ticket:held_error:"
_UP_TO = "ticket:counted_up_to:"
_SCRIPT = (files("carteiro.tickets.consume") / "count_failures.lua").read_text(encoding="utf-8")
_CONNECTIONS = 10
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0
_PAYING_PATIENCE_S = 2.0  # nobody waits for it
_PAID_AT_ONCE = 500
_ROUNDS, _LATE_S = 3, 0.02  # how often our own lateness is forgiven, and what counts as such
_A_COUNT = re.compile("[0-9]{1,9}")

_T = TypeVar("_T")


@value
class _Debt:
    """A write that Redis missed: ``fresh`` if its old value is void, ``ended_at`` '' if the ticket has not ended.

    ``place``: of its record, '' if that was said with an earlier write.
    """

    failures: int
    fresh: bool
    ended_at: str = ""
    error: LastError | None = None
    place: str = ""


NOTHING = TicketStanding(0, "")
_NO_DEBT = _Debt(0, fresh=False)


class RetryCounter:
    """Every method answers within the patience, whatever Redis does, and never raises because it is down.

    An empty ``url``: it is always down, and that is meant. ``on_change`` is called when it goes or comes back.
    """

    def __init__(
        self,
        url: str,
        *,
        patience: timedelta = PATIENCE,
        on_change: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._client = client_of(url, connections=_CONNECTIONS) if url else None
        self._shown = shown(url)
        self._patience_s = patience.total_seconds()
        self._on_change = on_change
        self._owed: dict[TicketId, _Debt] = {}
        self.is_up = self._client is not None  # it answered when last asked, or was not asked yet
        self._paying: Task[None] | None = None

    async def look(self, ids: Sequence[TicketId]) -> list[TicketStanding]:
        """Return the standing of each, in one question to Redis for all of them."""
        keys = [_COUNT + id for id in ids] + [_ENDED + id for id in ids]
        held = await self._asked(lambda redis: _answer(redis, "MGET", *keys)) if keys else []
        if held is None:
            debts = [self._owed.get(id, _NO_DEBT) for id in ids]
            return [TicketStanding(each.failures, each.ended_at) for each in debts]
        if not any(held):
            return [NOTHING] * len(ids)
        found = zip(held[: len(ids)], held[len(ids) :], strict=True)
        return [
            TicketStanding(_whole(count), buried or "") if count or buried else NOTHING
            for count, buried in found
        ]

    async def counted_up_to(self, parts: Sequence[Part]) -> list[int] | None:
        """The first record of each partition beyond all of which something is known; None: Redis does not say."""
        keys = [f"{_UP_TO}{topic}|{number}" for topic, number in parts]
        held = await self._asked(lambda redis: _answer(redis, "MGET", *keys)) if keys else []
        is_known = held is not None and all(each is None or each.isdecimal() for each in held)
        return [int(each or 0) for each in held or ()] if is_known else None

    async def failed(self, failures: Sequence[tuple[TicketId, int, str]]) -> list[int]:
        """Count one more failure of each, but never fewer than is said with it; return the new counts."""
        ids, least, places = zip(*failures, strict=True)
        raised = _up_to(places)
        keys = [*raised, *(_COUNT + id for id in ids)]
        asked = ("EVAL", _SCRIPT, len(keys), *keys, len(raised), TIME_TO_LIVE_S)
        told: list[int] | None = await self._asked(
            lambda redis: _answer(redis, *asked, *raised.values(), *least)
        )
        if told is not None:
            return told[len(raised) :]
        for id, at_least, place in failures:
            debt = self._owed.get(id, _NO_DEBT)
            self._owe(id, replace(debt, failures=max(debt.failures, at_least), place=place))
        return [*least]

    async def ended(self, places: Sequence[tuple[TicketId, str]]) -> None:
        """Forget their failures and remember that these records need nothing any more, all or nothing."""
        debts = [(id, _Debt(0, fresh=True, ended_at=place, place=place)) for id, place in places]
        if await self._asked(lambda redis: _written(redis, debts)) is None:
            for each in debts:
                self._owe(*each)

    async def keep_errors(self, errors: Sequence[tuple[TicketId, LastError]]) -> None:
        """Remember what each died of."""
        debts = [(id, _Debt(0, fresh=False, error=error)) for id, error in errors]
        if await self._asked(lambda redis: _written(redis, debts)) is None:
            for id, error in errors:
                self._owe(id, replace(self._owed.get(id, _NO_DEBT), error=error))

    async def kept_errors(self, ids: Sequence[TicketId]) -> list[LastError | None]:
        """Return the last error of each, in one question to Redis for all of them."""
        keys = [_ERROR + id for id in ids]
        held = await self._asked(lambda redis: _answer(redis, "MGET", *keys))
        if held is None:
            return [self._owed.get(id, _NO_DEBT).error for id in ids]
        return [_read_error(each) for each in held]

    async def forget(self, ids: Sequence[TicketId]) -> None:
        """Forget all that is known of these, for sure: unlike all others it waits, and raises `CountsAway`."""
        if self._client is None or not ids:
            return
        keys = [kind + id for id in ids for kind in (_COUNT, _ENDED, _ERROR)]
        try:
            await self._in_time(self._client.delete(*keys), _PAYING_PATIENCE_S)
        except (RedisError, OSError) as error:
            raise CountsAway(
                f"Redis at {self._shown} does not answer, and the failures of tickets are counted there: with "
                "an old count a ticket would go straight back. Start it, or correct tickets.redis"
            ) from error

    async def close(self) -> None:
        """Try once more to write what is owed, and part."""
        if self._paying is not None:
            self._paying.cancel()
            with suppress(CancelledError):
                await self._paying
        if self._client is None:
            return
        if self._owed:
            with suppress(RedisError, OSError):
                await self._in_time(self._pay(self._client), self._patience_s)
        await close(self._client)

    # --- asking ---

    async def _asked(self, ask: Callable[[Redis], Awaitable[_T]]) -> _T | None:
        """The answer, or None if there is none in time."""
        if self._client is None or not self.is_up:
            return None
        try:
            return await self._in_time(ask(self._client), self._patience_s)
        except (RedisError, OSError) as error:
            self._went_away(error)
            return None

    async def _in_time(self, answer: Awaitable[_T], seconds: float) -> _T:
        asking = asyncio.ensure_future(answer)
        asking.add_done_callback(_heard)
        loop = asyncio.get_running_loop()
        try:
            for _ in range(_ROUNDS):
                began = loop.time()
                await asyncio.wait({asking}, timeout=seconds)
                if asking.done():
                    return asking.result()
                if loop.time() < began + seconds + _LATE_S:
                    break  # Redis was slow, not a loop that was busy elsewhere
        finally:
            asking.cancel()
        raise TimeoutError("no answer in time")

    # --- debts ---

    def _owe(self, id: TicketId, debt: _Debt) -> None:
        if self._client is None:
            return
        self._owed.pop(id, None)
        self._owed[id] = debt
        if len(self._owed) > MOST_OWED:
            del self._owed[next(iter(self._owed))]
        self._start_paying()

    def _went_away(self, error: Exception) -> None:
        if self.is_up:
            self.is_up = False
            events.redis_away(self._shown, said_by(error))
            self._on_change(False)  # noqa: FBT003 - whether it is up
        self._start_paying()

    def _start_paying(self) -> None:
        if self._paying is None or self._paying.done():
            self._paying = asyncio.create_task(self._pay_until_back())

    async def _pay_until_back(self) -> None:
        assert self._client is not None  # noqa: S101 - debts are only made where there is a client
        pause = _FIRST_PAUSE_S
        while True:
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 - workers come back one by one
            try:
                await self._pay(self._client)
            except (RedisError, OSError):
                pause = min(2 * pause, _LONGEST_PAUSE_S)
                # Connections that lie idle may lead to where the server was, or to one that only reads.
                with suppress(RedisError, OSError):
                    gone = self._client.connection_pool.disconnect(inuse_connections=False)
                    await self._in_time(gone, _PAYING_PATIENCE_S)
            else:
                self.is_up = True
                events.redis_back(self._shown)
                self._on_change(True)  # noqa: FBT003 - whether it is up
                return

    async def _pay(self, redis: Redis) -> None:
        """Write all that is owed; what is owed anew meanwhile is another debt."""
        await self._in_time(redis.ping(), _PAYING_PATIENCE_S)
        while self._owed:
            some = list(islice(self._owed.items(), _PAID_AT_ONCE))
            await self._in_time(_written(redis, some), _PAYING_PATIENCE_S)
            for id, debt in some:
                if self._owed.get(id) is debt:
                    del self._owed[id]


async def _answer(redis: Redis, *asked: Any) -> Any:  # noqa: ANN401 - each command has its own
    """The answer to one command."""
    [told] = await _answers(redis, [asked])
    return told


async def _answers(redis: Redis, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Ask; packed by what reads the answers, for the client's own way costs three times as much as all the rest."""
    pool = redis.connection_pool
    connection = await pool.get_connection()  # type: ignore[no-untyped-call] # the library has no type here
    try:
        await connection.send_packed_command(b"".join(map(hiredis.pack_command, commands)))
        return [await connection.read_response() for _ in commands]
    except RedisError:
        if len(commands) > 1:  # there are answers to come
            await connection.disconnect(nowait=True)
        raise
    finally:
        await pool.release(connection)


async def _written(redis: Redis, debts: Sequence[tuple[TicketId, _Debt]]) -> Literal[True]:
    """Write them in one transaction; to do so twice changes nothing."""
    commands: list[tuple[Any, ...]] = [("MULTI",)]
    if raised := _up_to([debt.place for _, debt in debts if debt.place]):
        many = len(raised)
        commands.append(("EVAL", _SCRIPT, many, *raised, many, TIME_TO_LIVE_S, *raised.values()))
    for id, debt in debts:
        commands += _writes(id, debt)
    told = await _answers(redis, [*commands, ("EXEC",)])
    for each in told[-1]:
        if isinstance(each, RedisError):
            raise each
    return True


def _writes(id: TicketId, debt: _Debt) -> Iterator[tuple[Any, ...]]:
    count = _COUNT + id
    if debt.failures and debt.fresh:
        yield "SET", count, debt.failures, "EX", TIME_TO_LIVE_S
    elif debt.failures:
        yield "EVAL", _SCRIPT, 1, count, 1, TIME_TO_LIVE_S, debt.failures
    elif debt.fresh:
        yield "DEL", count, _ERROR + id
    if debt.error is not None:
        error = orjson.dumps(asdict(debt.error))
        yield "SET", _ERROR + id, error, "EX", TIME_TO_LIVE_S
    if debt.ended_at:
        yield "SET", _ENDED + id, debt.ended_at, "EX", TIME_TO_LIVE_S


def _up_to(places: Sequence[str]) -> dict[str, int]:
    """The keys of their partitions, each with the first record beyond these."""
    raised: dict[str, int] = {}
    for part, _, offset in (place.rpartition("|") for place in places):
        raised[_UP_TO + part] = max(raised.get(_UP_TO + part, 0), int(offset) + 1)
    return raised


def _heard(asking: Future[Any]) -> None:
    """Fetch the exception: the caller is gone, and nobody else looks at the result."""
    if not asking.cancelled():
        asking.exception()


def _read_error(said: str | None) -> LastError | None:
    """Parse a kept error; None for what others put there."""
    try:
        return LastError(**orjson.loads(said or ""))
    except (orjson.JSONDecodeError, TypeError):
        return None


def _whole(count: str | None) -> int:
    """A count as the script takes it: what others put there is none."""
    return int(count) if count and _A_COUNT.fullmatch(count) else 0
