"""Traces of the library: one from the call that sends through every attempt."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags

from carteiro.app import Carteiro
from carteiro.dead_letters.redrive import revise
from carteiro.errors import ConfigError, InvalidMessage, NotAccepted
from carteiro.model import Accepted, RedriveAnswer, State
from carteiro.policy.trace_context import TRACE as FIELD
from carteiro.policy.trace_context import span_id_of, trace_id_of, trace_in
from support.collector import CALLER, SPAN, TRACE, Collector, a_collector, settings_of
from support.library import row_of, work

QUICK = {"presets": {"quick": {"attempts": 3, "table_ms": [1]}}, "preset": "quick"}
MAIL = {"tenant": "acme", "to": "ok@sandbox.test", "subject": "Oi", "text": "Oi"}
ATTEMPT, CALL = "process email:send", "send sandbox"


@asynccontextmanager
async def traced(collector: Collector, **settings: Any) -> AsyncIterator[Carteiro]:
    """An app that exports to the collector; all is there when it has closed."""
    more = settings.pop("tracing", {})
    async with Carteiro.open(
        settings.pop("store", "memory://"),
        tracing=settings_of(collector, **more),
        retry=QUICK,
        **settings,
    ) as post:
        yield post


async def test_first_attempt_is_a_child_of_the_callers_span() -> None:
    """With the call of the provider as a client span below it, and nothing personal in either."""
    with a_collector() as collector:
        async with traced(collector) as post:
            sent = await post.send(
                **{**MAIL, "to": "ana.secreta@example.com", "subject": "Segredo"},
                traceparent=CALLER,
                tracestate="vendor=1",
            )
            await work(post)

        attempt, call = collector.one(ATTEMPT), collector.one(CALL)
        assert (attempt.trace, attempt.parent, attempt.kind) == (TRACE, SPAN, "CONSUMER")
        assert (call.trace, call.parent, call.kind) == (TRACE, attempt.id, "CLIENT")
        assert (attempt.state, attempt.links, attempt.failed) == ("vendor=1", [], False)
        assert attempt.attributes["messaging.message.id"] == sent.id
        assert attempt.attributes["messaging.destination.name"] == "email:send"
        assert attempt.attributes["carteiro.attempt"] == 1
        assert attempt.attributes["carteiro.state"] == "SENT"
        assert call.attributes["carteiro.outcome"] == "taken"
        assert attempt.began <= call.began <= call.ended <= attempt.ended
        assert not collector.named("send email:send")  # the caller has a span already
        assert not any(word in str(collector.spans) for word in ("secreta", "Segredo", "Oi"))


async def test_later_attempts_are_of_the_same_trace_and_linked() -> None:
    """Each is below the caller's span, and has a link to the attempt before it; its failure is a code."""
    with a_collector() as collector:
        async with traced(collector) as post:
            await post.send(**{**MAIL, "to": "greylist@sandbox.test"}, traceparent=CALLER)
            await work(post)

        attempts = collector.named(ATTEMPT)
        assert [each.attributes["carteiro.attempt"] for each in attempts] == [1, 2, 3]
        assert {(each.trace, each.parent) for each in attempts} == {(TRACE, SPAN)}
        assert [each.links for each in attempts] == [[], [attempts[0].id], [attempts[1].id]]
        assert [each.failed for each in attempts] == [True, True, False]
        assert attempts[0].attributes["error.type"] == "451"
        assert [each.parent for each in collector.named(CALL)] == [each.id for each in attempts]
        assert "Greylisted" not in str(collector.spans)


