"""The HTTP API on a real socket, as the command line serves it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from starlette.types import ASGIApp

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.cli.server import http_server


@asynccontextmanager
async def served(post: Carteiro) -> AsyncIterator[int]:
    """The API of an app on a real socket, as the command line serves it; its port."""
    api = create_api(post)
    async with serving(api, post, before_stop=api.state.inbox_watch.close) as port:
        yield port


@asynccontextmanager
async def serving(
    app: ASGIApp, post: Carteiro, *, before_stop: Callable[[], None] = lambda: None
) -> AsyncIterator[int]:
    """An application on a real socket, with the bounds of this app; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        part = http_server(app, listener, grace=timedelta(seconds=5), bounds=post.settings.api)
        running = asyncio.create_task(part.run())
        try:
            yield listener.getsockname()[1]
        finally:
            before_stop()
            part.stop()
            await running
