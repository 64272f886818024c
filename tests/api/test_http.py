"""The HTTP API: an accepted request is stored, and every refusal has one shape."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from fastapi import FastAPI
from starlette.types import Message

from carteiro.api import application
from carteiro.api.access_keys import hash_key, make_key, make_token
from carteiro.api.application import create_api
from carteiro.api.docs_page import operations_of
from carteiro.api.email_documents import EmailAccepted, EmailView
from carteiro.api.endpoint import schemas_of
from carteiro.api.lean import LeanRoute
from carteiro.app import Carteiro
from carteiro.email.message import MAX_REQUEST_BYTES
from carteiro.errors import StoreUnavailable
from carteiro.model import AcceptAnswer, Accepted, MessageId, NewMessage, State, TenantId
from support.builders import ACME
from support.http import (
    IN_ISO,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    an_email,
    error_in,
    fields_in,
    opened,
    sent,
    stored,
)
from support.working import Through, logged


def another_way(post: Carteiro, accept: Callable[[], AcceptAnswer]) -> Carteiro:
    """An app whose store accepts in another way."""

    class AnotherWay(Through):
        async def accept(self, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
            return [accept() for _ in new]

    backend = replace(post.backend, store=AnotherWay(post.backend.store))
    return Carteiro(backend, post.settings, threads=post._threads)


# --- accepting --------------------------------------------------------------------------------


async def test_accepted_email_is_stored(post: Carteiro) -> None:
    """After a 202 the message exists under the id in the answer."""
    async with a_client(post) as client:
        answer = await sent(client, externalId="pedido-42")

    message = await post.backend.reading.message(MessageId(answer["outboxId"]), tenant=ACME)
    assert message is not None
    assert (message.state, message.external_id) == (State.ENQUEUED, "pedido-42")
    assert answer.keys() == {"outboxId", "jobId", "requestId", "status", "receivedAt"}
    assert (answer["jobId"], answer["status"]) == (answer["outboxId"], "ENQUEUED")
    assert message.request_id == answer["requestId"]
    assert IN_ISO.fullmatch(answer["receivedAt"])


async def test_recipient_is_answered_with_its_id(post: Carteiro) -> None:
    """The same external id is the same recipient, and the answer has its id."""
    ana = {"externalId": "ana", "email": "ana@example.com", "nome": "Ana"}

    async with a_client(post) as client:
        first, again = await sent(client, recipient=ana), await sent(client, recipient=ana)

    EmailAccepted.model_validate(first)
    known_as = first["recipient"]["recipientId"]
    assert first["recipient"] == ana | {"recipientId": known_as}
    assert again["recipient"]["recipientId"] == known_as


@pytest.mark.parametrize(
    "headers",
    [
        {"X-API-Key": KEY_OF_ACME},
        {"Authorization": f"Bearer {KEY_OF_ACME}"},
        {"Authorization": f"bearer {KEY_OF_ACME}"},
    ],
)
async def test_key_is_accepted_in_either_header(post: Carteiro, headers: dict[str, str]) -> None:
    """Also when it is cached."""
    async with a_client(post, key=None) as client:
        client.headers.update(headers)
        answers = [await sent(client), await sent(client)]

    for each in answers:
        assert await post.backend.reading.message(MessageId(each["outboxId"]), tenant=ACME)


@pytest.mark.parametrize("media_type", ["application/json; charset=utf-8", "Application/JSON"])
async def test_json_may_be_declared_in_any_spelling(post: Carteiro, media_type: str) -> None:
    """A media type is case-insensitive and may have parameters."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send",
            content=json.dumps(an_email()),
            headers={"Content-Type": media_type},
        )

    assert response.status_code == 202


# --- ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["a", "pedido-42.retry_1", "x" * 128])
async def test_valid_request_id_is_kept(post: Carteiro, given: str) -> None:
    """The client's own id is in the answer, the header and the ledger."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", json=an_email(), headers={"X-Request-Id": given}
        )

    assert response.headers["X-Request-Id"] == response.json()["requestId"] == given


@pytest.mark.parametrize("given", [b"", b"x" * 129, b"a b", b"a\tb", b'{"a":1}', "é".encode()])
async def test_invalid_request_id_is_replaced(post: Carteiro, given: bytes) -> None:
    """A text that is unfit for a log is not used."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", json=an_email(), headers={b"X-Request-Id": given}
        )

    assert UUID(response.json()["requestId"]).version == 7
    assert response.headers["X-Request-Id"] == response.json()["requestId"]


