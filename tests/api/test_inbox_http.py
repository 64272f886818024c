"""The sandbox's inbox over HTTP: a tenant's own, and any tenant's for administrators."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.model import MessageId
from carteiro.runtime.inbox_watch import MOST_OF_ALL, MOST_OF_ONE, InboxWatch
from support.builders import BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    a_client_of,
    an_email,
    answer_in,
    error_in,
    fields_in,
    sent,
)
from support.inbox import a_mail
from support.library import work
from support.serving import serving

OWN, OF_ACME = "/v1/inbox", "/admin/v1/tenants/acme/inbox"
KEY_OF = {OWN: KEY_OF_ACME, OF_ACME: ADMIN_TOKEN}
LONG = 60_000


async def items(client: httpx.AsyncClient, path: str = OWN, **query: Any) -> list[dict[str, Any]]:
    """Listed mails."""
    listed: list[dict[str, Any]] = answer_in(await client.get(path, params=query))["items"]
    return listed


async def until_waiting(watch: InboxWatch, number: int) -> None:
    """Let requests run until this many of them wait."""
    async with asyncio.timeout(60):
        while watch.waiting != number:
            await asyncio.sleep(0.001)


@asynccontextmanager
async def waiting_clients(
    post: Carteiro, key: str = KEY_OF_ACME
) -> AsyncIterator[tuple[FastAPI, InboxWatch, httpx.AsyncClient]]:
    """A client on a real socket, and those who wait."""
    api = create_api(post)
    watch: InboxWatch = api.state.inbox_watch
    async with serving(api, post, before_stop=watch.close) as port:
        limits = httpx.Limits(max_connections=200)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            headers={"X-API-Key": key},
            timeout=120,
            limits=limits,
        ) as client:
            yield api, watch, client


@pytest.mark.parametrize("path", [OWN, OF_ACME])
async def test_delivered_mail_is_listed_shown_and_deleted(post: Carteiro, path: str) -> None:
    """With all of its parts; the message stays."""
    file = {"filename": "a.txt", "contentType": "text/plain", "contentId": "a"}
    content = base64.b64encode(b"Bom dia").decode()
    fields: dict[str, Any] = {
        "cc": ["bia@example.com"],
        "bcc": ["eva@example.com"],
        "replyTo": "reply@example.com",
        "headers": {"X-Campaign": "a"},
        "text": "Olá",
        "attachments": [file | {"content": content}],
    }
    async with a_client(post) as client:
        answer = await client.post("/v1/email/send", json=an_email(**fields))
        accepted = answer_in(answer, 202)
        await work(post)
    identity = accepted["outboxId"]
    async with a_client(post, key=KEY_OF[path]) as client:
        [listed] = await items(client, path)
        shown = answer_in(await client.get(f"{path}/{identity}"))
        gone = await client.delete(f"{path}/{identity}")
        again = await client.delete(f"{path}/{identity}")
        missing = await client.get(f"{path}/{identity}")

        assert (gone.status_code, gone.content) == (204, b"")
        error_in(again, 404, "NOT_FOUND")
        error_in(missing, 404, "NOT_FOUND")
        assert await items(client, path) == []
    summary = {
        "outboxId": identity,
        "companyId": "acme",
        "to": "ana@example.com",
        "subject": "Bom dia",
        "providerId": f"sandbox-{identity}-1",
        "at": listed["at"],
    }
    assert listed == summary
    assert shown == summary | {
        "from": None,
        "html": "<p>Olá</p>",
        **fields,
        "attachments": [file | {"content": content, "size": 7}],
        "deliveries": 1,
    }
    assert await post.backend.reading.message(MessageId(identity)) is not None


@pytest.mark.parametrize("path", [OWN, OF_ACME])
async def test_list_is_filtered_paged_and_emptied(post: Carteiro, path: str) -> None:
    """By address, subject, message and time; never another tenant's."""
    mails = [a_mail(subject=f"Pedido {number}") for number in range(3)]
    other = a_mail(tenant=BRASA)
    await post.backend.inbox.keep([*mails, other])
    async with a_client(post, key=KEY_OF[path]) as client:
        first = answer_in(await client.get(path, params={"limit": 2}))
        rest = answer_in(await client.get(path, params={"limit": 2, "cursor": first["nextCursor"]}))
        assert len(first["items"]) == 2
        assert rest["nextCursor"] is None
        got = {each["outboxId"] for each in first["items"] + rest["items"]}
        assert got == {each.message for each in mails}

        for number, query in (
            (3, {"to": "ANA@example.com"}),
            (1, {"subject": "pedido 1"}),
            (1, {"outboxId": mails[2].message}),
            (0, {"outboxId": other.message}),
            (0, {"since": (datetime.now(UTC) + timedelta(days=1)).isoformat()}),
            (3, {"since": (datetime.now(UTC) - timedelta(days=1)).isoformat(), "waitMs": 1000}),
        ):
            assert len(await items(client, path, **query)) == number, query
        assert answer_in(await client.delete(path)) == {"count": 3, "hasMore": False}
        assert answer_in(await client.delete(path)) == {"count": 0, "hasMore": False}
    async with a_client(post, key=KEY_OF_BRASA) as client:
        assert len(await items(client)) == 1
        error_in(await client.get(f"{OWN}/{mails[0].message}"), 404, "NOT_FOUND")


