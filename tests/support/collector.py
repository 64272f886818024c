"""A collector of traces on loopback: it decodes OTLP over HTTP, and answers as ordered."""

import asyncio
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2

PATIENCE_S = 20.0
CALLER = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"  # the header of a caller
TRACE, SPAN = "ab" * 16, "cd" * 8  # the ids in it


@dataclass
class Seen:
    """One span, as it was exported."""

    name: str
    trace: str
    id: str
    parent: str
    kind: str
    links: list[str]
    state: str
    failed: bool
    attributes: dict[str, Any]
    service: str
    began: int
    ended: int


@dataclass
class Collector:
    """Spans in the order of their exports. ``status`` is the answer to all that come."""

    url: str = ""
    spans: list[Seen] = field(default_factory=list)
    requests: int = 0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    may_answer: threading.Event = field(default_factory=threading.Event)

    def named(self, name: str) -> list[Seen]:
        """The spans of this name, the oldest first."""
        return sorted((each for each in self.spans if each.name == name), key=_began)

    def one(self, name: str) -> Seen:
        """The only span of this name."""
        [found] = self.named(name)
        return found

    async def until(self, name: str, many: int = 1) -> list[Seen]:
        """Wait for this many spans of a name, from another process."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.named(name)) < many:
                await asyncio.sleep(0.01)
        return self.named(name)

    def take(self, body: bytes) -> None:
        """Decode what was posted."""
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            told = {each.key: _plain(each.value) for each in resource.resource.attributes}
            for scope in resource.scope_spans:
                self.spans += [_seen(span, told["service.name"]) for span in scope.spans]


def settings_of(collector: Collector, **more: object) -> dict[str, object]:
    """The settings of an app that exports to it."""
    return {"enabled": True, "endpoint": collector.url, **more}


@contextmanager
def a_collector(*, answers: bool = True) -> Iterator[Collector]:
    """One on a free port, in threads of its own; without ``answers`` it takes requests and says nothing."""
    collector = Collector()
    if answers:
        collector.may_answer.set()

    class Posted(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests += 1
            collector.headers = {name.lower(): each for name, each in self.headers.items()}
            collector.may_answer.wait()
            if collector.status == 200:
                is_packed = self.headers.get("Content-Encoding") == "gzip"
                collector.take(gzip.decompress(body) if is_packed else body)
            try:
                self.send_response(collector.status if self.path == "/v1/traces" else 404)
                self.send_header("Content-Length", "0")
                self.end_headers()
            except OSError:  # it has not waited
                pass

        def log_message(self, format: str, *values: object) -> None:  # noqa: A002 - as above
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Posted)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    try:
        yield collector
    finally:
        collector.may_answer.set()
        server.shutdown()
        serving.join()
        server.server_close()


def _began(span: Seen) -> int:
    return span.began


def _seen(span: trace_pb2.Span, service: str) -> Seen:
    return Seen(
        name=span.name,
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        kind=trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        links=[each.span_id.hex() for each in span.links],
        state=span.trace_state,
        failed=span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        attributes={each.key: _plain(each.value) for each in span.attributes},
        service=service,
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


def _plain(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    return None if kind is None else getattr(value, kind)
