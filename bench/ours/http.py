"""The HTTP API on a new SQLite file, without a worker, as `carteiro api` serves it."""

import asyncio
import socket
import tempfile
from dataclasses import replace
from pathlib import Path

from carteiro.api.access_keys import hash_key, make_key
from carteiro.api.application import create_api
from carteiro.cli.server import http_server
from carteiro.model import ApiLimits, Tenant, TenantId
from http_server import announce, listener
from ours.shared import opened, run

_TENANT = Tenant(TenantId("acme"))


async def _serve(folder: Path, listening: socket.socket) -> None:
    async with opened(folder) as post:
        key = make_key()
        unlimited = replace(_TENANT, limits=ApiLimits(None, None, None))
        await post.backend.tenants.define([unlimited])
        await post.backend.keys.add(_TENANT.id, key_hash=hash_key(key), hint=key[:6])
        part = http_server(
            create_api(post),
            listening,
            grace=post.settings.delivery.grace,
            bounds=post.settings.api,
        )
        announce(listening, key=key)
        await part.run()


def main() -> None:
    """Serve until killed."""
    with tempfile.TemporaryDirectory() as folder, listener() as listening:
        try:
            run(_serve(Path(folder), listening))
        except asyncio.CancelledError:
            return


if __name__ == "__main__":
    main()
