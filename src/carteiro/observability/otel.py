"""Spans by OpenTelemetry; `otlp` exports them, in a thread of its own.

The spans of an attempt are made after its end: nothing of them exists while it runs. The id follows from the message
and the number of the attempt, so that the next attempt refers to it without a look-up, in whichever process it is made.
"""

import random
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace as api
from opentelemetry.context import Context
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
)

from carteiro import model
from carteiro.observability.otlp import Telling, exporter_of, target_of
from carteiro.observability.tracing import Deliver, Headers, Made
from carteiro.policy.failures import code_of
from carteiro.policy.span_budget import SpanBudget, SpanLimits
from carteiro.policy.trace_context import (
    TraceContext,
    read_headers,
    span_id_of,
    trace_id_of,
    trace_in,
)

_SERVICE = "carteiro"
_LAST_WORDS_S = 3.0  # for spans that were not exported when the process ends
_SERVER_ERROR = 500
_HEX = 16
# A relay whose answers have no known form has its whole answer as an id: it may quote an address.
_ID = re.compile(r"[A-Za-z0-9._+/=:-]+")
_SPANS_OF_MESSAGE = 2  # its attempt and the call; a retry is counted when it is made


class OtelTracing:
    """Spans of one process; see `Tracing`."""

    def __init__(self, exporter: SpanExporter, limits: SpanLimits) -> None:
        self._ids = _Ids()
        self._processor = BatchSpanProcessor(exporter)
        self._provider = TracerProvider(
            resource=_resource(), id_generator=self._ids, shutdown_on_exit=False
        )
        self._provider.add_span_processor(self._processor)
        self._tracer = self._provider.get_tracer(_SERVICE)
        self._accepted = SpanBudget(limits)  # whole traces are left out where messages come in
        self._processed = SpanBudget(
            limits
        )  # messages that come in by SQL are counted nowhere else

    # --- coming in ------------------------------------------------------------------------------

    def request(self, name: str, headers: Headers, told: Mapping[str, str]) -> "_Request":
        """Begin the span of a request, with these attributes, below that of its caller."""
        parent = _below(read_headers(headers))
        return _Request(
            self._tracer.start_span(name, parent, SpanKind.SERVER, told), self._accepted
        )

    @contextmanager
    def sending(self, kind: str, messages: int) -> Iterator[TraceContext | None]:
        """A span below the current one of the program; it is the parent of the messages' attempts."""
        if not self._accepted.take(kind, 1, now=time.monotonic()):
            yield None
            return
        told = _messaging("send", kind) | _of_batch(messages)
        span = self._tracer.start_span(f"send {kind}", None, SpanKind.PRODUCER, told)
        try:
            yield _context_of(span)
        except BaseException as error:
            _failed(span, type(error).__name__)
            raise
        finally:
            span.end()

    # --- attempts -------------------------------------------------------------------------------

    def ended(
        self, job: model.LeasedJob, made: Made, end: model.End, answer: model.Settled | model.Late
    ) -> None:
        """Make the span of a job that a worker has ended, and that of the provider's call below it."""
        origin, is_own = self._origin(job)
        is_made = made.outcome is not None and not isinstance(made.outcome, model.NotMade)
        is_called = is_made and made.call is not None
        spans = _SPANS_OF_MESSAGE if is_called else 1
        if not (
            origin.is_sampled and self._processed.take(job.tenant, spans, now=time.monotonic())
        ):
            return
        offset = time.time() - time.monotonic()
        identity, is_late = job.lease.job, isinstance(answer, model.Late)
        if made.number and (made.is_counted or not is_late):
            self._ids.next_span = span_id_of(identity, made.number)
        self._ids.next_trace = origin.trace_id
        is_root = is_own and made.number <= 1 and not job.attempts
        span = self._tracer.start_span(
            f"process {job.kind}",
            Context() if is_root else _below(origin),
            SpanKind.CONSUMER,
            _of_job(job, made, answer),
            _links(origin, identity, (made.number or job.attempts + 1) - 1),
            start_time=_ns(made.received_at + offset),
        )
        failure = _failure_of(made.outcome, end)
        if is_called:
            self._call(span, made, end.verdict, failure, offset)
        if failure is not None:
            _failed(span, code_of(failure))
        span.end()

    def _call(
        self,
        attempt: Span,
        made: Made,
        verdict: model.Verdict,
        failure: model.Failure | None,
        offset: float,
    ) -> None:
        """The span of a call of a provider. What the provider said may have addresses in it, and is left out."""
        told = {
            **(made.call or {}),
            "carteiro.provider": made.provider,
            "carteiro.outcome": type(made.outcome).__name__.lower(),
        }
        if isinstance(verdict, model.Sent) and _ID.fullmatch(verdict.provider_id):
            told["carteiro.provider_message_id"] = verdict.provider_id
        span = self._tracer.start_span(
            f"send {made.provider.partition(':')[0]}",
            api.set_span_in_context(attempt, Context()),
            SpanKind.CLIENT,
            told,
            start_time=_ns(made.called_at + offset),
        )
        if failure is not None:
            span.set_attribute("carteiro.error_category", failure.category.value)
            _failed(span, code_of(failure))
        span.end(_ns(made.ended_at + offset))

    def _origin(self, job: model.LeasedJob) -> tuple[TraceContext, bool]:
        """The span that the attempts of a message belong to; True if that is its own first attempt."""
        given = trace_in(job.content)
        if given is not None:
            return given, False
        return self._own(job.lease.job), True

    def _own(self, identity: str) -> TraceContext:
        """The trace of what came without one; the same in all processes, with the same sampler."""
        trace_id = trace_id_of(identity)
        decided = self._provider.sampler.should_sample(Context(), int(trace_id, _HEX), "process")
        is_sampled = decided.decision is Decision.RECORD_AND_SAMPLE
        return TraceContext(trace_id, span_id_of(identity, 1), is_sampled)

    # --- around a task or a handler -------------------------------------------------------------

    def around(self, deliver: Deliver) -> Deliver:
        """The same call, with its attempt as the current span of what it calls."""

        async def traced(parcel: Any, handover: Any) -> model.Outcome:  # noqa: ANN401 - as Deliver has them
            origin = trace_in(parcel.content) or self._own(parcel.message)
            here = replace(origin, span_id=span_id_of(parcel.message, parcel.attempt))
            with _within(_below(here)):
                return await deliver(parcel, handover)

        return traced

    @contextmanager
    def ticket(self, identity: str, kind: str, attempt: int, headers: Headers) -> Iterator[None]:
        """The span of one execution of a ticket, and the current one meanwhile."""
        given = read_headers(headers)
        origin = given or self._own(identity)
        if not (origin.is_sampled and self._processed.take(kind, 1, now=time.monotonic())):
            with _within(_below(replace(origin, is_sampled=False))):
                yield
            return
        self._ids.next_trace = origin.trace_id
        self._ids.next_span = span_id_of(identity, attempt)
        told = _messaging("process", kind) | {"messaging.system": "kafka"}
        told |= {"messaging.message.id": identity, "carteiro.attempt": attempt}
        is_root = given is None and attempt == 1
        span = self._tracer.start_span(
            f"process {kind}",
            Context() if is_root else _below(origin),
            SpanKind.CONSUMER,
            told,
            _links(origin, identity, attempt - 1),
        )
        try:
            with _within(api.set_span_in_context(span, Context())):
                yield
        except BaseException as error:
            _failed(span, type(error).__name__)
            raise
        finally:
            span.end()

    def carried(self) -> Mapping[str, str]:
        """The headers that continue the current span."""
        span = api.get_current_span()
        if not span.get_span_context().is_valid:
            return {}
        here = _context_of(span)
        return {"traceparent": here.parent} | ({"tracestate": here.state} if here.state else {})

    # --- the end --------------------------------------------------------------------------------

    def close(self, *, within: float = _LAST_WORDS_S) -> None:
        """Export what is left, no longer than this; a collector that hangs keeps nobody."""
        last = threading.Thread(target=self._provider.shutdown, name="last spans", daemon=True)
        last.start()
        last.join(within)