async def test_a_redrive_goes_on_with_the_trace() -> None:
    """Also an edited one: its attempts follow those before."""
    with a_collector() as collector:
        async with traced(collector) as post:
            first = await post.send(**{**MAIL, "to": "bounce-550@sandbox.test"}, traceparent=CALLER)
            await work(post)
            assert await post.redrive(first.id) is RedriveAnswer.REDRIVEN
            await work(post)
            revision = await revise(
                await row_of(post, first.id), {"to": "ok@sandbox.test"}, backend=post.backend
            )
            letters = post.backend.dead_letters
            assert await letters.redrive([first.id], by="me", revision=revision) == [
                RedriveAnswer.REDRIVEN
            ]
            await work(post)

        attempts = collector.named(ATTEMPT)
        assert [each.attributes["carteiro.state"] for each in attempts] == [
            *("FAILED", "FAILED", "SENT")
        ]
        assert {each.trace for each in attempts} == {TRACE}
        assert [each.links for each in attempts] == [[], [attempts[0].id], [attempts[1].id]]


async def test_an_attempt_in_doubt_and_its_resend_are_linked() -> None:
    """The outcome is unknown, and the next attempt says that it may be a second one."""
    with a_collector() as collector:
        limits = {"call_limit_ms": 50, "max_in_doubt_resends": 1}
        async with traced(collector, delivery=limits) as post:
            await post.send(**{**MAIL, "to": "lost-reply@sandbox.test"}, traceparent=CALLER)
            await work(post)

        first, second = collector.named(ATTEMPT)
        assert second.links == [first.id]
        assert second.attributes["carteiro.resend"]
        assert "carteiro.resend" not in first.attributes
        assert {each.attributes["carteiro.outcome"] for each in collector.named(CALL)} == {
            "unknown"
        }
        assert first.failed


async def test_a_job_that_ends_without_a_call_has_a_span() -> None:
    """A validation failed: the trace says so, and there is no client span."""
    with a_collector() as collector:
        async with traced(collector) as post:
            mail = {"tenant": "acme", "to": "ok@sandbox.test", "subject": "s"}
            await post.send(**mail, html="<script>x</script>", traceparent=CALLER)
            await work(post)

        span = collector.one(ATTEMPT)
        assert (span.trace, span.parent, span.failed) == (TRACE, SPAN, True)
        assert span.attributes["error.type"] == "INVALID_TEMPLATE"
        assert "carteiro.attempt" not in span.attributes
        assert not collector.named(CALL)


async def test_a_send_without_a_header_continues_the_current_span() -> None:
    """The span of the call is below the program's own; without one it begins a trace."""
    with a_collector() as collector:
        async with traced(collector) as post:
            here = SpanContext(
                int(TRACE, 16), int(SPAN, 16), is_remote=False, trace_flags=TraceFlags(1)
            )
            with trace.use_span(NonRecordingSpan(here)):
                await post.send(**MAIL)
            await post.send(**MAIL)
            await work(post)

        below, root = collector.named("send email:send")
        assert (below.trace, below.parent, below.kind) == (TRACE, SPAN, "PRODUCER")
        assert root.parent == ""
        assert root.trace != TRACE
        assert {(each.trace, each.parent) for each in collector.named(ATTEMPT)} == {
            *((below.trace, below.id), (root.trace, root.id))
        }


async def test_items_of_a_list_have_traces_of_their_own() -> None:
    """Those without share the span of the call; one that is not valid is ignored."""
    with a_collector() as collector:
        async with traced(collector) as post:
            items: list[Any] = [
                {**MAIL, "traceparent": CALLER},
                {**MAIL, "traceparent": "?"},
                {**MAIL, "tracestate": "a=1"},
                dict(MAIL),
                7,
            ]
            *answers, refused = await post.send_many(items)
            assert all(isinstance(each, Accepted) for each in answers)
            assert isinstance(refused, NotAccepted)
            await work(post)

        call = collector.one("send email:send")
        assert call.attributes["messaging.batch.message_count"] == 5
        parents = [each.parent for each in collector.named(ATTEMPT)]
        assert sorted(parents) == sorted([SPAN, call.id, call.id, call.id])