async def test_bad_questions_are_refused(post: Carteiro) -> None:
    """With the name of the field."""
    async with a_client(post) as client:
        for field, query in (
            ("waitMs", {"waitMs": "60001"}),
            ("waitMs", {"waitMs": "-1"}),
            ("waitMs", {"waitMs": "1", "cursor": "x"}),
            ("cursor", {"cursor": "x"}),
            ("since", {"since": "yesterday"}),
            ("to", {"to": "a" * 321}),
            ("from", {"from": "a@example.com"}),
        ):
            answer = await client.get(OWN, params=query)
            assert fields_in(error_in(answer, 422, "INVALID_VALUE")) == [field]


async def test_request_waits_for_its_mail(post: Carteiro) -> None:
    """Answered with the first match; a mail that was there already is an answer at once; none is an empty page."""
    async with waiting_clients(post) as (_, watch, client):
        waiting = asyncio.create_task(
            client.get(OWN, params={"to": "ana@example.com", "waitMs": LONG})
        )
        await until_waiting(watch, 1)
        other = await sent(client, to="bia@example.com")
        mine = await sent(client)
        await work(post)
        page = answer_in(await waiting)
        assert [each["outboxId"] for each in page["items"]] == [mine["outboxId"]]

        at_once = await items(client, outboxId=other["outboxId"], waitMs=LONG)
        assert [each["to"] for each in at_once] == ["bia@example.com"]
        assert await items(client, to="nobody@example.com", waitMs=1) == []
        assert watch.waiting == 0


async def test_number_of_waiting_requests_is_limited(post: Carteiro) -> None:
    """For each tenant, and for all; others of the tenant still read and send; a client that left does not count."""
    api = create_api(post)
    watch: InboxWatch = api.state.inbox_watch
    async with a_client_of(api) as client:
        question: dict[str, str | int] = {"waitMs": LONG, "to": "nobody@example.com"}
        waiting = [
            asyncio.create_task(client.get(OWN, params=question)) for _ in range(MOST_OF_ONE)
        ]
        await until_waiting(watch, MOST_OF_ONE)
        refused = await client.get(OWN, params=question)
        assert error_in(refused, 429, "TOO_MANY_REQUESTS")
        assert refused.headers["Retry-After"] == "1"
        assert await items(client) == []
        await sent(client)
        assert not watch.is_full_for(BRASA)
        watch.close()
        for each in waiting:
            assert answer_in(await each)["items"] == []
        assert watch.waiting == 0
    assert MOST_OF_ONE < MOST_OF_ALL


async def test_client_that_left_waits_no_more(post: Carteiro) -> None:
    """Its place is free again."""
    async with waiting_clients(post) as (_, watch, client):
        async with asyncio.timeout(60):
            waiting = asyncio.create_task(client.get(OWN, params={"waitMs": LONG}))
            await until_waiting(watch, 1)
            waiting.cancel()
            await until_waiting(watch, 0)


async def test_stop_ends_all_waits(post: Carteiro) -> None:
    """Answered with an empty page, also of later requests."""
    async with waiting_clients(post) as (_, watch, client):
        waiting = asyncio.create_task(client.get(OWN, params={"waitMs": LONG}))
        await until_waiting(watch, 1)
        watch.close()
        assert answer_in(await waiting)["items"] == []
        assert await items(client, waitMs=LONG) == []


async def test_mail_that_was_never_an_email_is_not_found(post: Carteiro) -> None:
    """The inbox keeps what it is given."""
    mail = a_mail(content="{}")
    await post.backend.inbox.keep([mail])
    async with a_client(post) as client:
        error_in(await client.get(f"{OWN}/{mail.message}"), 404, "NOT_FOUND")
        assert len(await items(client)) == 1


async def test_administrator_has_to_name_a_known_tenant(post: Carteiro) -> None:
    """An unknown one is not found, and nobody can wait for it."""
    async with a_client(post, key=ADMIN_TOKEN) as client:
        answer = await client.get("/admin/v1/tenants/nobody/inbox", params={"waitMs": LONG})
        error_in(answer, 404, "NOT_FOUND")
