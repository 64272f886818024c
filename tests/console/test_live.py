"""Live parts: one reader for all viewers, only while somebody watches, bounded, and no reason for a process to stay."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest
from starlette.requests import Request

from carteiro.api.networks import Networks
from carteiro.app import Carteiro
from carteiro.console.hub import (
    MOST_READERS,
    MOST_READERS_OF_ONE,
    MOST_VIEWERS_OF_ONE,
    Hub,
    Topic,
)
from carteiro.console.site import Console
from carteiro.console.visit import Visit
from carteiro.errors import StoreUnavailable
from carteiro.model import TenantId
from support.builders import ACME, BRASA, a_tenant
from support.console import Person, a_console, a_person, a_token
from support.http import ADMIN_TOKEN


class Looking:
    """The part of a visit that a hub needs."""

    def __init__(self, appearance: str = "en") -> None:
        self.appearance = appearance


class Source:
    """The thing that a topic reads, and how often it did."""

    def __init__(self) -> None:
        self.value: Any = 0
        self.reads = 0
        self.shown = 0
        self.tenants: set[TenantId | None] = set()

    async def read(self, tenant: TenantId | None) -> Any:
        self.reads += 1
        self.tenants.add(tenant)
        await asyncio.sleep(0)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value

    def show(self, snapshot: Any, visit: Any) -> str:
        self.shown += 1
        return f"{snapshot} {visit.appearance}"


def a_hub(source: Source, **options: Any) -> tuple[Hub, list[Topic]]:
    hub = Hub(every_s=0, **options)
    topic = Topic("audit", "GET /admin/v1/audit", source.read, source.show)
    hub.offer(topic)
    return hub, [topic]


async def next_news(news: AsyncIterator[tuple[str, str]]) -> str:
    """The next change, or the end."""
    async for _, html in news:
        if html:
            return html
    return "end"


async def test_one_reader_and_one_rendering_serve_all_that_see_the_same() -> None:
    """Two languages are two renderings; a tenant of its own is another reader."""
    source = Source()
    hub, topics = a_hub(source)
    visits = [cast("Visit", Looking(each)) for each in ("en", "en", "pt", "en")]
    news = [hub.watch(topics, None, each) for each in visits[:3]]
    news.append(hub.watch(topics, ACME, visits[3]))

    first = [await next_news(each) for each in news]
    source.value = 1
    then = [await next_news(each) for each in news]

    assert first == ["0 en", "0 en", "0 pt", "0 en"]
    assert then == ["1 en", "1 en", "1 pt", "1 en"]
    assert source.shown == 6
    assert hub.readers == 2
    assert source.tenants == {None, ACME}
    for each in news:
        await each.aclose()


async def test_nothing_is_read_while_nobody_watches() -> None:
    """The reader ends with the last viewer, and begins again with the next one."""
    source = Source()
    hub, topics = a_hub(source)
    for _ in range(2):
        news = hub.watch(topics, None, cast("Visit", Looking()))
        await next_news(news)
        await news.aclose()
        assert hub.readers == 0
        reads = source.reads
        for _ in range(10):
            await asyncio.sleep(0)
        assert source.reads == reads


async def test_failed_read_ends_nothing() -> None:
    """Pages keep what they show until the store is back, whatever has failed."""
    source = Source()
    hub, topics = a_hub(source)
    news = hub.watch(topics, None, cast("Visit", Looking()))
    await next_news(news)
    for failure in (StoreUnavailable("down"), ZeroDivisionError()):
        source.value = failure
        for _ in range(5):
            await asyncio.sleep(0)
    source.value = 7

    assert await next_news(news) == "7 en"
    await news.aclose()


async def test_slow_viewer_is_dropped() -> None:
    """It reads nothing for many ticks: its stream ends, and the browser opens another one."""
    source = Source()
    hub, topics = a_hub(source)
    news = hub.watch(topics, None, cast("Visit", Looking()))
    await next_news(news)
    reads = source.reads
    while source.reads < reads + 30:
        await asyncio.sleep(0)

    assert await next_news(news) == "end"
    assert hub.readers == 0


async def test_hub_is_bounded_and_closes() -> None:
    """Nobody else gets in; and all streams end at once."""
    hub, topics = a_hub(Source(), most_viewers=2)
    news = [hub.watch(topics, None, cast("Visit", Looking())) for _ in range(2)]
    for each in news:
        await next_news(each)
    assert hub.is_full(topics, None)
    hub.close()

    assert [await next_news(each) for each in news] == ["end", "end"]
    assert hub.readers == 0
    assert hub.is_full(topics, None)


async def test_things_have_topics_of_their_own_whose_readers_are_bounded() -> None:
    """Each thing has one reader for all that watch it; a new one is refused once there are many, a known one is not."""
    source = Source()
    hub = Hub(every_s=0)

    def make(about: str) -> Topic | None:
        if not about.isdigit():
            return None
        return Topic(f"thing:{about}", "GET /admin/v1/audit", source.read, source.show)

    hub.offer_each("thing", make)
    names = [*(f"thing:{number}" for number in range(MOST_READERS + 1)), "thing:0"]
    topics = [found for each in names if (found := hub.topic(each))]
    assert len(topics) == len(names)
    assert [hub.topic(each) for each in ("thing:x", "thing:", "thing", "other:1")] == [None] * 4

    visit = cast("Visit", Looking())
    news = [hub.watch([each], None, visit) for each in (*topics[:MOST_READERS], topics[-1])]
    for each in news:
        await next_news(each)
    assert hub.readers == MOST_READERS
    assert hub.is_full([topics[MOST_READERS]], None)
    assert hub.is_full([topics[0]], ACME)
    assert not hub.is_full([topics[0]], None)
    for each in news:
        await each.aclose()
    assert hub.readers == 0


async def test_viewers_of_one_tenant_leave_room_for_others() -> None:
    """Neither all places nor all readers are theirs, whatever they watch."""
    source = Source()
    hub = Hub(every_s=0)
    visit = cast("Visit", Looking())
    topics = [
        Topic(f"thing:{number}", "GET /admin/v1/audit", source.read, source.show)
        for number in range(MOST_READERS_OF_ONE + 1)
    ]
    news = [hub.watch([each], ACME, visit) for each in topics[:-1]]
    for each in news:
        await next_news(each)
    assert hub.is_full([topics[-1]], ACME)
    assert not hub.is_full([topics[0]], ACME)

    more = [hub.watch([topics[0]], ACME, visit) for _ in range(MOST_VIEWERS_OF_ONE - len(news))]
    for each in more:
        await next_news(each)
    assert hub.is_full([topics[0]], ACME)
    assert not hub.is_full([topics[-1]], BRASA)
    assert not hub.is_full([topics[-1]], None)
    for each in (*news, *more):
        await each.aclose()


async def test_slow_topic_is_read_at_some_ticks() -> None:
    """The first, and then each as often as it says; the others only tell its viewers that time goes on."""
    source = Source()
    hub = Hub(every_s=0)
    topic = Topic("audit", "GET /admin/v1/audit", source.read, source.show, every=3)
    news = hub.watch([topic], None, cast("Visit", Looking()))
    ticks = 0
    async for _, html in news:
        ticks += not html
        if ticks > 9:
            break
    assert 3 <= source.reads <= 5
    await news.aclose()


def test_viewers_cannot_choose_how_many_renderings_there_are() -> None:
    """The cookie of the zone may have any text; what counts is the zone that it names."""

    def appearance(zone: str) -> tuple[str, str]:
        scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/console/"}
        headers = [(b"cookie", f"carteiro_zone={zone}".encode())]
        request = Request(scope | {"query_string": b"", "headers": headers, "client": None})
        console = SimpleNamespace(proxies=Networks(()))
        return Visit(request, None, cast("Console", console)).appearance

    assert appearance("Nowhere/One") == appearance("Nowhere/Two") == appearance("")
    assert appearance("America/Sao_Paulo") != appearance("Europe/Lisbon")


# --- over a connection --------------------------------------------------------------------------


@asynccontextmanager
async def a_stream(person: Person, topic: str = "audit") -> AsyncIterator[AsyncIterator[str]]:
    """The data of the events of a topic."""

    async def data(answer: httpx.Response) -> AsyncIterator[str]:
        async for line in answer.aiter_lines():
            if line.startswith("data: ") and "<strong>" in line:
                yield line

    async with person.stream("GET", "live", params={"topic": topic}, timeout=30) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield data(answer)


async def test_page_gets_what_changes(post: Carteiro) -> None:
    """A tenant's own token gets the changes of its tenant alone."""
    await a_token(post.backend, "of acme", tenant=ACME)
    async with (
        a_console(post) as (address, _),
        Person.at(address) as admin,
        Person.at(address) as own,
    ):
        await admin.signed_in()
        await own.signed_in("ca_of acme")
        async with a_stream(admin) as all_news, a_stream(own) as own_news:
            assert "sign-in" in await anext(all_news)
            await post.backend.tenants.define([a_tenant(ACME, cap=1)])
            while "set" not in await anext(own_news):
                pass
            await post.backend.tenants.define([a_tenant(BRASA, paused=True)])
            while "pause" not in await anext(all_news):
                pass


