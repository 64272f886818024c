"""Requests behind trusted proxies: limited by the address of their client."""

from collections import Counter

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from uuid_utils import uuid7

from carteiro.api.connection import Bound, ConnectionLimits
from carteiro.api.networks import Address, client_address, counted_as, parsed_address
from carteiro.api.refusal import too_busy


class PerAddress:
    """ASGI application around another one, for listeners that trust a proxy.

    A proxy's connections serve many clients, so requests in flight are counted instead.
    """

    def __init__(self, app: ASGIApp, limits: ConnectionLimits) -> None:
        self._app = app
        self._proxies = limits.proxies
        self._in_flight: Counter[Address] = Counter()
        self._most = Bound("requests of one forwarded address", limits.most_per_address)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, unless its client has too many already."""
        address = self._forwarded_for(scope)
        if address is None:
            await self._app(scope, receive, send)
            return
        if self._most.is_reached(self._in_flight[address]):
            refusal = too_busy("Too many requests of this address are in flight")
            await refusal.as_response(str(uuid7()))(scope, receive, send)
            return
        self._in_flight[address] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._in_flight[address] -= 1
            if not self._in_flight[address]:
                del self._in_flight[address]

    def _forwarded_for(self, scope: Scope) -> Address | None:
        """The client, if a trusted proxy names one that is not a trusted proxy itself."""
        request = Request(scope)
        peer = parsed_address("" if request.client is None else request.client.host)
        if peer is None or peer not in self._proxies:
            return None
        address = client_address(request, proxies=self._proxies)
        return None if address is None or address in self._proxies else counted_as(address)
