"""The HTTP server as a part of a process: it listens before anything else starts, and ignores signals."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import uvicorn
from starlette.types import ASGIApp

from carteiro.api.connection import ConnectionLimits, guarded
from carteiro.api.forwarded import PerAddress
from carteiro.api.networks import Networks
from carteiro.cli.process import Part
from carteiro.config import ApiSettings
from carteiro.errors import CarteiroError

_BACKLOG = 2048
_FILES_OF_OUR_OWN = 256  # for the store, providers and the log: connections must not use them all
_ADVICE = "If another process uses it, choose another port with --port; 0 is any free port"
_SECOND = timedelta(seconds=1)
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to be shown, not to listen on


class CannotListen(CarteiroError):
    """The address is in use, or not of this machine."""


def listen(host: str, port: int, *, advice: str = _ADVICE) -> socket.socket:
    """A socket that listens already: clients are served as soon as the server runs. Port 0: any free one."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]  # the rest names the address again
        raise CannotListen(f"cannot listen on {host}:{port}: {reason}. {advice}") from error


def address_of(listener: socket.socket) -> str:
    """The URL to show to people on this machine."""
    host, port = listener.getsockname()[:2]
    host = _ANY_ADDRESS.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def http_server(
    page: ASGIApp, listener: socket.socket, *, grace: timedelta, bounds: ApiSettings
) -> Part:
    """The page on the listener; requests in flight may finish within ``grace``.

    ``bounds`` limit the time of a request and the number of connections.
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
        proxy_headers=False,  # the API itself decides which proxies are trusted
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
    """The limit of connections, within the process's limit of open files less its own."""
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
