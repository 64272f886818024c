"""The certificates that SNS signs with: each fetched once, however many messages name it at the same time.

Anybody can post a message that names a certificate, so forged names must cost little and delay nobody: one fetch a
name, few names at once, no queue behind them, and a missing certificate is not fetched again. Refused messages are
repeated: SNS repeats the same name, forgers need new ones, so the name with the most requests is fetched next.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from cryptography import x509

from carteiro.config.provider_spec import Fetch
from carteiro.errors import FeedbackRefused
from carteiro.runtime.fetching import NotThere

MOST_AT_ONCE = 4  # names that are being fetched
MOST_WAITERS = 100  # messages that wait for one of them
_MOST_KEPT = 16
_MOST_MISSING = 1000
_MOST_WANTED = 1000
_MISSING_FOR_S = 600.0

_AGAIN = "The certificate of SNS cannot be had: try again"
_NONE = "There is no such certificate at SNS"


class Certificates:
    """Certificates by where they are; where that is was judged before."""

    def __init__(self, fetch: Fetch, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._fetch = fetch
        self._clock = clock
        self._kept: OrderedDict[str, x509.Certificate] = OrderedDict()  # used last at the end
        self._missing: OrderedDict[str, float] = OrderedDict()  # until when it is not asked for
        self._fetching: dict[str, asyncio.Task[x509.Certificate]] = {}
        self._waiters: dict[str, int] = {}
        self._wanted: dict[str, int] = {}  # how often one was turned away who asked for it

    async def get(self, url: str) -> x509.Certificate:
        """The certificate; a `FeedbackRefused` if there is none, or it cannot be had now."""
        if (kept := self._kept.get(url)) is not None:
            self._kept.move_to_end(url)
            return kept
        if self._clock() < self._missing.get(url, -math.inf):
            raise FeedbackRefused(401, _NONE)
        return await self._fetched(url)

    async def _fetched(self, url: str) -> x509.Certificate:
        task = self._fetching.get(url)
        if task is None and len(self._fetching) >= MOST_AT_ONCE:
            self._wanted[url] = self._wanted.get(url, 0) + 1
            if len(self._wanted) > _MOST_WANTED:
                del self._wanted[min(self._wanted, key=self._wanted.__getitem__)]
            raise FeedbackRefused(503, _AGAIN)
        if self._waiters.get(url, 0) >= MOST_WAITERS:
            raise FeedbackRefused(503, _AGAIN)
        task = task or self._start(url)
        self._waiters[url] = self._waiters.get(url, 0) + 1
        try:
            # A caller that leaves does not cancel it for the others.
            return await asyncio.shield(task)
        except NotThere:
            raise FeedbackRefused(401, _NONE) from None
        except OSError:
            raise FeedbackRefused(503, _AGAIN) from None
        finally:
            self._waiters[url] -= 1
            if not self._waiters[url]:
                del self._waiters[url]

    def _start(self, url: str) -> "asyncio.Task[x509.Certificate]":
        self._wanted.pop(url, None)
        task = self._fetching[url] = asyncio.ensure_future(self._read(url))
        task.add_done_callback(lambda done: self._ended(url, done))
        return task

    async def _read(self, url: str) -> x509.Certificate:
        try:
            return x509.load_pem_x509_certificate(await self._fetch(url))
        except ValueError:
            raise NotThere("it is not a certificate") from None
        except HTTPException as error:
            raise OSError(str(error)) from None

    def _ended(self, url: str, done: "asyncio.Task[x509.Certificate]") -> None:
        del self._fetching[url]
        error = None if done.cancelled() else done.exception()
        if isinstance(error, NotThere):
            self._missing[url] = self._clock() + _MISSING_FOR_S
            _keep_few(self._missing, _MOST_MISSING)
        elif error is None and not done.cancelled():
            self._kept[url] = done.result()
            _keep_few(self._kept, _MOST_KEPT)
        # What was asked for most is next; once is what anybody asks for anything. Cancelled: all is about to end.
        most = max(self._wanted, key=self._wanted.__getitem__, default="")
        if self._wanted.get(most, 0) > 1 and not done.cancelled():
            self._start(most)


def _keep_few(found: OrderedDict[str, Any], most: int) -> None:
    while len(found) > most:
        found.popitem(last=False)
