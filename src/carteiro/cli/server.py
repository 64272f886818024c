"""The HTTP server as a part of a process: listening before anything else starts, deaf to signals."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Protocol

import uvicorn
from starlette.types import ASGIApp

from carteiro.api.connection import ConnectionLimits, guarded
from carteiro.api.forwarded import PerAddress
from carteiro.api.networks import Networks
from carteiro.cli.process import Part
from carteiro.config import ApiSettings
from carteiro.errors import CarteiroError

_BACKLOG = 2048
_FILES_OF_OUR_OWN = (
    256  # of the store, of providers, of the log: connections must not take them all
)
_ADVICE = "If another one is running, --port chooses another port, 0 any that is free"
_SECOND = timedelta(seconds=1)
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to be shown, not to listen on


class Address(Protocol):
    """Where to listen; port 0 lets the system choose one."""

    @property
    def host(self) -> str:
        """A name or number of this machine, or one that means all of them."""
        ...

    @property
    def port(self) -> int:
        """The port."""
        ...


class CannotListen(CarteiroError):
    """The address is taken or not ours."""


def listen(at: Address, *, advice: str = _ADVICE) -> socket.socket:
    """A socket that listens already: whoever connects is served as soon as the server runs."""
    try:
        found = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the rest names the address again
        raise CannotListen(f"cannot listen on {at.host}:{at.port}: {reason}. {advice}") from error


def address_of(listener: socket.socket) -> str:
    """The address to tell people on this machine."""
    host, port = listener.getsockname()[:2]
    host = _ANY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def http_server(
    page: ASGIApp, listener: socket.socket, *, grace: timedelta, bounds: ApiSettings
) -> Part:
    """The page on the listener; a request that was begun may end within ``grace``.

    ``bounds`` say how long a request may take to arrive, and how many connections there may be.
    """
    limits = ConnectionLimits(
        patience=bounds.request_timeout,
        most=_within_files(bounds.max_connections),
        most_per_address=bounds.max_connections_per_address,
        proxies=Networks(bounds.trusted_proxies.split()),
    )
    config = uvicorn.Config(
        PerAddress(page, limits) if limits.proxies else page,
        http=guarded(limits),
        proxy_headers=False,  # the API itself decides whose word about addresses counts
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_graceful_shutdown=max(1, grace // _SECOND),
    )
    server = _Server(config)
    return Part(lambda: server.serve([listener]), server.stop, server.stop_now)


def _within_files(most: int) -> int:
    """As many connections as the process may have files open, less those that it needs itself."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return most
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, allowed - _FILES_OF_OUR_OWN))


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: they are for the worker too."""
        yield

    def stop(self) -> None:
        self.should_exit = True

    def stop_now(self) -> None:
        self.should_exit = self.force_exit = True
