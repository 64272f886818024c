"""Tracing, as the rest of Carteiro sees it; `otel` does it, with the extra of the same name.

None stands for it wherever it is off, and nothing more is done then.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol, TypeAlias

from carteiro.errors import needing_extra
from carteiro.model import End, Late, LeasedJob, Outcome, Settled, TenantId, value
from carteiro.observability import log
from carteiro.policy.span_budget import SpanLimits
from carteiro.policy.trace_context import TraceContext

Headers: TypeAlias = Iterable[tuple[str, bytes | None]]


@value
class Made:
    """An attempt as a worker saw it; its times are of the monotonic clock, ``called_at`` 0 if there was no call.

    ``number`` is 0 if the job ended without an attempt. ``is_counted``: its number is of no other attempt. ``call`` are
    attributes of the provider's call; None: it was not one of a provider.
    """

    provider: str
    number: int
    received_at: float
    called_at: float
    ended_at: float
    outcome: Outcome | None
    is_counted: bool
    call: Mapping[str, str | int] | None


class RequestTrace(Protocol):
    """The span of a request that submits messages."""

    @property
    def trace_id(self) -> str:
        """The id of its trace."""

    def of(self, tenant: TenantId, messages: int = 1) -> TraceContext:
        """The context for this many messages of a tenant; not sampled if the tenant has too many spans."""

    def end(self, status: int) -> None:
        """It is answered with this status. Without a tenant there is no span."""


class Tracing(Protocol):
    """Makes spans and exports them; none of its methods waits for anything."""

    def request(self, name: str, headers: Headers, told: Mapping[str, str]) -> RequestTrace:
        """Begin the span of a request, with these attributes, below that of its caller."""

    def sending(self, kind: str, messages: int) -> AbstractContextManager[TraceContext | None]:
        """A span around a call of the library that submits messages, below the current one."""

    def ended(self, job: LeasedJob, made: Made, end: End, answer: Settled | Late) -> None:
        """Make the spans of a job that a worker has ended."""

    def around(self, deliver: "Deliver") -> "Deliver":
        """The same call, with its attempt as the current span."""

    def ticket(
        self, identity: str, kind: str, attempt: int, headers: Headers
    ) -> AbstractContextManager[None]:
        """The current span while a handler works on a ticket."""

    def carried(self) -> Mapping[str, str]:
        """The headers that continue the current span."""

    def close(self) -> None:
        """Export what is left; returns after a few seconds at most."""


@asynccontextmanager
async def open_tracing(endpoint: str | None, limits: SpanLimits) -> AsyncIterator[Tracing | None]:
    """Trace until the block ends; None: it is off. Without an ``endpoint`` the environment names it."""
    if endpoint is None:
        yield None
        return
    with needing_extra("Tracing needs", "otel"):
        from carteiro.observability.otel import open_otel  # noqa: PLC0415 - an extra, and slow to import
    tracing = open_otel(endpoint, limits)
    log.show_traces(is_on=True)
    try:
        yield tracing
    finally:
        log.show_traces(is_on=False)
        await asyncio.to_thread(tracing.close)


Deliver: TypeAlias = Callable[[Any, Any], Awaitable[Outcome]]