class _Request:
    """The span of a request; it counts only once its tenant is known."""

    def __init__(self, span: Span, budget: SpanBudget) -> None:
        self._span = span
        self._budget = budget
        self._is_made = False

    @property
    def trace_id(self) -> str:
        """The id of its trace."""
        return _context_of(self._span).trace_id

    def of(self, tenant: model.TenantId, messages: int = 1) -> TraceContext:
        """The context for messages of a tenant."""
        here = _context_of(self._span)
        if not here.is_sampled:
            return here
        spans = 1 + messages * _SPANS_OF_MESSAGE
        self._is_made = self._budget.take(tenant, spans, now=time.monotonic())
        if not self._is_made:
            return replace(here, is_sampled=False)
        self._span.set_attribute("carteiro.tenant", tenant)
        self._span.set_attributes(_of_batch(messages))
        return here

    def end(self, status: int) -> None:
        """Make the span, with this status."""
        if not self._is_made:
            return
        self._span.set_attribute("http.response.status_code", status)
        if status >= _SERVER_ERROR:
            _failed(self._span, str(status))
        self._span.end()


class _Ids(IdGenerator):
    """Ids that follow from what is traced, where they are set; otherwise random ones."""

    def __init__(self) -> None:
        self.next_trace = self.next_span = ""
        self._random = random.SystemRandom()

    def generate_trace_id(self) -> int:
        given, self.next_trace = self.next_trace, ""
        return int(given, _HEX) if given else self._random.getrandbits(128) or 1

    def generate_span_id(self) -> int:
        given, self.next_span = self.next_span, ""
        self.next_trace = ""
        return int(given, _HEX) if given else self._random.getrandbits(64) or 1


