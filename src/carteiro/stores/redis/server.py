"""One Redis or Valkey server: scripts, timeouts, and a circuit breaker that closes by itself.

While the server is unreachable no operation waits for it: each fails at once until the pause is over, then the next one
tries. Every new connection reads the server's run id: a restarted or different server is not the same queue.
"""

import hashlib
import re
import time
from asyncio import Lock, timeout
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import orjson
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as TooSlow

from carteiro.errors import ConfigError, QueueAway, StoreError, TextUnfit
from carteiro.observability import log
from carteiro.policy.masking import place_of, without_quoted
from carteiro.stores.redis.link import Link
from carteiro.stores.redis.options import RedisOptions

Argument: TypeAlias = str | int | list[Any]
# One slot for all keys, with the index of dead letters under its own name.
PREFIX = "{email:send:dlq}"
CHECK_WHO = "check user and password"
_SENTINEL = "redis+sentinel"
_SENTINEL_PATIENCE_S = 0.5
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0
_PATIENCE = timedelta(seconds=1)  # a busy event loop must not look like an unreachable server
_AWAY = (NotConnected, TooSlow, BusyLoadingError, ReadOnlyError, OSError, TimeoutError)
_LISTENING = (
    2  # connections of the pool: one listens, and another for a moment when that is made anew
)
# The server is reachable but cannot write: its disk is full, its replicas are gone, or another script runs.
_CANNOT_WRITE = ("MISCONF", "NOREPLICAS", "BUSY")


class Script(NamedTuple):
    """The script of an operation, and its name on the server."""

    text: str
    sha: str


