"""Idempotency keys over HTTP: a repeated request is executed once."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from carteiro.app import Carteiro
from carteiro.model import Tenant
from support.builders import ACME
from support.http import (
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    an_email,
    answer_in,
    error_in,
    fields_in,
    sent,
    stored,
)
from support.serving import served

KEY = {"Idempotency-Key": "pedido-42"}


async def test_same_key_and_email_get_the_first_answer(post: Carteiro) -> None:
    """JSON formatting and request id do not matter; the answer is marked as a replay."""
    recipient = {"externalId": "ana", "email": "ana@example.com"}
    spaced = json.dumps(an_email(recipient=recipient), indent=4, sort_keys=True)

    async with a_client(post) as client:
        first, again = [
            await client.post(
                "/v1/email/send",
                content=content,
                headers=KEY | {"Content-Type": "application/json"},
            )
            for content in (json.dumps(an_email(recipient=recipient)), spaced)
        ]

    assert answer_in(again, 202) == answer_in(first, 202)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert await stored(post) == 1


async def test_same_key_for_another_email_is_409(post: Carteiro) -> None:
    """The first one stands; the second stores nothing."""
    async with a_client(post) as client:
        await sent(client, headers=KEY)
        response = await client.post(
            "/v1/email/send", json=an_email(subject="Boa noite"), headers=KEY
        )

    error_in(response, 409, "CONFLICT")
    assert await stored(post) == 1


async def test_key_belongs_to_its_tenant(post: Carteiro) -> None:
    """Two tenants may use the same key."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        first, second = await sent(client, headers=KEY), await sent(other, headers=KEY)

    assert first["outboxId"] != second["outboxId"]


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"a\tb", b"a\x7fb", "é".encode()])
async def test_invalid_key_is_422(post: Carteiro, given: bytes) -> None:
    """Too long, empty or not printable: the header is named."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", json=an_email(), headers={b"Idempotency-Key": given}
        )

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["Idempotency-Key"]
    assert await stored(post) == 0


async def test_external_id_is_a_key_where_the_tenant_wants_it(post: Carteiro) -> None:
    """Off by default; on, the same externalId is the same request."""
    async with a_client(post) as client:
        await sent(client, externalId="nf-1")
        await sent(client, externalId="nf-1")
        usual = await stored(post)
    await post.backend.tenants.define([Tenant(ACME, external_id_is_key=True)])
    async with a_client(post) as client:
        first = await sent(client, externalId="nf-2")
        again = await sent(client, externalId="nf-2")

    assert (usual, await stored(post)) == (2, 3)
    assert first == again


async def test_accepted_email_is_replayed_after_its_from_was_revoked(post: Carteiro) -> None:
    """By its own key or its externalId; without one it is refused as a new one."""
    from_acme: dict[str, Any] = {"from": "post@acme.example"}
    await post.backend.tenants.define([Tenant(ACME, external_id_is_key=True)])
    async with a_client(post) as client:
        first = await sent(client, headers=KEY, **from_acme)
        second = await sent(client, externalId="nf-1", **from_acme)
    await post.backend.tenants.define(
        [Tenant(ACME, external_id_is_key=True, from_domains=("brasa.example",))]
    )

    async with a_client(post) as client:
        assert await sent(client, headers=KEY, **from_acme) == first
        assert await sent(client, externalId="nf-1", **from_acme) == second
        refused = await client.post("/v1/email/send", json=an_email(**from_acme))

    assert fields_in(error_in(refused, 422, "INVALID_VALUE")) == ["from"]
    assert await stored(post) == 2


async def test_sixty_four_equal_requests_at_once_are_one_message(post: Carteiro) -> None:
    """Over as many connections: all get the same answer."""
    async with served(post) as port:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}",
            limits=limits,
            headers={"X-API-Key": KEY_OF_ACME} | KEY,
        ) as client:
            answers = await asyncio.gather(*(sent(client) for _ in range(64)))

    assert len({json.dumps(answer) for answer in answers}) == 1
    assert await stored(post) == 1


async def test_keys_inside_one_batch_work_as_in_single_requests(post: Carteiro) -> None:
    """Equal key and e-mail: the first answer; equal key, another e-mail: 409."""
    items: list[dict[str, Any]] = [
        an_email(idempotencyKey="a"),
        an_email(idempotencyKey="a"),
        an_email(idempotencyKey="a", subject="Boa noite"),
        an_email(idempotencyKey="b"),
        an_email(),
    ]

    async with a_client(post) as client:
        first = answer_in(await client.post("/v1/email/batch", json={"messages": items}))
        again = answer_in(await client.post("/v1/email/batch", json={"messages": items[:4]}))

    results = first["results"]
    assert [each["status"] for each in results] == [202, 202, 409, 202, 202]
    assert results[1]["accepted"] == results[0]["accepted"]
    assert results[2]["error"]["code"] == "CONFLICT"
    assert [each.get("accepted") for each in again["results"]] == [
        each.get("accepted") for each in results[:4]
    ]
    assert await stored(post) == 3