async def test_tasks_run_inside_of_their_attempt() -> None:
    """Whatever a handler sends goes on with its trace; a thread has the same current span."""
    seen: list[SpanContext] = []
    with a_collector() as collector:
        async with traced(collector) as post:

            @post.task("greet")
            async def greet(name: str) -> None:
                assert name == "Ana"
                await post.send(**MAIL)

            @post.task("count")
            def count(number: int) -> None:
                assert number == 7
                seen.append(trace.get_current_span().get_span_context())

            await greet.send(tenant="acme", name="Ana", traceparent=CALLER)
            await count.send_many([{"tenant": "acme", "number": 7, "traceparent": CALLER}])
            await work(post)

        greeted, counted = collector.one("process greet"), collector.one("process count")
        assert {(each.trace, each.parent) for each in (greeted, counted)} == {(TRACE, SPAN)}
        assert collector.one("send email:send").parent == greeted.id
        assert collector.one(ATTEMPT).trace == TRACE
        assert [format(each.span_id, "016x") for each in seen] == [counted.id]


async def test_a_task_that_fails_is_retried_in_its_trace() -> None:
    with a_collector() as collector:
        async with traced(collector) as post:

            @post.task("flaky")
            async def flaky() -> None:
                runs.append(1)
                if len(runs) == 1:
                    raise ConnectionError("the secret reason")

            runs: list[int] = []
            sent = await flaky.send(tenant="acme")
            await work(post)

        first, second = collector.named("process flaky")
        assert (first.failed, second.failed) == (True, False)
        assert second.links == [first.id]
        assert isinstance(sent, Accepted)
        assert [first.id, second.id] == [span_id_of(sent.id, 1), span_id_of(sent.id, 2)]
        assert "secret" not in str(collector.spans)


async def test_a_trace_that_is_not_sampled_has_no_spans() -> None:
    """The flag of the caller holds for all attempts, and is passed on."""
    with a_collector() as collector:
        async with traced(collector) as post:
            sent = await post.send(**MAIL, traceparent=CALLER.removesuffix("1") + "0")
            await work(post)
            row = await row_of(post, sent.id)

        assert collector.spans == []
        assert row.state is State.SENT


async def test_a_message_without_a_trace_has_one_of_its_own() -> None:
    """As after an INSERT by SQL: nothing is stored for it, and all attempts are of one trace."""
    with a_collector() as collector:
        async with traced(collector) as post:
            without = Carteiro(post.backend, post.settings, threads=post._threads)
            sent = await without.send(**{**MAIL, "to": "greylist@sandbox.test"})
            assert FIELD not in str((await row_of(post, sent.id)).content)
            await work(post)

        first, *later = collector.named(ATTEMPT)
        assert (first.trace, first.parent) == (trace_id_of(sent.id), "")
        assert {(each.trace, each.parent) for each in later} == {(first.trace, first.id)}


async def test_a_tenant_cannot_make_more_spans_than_its_limit() -> None:
    """Its mail is sent all the same, and others still have theirs."""
    with a_collector() as collector:
        limits = {"spans_per_minute": 1000, "spans_per_minute_per_tenant": 4}
        async with traced(collector, tracing=limits) as post:
            for _ in range(10):
                await post.send(**MAIL, traceparent=CALLER)
            await post.send(**{**MAIL, "tenant": "brasa"}, traceparent=CALLER)
            await work(post)
            assert await post.backend.reading.states() == {State.SENT: 11}

        tenants = [each.attributes["carteiro.tenant"] for each in collector.named(ATTEMPT)]
        assert sorted(tenants) == ["acme", "acme", "brasa"]


async def test_the_sampler_of_the_environment_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """All standard variables of OpenTelemetry hold: sampler, name of the service, headers, endpoint."""
    with a_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=post")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-mail")
        async with Carteiro.open("memory://", tracing={"enabled": True}) as post:
            await post.send(**MAIL)
            await work(post)
        assert {each.service for each in collector.spans} == {"shop-mail"}
        assert collector.headers["x-team"] == "post"

        collector.spans.clear()
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
        async with traced(collector) as post:
            await post.send(**MAIL)
            await post.send(**MAIL, traceparent=CALLER)
            await work(post)
        assert {each.trace for each in collector.spans} == {TRACE}

        collector.spans.clear()
        monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
        async with traced(collector) as post:
            await post.send(**MAIL, traceparent=CALLER)
            await work(post)
        assert collector.spans == []


