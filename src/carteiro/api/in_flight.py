"""Load of each caller in this process: requests in flight, and bytes of their bodies."""

import asyncio
import time
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from starlette.types import Scope

from carteiro.api.networks import Address
from carteiro.api.refusal import too_busy, too_fast
from carteiro.model import TenantId

Who = TypeVar("Who", bound=Hashable)

MOST_READS = 4  # of one tenant at once: a store has ten connections, which all tenants share
MOST_WRITES = 2  # the same; most of them wait for a lock on the tenant, one after another
SHARE = "carteiro.share"  # key of a request's `Share` in its scope
_WINDOW_S = 60.0
_MOST_REMEMBERED = 10_000
_BYTES_PER_PART = 64  # an empty object, or a short text in a list


class _Held:
    """The load of one caller."""

    __slots__ = ("bytes", "reads", "requests", "writes")

    def __init__(self) -> None:
        self.requests = 0
        self.bytes = 0
        self.reads = asyncio.Semaphore(MOST_READS)
        self.writes = asyncio.Semaphore(MOST_WRITES)


class InFlight:
    """Callers with requests in flight, each with the same limits; ``most_together``: bytes of all of them."""

    def __init__(
        self, *, most_requests: int, most_bytes: int, most_together: int | None = None
    ) -> None:
        self.most_requests = most_requests
        self.most_bytes = most_bytes
        self.most_together = most_together
        self.together = _Held()
        self.held: dict[TenantId | Address | None, _Held] = {}

    def begin(self, scope: Scope, caller: TenantId | Address | None) -> None:
        """Count the request for this caller until `end`; a `Refusal` if it has too many. None: administrators."""
        if SHARE in scope:
            return
        held = self.held.get(caller) or self._new(caller)
        if held.requests >= self.most_requests:
            raise too_busy(f"At most {self.most_requests} requests may be in flight at once")
        held.requests += 1
        scope[SHARE] = Share(held, self)

    def _new(self, caller: TenantId | Address | None) -> _Held:
        if len(self.held) >= _MOST_REMEMBERED:
            self.held = {each: held for each, held in self.held.items() if held.requests}
        held = self.held[caller] = _Held()
        return held


class Share:
    """The share of one request."""

    __slots__ = ("_bytes", "_held", "_of", "_turns")

    def __init__(self, held: _Held, of: InFlight) -> None:
        self._held = held
        self._of = of
        self._bytes = 0
        self._turns: asyncio.Semaphore | None = None

    def take(self, size: int) -> None:
        """Take this many bytes more; a `Refusal` if the caller, or all together, have too many."""
        most, together = self._of.most_bytes, self._of.together
        if self._held.bytes + size > most:
            raise too_busy(f"At most {most} bytes of requests may be in flight at once")
        all_most = self._of.most_together
        if all_most is not None and together.bytes + size > all_most:
            raise too_busy("Other callers have too many bytes of requests in flight")
        self._held.bytes += size
        together.bytes += size
        self._bytes += size

    def take_parsed(self, body: bytes) -> None:
        """Take the memory of parsed JSON, texts included; at most what is left to the caller."""
        parts = body.count(b"{") + body.count(b"[") + body.count(b",")
        self.take(min(parts * _BYTES_PER_PART, self._of.most_bytes - self._bytes))

    async def read(self) -> None:
        """Wait until fewer than `MOST_READS` of the caller's requests read; then count as one until `end`."""
        await self._take_turn(self._held.reads)

    async def write(self) -> None:
        """The same for `MOST_WRITES`, except for accepted e-mails, which are written together."""
        await self._take_turn(self._held.writes)

    async def _take_turn(self, turns: asyncio.Semaphore) -> None:
        if self._turns is None:
            await turns.acquire()
            self._turns = turns

    def end_turn(self) -> None:
        """Let another request read or write; this one may `write` again."""
        if self._turns is not None:
            self._turns.release()
            self._turns = None

    def end(self) -> None:
        """Return everything."""
        self.end_turn()
        self._held.requests -= 1
        self._held.bytes -= self._bytes
        self._of.together.bytes -= self._bytes


class PerMinute(Generic[Who]):
    """A limit for each caller in 60 s, in this process; 0: no limit."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._windows: dict[Who, tuple[float, int]] = {}

    def count(self, who: Who, what: str, number: int = 1) -> None:
        """Count this many more; a `Refusal` if the limit is reached already."""
        if not self._most:
            return
        now = self._clock()
        since, count = self._windows.get(who, (now, 0))
        if now - since >= _WINDOW_S:
            since, count = now, 0
        if count >= self._most:
            wait = timedelta(seconds=since + _WINDOW_S - now)
            raise too_fast(f"{self._most} {what} a minute", wait)
        if len(self._windows) >= _MOST_REMEMBERED:
            # Expired windows are forgotten, or all if that frees little: callers can choose their addresses.
            kept = {each: one for each, one in self._windows.items() if now - one[0] < _WINDOW_S}
            self._windows = kept if len(kept) < _MOST_REMEMBERED // 2 else {}
        self._windows[who] = (since, count + number)

    def uncount(self, who: Who) -> None:
        """Count one less: it was counted by mistake."""
        since, count = self._windows.get(who, (0.0, 0))
        if count:
            self._windows[who] = (since, count - 1)
