"""The handler of those without Python: tickets are posted to an address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http.cookiejar import DefaultCookiePolicy

import httpx

from carteiro.errors import DeliveryFailed
from carteiro.model import Category, Failure, Scope
from carteiro.observability.tracing import Tracing
from carteiro.policy.classify import network
from carteiro.tickets.ticket import Ticket

_WORTH_ANOTHER_TRY = frozenset({408, 409, 421, 423, 425, 429})
_LONGEST_QUOTE, _LONGEST_HEARD = 500, 65_536  # bytes
_CONNECT_LIMIT = timedelta(seconds=10)


@dataclass(frozen=True)
class HttpHandler:
    """Posts each ticket as it came; 2xx is done, 5xx and what may pass is tried again, any other answer is for good.

    How long an answer may take is the time limit of its type. Redirects are not followed: a ticket goes
    where the operator said, and nowhere else. Cookies are not kept: one ticket knows nothing of another.
    """

    url: str
    client: httpx.AsyncClient
    tracing: Tracing | None = None

    async def __call__(self, ticket: Ticket) -> None:
        """Post it; raises what the answer means."""
        headers = _headers(ticket)
        if self.tracing is not None:
            headers = {**headers, **self.tracing.carried()}
        asked = self.client.stream("POST", self.url, content=ticket.record.body, headers=headers)
        try:
            async with asked as answer:
                said = await _start_of(answer)
                if not answer.is_success:
                    raise DeliveryFailed(_failure(answer, said))
        except httpx.HTTPError as error:
            raise DeliveryFailed(network(f"{type(error).__name__}: {error}")) from None


def http_client(connections: int) -> httpx.AsyncClient:
    """The client that all types share."""
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    timeout = httpx.Timeout(None, connect=_CONNECT_LIMIT.total_seconds())
    client = httpx.AsyncClient(
        limits=limits,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        headers={"accept-encoding": "identity"},  # what is little must not become much
    )
    client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return client


async def _start_of(answer: httpx.Response) -> str:
    """Return the start of an answer. It is read to its end to reuse the connection, unless it is long."""
    start, heard = b"", 0
    async for piece in answer.aiter_raw():
        start += piece[: _LONGEST_QUOTE - len(start)]
        heard += len(piece)
        if heard > _LONGEST_HEARD:
            break
    return start.decode(errors="replace")


def _failure(answer: httpx.Response, said: str) -> Failure:
    may_pass = answer.status_code in _WORTH_ANOTHER_TRY or answer.is_server_error
    return Failure(
        code=f"HTTP_{answer.status_code}",
        category=Category.TRANSIENT_ERROR if may_pass else Category.PERMANENT_ERROR,
        retryable=may_pass,
        scope=Scope.PROVIDER if may_pass else Scope.MESSAGE,
        reason=f"HTTP {answer.status_code}: {said}",
        rule="http",
    )


def _headers(ticket: Ticket) -> Mapping[str, str]:
    return {
        "content-type": "application/json",
        "idempotency-key": _as_ascii(ticket.id),
        "ticket-id": _as_ascii(ticket.id),
        "ticket-type": _as_ascii(ticket.type),
        "ticket-attempt": str(ticket.attempt),
    }


def _as_ascii(name: str) -> str:
    return name if name.isascii() else name.encode().hex()
