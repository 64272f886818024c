"""The start page: what happened, for whom, and how a new installation sends its first mail."""

import asyncio
import re
from dataclasses import replace
from typing import cast

import pytest

from carteiro.app import Carteiro
from carteiro.console.overview import STEPS, Overviews
from carteiro.errors import QueueAway
from carteiro.model import MessageFilter, Role
from carteiro.ports import Backend, Rollups
from carteiro.views.kpis import SPANS, Range
from support.builders import ACME, BRASA, messages, sent
from support.burying import buried
from support.console import Person, a_console, a_person, a_token
from support.http import opened
from support.steps import accepted, attempted


class Counting:
    """Counts the questions to one port."""

    def __init__(self, port: object) -> None:
        self._port = port
        self.asked = 0

    def __getattr__(self, name: str) -> object:
        self.asked += 1
        return getattr(self._port, name)


async def folded(backend: Backend) -> None:
    """All figures are added up."""
    await backend.rollups.fold(limit=1000, most=1000)


@pytest.mark.parametrize("asked", list(Range))
def test_charts_have_a_bounded_number_of_points(asked: Range) -> None:
    """Each step is whole, and made of whole minutes or hours."""
    span, back = SPANS[asked]
    assert back % STEPS[asked] == back * 0
    assert 50 <= back / STEPS[asked] <= 150
    assert STEPS[asked].total_seconds() % {"minute": 60, "hour": 3600}[span] == 0


async def test_every_range_has_charts_and_key_figures(post: Carteiro) -> None:
    """With their goals; failures lead to their group, and a range that does not exist is refused."""
    for _ in range(3):
        await accepted(post.backend.store, *messages(1, ACME))
        await attempted(post.backend.store, sent())
    await buried(post.backend, BRASA)
    await folded(post.backend)
    async with a_person(post) as person:
        for each in Range:
            page = await person.page("", range=str(each))
            assert page.count('class="chart"') == 5
            assert f'data-live="overview:{each}"' in page
            assert '<p class="name">Accepted</p><p class="figure">4</p>' in page
            assert '<p class="name">Finally delivered</p><p class="figure">75 %</p>' in page
            assert "goal: above 98 %" in page
            assert "goal missed" in page
            assert "/console/dead-letters/groups/" in page
            assert "Send a first mail" not in page
        assert "should be one of 1h, 24h, 7d, 30d" in await person.page("", 422, range="2h")


async def test_tenants_token_sees_its_own_figures_alone(post: Carteiro) -> None:
    """Neither those of others, nor what is about all; a chosen tenant is not live, as the stream is of all."""
    await accepted(post.backend.store, *messages(3, ACME))
    await accepted(post.backend.store, *messages(2, BRASA))
    await folded(post.backend)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with (
        a_console(post) as (address, _),
        Person.at(address) as own,
        Person.at(address) as all_,
    ):
        await own.signed_in("ca_of acme")
        await all_.signed_in()
        page = await own.page()
        assert '<p class="figure">3</p>' in page
        assert page.count('class="chart"') == 3
        assert "Most waiting" not in page
        assert "Providers" not in re.sub("<nav.*?</nav>", "", page, flags=re.DOTALL)
        await own.page("", 404, tenant=BRASA)
        page = await all_.page("", tenant=BRASA)
        assert '<p class="figure">2</p>' in page
        assert "data-live" not in page
        page = await all_.page()
        assert '<p class="figure">5</p>' in page
        assert "3 waiting, 0 in flight" in page


async def test_one_reading_serves_all_pages(post: Carteiro) -> None:
    """However many look at once; another range, or another tenant, is another one."""
    lines = Counting(post.backend.rollups)
    backend = replace(post.backend, rollups=cast("Rollups", lines))
    overviews = Overviews(backend)

    await asyncio.gather(*(overviews.of(Range.HOUR, None) for _ in range(50)))
    assert lines.asked == 1
    await overviews.of(Range.DAY, None)
    await overviews.of(Range.HOUR, ACME)
    assert lines.asked == 3


async def test_live_part_is_rendered_for_viewers(post: Carteiro) -> None:
    """One topic a range; there is none of another."""
    async with a_console(post) as (_, console):
        topic = console.hub.topic("overview:24h")
        assert topic
        snapshot = await topic.read(None)
        assert await topic.read(None) == snapshot
        assert console.hub.topic("overview:2h") is None
        async with a_person(post) as person:
            stream = person.stream("GET", "live?topic=overview:1h")
            async with stream as answer:
                async for line in answer.aiter_lines():
                    if line.startswith("event:"):
                        assert line == "event: overview:1h"
                        break
            assert (await person.get("live?topic=overview:2h")).status_code == 404


@pytest.mark.parametrize("role", list(Role))
async def test_new_installation_sends_a_first_mail_to_the_sandbox(role: Role) -> None:
    """It says how; who may define tenants has a button, and afterwards the steps are gone."""
    async with opened("memory://") as post:
        await a_token(post.backend, "bia", role=role)
        async with a_person(post, "ca_bia") as person:
            page = await person.page()
            assert "/v1/email/send" in page
            assert "the sandbox: it keeps every mail" in page
            assert ("Send one to the sandbox" in page) == (role is Role.ADMIN)
            answer = await person.sent("first-mail")
            assert answer.status_code == (200 if role is Role.ADMIN else 403)
            rows = (await post.backend.reading.messages(MessageFilter())).rows
            assert len(rows) == (role is Role.ADMIN)
            assert ("Send a first mail" in await person.page()) == (role is not Role.ADMIN)


async def test_first_mail_is_never_a_real_one() -> None:
    """Where a provider sends over the network, the page says so, and the button is refused."""
    async with (
        opened("memory://", provider="smtp", smtp={"host": "127.0.0.1"}) as post,
        a_person(post) as person,
    ):
        page = await person.page()
        assert "the provider of this installation is smtp" in page
        assert "Send one to the sandbox" not in page
        answer = await person.sent("first-mail")
        assert answer.status_code == 409
        assert (await post.backend.reading.messages(MessageFilter())).rows == []


async def test_page_opens_while_the_queue_is_unreachable(
    post: Carteiro, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so; everything else is there."""

    async def standings(_: object, kind: str) -> list[object]:
        raise QueueAway(kind)

    monkeypatch.setattr(type(post.backend.tenants), "standings", standings)
    async with a_person(post) as person:
        assert "the queue is unreachable" in await person.page()
