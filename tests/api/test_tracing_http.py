"""Traces of requests: from the header of a client to the attempts of its mail."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from carteiro.app import Carteiro
from carteiro.errors import StoreUnavailable
from carteiro.model import NewTemplate, State
from carteiro.policy.trace_context import TRACE as FIELD
from support.builders import ACME
from support.collector import CALLER, SPAN, TRACE, Collector, a_collector, settings_of
from support.http import KEY_OF_ACME, KEY_OF_BRASA, a_client, an_email, answer_in, opened, sent
from support.library import row_of, work
from support.working import logged

SEND, BATCH = "POST /v1/email/send", "POST /v1/email/batch"
ATTEMPT = "process email:send"


@asynccontextmanager
async def traced(
    collector: Collector, **tracing: Any
) -> AsyncIterator[tuple[Carteiro, httpx.AsyncClient]]:
    """An app that exports to the collector, and a client of its API."""
    async with (
        opened("memory://", tracing=settings_of(collector, **tracing)) as post,
        a_client(post) as client,
    ):
        yield post, client


async def test_attempts_of_a_request_are_children_of_its_span() -> None:
    """And that is a child of the client's own; its attributes are those of HTTP, and nothing of the mail."""
    with a_collector() as collector:
        async with traced(collector) as (post, client):
            headers = {"traceparent": CALLER, "tracestate": "a=1", "X-Request-Id": "r-1"}
            await sent(client, headers=headers, to="secreta@example.com", subject="Segredo")
            await work(post)

        request, attempt = collector.one(SEND), collector.one(ATTEMPT)
        assert (request.trace, request.parent, request.kind) == (TRACE, SPAN, "SERVER")
        assert (attempt.trace, attempt.parent) == (TRACE, request.id)
        assert (request.state, attempt.state) == ("a=1", "a=1")
        assert request.attributes == {
            "http.request.method": "POST",
            "http.route": "/v1/email/send",
            "http.response.status_code": 202,
            "url.path": "/v1/email/send",
            "url.scheme": "http",
            "carteiro.request_id": "r-1",
            "carteiro.tenant": "acme",
        }
        assert not request.failed
        assert not any(word in str(collector.spans) for word in ("secreta", "Segredo", KEY_OF_ACME))


async def test_a_batch_is_one_span_with_the_attempts_of_all() -> None:
    with a_collector() as collector:
        async with traced(collector) as (post, client):
            plain = an_email(html="", text="t")
            items = [an_email(), plain, an_email(tags=["t"]), an_email(to="?")]
            answer = await client.post(
                "/v1/email/batch", json={"messages": items}, headers={"traceparent": CALLER}
            )
            answer_in(answer)
            await work(post)

        batch = collector.one(BATCH)
        assert (batch.trace, batch.parent) == (TRACE, SPAN)
        assert batch.attributes["messaging.batch.message_count"] == 4
        assert [each.parent for each in collector.named(ATTEMPT)] == [batch.id] * 3


async def test_the_table_queue_continues_a_trace() -> None:
    with a_collector() as collector:
        async with traced(collector) as (post, client):
            await post.backend.templates.define(
                NewTemplate(ACME, "welcome", subject="Oi", text="Oi")
            )
            body = {"p_template_type": "welcome", "p_recipient_email": "ana@example.com"}
            answer = await client.post(
                "/rest/v1/rpc/enqueue_email", json=body, headers={"traceparent": CALLER}
            )
            assert answer.status_code == 200, answer.text
            await work(post)

        request = collector.one("POST /rest/v1/rpc/enqueue_email")
        assert (request.trace, collector.one(ATTEMPT).parent) == (TRACE, request.id)


async def test_a_bad_header_begins_a_new_trace() -> None:
    """As W3C has it, it is never an error; neither is none, or one that is there twice."""
    with a_collector() as collector:
        async with traced(collector) as (post, client):
            await sent(client)
            await sent(
                client, headers={"traceparent": "00-" + "0" * 32 + "-1-01", "tracestate": "a=1"}
            )
            twice = [("traceparent", CALLER), ("traceparent", CALLER)]
            answer = await client.post("/v1/email/send", json=an_email(), headers=twice)
            answer_in(answer, 202)
            await work(post)

        requests = collector.named(SEND)
        assert [each.parent for each in requests] == ["", "", ""]
        assert len({each.trace for each in requests} | {TRACE}) == 4
        assert {each.state for each in requests} == {""}
        assert {each.parent for each in collector.named(ATTEMPT)} == {each.id for each in requests}


async def test_refused_requests_of_a_tenant_have_spans_and_those_of_strangers_none() -> None:
    """Without a key nobody can make spans."""
    with a_collector() as collector:
        async with traced(collector) as (post, client):
            for body in (an_email(subject=""), {"to": 7}):
                await client.post("/v1/email/send", json=body)
            async with a_client(post, key="ck_nobody") as stranger:
                assert (await stranger.post("/v1/email/send", json=an_email())).status_code == 401
            assert (await client.get("/v1/emails")).status_code == 200

        statuses = [each.attributes["http.response.status_code"] for each in collector.spans]
        assert sorted(statuses) == [400, 422]


async def test_a_tenant_over_its_limit_has_whole_traces_or_none() -> None:
    """Mail beyond it is sent without spans, and a batch is traced as a whole or not at all."""
    with a_collector() as collector:
        async with traced(collector, spans_per_minute_per_tenant=6) as (post, client):
            items = {"messages": [an_email(), an_email(), an_email()]}
            answer_in(await client.post("/v1/email/batch", json=items))  # 7 spans
            await sent(client)
            await sent(client)
            await sent(client)
            async with a_client(post, key=KEY_OF_BRASA) as other:
                await sent(other)
            await work(post)
            assert await post.backend.reading.states() == {State.SENT: 7}

        tenants = [each.attributes["carteiro.tenant"] for each in collector.named(SEND)]
        assert sorted(tenants) == ["acme", "acme", "brasa"]
        assert {each.parent for each in collector.named(ATTEMPT)} == {
            each.id for each in collector.named(SEND)
        }
        assert not collector.named(BATCH)


async def test_the_header_is_ignored_while_tracing_is_off() -> None:
    """Nothing is stored for a client that always sends the header."""
    async with opened("memory://") as post, a_client(post) as client:
        answer = await sent(client, headers={"traceparent": CALLER})

        assert FIELD not in str((await row_of(post, answer["outboxId"])).content)


async def test_a_request_that_fails_is_found_by_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its span has the status, its line the id; neither has the text of the error."""
    with a_collector() as collector, logged() as lines:
        async with traced(collector) as (post, client):
            monkeypatch.setattr(post.accepting._gathered, "write", _fail)
            answer = await client.post(
                "/v1/email/send", json=an_email(), headers={"traceparent": CALLER}
            )
            assert answer.status_code == 503

    span = collector.one(SEND)
    assert (span.failed, span.attributes["error.type"]) == (True, "503")
    [line] = [each for each in lines if each["event"] == "request.failed"]
    assert line["traceId"] == TRACE


async def _fail(_: Any) -> Any:
    raise StoreUnavailable("no room")
