"""Endpoints compatible with Supabase: enqueue by template, and wait for the attempts."""

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import orjson
import pytest

from carteiro.api.table_queue import MOST_IN_A_RUN
from carteiro.app import Carteiro
from carteiro.email.message import restore_email
from carteiro.model import ApiLimits, MessageId, NewTemplate, State, Tenant
from carteiro.ports import Reading
from support.builders import ACME, messages
from support.http import (
    ADMIN_TOKEN,
    IN_ISO,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    answer_in,
    error_in,
    fields_in,
    opened,
    stored,
)
from support.library import row_of
from support.steps import accepted
from support.working import TOO_LONG

ENQUEUE = "/rest/v1/rpc/enqueue_email"
PROCESS = "/functions/v1/process-email-queue"
SEND = "/functions/v1/send-custom-emails"


@pytest.fixture(autouse=True)
async def template(post: Carteiro) -> None:
    """The welcome template of ACME."""
    await post.backend.templates.define(_template())


def _template() -> NewTemplate:
    subject = "Hello {{ user_data.full_name }}"
    return NewTemplate(tenant=ACME, type="welcome_user", subject=subject, text="Hi")


@pytest.fixture
async def impatient() -> AsyncIterator[Carteiro]:
    """An app whose API does not wait for a worker."""
    async with opened("memory://", api={"attempt_wait_ms": 1}) as office:
        await office.backend.templates.define(_template())
        yield office


@asynccontextmanager
async def at_work(post: Carteiro) -> AsyncIterator[None]:
    """A worker runs during the block."""
    working = asyncio.create_task(post.run_worker())
    try:
        async with asyncio.timeout(TOO_LONG):
            yield
    finally:
        post.stop()
        await working


class Looked:
    """A reading port that signals when a waiting call has looked at every message."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self.at_one = asyncio.Event()
        self._looks = 0

    def __getattr__(self, name: str) -> Any:
        if name == "message":
            self._looks += 1
            if self._looks > MOST_IN_A_RUN:
                self.at_one.set()
        return getattr(self._reading, name)


def asked(**changes: Any) -> dict[str, Any]:
    """The arguments of ``enqueue_email``."""
    return {
        "p_user_id": str(uuid4()),
        "p_template_type": "welcome_user",
        "p_recipient_email": "test@example.com",
        "p_payload": {"user_data": {"full_name": "Test User"}},
    } | changes


def bearer(key: str) -> dict[str, str]:
    """The header with a key."""
    return {"Authorization": f"Bearer {key}"}


async def enqueued(client: httpx.AsyncClient, **changes: Any) -> MessageId:
    """The id of an enqueued e-mail."""
    response = await client.post(ENQUEUE, json=asked(**changes), headers=bearer(KEY_OF_ACME))
    assert response.status_code == 200, response.text
    return MessageId(str(UUID(response.json())))


async def test_email_is_enqueued_and_sent(post: Carteiro) -> None:
    """Rendered at once, so that a fault is reported at once."""
    user = uuid4()
    async with a_client(post, key=None) as client:
        identity = await enqueued(client, p_user_id=str(user))
        async with at_work(post):
            ran = await client.post(PROCESS, headers=bearer(KEY_OF_ACME))

    row = await row_of(post, identity)
    assert answer_in(ran)["pending"] == 0
    assert (row.state, row.tenant, row.subject) == (State.SENT, ACME, "Hello Test User")
    assert row.content is not None
    email = restore_email(row.content)
    assert email.max_retries == 3
    assert email.recipient is not None
    assert email.recipient.external_id == str(user)


# --- process-email-queue ------------------------------------------------------------------------


async def test_due_emails_are_counted_by_result(post: Carteiro) -> None:
    """A temporary failure is retried in a minute; ten at most are waited for."""
    async with a_client(post, key=None) as client:
        for to in ("full-552@sandbox.test", "bounce-550@sandbox.test", *["a@example.com"] * 9):
            await enqueued(client, p_recipient_email=to)
    looked = Looked(post.backend.reading)
    post.backend = replace(post.backend, reading=looked)
    async with a_client(post) as client:
        run = asyncio.create_task(client.post(PROCESS, json={}))
        await looked.at_one.wait()  # by now it knows its messages
        async with at_work(post):
            counts = answer_in(await run)

    assert counts == {
        "processed": 10, "sent": 8, "retried": 1, "failed": 1, "cancelled": 0, "pending": 0
    }  # fmt: skip


async def test_due_email_is_found_behind_any_number_of_later_ones(post: Carteiro) -> None:
    """More than a thousand newer ones wait for another day."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    async with a_client(post, key=None) as client:
        identity = await enqueued(client)
        await accepted(post.backend.store, *messages(1100, due=tomorrow))
        async with at_work(post):
            ran = answer_in(await client.post(PROCESS, headers=bearer(KEY_OF_ACME)))

    assert (ran["processed"], ran["sent"], ran["pending"]) == (1, 1, 0)
    assert (await row_of(post, identity)).state is State.SENT


