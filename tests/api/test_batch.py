"""Many e-mails in one request: each is validated and answered separately."""

import json
from typing import Any

import pytest

from carteiro.api.body import MAX_BATCH_BYTES
from carteiro.api.email_documents import BatchResults
from carteiro.app import Carteiro
from carteiro.model import ApiLimits, MessageId, Tenant
from support.builders import ACME
from support.http import a_client, an_email, answer_in, error_in, fields_in, opened, stored


async def test_each_email_has_its_result_in_its_place(post: Carteiro) -> None:
    """A fault in one does not affect the others."""
    items: list[Any] = [
        an_email(subject="first"),
        an_email(to="nobody"),
        "no e-mail",
        {"to": "ana@example.com"},
        an_email(idempotencyKey="x" * 129),
        an_email(subject="last"),
    ]

    async with a_client(post) as client:
        response = await client.post("/v1/email/batch", json={"messages": items})

    document = answer_in(response)
    BatchResults.model_validate(document)
    results = document["results"]
    assert [each["status"] for each in results] == [202, 422, 400, 400, 422, 202]
    assert fields_in(results[1]["error"]) == ["to"]
    assert fields_in(results[4]["error"]) == ["idempotencyKey"]
    assert {each["error"]["requestId"] for each in results if "error" in each} == {
        response.headers["X-Request-Id"]
    }
    subjects = []
    for index in (0, -1):
        identity = MessageId(results[index]["accepted"]["outboxId"])
        message = await post.backend.reading.message(identity, tenant=ACME)
        assert message is not None
        subjects.append(message.subject)
    assert subjects == ["first", "last"]
    assert await stored(post) == 2


async def test_email_nested_too_deep_fails_alone(post: Carteiro) -> None:
    """It is refused in its place."""
    deep = '{"a":' * 300 + "1" + "}" * 300
    strange = '{"to":"ana@example.com","template":{"type":"welcome","variables":' + deep + "}}"
    body = f'{{"messages":[{json.dumps(an_email())},{strange}]}}'

    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/batch", content=body, headers={"Content-Type": "application/json"}
        )

    [fine, refused] = answer_in(response)["results"]
    assert (fine["status"], refused["status"]) == (202, 400)
    assert fields_in(refused["error"]) == ["body"]
    assert await stored(post) == 1


async def test_batch_of_a_thousand_is_accepted_and_one_more_is_refused(post: Carteiro) -> None:
    """The bound is on the number, and a batch beyond it stores nothing."""
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(None, None, None))])

    async with a_client(post) as client:
        many = await client.post("/v1/email/batch", json={"messages": [an_email()] * 1001})
        full = await client.post("/v1/email/batch", json={"messages": [an_email()] * 1000})

    assert fields_in(error_in(many, 422, "INVALID_VALUE")) == ["messages"]
    assert {each["status"] for each in answer_in(full)["results"]} == {202}
    assert await stored(post) == 1000


async def test_batch_has_its_own_byte_limit() -> None:
    """Higher than that of a single e-mail."""
    large = "x" * (1024 * 1024)

    async with opened("memory://") as post, a_client(post) as client:
        several = await client.post(
            "/v1/email/batch", json={"messages": [an_email(text=large[:600_000])] * 3}
        )
        single = await client.post("/v1/email/batch", json={"messages": [an_email(text=large)]})
        too_large = await client.post(
            "/v1/email/batch",
            content=b" " * (MAX_BATCH_BYTES + 1),
            headers={"Content-Type": "application/json"},
        )

    assert [each["status"] for each in answer_in(several)["results"]] == [202, 202, 202]
    assert [each["status"] for each in answer_in(single)["results"]] == [413]
    error_in(too_large, 413, "REQUEST_TOO_LARGE")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b'{"messages":' + b"[" * 100_000, 400),
        (b'{"messages":[' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"]}", 400),
        (b'{"messages":"\xff"}', 400),
        (b'{"messages":[]}', 422),
        (b'{"messages":{}}', 422),
        (b'{"messages":[{}],"more":1}', 422),
    ],
)
async def test_body_that_is_not_a_batch_is_refused_whole(
    post: Carteiro, body: bytes, status: int
) -> None:
    """Without a list there is nothing to answer item by item."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/batch", content=body, headers={"Content-Type": "application/json"}
        )

    error_in(response, status, "MALFORMED_REQUEST" if status == 400 else "INVALID_VALUE")
    assert await stored(post) == 0


# --- limits -------------------------------------------------------------------------------------


async def test_message_over_the_rate_limit_is_429(post: Carteiro) -> None:
    """Text and headers name the limit and the time to retry; nothing was stored."""
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(None, None, 1))])

    async with a_client(post) as client:
        answer_in(await client.post("/v1/email/send", json=an_email()), 202)
        response = await client.post("/v1/email/send", json=an_email())

    error_in(response, 429, "TOO_MANY_REQUESTS")
    assert response.headers["X-RateLimit-Limit"] == "1"
    assert response.headers["X-RateLimit-Remaining"] == "0"
    reset, wait = int(response.headers["X-RateLimit-Reset"]), int(response.headers["Retry-After"])
    assert reset % 86_400 == 0
    assert 0 < wait <= 86_400
    text = f"Rate limit exceeded: 1 messages a day. Retry after {wait} s."
    assert response.json()["error"]["message"] == text
    assert await stored(post) == 1


async def test_batch_items_over_the_rate_limit_are_429(post: Carteiro) -> None:
    """The items before them are accepted."""
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(None, None, 2))])

    async with a_client(post) as client:
        response = await client.post("/v1/email/batch", json={"messages": [an_email()] * 3})

    results = answer_in(response)["results"]
    assert [each["status"] for each in results] == [202, 202, 429]
    assert results[2]["error"]["code"] == "TOO_MANY_REQUESTS"
    assert results[2]["rateLimit"]["limit"] == 2
    assert results[2]["rateLimit"]["retryAfterMs"] > 0
    assert await stored(post) == 2


async def test_default_limits_are_settings() -> None:
    """A tenant without limits of its own has the configured ones."""
    async with (
        opened("memory://", api={"per_day": 1}) as post,
        a_client(post) as client,
    ):
        first = await client.post("/v1/email/send", json=an_email())
        second = await client.post("/v1/email/send", json=an_email())

    assert (first.status_code, second.status_code) == (202, 429)
    assert json.loads(second.text)["error"]["code"] == "TOO_MANY_REQUESTS"
