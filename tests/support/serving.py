"""The HTTP API on a real socket, as the command line serves it."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.cli.server import http_server


@asynccontextmanager
async def served(post: Carteiro) -> AsyncIterator[int]:
    """The API of an app on a real socket, as the command line serves it; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        part = http_server(
            create_api(post),
            listener,
            grace=timedelta(seconds=5),
            bounds=post.settings.api,
        )
        serving = asyncio.create_task(part.run())
        try:
            yield listener.getsockname()[1]
        finally:
            part.stop()
            await serving