@pytest.mark.parametrize(("make", "prefix"), [(make_key, "ck_"), (make_token, "ca_")])
def test_keys_are_long_and_have_a_prefix(make: Callable[[], str], prefix: str) -> None:
    """Each key is new and has at least 128 random bits; its hash is another text."""
    first, second = make(), make()

    assert first != second
    assert first.startswith(prefix)
    assert len(first) - len(prefix) >= 128 / 6
    assert re.fullmatch(r"[0-9a-f]{64}", hash_key(first))


# --- refusing ---------------------------------------------------------------------------------

DEEP = '{"to":' + "[" * 100_000 + "]" * 100_000 + "}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"to":"\xc3\x28"}',
        b'{"to":"\\ud800"}',
        DEEP.encode(),
        b'{"a":1}{"b":2}',
        b"{}",
    ],
)
async def test_malformed_or_incomplete_request_is_400(post: Carteiro, body: bytes) -> None:
    """Broken JSON, broken text, deep nesting and missing fields never cause a 500."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", content=body, headers={"Content-Type": "application/json"}
        )

    assert error_in(response, 400, "MALFORMED_REQUEST")["details"]
    assert await stored(post) == 0


@pytest.mark.parametrize("missing", ["to", "subject", "html"])
async def test_missing_field_is_named(post: Carteiro, missing: str) -> None:
    email = an_email()
    del email[missing]

    async with a_client(post) as client:
        response = await client.post("/v1/email/send", json=email)

    assert fields_in(error_in(response, 400, "MALFORMED_REQUEST")) == [missing]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("to", "not an address"),
        ("to", 5),
        ("subject", "x" * 151),
        ("subject", "a\r\nBcc: all@example.com"),
        ("subject", "nul\0"),
        ("html", "nul\0"),
        ("externalId", "nul\0"),
        ("priority", 11),
        ("priority", "5"),
        ("ttl", 0),
        ("scheduledAt", "tomorrow"),
        ("delivery", "exactly_once"),
        ("colour", "blue"),
    ],
)
async def test_invalid_value_is_422(post: Carteiro, field: str, bad: object) -> None:
    """The field is named."""
    async with a_client(post) as client:
        response = await client.post("/v1/email/send", json=an_email(**{field: bad}))

    assert fields_in(error_in(response, 422, "INVALID_VALUE")) == [field]
    assert await stored(post) == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": ""},
        {"X-API-Key": "ck_unknown"},
        {"X-API-Key": "x" * 10_000},
        {"X-API-Key": hash_key(KEY_OF_ACME)},
        {"Authorization": KEY_OF_ACME},
        {"Authorization": f"Basic {KEY_OF_ACME}"},
        {"Authorization": "Bearer "},
    ],
)
@pytest.mark.parametrize("path", ["/v1/email/send", "/v1/emails/x"])
async def test_request_without_a_valid_key_is_401(
    post: Carteiro, headers: dict[str, str], path: str
) -> None:
    """No key, a wrong key and a misplaced key get the same answer."""
    method = "POST" if path.endswith("send") else "GET"

    async with a_client(post, key=None) as client:
        response = await client.request(method, path, headers=headers)

    assert error_in(response, 401, "UNAUTHORIZED")["details"] == []
    assert response.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ],
)
async def test_body_that_is_not_json_is_415(post: Carteiro, headers: dict[str, str]) -> None:
    """Other media types and encodings are not read."""
    async with a_client(post) as client:
        response = await client.post(
            "/v1/email/send", content=json.dumps(an_email()), headers=headers
        )

    error_in(response, 415, "UNSUPPORTED_MEDIA_TYPE")


def a_body_of(size: int) -> bytes:
    """A valid request of this many bytes."""
    frame = len(json.dumps(an_email(text="")))
    return json.dumps(an_email(text="x" * (size - frame))).encode()


async def in_chunks(body: bytes) -> AsyncIterator[bytes]:
    """The body without its length, as a stream is sent."""
    for first in range(0, len(body), 65536):
        yield body[first : first + 65536]


@pytest.mark.parametrize("is_streamed", [False, True])
async def test_body_over_a_mebibyte_is_413(post: Carteiro, is_streamed: bool) -> None:
    """The size is counted, declared or not."""
    statuses = []

    async with a_client(post) as client:
        for size in (MAX_REQUEST_BYTES, MAX_REQUEST_BYTES + 1):
            body = a_body_of(size)
            response = await client.post(
                "/v1/email/send",
                content=in_chunks(body) if is_streamed else body,
                headers={"Content-Type": "application/json"},
            )
            statuses.append(response.status_code)

    assert statuses == [202, 413]
    error_in(response, 413, "REQUEST_TOO_LARGE")
    assert await stored(post) == 1


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "NOT_FOUND"),
        ("POST", "/v1/email/send/", 404, "NOT_FOUND"),
        ("GET", "/v1/email/send", 405, "METHOD_NOT_ALLOWED"),
        ("DELETE", "/health/live", 405, "METHOD_NOT_ALLOWED"),
    ],
)
async def test_unknown_paths_and_methods_have_the_usual_error_shape(
    post: Carteiro, method: str, path: str, status: int, code: str
) -> None:
    """These answers have a requestId too."""
    async with a_client(post) as client:
        response = await client.request(method, path)

    error_in(response, status, code)


async def test_http_never_creates_a_tenant(post: Carteiro) -> None:
    """A key cannot create a tenant."""
    async with a_client(post, key="ck_newcomer") as client:
        response = await client.post("/v1/email/send", json=an_email())

    error_in(response, 401, "UNAUTHORIZED")
    assert await post.backend.tenants.find([TenantId("newcomer")]) == [None]


async def test_bug_is_500_without_details() -> None:
    """The details are in the log."""

    def broken() -> AcceptAnswer:
        raise RuntimeError("the password is swordfish")

    async with opened("memory://") as post, a_client(another_way(post, broken)) as client:
        response = await client.post("/v1/email/send", json=an_email())

    assert error_in(response, 500, "INTERNAL_ERROR")["details"] == []
    assert "swordfish" not in response.text


async def test_unreachable_store_is_503() -> None:
    """The client may retry; the address of the store is not shown."""

    def away() -> AcceptAnswer:
        raise StoreUnavailable("/var/lib/carteiro.db is locked")

    with logged() as lines:
        async with opened("memory://") as post, a_client(another_way(post, away)) as client:
            response = await client.post("/v1/email/send", json=an_email())

    error_in(response, 503, "STORE_UNAVAILABLE")
    assert int(response.headers["Retry-After"]) > 0
    assert "/var" not in response.text
    told = [line["requestId"] for line in lines if line["event"] == "request.failed"]
    assert told == [response.headers["X-Request-Id"]], "the client's id finds the cause in the log"


async def test_full_disk_refuses_messages_and_readiness(tmp_path: Path) -> None:
    """Both answer 503."""
    url, floor = f"sqlite:///{tmp_path}/carteiro.db", {"min_free_bytes": 2**62}

    async with opened(url, sqlite=floor) as post, a_client(post) as client:
        response = await client.post("/v1/email/send", json=an_email())
        ready = await client.get("/health/ready")

        error_in(response, 503, "STORE_UNAVAILABLE")
        assert (ready.status_code, ready.json()["status"]) == (503, "unready")
        assert await stored(post) == 0


# --- reading ----------------------------------------------------------------------------------


async def test_email_is_shown_with_its_events(post: Carteiro) -> None:
    """The fields of the log and the timeline, oldest first; no body."""
    async with a_client(post) as client:
        answer = await sent(client, to="ok@sandbox.test")
        await worked_off(post)
        response = await client.get(f"/v1/emails/{answer['outboxId']}")

    shown = response.json()
    EmailView.model_validate(shown)
    assert response.status_code == 200
    assert (shown["status"], shown["attempts"], shown["provider"]) == ("SENT", 1, "sandbox")
    assert (shown["to"], shown["subject"]) == ("ok@sandbox.test", "Bom dia")
    assert (shown["companyId"], shown["requestId"]) == (ACME, answer["requestId"])
    assert shown["createdAt"] == answer["receivedAt"]
    assert IN_ISO.fullmatch(shown["sentAt"])
    assert shown["failedAt"] is shown["errorCode"] is None
    assert [each["type"] for each in shown["events"]] == [
        "ENQUEUED",
        "RECEIVED",
        "VALIDATED",
        "SENT_ATTEMPT",
        "SENT",
    ]
    assert shown["events"][-1]["metadata"]["sesMessageId"] == shown["sesMessageId"]
    assert "Olá" not in response.text


async def test_failed_email_says_why(post: Carteiro) -> None:
    """Code, category and reason help people to act."""
    async with a_client(post) as client:
        answer = await sent(client, to="bounce-550@sandbox.test")
        await worked_off(post)
        shown = (await client.get(f"/v1/emails/{answer['outboxId']}")).json()

    assert (shown["status"], shown["errorCode"]) == ("FAILED", "550")
    assert shown["errorCategory"] == "PERMANENT_ERROR"
    assert shown["errorReason"]
    assert IN_ISO.fullmatch(shown["failedAt"])
    assert shown["sentAt"] is None


async def worked_off(post: Carteiro) -> None:
    """Run a worker until everything is finished."""
    working = asyncio.create_task(post.run_worker())
    waiting = {State.ENQUEUED, State.RECEIVED, State.SENT_ATTEMPT, State.RETRY_SCHEDULED}
    while not waiting.isdisjoint(await post.backend.reading.states()):
        await asyncio.sleep(0.005)
    post.stop()
    await working


async def test_email_of_another_tenant_is_not_found(post: Carteiro) -> None:
    """It gets the same answer as an unknown one."""
    async with a_client(post) as client, a_client(post, key=KEY_OF_BRASA) as other:
        path = f"/v1/emails/{(await sent(client))['outboxId']}"
        foreign = await other.get(path)
        own = await client.get(path)

    error_in(foreign, 404, "NOT_FOUND")
    assert own.status_code == 200


@pytest.mark.parametrize("unknown", ["x", "%00", "%ff", "01900000-0000-7000-8000-000000000001"])
async def test_unknown_email_is_404(post: Carteiro, unknown: str) -> None:
    """With any text as its id."""
    async with a_client(post) as client:
        response = await client.get(f"/v1/emails/{unknown}")

    error_in(response, 404, "NOT_FOUND")


async def test_task_is_not_listed_as_an_email(post: Carteiro) -> None:
    """Jobs of other kinds are not shown among e-mails."""

    @post.task("tidy")
    async def tidy() -> None: ...

    answer = await tidy.send(tenant=ACME)
    assert isinstance(answer, Accepted)

    async with a_client(post) as client:
        error_in(await client.get(f"/v1/emails/{answer.id}"), 404, "NOT_FOUND")


async def test_health_needs_no_key(post: Carteiro) -> None:
    """A load balancer has none."""
    async with a_client(post, key=None) as client:
        live, ready = await client.get("/health/live"), await client.get("/health/ready")

    assert (live.status_code, live.json()) == (200, {"status": "live"})
    told = {"status": "ready", "ledger": "writable", "roles": {"api": "ready"}}
    assert (ready.status_code, ready.json()) == (200, told)
    assert await stored(post) == 0


async def test_everything_is_documented() -> None:
    """OpenAPI has every endpoint with its input and answers; every reference resolves."""
    async with opened("memory://") as post:
        api = create_api(post)
    document = api.openapi()

    routes = {
        (route.path, method)
        for route in api.routes
        if isinstance(route, LeanRoute)
        for method in route.methods or ()
    }
    documented = {(path, method) for path, method, _ in operations_of(document)}
    assert documented == routes - {("/docs", "GET"), ("/docs", "HEAD")}
    open_to_all = ("/health/", "/v1/feedback/", "/unsubscribe/")
    for path, _, operation in operations_of(document):
        assert operation["summary"]
        assert operation["description"]
        assert bool(operation.get("security")) != path.startswith(open_to_all)
    for name in re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)):
        assert name in document["components"]["schemas"]


async def test_schema_has_no_template_version() -> None:
    """No request may name one, so none is offered."""
    async with opened("memory://") as post:
        schemas = create_api(post).openapi()["components"]["schemas"]

    assert set(schemas["EmailTemplate"]["properties"]) == {"type", "variables"}
    assert schemas["Email"]["properties"]["template"]["anyOf"][0] == {
        "$ref": "#/components/schemas/EmailTemplate"
    }


async def test_root_redirects_to_the_docs(post: Carteiro) -> None:
    """Also for HEAD."""
    async with a_client(post, key=None) as client:
        lost = await client.get("/")
        page = await client.head("/docs")

    assert "/docs" in error_in(lost, 404, "NOT_FOUND")["message"]
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")


async def test_docs_page_describes_every_field() -> None:
    """Meaning and limits of each field of an e-mail."""
    async with opened("memory://") as post, a_client(post, key=None) as client:
        page = (await client.get("/docs")).text
        document = (await client.get("/openapi.json")).json()

    for name, schema in document["components"]["schemas"].items():
        assert f'<h3 id="{name}">' in page
        for field in schema.get("properties", ()):
            assert f"<code>{field}</code>" in page
    for told in (
        "<code>priority</code></td><td>integer</td><td></td><td>1 to 10; default 5</td>",
        "<code>cc</code></td><td>list of string</td><td></td><td>at most 5 items; each 1 to 320",
        "1 (most urgent) to 10",
        "no <code>javascript:</code> URLs",
    ):
        assert told in page


async def test_docs_page_loads_nothing() -> None:
    """It works without a network, and runs no third-party script."""
    async with opened("memory://") as post, a_client(post, key=None) as client:
        page = await client.get("/docs")
        document = await client.get("/openapi.json")

    assert page.status_code == document.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert not re.search(r"<script|<link|<img|@import|https?://|url\(", page.text)
    assert all(path in page.text for path in document.json()["paths"])


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
async def test_public_documents_are_built_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building takes a tenth of a second of the event loop, and no key is needed."""
    made: list[object] = []

    def counted(endpoints: Any) -> Any:
        made.append(endpoints)
        return schemas_of(endpoints)

    monkeypatch.setattr(application, "schemas_of", counted)
    async with opened("memory://") as post, a_client(post, key=None) as client:
        answers = [await client.get(path) for _ in range(3)]

    assert len(made) == 1
    assert {answer.text for answer in answers} == {answers[0].text}
    assert answers[0].headers.keys() == answers[2].headers.keys()


