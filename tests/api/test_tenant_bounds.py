"""Limits of one tenant in a process and in a store: requests, bytes, previews, templates, suppressions."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from threading import Event
from typing import Any

import httpx
import pytest

from carteiro.api.application import create_api
from carteiro.api.in_flight import MOST_READS, MOST_WRITES, SHARE, InFlight, PerMinute
from carteiro.api.refusal import Refusal
from carteiro.email.message import MAX_REQUEST_BYTES
from carteiro.email.templates.rendering import off_the_loop
from carteiro.model import NewMessage, NewSuppression, Role, TenantId
from carteiro.path.accept import Accepting
from carteiro.runtime.acting import actor
from support.builders import ACME, BRASA
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    a_client_of,
    an_email,
    answer_in,
    error_in,
    let_in,
    opened,
    sent,
)
from support.resend_webhooks import a_secret, signed
from support.sns import TOPIC
from support.templates import defined

SEND, BATCH = "/v1/email/send", "/v1/email/batch"
FEEDBACK = "/v1/feedback/resend"
SECRET = a_secret()
HEADERS = [(b"host", b"carteiro.test"), (b"content-type", b"application/json")]


class HalfSent:
    """A request whose body does not end until the test says so."""

    def __init__(
        self,
        path: str,
        key: str | None,
        *,
        declares: int | None,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        length = [] if declares is None else [(b"content-length", str(declares).encode())]
        more = [(name.encode(), each.encode()) for name, each in (headers or {}).items()]
        key_header = [] if key is None else [(b"x-api-key", key.encode())]
        self.scope: dict[str, Any] = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": b"",
            "headers": [*HEADERS, *key_header, *length, *more],
            "client": (address, 50000),
        }
        self.status = 0
        self.is_read = asyncio.Event()
        self._is_waiting = False
        self._chunks = asyncio.Queue[bytes | None]()

    async def receive(self) -> dict[str, Any]:
        """Body pieces for the server."""
        self.is_read.set()
        self._is_waiting = True
        chunk = await self._chunks.get()
        self._is_waiting = False
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": True}

    async def send(self, message: Any) -> None:
        """Collect the answer."""
        self.status = message.get("status", self.status)

    @property
    def has_read_all(self) -> bool:
        """True if the server waits for more."""
        return self._is_waiting and self._chunks.empty()

    def comes(self, chunk: bytes | None) -> None:
        """Let a piece arrive; None: the client disconnects."""
        self._chunks.put_nowait(chunk)


@asynccontextmanager
async def under_way(api: Any, *halves: HalfSent) -> AsyncIterator[None]:
    """Requests whose bodies are being read."""
    tasks = [asyncio.create_task(api(each.scope, each.receive, each.send)) for each in halves]
    try:
        for each in halves:
            await asyncio.wait_for(each.is_read.wait(), 30)
        yield
    finally:
        for each in halves:
            each.comes(None)
        await asyncio.gather(*tasks)


# --- in flight ----------------------------------------------------------------------------------


async def test_requests_in_flight_are_bounded_by_tenant() -> None:
    """One more is 429 with a Retry-After; other tenants are served, and so is this one later."""
    async with opened("memory://", api={"max_requests_per_tenant": 2}) as post:
        api = create_api(post)
        halves = [HalfSent(SEND, KEY_OF_ACME, declares=100) for _ in range(2)]
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            async with under_way(api, *halves):
                refused = [await client.get("/v1/emails"), await client.post(SEND, json=an_email())]
                await sent(other)
            await sent(client)

    for each in refused:
        error_in(each, 429, "TOO_MANY_REQUESTS")
        assert int(each.headers["Retry-After"]) >= 1


async def test_token_of_one_tenant_has_the_share_of_its_tenant() -> None:
    """Its requests in flight are the tenant's: administrators of all tenants are served meanwhile."""
    suppressions = f"/admin/v1/tenants/{ACME}/suppressions"
    async with opened("memory://", api={"max_requests_per_tenant": 2}) as post:
        await let_in(post, ACME, "ca_acme", role=Role.OPERATOR, name="ana")
        api = create_api(post)
        halves = [HalfSent(suppressions, "ca_acme", declares=100, method="PUT") for _ in range(2)]
        async with (
            a_client_of(api) as client,
            a_client_of(api, key="ca_acme") as token,
            a_client_of(api, key=ADMIN_TOKEN) as admin,
        ):
            async with under_way(api, *halves):
                refused = [await client.get("/v1/emails"), await token.get(suppressions)]
                answer_in(await admin.get(suppressions))
            answer_in(await token.get(suppressions))

    for each in refused:
        error_in(each, 429, "TOO_MANY_REQUESTS")