async def test_email_without_a_worker_is_pending(impatient: Carteiro) -> None:
    """The API's own provider sends nothing: the mail is a worker's."""
    async with a_client(impatient, key=None) as client:
        identity = await enqueued(client)
        counts = answer_in(await client.post(PROCESS, headers=bearer(KEY_OF_ACME)), 202)

    assert (counts["processed"], counts["pending"]) == (0, 1)
    assert (await row_of(impatient, identity)).state is State.ENQUEUED
    assert await impatient.backend.inbox.list() == []


async def test_emails_of_another_tenant_are_not_waited_for(impatient: Carteiro) -> None:
    """They are neither counted nor changed."""
    async with a_client(impatient, key=None) as client:
        identity = await enqueued(client)
        counts = answer_in(await client.post(PROCESS, headers=bearer(KEY_OF_BRASA)))

    assert set(counts.values()) == {0}
    assert (await row_of(impatient, identity)).state is State.ENQUEUED


async def test_email_that_is_not_due_is_not_waited_for(impatient: Carteiro) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    to = {"to": "ana@example.com", "subject": "Later", "text": "Hi", "scheduled_at": later}
    await impatient.send(tenant=ACME, **to)
    async with a_client(impatient, key=KEY_OF_ACME) as client:
        assert set(answer_in(await client.post(PROCESS)).values()) == {0}


async def test_waiting_calls_of_a_tenant_are_bounded(post: Carteiro) -> None:
    """Each polls the ledger: the sixth is refused, and stores nothing."""
    async with a_client(post) as client:
        calls = [asyncio.create_task(client.post(SEND, json=a_row())) for _ in range(5)]
        while await stored(post) < 5:
            await asyncio.sleep(0.001)
        error_in(await client.post(SEND, json=a_row()), 429, "TOO_MANY_REQUESTS")
        error_in(await client.post(PROCESS), 429, "TOO_MANY_REQUESTS")
        assert await stored(post) == 5
        async with at_work(post):
            answers = [answer_in(each)["status"] for each in await asyncio.gather(*calls)]
            answer_in(await client.post(PROCESS))

    assert answers == ["sent"] * 5


# --- send-custom-emails -------------------------------------------------------------------------


def a_row(**changes: Any) -> dict[str, Any]:
    """A row of ``email_queue``."""
    return {
        "template_type": "welcome_user",
        "recipient_email": "test@example.com",
        "payload": {"user_data": {"full_name": "Test User"}},
    } | changes


async def test_first_attempt_is_answered(post: Carteiro) -> None:
    """Sent, with the provider's id."""
    async with a_client(post) as client, at_work(post):
        told = answer_in(await client.post(SEND, json=a_row()))

    row = await row_of(post, MessageId(told["id"]))
    assert row.state is State.SENT
    assert told == {"id": row.id, "status": "sent", "resend_id": row.provider_id}