# --- clients that disconnect ------------------------------------------------------------------


class Connection:
    """An ASGI connection that sends a body in pieces and then disconnects."""

    def __init__(self, *pieces: bytes, is_whole: bool) -> None:
        self._messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": True} for piece in pieces
        ]
        if is_whole:
            self._messages[-1]["more_body"] = False
        self.answered: list[Message] = []

    async def ask(self, api: FastAPI) -> None:
        headers = [(b"x-api-key", KEY_OF_ACME.encode()), (b"content-type", b"application/json")]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/email/send",
            "query_string": b"",
            "headers": headers,
        }
        await api(scope, self._receive, self._send)

    async def _receive(self) -> Message:
        return self._messages.pop(0) if self._messages else {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        self.answered.append(message)


async def test_client_that_disconnects_mid_body_stores_nothing(post: Carteiro) -> None:
    """There is no answer either."""
    api = create_api(post)
    body = json.dumps(an_email()).encode()
    connection = Connection(body, is_whole=False)

    await connection.ask(api)

    assert connection.answered == []
    assert await stored(post) == 0


async def test_cancelled_request_is_committed_or_not(post: Carteiro) -> None:
    """Cancelled at any step, an e-mail is stored with all its parts, or not at all."""
    api = create_api(post)
    body = json.dumps(an_email(to="ok@sandbox.test")).encode()

    for steps in range(30):
        request = asyncio.create_task(Connection(body, is_whole=True).ask(api))
        for _ in range(steps):
            await asyncio.sleep(0)
        request.cancel()
        await asyncio.gather(request, return_exceptions=True)
    await Connection(body, is_whole=True).ask(api)  # answered after everything before it
    await worked_off(post)

    committed = await stored(post)
    assert await post.backend.reading.states() == {State.SENT: committed}
    assert len(await post.backend.inbox.list()) == committed