@cache
def script(operation: str) -> Script:
    """The script of one operation: the shared part follows its first line, which the server parses."""
    folder = files("carteiro.stores.redis") / "lua"
    first, _, rest = (folder / f"{operation}.lua").read_text(encoding="utf-8").partition("\n")
    shared = (folder / "shared.lua").read_text(encoding="utf-8")
    text = f"{first}\n{shared}\n{rest}"
    return Script(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


class Server:
    """Runs operations. Belongs to the event loop that uses it."""

    def __init__(self, url: str, options: RedisOptions) -> None:
        self._options = options
        self._shown = shown(url)
        self.client = client_of(url, connections=_LISTENING, greeting=self._greet)
        self._link: Link | None = None
        self._linking = Lock()
        self.run_id = ""
        self.outages = 0
        self._patience = max(options.patience, _PATIENCE)
        self._pause_s = 0.0
        self._away_until = 0.0
        self._is_full = False

    @property
    def now(self) -> int | str:
        """The time passed to scripts: none, unless a clock was given."""
        clock = self._options.clock
        return "" if clock is None else clock()

    async def run(
        self, operation: str, *arguments: Argument, patience: timedelta | None = None
    ) -> Any:  # noqa: ANN401 - whatever the script answers
        """Run the script of an operation; `QueueAway` if the server is unreachable, slow or full.

        A list is one argument, as JSON: the client takes 12 calls for each argument.
        """
        left = self._away_until - time.monotonic()
        if left > 0:
            raise QueueAway(f"The queue at {self._shown} is unreachable; next try in {left:.1f} s")
        try:
            async with timeout((patience or self._patience).total_seconds()):
                told = [orjson.dumps(e) if isinstance(e, list) else e for e in arguments]
                answer = await self._ask(script(operation), told)
        except OutOfMemoryError as error:
            raise self._is_out_of_room() from error
        except _AWAY as error:
            raise self._went_away(error) from error
        except (UnicodeEncodeError, orjson.JSONEncodeError) as error:
            raise TextUnfit(error) from error
        except ResponseError as error:
            if str(error).startswith(_CANNOT_WRITE):
                raise self._went_away(error) from error
            raise StoreError(f"The queue at {self._shown} refused it: {error}") from error
        if self._pause_s:
            self._pause_s = 0.0
            log.queue_back(self._shown)
        if operation == "put":
            self._is_full = False
        return answer

    async def know(self) -> str:
        """The identity of the server."""
        if not self.run_id:
            await self.run("know")
        return self.run_id

    async def close(self) -> None:
        """Close every connection."""
        self._unlink()
        await close(self.client)

    async def _ask(self, asked: Script, arguments: list[str | int | bytes]) -> Any:  # noqa: ANN401
        """Nothing is awaited before the request is written, if there is a link: requests keep their order."""
        link = self._link
        if link is None or not link.is_open:
            link = await self._linked()
        if asked.sha in link.known:
            try:
                return await link.ask("EVALSHA", asked.sha, 1, PREFIX, *arguments)
            except NoScriptError:  # somebody has flushed them
                pass
        link.known.add(asked.sha)
        return await link.ask("EVAL", asked.text, 1, PREFIX, *arguments)

    async def _linked(self) -> Link:
        async with self._linking:
            if self._link is None or not self._link.is_open:
                connection = self.client.connection_pool.make_connection()  # type: ignore[no-untyped-call] # as below
                try:
                    await connection.connect()
                except BaseException:
                    await connection.disconnect(nowait=True)
                    raise
                self._link = Link(connection)
            return self._link

    def _unlink(self) -> None:
        """The next operation connects anew; those that wait still get their answers."""
        if self._link is not None:
            self._link.leave()
            self._link = None

    async def _greet(self, connection: Any) -> None:  # noqa: ANN401 - of any kind of server
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        told = str(await connection.read_response())
        self.run_id = told.partition("run_id:")[2].partition("\n")[0].strip()

    def _went_away(self, error: Exception) -> QueueAway:
        self.outages += 1
        self._unlink()
        self._pause_s = min(max(2 * self._pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
        self._away_until = time.monotonic() + self._pause_s
        why = said_by(error)
        log.queue_away(self._shown, why, wait=timedelta(seconds=self._pause_s))
        if isinstance(error, AuthenticationError):
            return QueueAway(f"The queue at {self._shown} does not let us in: {CHECK_WHO} ({why})")
        return QueueAway(f"The queue at {self._shown} is unreachable: {why}")

    def _is_out_of_room(self) -> QueueAway:
        self.outages += 1
        text = f"The queue at {self._shown} is full: raise its maxmemory; messages accepted until then are queued later"
        if not self._is_full:
            self._is_full = True
            log.queue_away(self._shown, text, wait=timedelta(0))
        return QueueAway(text)


def client_of(url: str, *, connections: int, greeting: Any = None) -> Redis:  # noqa: ANN401
    """A client without retries of its own; ``greeting`` is called with each new connection.

    The caller limits the wait. With a timeout of its own the client would send under `asyncio.wait_for`, which until
    Python 3.12 ignores a cancellation that comes when everything is just sent.
    """
    asked: dict[str, Any] = {
        "decode_responses": True,
        "encoding_errors": "replace",  # others may have stored any bytes there
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),  # the circuit breaker decides when to try again
        "redis_connect_func": greeting,
        "socket_connect_timeout": 2,
        "socket_timeout": None,
    }
    parts = urlsplit(url)
    try:
        if parts.scheme == _SENTINEL:
            client = _by_sentinels(url, asked)
        else:
            pool = BlockingConnectionPool.from_url(
                url.replace("valkey", "redis", 1) if parts.scheme.startswith("valkey") else url,
                max_connections=connections,
                timeout=None,
                **asked,
            )
            client = Redis(connection_pool=pool)
        made = client.connection_pool
        # It parses its parameters, and does not connect yet.
        made.connection_class(**made.connection_kwargs)
    except (ValueError, TypeError, RedisError) as error:
        said = _wrong_with(error)
        raise ConfigError(f"{shown(url)} is not an address of a Redis server: {said}") from None
    return client


def _wrong_with(error: Exception) -> str:
    unknown = _UNKNOWN.search(str(error)) if isinstance(error, TypeError) else None
    return f"there is no parameter {unknown[1]}" if unknown else without_quoted(str(error))


def said_by(error: BaseException) -> str:
    """The client's error text, without its internals."""
    return str(error).partition(" : <")[0] or "no answer in time"


async def close(client: Redis) -> None:
    """Close every connection, to sentinels too."""
    await client.aclose()
    await client.connection_pool.disconnect()
    guards = getattr(client.connection_pool, "sentinel_manager", None)
    for sentinel in guards.sentinels if guards is not None else ():
        await sentinel.aclose()


_UNKNOWN = re.compile(r"unexpected keyword argument '(\w{1,40})'")


def _by_sentinels(url: str, asked: dict[str, Any]) -> Redis:
    """The server that sentinels name: redis+sentinel://[user:password@]host:port[,host:port]/service[/database]."""
    parts = urlsplit(url)
    credentials, _, places = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ConfigError(f"{shown(url)} must end in the name of the service: …/service")
    sentinels = [_place(each) for each in places.split(",")]
    user, _, password = credentials.partition(":")
    told = {"password": unquote(password) or None, "username": unquote(user) or None}
    asked |= {"db": int(database or 0)} | told
    guards = {name: values[0] for name, values in parse_qs(parts.query).items()}
    sentinel = Sentinel(  # type: ignore[no-untyped-call] # the library has no types here
        sentinels,
        sentinel_kwargs={"socket_timeout": None, **guards},
        **asked,
    )
    for each in sentinel.sentinels:
        each.sentinel_masters = _in_time(each.sentinel_masters)  # type: ignore[method-assign] # as above
    client: Redis = sentinel.master_for(service)
    return client


def _in_time(ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Skip a silent sentinel, and ask the next one."""

    async def asked(*arguments: object, **named: object) -> Any:  # noqa: ANN401 - whatever it answers
        try:
            async with timeout(_SENTINEL_PATIENCE_S):
                return await ask(*arguments, **named)
        except TimeoutError as error:
            raise TooSlow("no answer in time") from error

    return asked


def _place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return (host, int(port)) if host else (text, 26379)


def shown(url: str) -> str:
    """The address without secrets."""
    return f"{url.partition('://')[0]}://{place_of(url)}"