async def test_stream_needs_the_right_and_a_topic(post: Carteiro) -> None:
    """As every page."""
    async with a_person(post) as person:
        assert (await person.get("live")).status_code == 404
        for topic in ("unknown", "redrive:x", "redrive:x\n\ndata: y", "overview:x"):
            assert (await person.get("live", params={"topic": topic})).status_code == 404
        many = {"topic": ["audit", *map(str, range(20))]}
        assert (await person.get("live", params=many)).status_code == 404
    async with a_person(post, None) as stranger:
        answer = await stranger.get(
            "live", params={"topic": "audit"}, headers={"Sec-Fetch-Dest": "empty"}
        )
        assert answer.status_code == 401


async def test_stream_ends_when_its_sign_in_does(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked up again every few seconds; here at every tick."""
    monkeypatch.setattr("carteiro.console.live._LOOKED_AT_S", 0)
    monkeypatch.setattr("carteiro.console.hub.EVERY_S", 0.01)
    token = await a_token(post.backend, "ana")
    async with a_console(post) as (address, _), Person.at(address) as ana:
        await ana.signed_in("ca_ana")
        async with a_stream(ana) as news:
            await anext(news)
            await post.backend.keys.revoke([token.id], tenant=None)
            assert [each async for each in news if "revoke" not in each] == []


async def test_server_stops_while_pages_are_open(post: Carteiro) -> None:
    """The streams end with it: it waits for none of them, and takes less than its grace of seconds."""
    async with a_console(post) as (address, console):
        person = await Person.at(address).signed_in(ADMIN_TOKEN)
        streams = [person.stream("GET", "live", params={"topic": "audit"}) for _ in range(3)]
        answers = [await each.__aenter__() for each in streams]
        lines = [each.aiter_lines() for each in answers]
        for each in lines:
            await anext(each)
        console.close()
        for each in lines:
            assert [line async for line in each if line.startswith("retry")] == []
        await person.aclose()
    assert console.hub.readers == 0