async def test_failed_first_attempt_is_answered(post: Carteiro) -> None:
    """A temporary failure is pending, with the time of the next attempt; a permanent one has failed."""
    async with a_client(post) as client, at_work(post):
        full = answer_in(
            await client.post(SEND, json=a_row(recipient_email="full-552@sandbox.test"))
        )
        gone = answer_in(
            await client.post(SEND, json=a_row(recipient_email="bounce-550@sandbox.test"))
        )

    assert full["status"] == "pending"
    assert full["error_message"]
    assert IN_ISO.fullmatch(full["next_retry_at"])
    assert gone.keys() == {"id", "status", "error_message"}
    assert gone["status"] == "failed"


async def test_answer_without_a_worker_is_pending(impatient: Carteiro) -> None:
    """The e-mail is stored, and sent when a worker starts."""
    async with a_client(impatient) as client:
        told = answer_in(await client.post(SEND, json=a_row()), 202)

    assert told["status"] == "pending"
    assert (await row_of(impatient, MessageId(told["id"]))).state is State.ENQUEUED


async def test_faults_of_a_row_are_named_by_column(post: Carteiro) -> None:
    """Nothing is stored."""
    async with a_client(post) as client:
        address = await client.post(SEND, json=a_row(recipient_email="nobody"))
        variable = await client.post(SEND, json=a_row(payload={}))

    assert fields_in(error_in(address, 422, "INVALID_VALUE")) == ["recipient_email"]
    assert fields_in(error_in(variable, 422, "INVALID_VALUE")) == ["payload.user_data.full_name"]
    assert await stored(post) == 0


async def test_key_in_the_apikey_header_is_enough(post: Carteiro) -> None:
    """As Supabase's clients send it."""
    async with a_client(post, key=None) as client:
        response = await client.post(ENQUEUE, json=asked(), headers={"apikey": KEY_OF_ACME})

    assert response.status_code == 200


# --- invalid requests ---------------------------------------------------------------------------


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
async def test_invalid_request_is_refused(
    post: Carteiro, changes: dict[str, Any], status: int, field: str
) -> None:
    """Nothing is stored."""
    async with a_client(post) as client:
        response = await client.post(ENQUEUE, json=asked(**changes))

    assert fields_in(error_in(response, status, "INVALID_VALUE")) == [field]
    assert await stored(post) == 0


async def test_user_is_a_uuid(post: Carteiro) -> None:
    """The error says so, as SQL's own type would."""
    async with a_client(post) as client:
        response = await client.post(ENQUEUE, json=asked(p_user_id="USER_UUID"))

    [fault] = error_in(response, 422, "INVALID_VALUE")["details"]
    assert fault == {"field": "p_user_id", "message": "must be a UUID"}


async def test_user_is_optional(post: Carteiro) -> None:
    """So are variables, where the template has none."""
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


@pytest.mark.parametrize("path", [ENQUEUE, PROCESS, SEND])
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
async def test_only_a_key_of_a_tenant_is_accepted(
    post: Carteiro, path: str, key: str, status: int, code: str
) -> None:
    """A public key is refused as such."""
    async with a_client(post, key=None) as client:
        response = await client.post(path, json=asked(), headers=bearer(key))

    error_in(response, status, code)
    assert await stored(post) == 0


async def test_template_of_another_tenant_is_not_found(post: Carteiro) -> None:
    async with a_client(post, key=KEY_OF_BRASA) as client:
        response = await client.post(ENQUEUE, json=asked())

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["p_template_type"]


async def test_rate_limits_of_the_tenant_apply(post: Carteiro) -> None:
    """As to every HTTP request."""
    await post.backend.tenants.define([Tenant(ACME, limits=ApiLimits(per_minute=1))])
    async with a_client(post, key=None) as client:
        await enqueued(client)
        response = await client.post(ENQUEUE, json=asked(), headers=bearer(KEY_OF_ACME))

    error_in(response, 429, "TOO_MANY_REQUESTS")


async def test_max_attempts_cannot_be_set_elsewhere(post: Carteiro) -> None:
    """Only the table queue has that field."""
    async with a_client(post) as client:
        email = {"to": "a@example.com", "subject": "a", "text": "b", "maxRetries": 1}
        response = await client.post("/v1/email/send", json=email)

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["maxRetries"]
