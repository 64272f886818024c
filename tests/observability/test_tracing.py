"""The export of spans: it holds up nobody, and ends in time."""

import asyncio
import io
from datetime import timedelta
from typing import Any

import orjson
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from carteiro.app import Carteiro
from carteiro.config import load, spec_of
from carteiro.model import (
    Dead,
    DeadReason,
    End,
    KindName,
    Late,
    NotMade,
    Rejected,
    Retry,
    Sent,
    Settled,
    State,
    Taken,
)
from carteiro.observability import log
from carteiro.observability.otel import OtelTracing
from carteiro.observability.otlp import Telling, exporter_of, takes_traces
from carteiro.observability.tracing import Made
from carteiro.policy.span_budget import SpanLimits
from carteiro.policy.trace_context import TraceContext, span_id_of, with_trace
from support.builders import a_failure
from support.collector import CALLER, SPAN, TRACE, a_collector, settings_of
from support.library import work
from support.services import free_port
from support.working import a_job

MAIL = {"tenant": "acme", "to": "ok@sandbox.test", "subject": "Oi", "text": "Oi"}
CALLERS = TraceContext(TRACE, SPAN, is_sampled=True)
MANY = SpanLimits(of_all=1_000_000, of_one=1_000_000)


class Waiting(SpanExporter):
    """Takes spans, and keeps none of them."""

    def __init__(self) -> None:
        self.exported = 0

    def export(self, spans: Any) -> SpanExportResult:
        self.exported += len(spans)
        return SpanExportResult.SUCCESS


async def test_a_collector_that_hangs_holds_up_nobody() -> None:
    """All mail is sent while it says nothing; the spans that wait are bounded, and so is the end."""
    with a_collector(answers=False) as collector:
        async with Carteiro.open("memory://", tracing=settings_of(collector)) as post:
            for _ in range(50):
                await post.send(**MAIL, traceparent=CALLER)
            await work(post)

            assert await post.backend.reading.states() == {State.SENT: 50}
            assert isinstance(post.tracing, OtelTracing)
            processor = post.tracing._processor._batch_processor
            assert processor._queue.maxlen == 2048
            closing = asyncio.get_running_loop().create_task(
                asyncio.to_thread(post.tracing.close, within=0.05)
            )
            await closing  # the block's own end comes after it, and finds nothing to do
        assert collector.spans == []


async def test_an_unreachable_collector_is_reported_once() -> None:
    """And once more when it is back. Spans in between are lost, and nothing else is."""
    lines = io.BytesIO()
    log.configure("info", lines)
    with a_collector() as collector:
        telling = Telling(exporter_of(collector.url), collector.url)
        for status in (400, 400, 200, 200):
            collector.status = status
            telling.export([])
        telling.shutdown()
    log.configure("off")

    events = [
        (each["event"], each["level"]) for each in map(orjson.loads, lines.getvalue().splitlines())
    ]
    assert events == [("traces.away", "warn"), ("traces.back", "info")]


def test_spans_that_nobody_takes_are_dropped_not_kept() -> None:
    """The queue has room for a bounded number; a worker that makes more loses the oldest of them."""
    exporter = Waiting()
    tracing = OtelTracing(exporter, MANY)
    processor = tracing._processor._batch_processor
    with processor._export_lock:  # as if an export took for ever
        for _ in range(5000):
            with tracing.sending("task", 1):
                pass
        assert len(processor._queue) == 2048
    tracing.close()
    assert exporter.exported == 2048


def test_closing_exports_what_is_left() -> None:
    exporter = Waiting()
    tracing = OtelTracing(exporter, MANY)
    with tracing.sending("task", 1):
        pass
    tracing.close()
    assert exporter.exported == 1


def test_an_endpoint_is_probed_with_no_spans() -> None:
    with a_collector() as collector:
        assert takes_traces(collector.url)
        assert takes_traces(collector.url + "/")
        for status in (
            403,
            301,
            302,
            307,
        ):  # the SDK takes a redirect for success, and follows none
            collector.status = status
            assert not takes_traces(collector.url), status
    assert not takes_traces(f"http://127.0.0.1:{free_port()}")
    assert collector.spans == []


async def test_lines_of_messages_have_the_ids_of_their_spans() -> None:
    """In every line of an attempt, for what is not sampled, too; without tracing in none."""
    lines = io.BytesIO()
    log.configure("info", lines)
    with a_collector() as collector:
        async with Carteiro.open("memory://", tracing=settings_of(collector)) as post:
            sent = await post.send(**MAIL, traceparent=CALLER[:-1] + "0")
            await work(post)
        async with Carteiro.open("memory://") as post:
            await post.send(**MAIL, traceparent=CALLER)
            await work(post)
    log.flush()
    log.configure("off")

    written = [orjson.loads(each) for each in lines.getvalue().splitlines()]
    traced, plain = [each for each in written if each["event"] == "attempt.finished"]
    assert (traced["traceId"], traced["spanId"]) == (TRACE, span_id_of(sent.id, 1))
    assert "traceId" not in plain


