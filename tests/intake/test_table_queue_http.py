"""The addresses that those know who come from Supabase: put in by a template, work off what is due."""

from base64 import urlsafe_b64encode
from typing import Any
from uuid import UUID, uuid4

import httpx
import orjson
import pytest

from carteiro.email import restore_email
from carteiro.model import ApiLimits, MessageId, NewTemplate, State, Tenant
from carteiro.post import Carteiro
from support.builders import ACME
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    answer_in,
    error_in,
    fields_in,
    stored,
)
from support.library import row_of

ENQUEUE = "/rest/v1/rpc/enqueue_email"
PROCESS = "/functions/v1/process-email-queue"


@pytest.fixture(autouse=True)
async def template(post: Carteiro) -> None:
    """What ACME welcomes people with."""
    said = {"subject": "Hello {{ user_data.full_name }}", "text": "Hi"}
    await post.backend.templates.define(NewTemplate(tenant=ACME, type="welcome_user", **said))


def asked(**changes: Any) -> dict[str, Any]:
    """The arguments of ``enqueue_email``."""
    return {
        "p_user_id": str(uuid4()),
        "p_template_type": "welcome_user",
        "p_recipient_email": "test@example.com",
        "p_payload": {"user_data": {"full_name": "Test User"}},
    } | changes


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {key}"}


async def enqueued(client: httpx.AsyncClient, **changes: Any) -> MessageId:
    """The id of an e-mail that is put in."""
    response = await client.post(ENQUEUE, json=asked(**changes), headers=bearer(KEY_OF_ACME))
    assert response.status_code == 200, response.text
    return MessageId(str(UUID(response.json())))


async def test_an_email_is_put_in_and_sent(post: Carteiro) -> None:
    """Rendered at once, so that what is wrong is told at once."""
    user = uuid4()
    async with a_client(post, key=None) as client:
        identity = await enqueued(client, p_user_id=str(user))
        ran = await client.post(PROCESS, headers=bearer(KEY_OF_ACME))

    row = await row_of(post, identity)
    counts = {"processed": 1, "sent": 1, "retried": 0, "failed": 0, "cancelled": 0}
    assert answer_in(ran) == counts
    assert (row.state, row.tenant, row.subject) == (State.SENT, ACME, "Hello Test User")
    assert row.content is not None
    email = restore_email(row.content)
    assert email.max_retries == 3
    assert email.recipient is not None
    assert email.recipient.external_id == str(user)


async def test_what_fails_is_counted_as_it_ended(post: Carteiro) -> None:
    """A temporary failure is tried again in a minute; ten at most in a run."""
    async with a_client(post, key=None) as client:
        for to in ("full-552@sandbox.test", "bounce-550@sandbox.test", *["a@example.com"] * 9):
            await enqueued(client, p_recipient_email=to)

        first = answer_in(await client.post(PROCESS, headers=bearer(KEY_OF_ACME), json={}))
        second = answer_in(await client.post(PROCESS, headers=bearer(KEY_OF_ACME)))

    assert first == {"processed": 10, "sent": 8, "retried": 1, "failed": 1, "cancelled": 0}
    assert (second["processed"], second["sent"]) == (1, 1)


async def test_nothing_is_due(post: Carteiro) -> None:
    """Then nothing is done."""
    async with a_client(post, key=KEY_OF_ACME) as client:
        assert answer_in(await client.post(PROCESS))["processed"] == 0


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"p_recipient_email": "nobody"}, 422, "p_recipient_email"),
        ({"p_recipient_email": None}, 422, "p_recipient_email"),
        ({"p_template_type": "unknown"}, 422, "p_template_type"),
        ({"p_template_type": ""}, 422, "p_template_type"),
        ({"p_payload": {}}, 422, "p_payload.user_data.full_name"),
        ({"p_payload": [1]}, 422, "p_payload"),
        ({"p_user_id": "someone"}, 422, "p_user_id"),
        ({"extra": 1}, 422, "extra"),
    ],
)
async def test_what_is_wrong_is_told(
    post: Carteiro, changes: dict[str, Any], status: int, field: str
) -> None:
    """And nothing is stored."""
    async with a_client(post) as client:
        response = await client.post(ENQUEUE, json=asked(**changes))

    assert fields_in(error_in(response, status, "INVALID_VALUE")) == [field]
    assert await stored(post) == 0


async def test_a_user_need_not_be_named(post: Carteiro) -> None:
    """Nor words, where the template has no place for any."""
    plain = NewTemplate(tenant=ACME, type="plain", subject="Hello", html=None, text="Hi")
    await post.backend.templates.define(plain)
    async with a_client(post, key=None) as client:
        identity = await enqueued(client, p_user_id=None, p_template_type="plain", p_payload=None)

    row = await row_of(post, identity)
    assert row.subject == "Hello"


def _token(role: str) -> str:
    parts = ({"alg": "HS256"}, {"iss": "supabase", "role": role})
    encoded = [urlsafe_b64encode(orjson.dumps(each)).decode().rstrip("=") for each in parts]
    return ".".join([*encoded, "c2lnbmF0dXJl"])


@pytest.mark.parametrize("path", [ENQUEUE, PROCESS])
@pytest.mark.parametrize(
    ("key", "status", "code"),
    [
        (_token("anon"), 403, "FORBIDDEN"),
        ("sb_publishable_abc", 403, "FORBIDDEN"),
        (_token("service_role"), 401, "UNAUTHORIZED"),
        ("not.a.token", 401, "UNAUTHORIZED"),
        ("ck_unknown", 401, "UNAUTHORIZED"),
        (ADMIN_TOKEN, 401, "UNAUTHORIZED"),
    ],
)
async def test_only_a_key_of_a_tenant_opens(
    post: Carteiro, path: str, key: str, status: int, code: str
) -> None:
    """One that everybody has is refused as such."""
    async with a_client(post, key=None) as client:
        response = await client.post(path, json=asked(), headers=bearer(key))

    error_in(response, status, code)
    assert await stored(post) == 0


async def test_a_template_of_another_is_not_found(post: Carteiro) -> None:
    """Tenants have their own."""
    async with a_client(post, key=KEY_OF_BRASA) as client:
        response = await client.post(ENQUEUE, json=asked())

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["p_template_type"]


async def test_it_is_counted_by_the_tenant_s_limits(post: Carteiro) -> None:
    """As everything that comes over HTTP."""
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(per_minute=1))])
    async with a_client(post, key=None) as client:
        await enqueued(client)
        response = await client.post(ENQUEUE, json=asked(), headers=bearer(KEY_OF_ACME))

    error_in(response, 429, "TOO_MANY_REQUESTS")


async def test_nobody_else_says_how_often_it_may_fail(post: Carteiro) -> None:
    """That is for the table queue to say."""
    async with a_client(post) as client:
        email = {"to": "a@example.com", "subject": "a", "text": "b", "maxRetries": 1}
        response = await client.post("/v1/email/send", json=email)

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["maxRetries"]