@pytest.mark.parametrize(("method", "most"), [("GET", MOST_READS), ("PUT", MOST_WRITES)])
async def test_concurrent_requests_of_a_token_of_one_tenant_are_bounded(
    method: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of the tenant; administrators of all tenants do not wait for them."""
    path, body = f"/admin/v1/tenants/{ACME}/suppressions", {"emails": ["ana@example.com"]}
    async with opened("memory://") as post:
        await let_in(post, ACME, "ca_acme", role=Role.OPERATOR, name="ana")
        port, name = type(post.backend.suppressions), "list" if method == "GET" else "put"
        ask, begun, go_on = getattr(port, name), Counter[str](), asyncio.Event()

        async def slowly(self: Any, *more: Any, **asked: Any) -> Any:
            begun[actor().who] += 1
            if actor().who == "ana":
                await go_on.wait()
            return await ask(self, *more, **asked)

        monkeypatch.setattr(port, name, slowly)
        api = create_api(post)
        async with (
            a_client_of(api, key="ca_acme") as token,
            a_client_of(api, key=ADMIN_TOKEN) as admin,
        ):
            theirs = [
                asyncio.create_task(token.request(method, path, json=body)) for _ in range(20)
            ]
            async with asyncio.timeout(30):
                while begun["ana"] < most:
                    await asyncio.sleep(0)
                for _ in range(10):
                    answer_in(await admin.request(method, path, json=body))
            at_once = begun["ana"]
            go_on.set()
            answers = await asyncio.gather(*theirs)

    assert at_once == most
    assert {each.status_code for each in answers} == {200}


async def test_bytes_in_flight_are_bounded_by_tenant() -> None:
    """The declared size counts before it arrives, so half-sent batches do not fill the memory."""
    async with opened("memory://", api={"max_body_bytes_per_tenant": 1_000_000}) as post:
        api = create_api(post)
        half = HalfSent(BATCH, KEY_OF_ACME, declares=999_000)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            async with under_way(api, half):
                refused = await client.post(SEND, json=an_email(text="x" * 1000))
                fits = await client.post(SEND, json=an_email())
                of_other = await other.post(SEND, json=an_email(text="x" * 1000))
            after = await client.post(SEND, json=an_email(text="x" * 1000))

    error_in(refused, 429, "TOO_MANY_REQUESTS")
    assert refused.headers["Retry-After"]
    assert [each.status_code for each in (fits, of_other, after)] == [202] * 3


async def test_undeclared_bytes_count_on_arrival() -> None:
    """In chunks the size is known at the end alone."""
    async with opened("memory://", api={"max_body_bytes_per_tenant": 1_000_000}) as post:
        api = create_api(post)
        first, second = (HalfSent(BATCH, KEY_OF_ACME, declares=None) for _ in range(2))
        async with under_way(api, first):
            first.comes(b"x" * 600_000)
            task = asyncio.create_task(api(second.scope, second.receive, second.send))
            second.comes(b"x" * 300_000)
            second.comes(b"x" * 300_000)
            await asyncio.wait_for(task, 30)

    assert second.status == 429


@pytest.mark.parametrize("path", ["/v1/emails", "/v1/emails/0197f3a2-0000-7000-8000-000000000000"])
async def test_concurrent_reads_of_a_tenant_are_bounded(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others wait, so the store is free for other tenants; all are answered."""
    async with opened("memory://") as post:
        reading = type(post.backend.reading)
        name = "messages" if path == "/v1/emails" else "message"
        read, begun, go_on = getattr(reading, name), Counter[TenantId](), asyncio.Event()

        async def slowly(self: Any, wanted: Any, **asked: Any) -> Any:
            tenant = asked.get("tenant") or wanted.tenant
            begun[tenant] += 1
            if tenant == ACME:
                await go_on.wait()
            return await read(self, wanted, **asked)

        monkeypatch.setattr(reading, name, slowly)
        api = create_api(post)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            theirs = [asyncio.create_task(client.get(path)) for _ in range(50)]
            async with asyncio.timeout(30):
                while begun[ACME] < MOST_READS:
                    await asyncio.sleep(0)
                of_other = [await other.get(path) for _ in range(10)]
            at_once = begun[ACME]
            await sent(client)  # writes do not wait for reads
            for each in theirs[:2] + theirs[-2:]:  # two that read, two that wait
                each.cancel()
            go_on.set()
            answers = await asyncio.gather(*theirs[2:-2])
            again = await client.get(path)

    statuses = {each.status_code for each in (*of_other, *answers, again)}
    assert (at_once, statuses) == (MOST_READS, {200 if name == "messages" else 404})


_LOST = "0197f3a2-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    ("method", "path", "body", "slow"),
    [
        ("PUT", "/v1/suppressions", {"emails": ["ana@example.com"]}, ("suppressions", "put")),
        ("DELETE", "/v1/suppressions?email=a@b.co", None, ("suppressions", "remove")),
        ("PUT", "/v1/templates/a", {"subject": "Oi", "text": "Oi"}, ("templates", "define")),
        ("DELETE", "/v1/templates/a", None, ("templates", "delete")),
        ("DELETE", f"/v1/recipients/{_LOST}", None, ("recipients", "show")),
        ("POST", f"/v1/recipients/{_LOST}/erase", None, ("recipients", "show")),
        ("POST", f"/v1/emails/{_LOST}/cancel", None, ("reading", "message")),
        ("POST", SEND, {"to": "nobody"}, ("tenants", "charge")),
        ("POST", BATCH, {"messages": [{"to": "nobody"}]}, ("tenants", "charge")),
        (
            "POST",
            "/rest/v1/rpc/enqueue_email",
            {"p_template_type": "a", "p_recipient_email": "nobody"},
            ("tenants", "charge"),
        ),
    ],
)
async def test_concurrent_writes_of_a_tenant_are_bounded(
    method: str,
    path: str,
    body: object,
    slow: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others wait, so the store is free for other tenants and for e-mails; all are answered."""
    async with opened("memory://") as post:
        port, name = type(getattr(post.backend, slow[0])), slow[1]
        write, begun, go_on = getattr(port, name), Counter[TenantId](), asyncio.Event()

        async def slowly(self: Any, wanted: Any, *more: Any, **asked: Any) -> Any:
            tenant = asked.get("tenant") or getattr(wanted, "tenant", wanted)
            begun[tenant] += 1
            if tenant == ACME:
                await go_on.wait()
            return await write(self, wanted, *more, **asked)

        monkeypatch.setattr(port, name, slowly)
        api = create_api(post)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            theirs = [
                asyncio.create_task(client.request(method, path, json=body)) for _ in range(20)
            ]
            async with asyncio.timeout(30):
                while begun[ACME] < MOST_WRITES:
                    await asyncio.sleep(0)
                of_other = [await other.request(method, path, json=body) for _ in range(10)]
                await sent(client)
            at_once = begun[ACME]
            for each in theirs[:1] + theirs[-2:]:  # one that writes, two that wait
                each.cancel()
            go_on.set()
            answers = await asyncio.gather(*theirs[1:-2])
            again = await client.request(method, path, json=body)

    assert at_once == MOST_WRITES
    assert {each.status_code < 500 for each in (*of_other, *answers, again)} == {True}


async def test_concurrent_batches_of_a_tenant_are_stored_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A transaction waits for the tenant's locks: one for each batch would take all connections to the store."""
    batch = {"messages": [an_email()] * 2}
    async with opened("memory://") as post:
        store = type(post.backend.store)
        accept, begun, go_on = store.accept, Counter[TenantId](), asyncio.Event()

        async def slowly(self: Any, new: Sequence[NewMessage]) -> Any:
            if len(new) > 1:
                begun[new[0].tenant] += 1
                if new[0].tenant == ACME:
                    await go_on.wait()
            return await accept(self, new)

        monkeypatch.setattr(store, "accept", slowly)
        api = create_api(post)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            theirs = [asyncio.create_task(client.post(BATCH, json=batch)) for _ in range(20)]
            async with asyncio.timeout(30):
                while not begun[ACME]:
                    await asyncio.sleep(0)
                of_other = [await other.post(BATCH, json=batch) for _ in range(5)]
                await sent(client)  # a single e-mail does not wait for batches
            at_once = begun[ACME]
            go_on.set()
            answers = await asyncio.gather(*theirs)

    told = [each["accepted"]["outboxId"] for answer in answers for each in answer.json()["results"]]
    assert (at_once, len(set(told))) == (1, 40)
    assert begun[ACME] < len(theirs)
    assert {each.status_code for each in (*of_other, *answers)} == {200}


async def test_few_batches_of_a_tenant_are_validated_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each takes its part of the event loop, which other tenants need, too."""
    batch = {"messages": [an_email()] * 2}
    async with opened("memory://") as post:
        many, begun, go_on = Accepting.many, Counter[TenantId](), asyncio.Event()

        async def slowly(self: Accepting, submissions: Any, *made: Any) -> Any:
            tenant = submissions[0].tenant.id
            begun[tenant] += 1
            if tenant == ACME:
                await go_on.wait()
            return await many(self, submissions, *made)

        monkeypatch.setattr(Accepting, "many", slowly)
        api = create_api(post)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            theirs = [asyncio.create_task(client.post(BATCH, json=batch)) for _ in range(20)]
            async with asyncio.timeout(30):
                while begun[ACME] < MOST_WRITES:
                    await asyncio.sleep(0)
                of_other = [await other.post(BATCH, json=batch) for _ in range(5)]
                await sent(client)  # a single e-mail does not wait for batches
            at_once = begun[ACME]
            go_on.set()
            answers = await asyncio.gather(*theirs)

    assert at_once == MOST_WRITES
    assert {each.status_code for each in (*of_other, *answers)} == {200}


async def test_parsed_size_of_a_batch_counts() -> None:
    """A hundred thousand tiny values are more than their bytes; without them there is room again."""
    dense = [
        '{"messages":[{"attachments":[' + ",".join([part] * 100_000) + "]}]}"
        for part in ("{}", "[]", '"aa"')
    ]
    half = HalfSent(BATCH, KEY_OF_ACME, declares=1_000_000)
    headers = {"Content-Type": "application/json"}
    async with opened("memory://", api={"max_body_bytes_per_tenant": 7_000_000}) as post:
        api = create_api(post)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            async with under_way(api, half):
                refused = [await client.post(BATCH, content=e, headers=headers) for e in dense]
                of_other = await other.post(BATCH, content=dense[0], headers=headers)
                fits = await client.post(BATCH, json={"messages": [an_email()] * 1000})
            after = [await client.post(BATCH, content=each, headers=headers) for each in dense]

    for each in refused:
        error_in(each, 429, "TOO_MANY_REQUESTS")
    assert [each.status_code for each in (of_other, fits, *after)] == [200] * 5


@asynccontextmanager
async def hearing(most: int) -> AsyncIterator[Any]:
    """An API that accepts feedback of SES and Resend, with this byte limit for unauthenticated bodies."""
    feedback = {"resend_secret": "env:WEBHOOK_SECRET", "ses_topics": TOPIC}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WEBHOOK_SECRET", SECRET)
        bounds = {"max_unchecked_body_bytes": most, "trusted_proxies": "10.0.0.1"}
        async with opened("memory://", api=bounds, feedback=feedback) as post:
            yield create_api(post)


async def _arrived(half: HalfSent, chunks: int) -> None:
    for _ in range(chunks):
        half.comes(b"x" * 262_144)
    async with asyncio.timeout(30):
        while not half.has_read_all:
            await asyncio.sleep(0)


async def _told(api: Any, address: str, size: int, **more: str) -> int:
    """The answer to a wrongly signed event of Resend: 401 once its body was read."""
    body = b"x" * size
    headers = signed(body, a_secret()) | more
    async with a_client_of(api, key=None, address=address) as client:
        return (await client.post(FEEDBACK, content=body, headers=headers)).status_code


async def test_declared_bytes_of_callers_without_a_key_do_not_count() -> None:
    """Connections that declare a body and send nothing block nobody."""
    idle = [
        HalfSent(FEEDBACK, None, declares=MAX_REQUEST_BYTES, headers=signed(b"", SECRET))
        for _ in range(64)
    ]
    async with hearing(4 * MAX_REQUEST_BYTES) as api, under_way(api, *idle):
        heard = await _told(api, "127.0.0.1", MAX_REQUEST_BYTES)

    assert heard == 401


async def test_callers_without_a_key_share_one_limit() -> None:
    """Feedback is signed, not keyed: one address may hold a quarter of it."""
    halves = [
        HalfSent(
            FEEDBACK, None, declares=MAX_REQUEST_BYTES, headers=signed(b"", SECRET), address=each
        )
        for each in ("2001:db8::1", "203.0.113.2", "203.0.113.3", "203.0.113.4")
    ]
    async with hearing(4 * MAX_REQUEST_BYTES) as api:
        async with under_way(api, *halves):
            await _arrived(halves[0], 3)
            of_it = [
                await _told(api, "2001:db8::1", 300_000),
                await _told(api, "2001:db8::2", 300_000),  # its network
                await _told(api, "10.0.0.1", 300_000, **{"x-forwarded-for": "2001:db8::3"}),
            ]
            of_others = await _told(api, "2001:db8:0:1::1", 300_000)
            for each in halves[1:]:
                await _arrived(each, 4)
            when_full = await _told(api, "203.0.113.5", 300_000)
        after = await _told(api, "203.0.113.5", 300_000)

    assert of_it == [429] * 3
    assert (of_others, when_full, after) == (401, 429, 401)


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (FEEDBACK, {}, 401),
        (FEEDBACK, signed(b"", SECRET, at=1_000_000_000), 401),
        ("/v1/feedback/ses", {}, 403),
        ("/v1/feedback/ses", {"x-amz-sns-topic-arn": f"{TOPIC}-of-others"}, 403),
    ],
)
async def test_body_with_invalid_feedback_headers_is_not_read(
    path: str, headers: dict[str, str], status: int
) -> None:
    """Not signed, too old, or of another topic."""
    half = HalfSent(path, None, declares=1000, headers=headers)
    async with hearing(MAX_REQUEST_BYTES) as api:
        await asyncio.wait_for(api(half.scope, half.receive, half.send), 30)

    assert half.status == status
    assert not half.is_read.is_set()


async def test_body_is_not_read_before_its_key_is_checked() -> None:
    """A caller without a key, or with a link that is not ours, is refused before its body arrives."""
    async with opened("memory://", api={"unknown_keys_per_minute": 10_000}) as post:
        api = create_api(post)
        documented = [
            (method.upper(), path)
            for path, methods in api.openapi()["paths"].items()
            for method in methods
            if not path.startswith(("/health", "/v1/feedback"))
        ]
        assert len(documented) > 80
        for method, path in documented:
            given = path.replace("{tenant}", "acme").replace("{type}", "welcome")
            given = given.replace("{id}", "7").replace("{key}", "7")
            half = HalfSent(given, "ck_wrong", declares=1000, method=method)

            await asyncio.wait_for(api(half.scope, half.receive, half.send), 30)

            refused = 404 if path.startswith("/unsubscribe/") else 401
            assert half.status == refused, (method, path)
            assert not half.is_read.is_set(), (method, path)


def test_finished_request_releases_its_bytes() -> None:
    """Callers that hold nothing are forgotten before there are too many of them."""
    in_flight = InFlight(most_requests=1, most_bytes=10)
    scope: dict[str, Any] = {}

    in_flight.begin(scope, ACME)
    in_flight.begin(scope, ACME)  # the same request, sent twice
    scope[SHARE].take(10)
    with pytest.raises(Refusal):
        scope[SHARE].take(1)
    with pytest.raises(Refusal):
        in_flight.begin({}, ACME)
    scope[SHARE].end()
    again: dict[str, Any] = {}
    in_flight.begin(again, ACME)
    again[SHARE].take(10)
    for number in range(20_000):
        other: dict[str, Any] = {}
        in_flight.begin(other, TenantId(f"tenant-{number}"))
        other[SHARE].end()

    assert ACME in in_flight.held
    assert len(in_flight.held) <= 10_000


# --- changes of suppressions --------------------------------------------------------------------


async def test_changes_of_suppressions_are_rate_limited_by_tenant() -> None:
    """Addresses count, whether suppressed, refused or allowed again; administrators are not limited."""
    path, bounds = "/v1/suppressions", {"suppression_changes_per_minute": 4}
    async with opened("memory://", api=bounds) as post:
        api = create_api(post)
        async with (
            a_client_of(api) as client,
            a_client_of(api, key=KEY_OF_BRASA) as other,
            a_client_of(api, key=ADMIN_TOKEN) as admin,
        ):
            put = {"emails": ["ana@example.com", "bia@example.com"]}
            allowed = [
                await client.put(path, json=put),
                await client.delete(path, params={"email": "ana@example.com"}),
                await client.put(path, json={"emails": ["nobody"]}),
            ]
            refused = [
                await client.put(path, json=put),
                await client.delete(path, params={"email": "bia@example.com"}),
            ]
            of_others = [
                await other.put(path, json=put),
                *[
                    await admin.put(f"/admin/v1/tenants/{ACME}/suppressions", json=put)
                    for _ in "123"
                ],
            ]

    assert [each.status_code for each in allowed] == [200, 204, 422]
    for each in refused:
        error_in(each, 429, "TOO_MANY_REQUESTS")
    assert [each.status_code for each in of_others] == [200] * 4


async def test_suppressed_addresses_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is given normal forms, and does not judge them on the event loop without a yield."""
    given: list[NewSuppression] = []
    async with opened("memory://") as post, a_client_of(create_api(post)) as client:
        port = type(post.backend.suppressions)
        put = port.put

        async def seen(self: Any, new: Any, **more: Any) -> Any:
            given.extend(new)
            return await put(self, new, **more)

        monkeypatch.setattr(port, "put", seen)
        await client.put("/v1/suppressions", json={"emails": ["Ana@EXÄMPLE.com"]})
        listed = answer_in(await client.get("/v1/suppressions"))

    assert [(each.address, each.is_normal) for each in given] == [("Ana@exämple.com", True)]
    assert [each["email"] for each in listed["items"]] == ["Ana@exämple.com"]


# --- previews -----------------------------------------------------------------------------------


async def _previewed(client: httpx.AsyncClient) -> httpx.Response:
    return await client.post("/v1/templates/welcome/preview", json={"variables": {"name": "Ana"}})


async def test_previews_are_rate_limited_by_tenant() -> None:
    """A number a minute; another tenant and administrators are not delayed."""
    async with opened("memory://", api={"previews_per_minute": 2}) as post:
        api = create_api(post)
        for tenant in (ACME, BRASA):
            await defined(post.backend, "welcome", tenant=tenant)
        async with a_client_of(api) as client, a_client_of(api, key=KEY_OF_BRASA) as other:
            fine = [(await _previewed(client)).status_code for _ in range(2)]
            refused = await _previewed(client)
            of_other = await _previewed(other)
        async with a_client_of(api, key=ADMIN_TOKEN) as administrator:
            path = "/admin/v1/tenants/acme/templates/welcome/preview"
            of_admin = await administrator.post(path, json={"variables": {"name": "Ana"}})

    assert fine == [200, 200]
    error_in(refused, 429, "TOO_MANY_REQUESTS")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert (of_other.status_code, of_admin.status_code) == (200, 200)


def test_rate_limiter_remembers_a_bounded_number_of_callers() -> None:
    """Callers can choose addresses, and would fill the memory."""
    meter: PerMinute[int] = PerMinute(1)
    for number in range(25_000):
        meter.count(number, "keys")

    assert len(meter._windows) <= 10_000


def test_rate_limiter_starts_again_after_its_minute() -> None:
    """The refusal says when."""
    now = [100.0]
    meter: PerMinute[TenantId] = PerMinute(1, clock=lambda: now[0])
    meter.count(ACME, "previews")
    meter.count(BRASA, "previews")

    now[0] += 45.0
    with pytest.raises(Refusal) as refused:
        meter.count(ACME, "previews")
    now[0] += 15.0
    meter.count(ACME, "previews")

    assert refused.value.headers["Retry-After"] == "15"
    assert str(refused.value) == "Rate limit exceeded: 1 previews a minute. Retry after 15 s."


async def test_slow_previews_of_one_tenant_delay_no_other() -> None:
    """The next tenant has the next turn, not one behind all waiting calls."""
    begin = Event()
    order: list[str] = []

    async with opened("memory://") as post, a_client(post, key=KEY_OF_BRASA) as other:
        await defined(post.backend, "welcome", tenant=BRASA)
        held = asyncio.create_task(off_the_loop(begin.wait, tenant=ACME))
        slow = [
            asyncio.create_task(off_the_loop(partial(order.append, ACME), tenant=ACME))
            for _ in range(20)
        ]
        quick = asyncio.create_task(_previewed(other))
        waiting = off_the_loop(partial(order.append, "turn"), tenant=BRASA)
        turn = asyncio.create_task(waiting)
        for _ in range(100):
            await asyncio.sleep(0)  # until all of them wait
        begin.set()
        await asyncio.gather(held, *slow, turn, quick)

    assert order.index("turn") <= 3
    assert quick.result().status_code == 200


# --- storage ------------------------------------------------------------------------------------


async def test_stored_templates_are_bounded(tmp_path: Any) -> None:
    """422 with its own code; a deleted one makes room; administrators have the same limit."""
    store, bounds = f"sqlite:///{tmp_path}/carteiro.db", {"templates": 2, "template_bytes": 1000}
    async with opened(store, storage=bounds) as post:
        api = create_api(post)

        async def put(client: httpx.AsyncClient, path: str, size: int = 10) -> httpx.Response:
            body = {"subject": "Oi", "text": "x" * size}
            return await client.put(path, json=body)

        async with a_client_of(api) as client, a_client_of(api, key=ADMIN_TOKEN) as administrator:
            for name in ("a", "b"):
                answer_in(await put(client, f"/v1/templates/{name}"))
            too_many = await put(client, "/v1/templates/c")
            by_admin = await put(administrator, "/admin/v1/tenants/acme/templates/c")
            too_large = await put(client, "/v1/templates/a", 990)
            await client.delete("/v1/templates/b")
            answer_in(await put(client, "/v1/templates/c"))

    for each in (too_many, by_admin, too_large):
        error_in(each, 422, "STORAGE_LIMIT")


async def test_stored_suppressions_are_bounded(tmp_path: Any) -> None:
    """All of a list or nothing; existing ones can be put again."""
    store = f"sqlite:///{tmp_path}/carteiro.db"
    async with opened(store, storage={"suppressions": 2}) as post, a_client(post) as client:

        async def put(*names: str) -> httpx.Response:
            return await client.put(
                "/v1/suppressions", json={"emails": [f"{n}@b.co" for n in names]}
            )

        answer_in(await put("a", "b"))
        refused = [await put("c"), await put("a", "c")]
        answer_in(await put("b"))
        listed = answer_in(await client.get("/v1/suppressions"))["items"]

    for each in refused:
        error_in(each, 422, "STORAGE_LIMIT")
    assert len(listed) == 2
