"""Export of spans over OTLP: its target, its troubles, and a probe."""

import logging
import os
from collections.abc import Sequence
from http import HTTPStatus

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from requests import HTTPError, Response, Session

from carteiro.errors import ConfigError
from carteiro.observability import log
from carteiro.policy.masking import masked_url

_PATH = "/v1/traces"
_PROTOCOL = "http/protobuf"
_OF_TRACES, _OF_ALL = "OTEL_EXPORTER_OTLP_TRACES_", "OTEL_EXPORTER_OTLP_"
# Of an operator's own connections, which we leave alone.
_SESSIONS = tuple(
    f"OTEL_PYTHON_EXPORTER_OTLP_HTTP_{of}CREDENTIAL_PROVIDER" for of in ("TRACES_", "")
)
_USUAL = "http://localhost:4318"  # if nobody names an endpoint
_PROBE_S = 3.0

# The SDK logs each failed export in its own words: `Telling` reports the first one.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


def exporter_of(endpoint: str, *, timeout: float | None = None) -> OTLPSpanExporter:
    """The exporter to a collector; to that of the environment's variables without an ``endpoint``."""
    url = f"{endpoint.rstrip('/')}{_PATH}" if endpoint else None
    session = None if any(map(os.environ.get, _SESSIONS)) else _session()
    return OTLPSpanExporter(url, timeout=timeout, session=session)


def _session() -> Session:
    """Connections that fail on a redirect: the SDK would not follow it, and take it for success."""
    session = Session()
    session.hooks["response"].append(_refuse_redirect)
    return session


def _refuse_redirect(answer: Response, **_: object) -> None:
    if answer.status_code >= HTTPStatus.MULTIPLE_CHOICES and answer.ok:
        answer.close()
        raise HTTPError(f"{answer.status_code}: it has moved to another place")


def takes_traces(endpoint: str) -> bool:
    """True if a collector accepts an empty list of spans; waits a few seconds at most."""
    exporter = exporter_of(endpoint, timeout=_PROBE_S)
    try:
        return exporter.export(()) is SpanExportResult.SUCCESS
    finally:
        exporter.shutdown()  # type: ignore[no-untyped-call] # it takes nothing


def target_of(endpoint: str) -> str:
    """Where spans go, for people; `ConfigError` if the environment names another protocol than ours."""
    named = (os.environ.get(name) for name in (_OF_TRACES + "PROTOCOL", _OF_ALL + "PROTOCOL"))
    protocol = next(filter(None, named), _PROTOCOL)
    if protocol != _PROTOCOL:
        raise ConfigError(f"{_OF_ALL}PROTOCOL = {protocol!r}: only {_PROTOCOL} is possible")
    told = (os.environ.get(name) for name in (_OF_TRACES + "ENDPOINT", _OF_ALL + "ENDPOINT"))
    return masked_url(endpoint or next(filter(None, told), _USUAL))


class Telling(SpanExporter):
    """An exporter whose first failure, and the first success after it, are in the log."""

    def __init__(self, exporter: OTLPSpanExporter, place: str) -> None:
        self._exporter = exporter
        self._place = place
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export them, in the thread that waits for it."""
        result = self._exporter.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        if is_away and not self._is_away:
            log.traces_away(self._place)
        elif self._is_away and not is_away:
            log.traces_back(self._place)
        self._is_away = is_away
        return result

    def shutdown(self) -> None:
        """Export nothing more."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # as above
