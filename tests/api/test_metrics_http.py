"""Metrics over HTTP: access, and the labels of requests."""

from uuid import uuid4

import pytest

from carteiro.api.envelope import NO_ROUTE
from carteiro.app import Carteiro
from carteiro.observability.metrics import CONTENT_TYPE
from support.http import ADMIN_TOKEN, KEY_OF_ACME, a_client, sent
from support.scraping import Page


async def test_administrator_scrapes_metrics(post: Carteiro) -> None:
    """The page has the counters of this process and the figures of the store."""
    async with a_client(post) as client:
        await sent(client)
    async with a_client(post, key=ADMIN_TOKEN) as client:
        response = await client.get("/metrics")

    page = Page(response.text)
    assert (response.status_code, response.headers["Content-Type"]) == (200, CONTENT_TYPE)
    assert page("queue_depth", kind="email:send") == 1
    assert page("http_requests_total", method="POST", route="/v1/email/send", status="202") == 1


@pytest.mark.parametrize("key", [None, KEY_OF_ACME, "ck_nobody"])
async def test_only_administrators_scrape(post: Carteiro, key: str | None) -> None:
    """It names tenants; and behind a proxy every client looks local."""
    async with a_client(post, key=key, address="127.0.0.1") as client:
        response = await client.get("/metrics")

    assert response.status_code == 401
    assert "carteiro_" not in response.text


async def test_requests_are_counted_by_path_template(post: Carteiro) -> None:
    """Ids and made-up paths create no series."""
    async with a_client(post) as client:
        for _ in range(3):
            await client.get(f"/v1/emails/{uuid4()}")
            await client.get(f"/made/up/{uuid4()}")
        await client.request("BREW", "/v1/email/send")
        page = Page((await post.metrics.exposition()).decode())

    assert page("http_requests_total", method="GET", route="/v1/emails/{id}", status="404") == 3
    assert page("http_requests_total", method="GET", route=NO_ROUTE, status="404") == 3
    assert page.values("http_requests_total", "method").keys() == {"GET", "other"}