async def test_a_protocol_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    with pytest.raises(ConfigError, match="only http/protobuf is possible"):
        async with Carteiro.open("memory://", tracing={"enabled": True}):
            raise AssertionError


async def test_tracing_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without it says how to install it; one that is off needs nothing."""
    monkeypatch.setitem(sys.modules, "carteiro.observability.otel", None)
    with pytest.raises(ConfigError, match=r"\[otel\]"):
        async with Carteiro.open("memory://", tracing={"enabled": True}):
            raise AssertionError

    async with Carteiro.open("memory://") as post:
        assert post.tracing is None


# --- off ----------------------------------------------------------------------------------------


async def test_a_given_trace_is_kept_while_tracing_is_off() -> None:
    """Another process may trace. The content of a message without one has nothing of it."""
    async with Carteiro.open("memory://") as post:
        given = await post.send(**MAIL, traceparent=CALLER, external_id="1")
        plain = await post.send(**MAIL, traceparent=CALLER)
        bad = await post.send(**MAIL, traceparent="00-nothing")
        bare = await post.send(**MAIL)

        for each in (given, plain):
            found = trace_in((await row_of(post, each.id)).content)
            assert found is not None
            assert found.trace_id == TRACE
        for each in (bad, bare):
            assert FIELD not in str((await row_of(post, each.id)).content)

        await work(post)
        assert await post.backend.reading.states() == {State.SENT: 4}


async def test_a_trace_does_not_change_what_a_key_stands_for() -> None:
    """A request that is repeated comes in another trace, and is still the same request."""
    async with Carteiro.open("memory://") as post:
        first = await post.send(**MAIL, idempotency_key="k", traceparent=CALLER)
        other = CALLER.replace("ab", "ef")

        again = await post.send(**MAIL, idempotency_key="k", traceparent=other)

        assert again.id == first.id
        found = trace_in((await row_of(post, first.id)).content)
        assert found is not None
        assert found.trace_id == TRACE


async def test_a_task_never_gets_the_trace_as_an_argument() -> None:
    """In every way to run it, with tracing on or off; and an edit cannot change it."""
    got: list[dict[str, Any]] = []
    async with Carteiro.open("memory://") as post:

        @post.task("plain")
        async def plain(**given: Any) -> None:
            got.append(given)

        @post.task("timed", timeout=timedelta(seconds=30))
        async def timed(**given: Any) -> None:
            got.append(given)

        @post.task("sync")
        def sync(**given: Any) -> None:
            got.append(given)

        @post.task("failing", retry="development")
        async def failing(number: int) -> None:
            raise InvalidMessage([])

        for task in (plain, timed, sync):
            await task.send(tenant="acme", traceparent=CALLER, tracestate="a=1")
            await task.send(tenant="acme", number=1, traceparent=CALLER)
        await work(post)
        assert sorted(map(orjson.dumps, got)) == [b'{"number":1}'] * 3 + [b"{}"] * 3

        sent = await failing.send(tenant="acme", number=1, traceparent=CALLER)
        assert isinstance(sent, Accepted)
        row = await row_of(post, sent.id)
        with pytest.raises(InvalidMessage):
            await revise(row, {FIELD: "x"}, backend=post.backend)
        revision = await revise(row, {"number": 2}, backend=post.backend)
        assert orjson.loads(revision.content)["number"] == 2
        found = trace_in(revision.content)
        assert found is not None
        assert found.trace_id == TRACE


async def test_traces_go_through_a_worker_that_does_not_trace() -> None:
    """The stored context does not change the mail that is delivered."""
    async with Carteiro.open("memory://") as post:
        sent = await post.send(**MAIL, traceparent=CALLER)
        await work(post)

        [mail] = await post.backend.inbox.list(message=sent.id)
        assert mail.subject == "Oi"