def open_otel(endpoint: str, limits: SpanLimits) -> OtelTracing:
    """Begin to trace; `ConfigError` if the environment asks for what is not there."""
    place = target_of(endpoint)
    return OtelTracing(Telling(exporter_of(endpoint), place), limits)


# --- contexts and attributes ------------------------------------------------------------------


def _below(parent: TraceContext | None) -> Context:
    """A context with this parent; without one a new trace begins."""
    if parent is None:
        return Context()
    return api.set_span_in_context(NonRecordingSpan(_span_context(parent)), Context())


@contextmanager
def _within(context: Context) -> Iterator[None]:
    """With this context as the current one of the program."""
    token = contexts.attach(context)
    try:
        yield
    finally:
        contexts.detach(token)


def _span_context(trace: TraceContext) -> SpanContext:
    return SpanContext(
        int(trace.trace_id, _HEX),
        int(trace.span_id, _HEX),
        is_remote=True,
        trace_flags=TraceFlags(int(trace.is_sampled)),
        trace_state=TraceState.from_header([trace.state]) if trace.state else None,
    )


def _context_of(span: Span) -> TraceContext:
    here = span.get_span_context()
    return TraceContext(
        api.format_trace_id(here.trace_id),
        api.format_span_id(here.span_id),
        here.trace_flags.sampled,
        here.trace_state.to_header(),
    )


def _links(origin: TraceContext, identity: str, previous: int) -> list[Link]:
    """A link to the attempt before this one, if there was one."""
    if previous < 1:
        return []
    before = TraceContext(origin.trace_id, span_id_of(identity, previous), origin.is_sampled)
    return [Link(_span_context(before), {"carteiro.link": "previous_attempt"})]


def _messaging(operation: str, kind: str) -> dict[str, Any]:
    return {
        "messaging.system": "carteiro",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": kind,
    }


def _of_batch(messages: int) -> dict[str, int]:
    return {} if messages == 1 else {"messaging.batch.message_count": messages}


def _of_job(job: model.LeasedJob, made: Made, answer: model.Settled | model.Late) -> dict[str, Any]:
    told = _messaging("process", job.kind) | {
        "messaging.message.id": job.lease.job,
        "carteiro.request_id": job.request_id,
        "carteiro.tenant": job.tenant,
    }
    if made.number:
        told["carteiro.attempt"] = made.number
    if answer.state is not None:
        told["carteiro.state"] = answer.state.value
    if isinstance(answer, model.Late):
        told["carteiro.late"] = True
    if job.in_doubt or job.open_attempt:
        told["carteiro.resend"] = True
    return told


def _failure_of(outcome: model.Outcome | None, end: model.End) -> model.Failure | None:
    failure: model.Failure | None = getattr(outcome or end.verdict, "failure", None)
    return failure


def _failed(span: Span, code: str) -> None:
    """Only the code: a text may quote anything."""
    span.set_attribute("error.type", code)
    span.set_status(Status(StatusCode.ERROR, code))


def _ns(moment: float) -> int:
    return int(moment * 1e9)


def _resource() -> Resource:
    """The name of the service is the environment's, else ours."""
    given = {}
    with suppress(metadata.PackageNotFoundError):  # run from a source tree
        given = {SERVICE_VERSION: metadata.version("carteiro")}
    found = Resource.create(given)
    if str(found.attributes[SERVICE_NAME]).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: _SERVICE}))
    return found
