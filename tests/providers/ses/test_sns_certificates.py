"""Certificates of SNS: each is fetched once, and a forged name costs little."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest

from carteiro.errors import FeedbackRefused
from carteiro.providers.ses.sns_certificates import MOST_AT_ONCE, MOST_WAITERS, Certificates
from carteiro.runtime.fetching import NotThere
from support.clock import StoreClock
from support.sns import CERTIFICATE_URL, SnsTwin

FORGED = CERTIFICATE_URL.replace("-1", "-2")


class Place:
    """The source of certificates; slow until the test opens it."""

    def __init__(self) -> None:
        self.sns = SnsTwin()
        self.is_open = asyncio.Event()
        self.most, self._now = 0, 0

    async def fetch(self, url: str) -> bytes:
        """The certificate, when the source is open."""
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await self.is_open.wait()
            return await self.sns.fetch(url)
        finally:
            self._now -= 1


async def refused(certificates: Certificates, url: str) -> int:
    """The status of its refusal."""
    with pytest.raises(FeedbackRefused) as refusal:
        await certificates.get(url)
    return refusal.value.status


async def test_concurrent_requests_share_one_fetch() -> None:
    """A cancelled one leaves it to the others; later there is no fetch at all."""
    place = Place()
    certificates = Certificates(place.fetch)
    asked = [asyncio.create_task(certificates.get(CERTIFICATE_URL)) for _ in range(50)]
    await asyncio.sleep(0)
    asked[0].cancel()
    place.is_open.set()
    first, *others = await asyncio.gather(*asked, return_exceptions=True)

    assert isinstance(first, asyncio.CancelledError)
    assert others == [await certificates.get(CERTIFICATE_URL)] * 49
    assert place.sns.fetched == [CERTIFICATE_URL]


async def test_requests_do_not_queue_up() -> None:
    """Few names at once, and few waiters for one: the rest is refused at once for a retry."""
    place = Place()
    certificates = Certificates(place.fetch)
    names = [f"{FORGED}?{n}" for n in range(MOST_AT_ONCE)]
    asked = [names[0]] * MOST_WAITERS + names[1:]
    waiting = [asyncio.create_task(certificates.get(name)) for name in asked]
    for _ in range(3):
        await asyncio.sleep(0)

    assert await refused(certificates, CERTIFICATE_URL) == 503
    assert await refused(certificates, names[0]) == 503
    place.is_open.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (await certificates.get(CERTIFICATE_URL)).version.name == "v3"
    assert place.most == MOST_AT_ONCE


async def test_repeated_names_come_before_new_ones() -> None:
    """With any number of forged names: SNS repeats itself, and finds its certificate."""
    sns, ended = SnsTwin(), asyncio.Semaphore(0)

    async def fetch(url: str) -> bytes:
        await ended.acquire()
        return await sns.fetch(url)

    certificates = Certificates(fetch)
    forged = [f"{FORGED}?{n}" for n in range(2000)]
    busy = [asyncio.create_task(certificates.get(url)) for url in forged[:MOST_AT_ONCE]]
    await asyncio.sleep(0)
    before, after = forged[MOST_AT_ONCE:500], forged[500:]
    asked = [*before, CERTIFICATE_URL, CERTIFICATE_URL, *after]
    statuses = {await refused(certificates, url) for url in asked}
    ended.release()
    await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
    flood = [asyncio.create_task(certificates.get(f"{FORGED}?new-{n}")) for n in range(10)]
    genuine = asyncio.create_task(certificates.get(CERTIFICATE_URL))
    for _ in range(MOST_AT_ONCE):
        ended.release()
    await asyncio.gather(*busy, *flood, return_exceptions=True)

    assert statuses == {503}
    assert (await genuine).version.name == "v3"


async def test_missing_certificate_is_not_fetched_again_for_a_while() -> None:
    """Nor a document that is not a certificate; after a while it is."""
    clock, asked = StoreClock(), []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        if url == FORGED:
            raise NotThere
        return b"no certificate"

    certificates = Certificates(fetch, clock=_seconds(clock))
    statuses = [await refused(certificates, url) for url in (FORGED, CERTIFICATE_URL) * 3]
    clock.advance(timedelta(minutes=10))
    await refused(certificates, FORGED)

    assert statuses == [401] * 6
    assert asked == [FORGED, CERTIFICATE_URL, FORGED]


async def test_temporarily_unavailable_certificate_is_fetched_again_at_once() -> None:
    """The network's fault is not the name's."""
    place = Place()
    place.is_open.set()
    certificates = Certificates(place.fetch)
    place.sns.is_away = True
    away = await refused(certificates, CERTIFICATE_URL)
    place.sns.is_away = False

    assert away == 503
    assert await certificates.get(CERTIFICATE_URL)


async def test_remembered_missing_names_are_bounded() -> None:
    """The first are forgotten, and fetched again."""
    asked: list[str] = []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        raise NotThere

    certificates = Certificates(fetch)
    for n in range(1001):
        await refused(certificates, f"{FORGED}?{n}")
    for n in (1, 0):
        await refused(certificates, f"{FORGED}?{n}")

    assert asked[1001:] == [f"{FORGED}?0"]


async def test_most_recently_used_certificates_are_kept() -> None:
    """Other valid names could be used to push them out."""
    sns, asked = SnsTwin(), []

    async def fetch(url: str) -> bytes:
        asked.append(url)
        return await sns.fetch(CERTIFICATE_URL)

    certificates = Certificates(fetch)
    for n in range(40):
        await certificates.get(f"{FORGED}?{n}")
        await certificates.get(CERTIFICATE_URL)

    assert asked.count(CERTIFICATE_URL) == 1


def _seconds(clock: StoreClock) -> Callable[[], float]:
    return lambda: clock() / 1000