def test_a_ticket_is_one_execution_in_its_own_trace_or_the_given_one() -> None:
    """Its handler runs in the span; a failure is the type of the error, and goes on to the caller."""
    with a_collector() as collector:
        tracing = OtelTracing(exporter_of(collector.url), MANY)
        headers = [("traceparent", CALLER.encode())]
        first: dict[str, str] = {}

        def fail() -> None:
            with tracing.ticket("t|0|1", "BUILD", 1, headers):
                first.update(tracing.carried())
                raise ConnectionError("the secret reason")

        with pytest.raises(ConnectionError):
            fail()
        with tracing.ticket("t|0|1", "BUILD", 2, headers):
            pass
        with tracing.ticket("t|0|2", "BUILD", 1, [("traceparent", b"?")]):
            pass
        with tracing.ticket("t|0|3", "BUILD", 1, [("traceparent", CALLER[:-1].encode() + b"0")]):
            assert tracing.carried() == {"traceparent": CALLER[:-1] + "0"}
        tracing.close()

    failed, again, own = collector.named("process BUILD")
    assert (failed.trace, failed.failed, failed.attributes["error.type"]) == (
        *(TRACE, True, "ConnectionError"),
    )
    assert first == {"traceparent": f"00-{TRACE}-{failed.id}-01"}
    assert (again.trace, again.links) == (TRACE, [failed.id])
    assert own.parent == ""
    assert own.trace != TRACE
    assert "secret" not in str(collector.spans)


def test_all_spans_of_a_process_have_ids_that_differ() -> None:
    """An id that is set for one span does not become that of another."""
    seen: list[ReadableSpan] = []

    class Keeping(Waiting):
        def export(self, spans: Any) -> SpanExportResult:
            seen.extend(spans)
            return super().export(spans)

    tracing = OtelTracing(Keeping(), MANY)
    for number in range(3):
        with tracing.ticket("t|0|1", "BUILD", number + 1, []), tracing.sending("task", 1):
            pass
    tracing.close()

    ids = [each.context.span_id for each in seen if each.context is not None]
    assert len(set(ids)) == 6


async def test_a_late_result_has_a_span_of_its_own() -> None:
    """A kind whose attempts are not declared may number two of them alike: the late one has another id."""
    with a_collector() as collector:
        tracing = OtelTracing(exporter_of(collector.url), MANY)
        job = a_job(kind=KindName("task"), content=with_trace("{}", CALLERS), attempts=1)
        made = Made("task", 2, 1.0, 2.0, 3.0, Taken(""), is_counted=False, call=None)
        end = End(job.lease, Sent("task", ""))
        tracing.ended(job, made, end, Settled(State.SENT))
        tracing.ended(job, made, end, Late(State.SENT))
        tracing.close()

    usual, late = sorted(collector.spans, key=lambda each: "carteiro.late" in each.attributes)
    assert usual.id == span_id_of(job.lease.job, 2) != late.id
    assert late.attributes["carteiro.late"]
    assert {each.trace for each in (usual, late)} == {TRACE}
    assert usual.links == late.links == [span_id_of(job.lease.job, 1)]
    assert (usual.began - usual.ended) < 0


async def test_a_call_that_was_not_made_has_no_span() -> None:
    """No connection was free: the attempt says so, and the provider was not called."""
    with a_collector() as collector:
        tracing = OtelTracing(exporter_of(collector.url), MANY)
        job, failure = a_job(content=with_trace("{}", CALLERS)), a_failure()
        made = Made("smtp", 1, 1.0, 2.0, 3.0, NotMade(failure), is_counted=True, call={})
        retry = Retry(timedelta(seconds=1), charged=False, failure=failure)
        tracing.ended(job, made, End(job.lease, retry), Settled(State.RETRY_SCHEDULED))
        tracing.close()

    [span] = collector.spans
    assert (span.name, span.attributes["error.type"]) == ("process email:send", failure.code)


def test_texts_of_relays_and_tasks_are_in_no_span() -> None:
    """The id of a mail may be the whole answer of a relay, the code of a task any text: both may be addresses."""
    with a_collector() as collector:
        tracing = OtelTracing(exporter_of(collector.url), MANY)
        job = a_job(content=with_trace("{}", CALLERS))
        for answer in ("250 mail for ana@example.com taken", "4Zx-1.b"):
            taken = Made("smtp", 1, 1.0, 2.0, 3.0, Taken(answer), is_counted=True, call={})
            tracing.ended(job, taken, End(job.lease, Sent("smtp", answer)), Settled(State.SENT))
        failed = Rejected(a_failure("no ana@example.com"))
        made = Made("task", 1, 1.0, 2.0, 3.0, failed, is_counted=True, call=None)
        dead = Dead(DeadReason.PERMANENT_ERROR, failed.failure, charged=True)
        tracing.ended(job, made, End(job.lease, dead), Settled(State.FAILED))
        tracing.close()

    assert "ana@" not in str(collector.spans)
    ids = [each.attributes.get("carteiro.provider_message_id") for each in collector.spans]
    assert [each for each in ids if each] == ["4Zx-1.b"]
    assert [each.attributes["error.type"] for each in collector.spans if each.failed] == ["OTHER"]


def test_calls_have_the_attributes_of_their_protocol() -> None:
    """As the conventions of OpenTelemetry name them; without accounts and keys."""
    settings = load(
        environ={},
        overrides={
            "smtp.host": "relay.example.com",
            "smtp.port": 2525,
            "resend.url": "https://api.example.com/v1",
        },
    )
    for name, wanted in {
        "smtp": {
            "server.address": "relay.example.com",
            "server.port": 2525,
            "network.protocol.name": "smtp",
            "network.transport": "tcp",
        },
        "ses:eu-west-1": {
            "rpc.system": "aws-api",
            "rpc.service": "SESv2",
            "rpc.method": "SendEmail",
            "cloud.region": "eu-west-1",
        },
        "resend": {
            "http.request.method": "POST",
            "url.template": "/emails",
            "server.address": "api.example.com",
        },
        "sandbox": {},
    }.items():
        assert spec_of(name).span(settings, name.partition(":")[2]) == wanted, name
