"""``carteiro up``: API, worker and upkeep in one process."""

import json
import shlex
import socket
from typing import Annotated

import typer
from rich.console import Console

from carteiro.cli import process
from carteiro.cli.options import ConfigFile, ProviderName, StoreUrl
from carteiro.cli.process import run_together, stop_on_signals
from carteiro.cli.server import address_of, http_server, listen
from carteiro.cli.worker import worker_part
from carteiro.config import Settings, load
from carteiro.intake.http import create_api
from carteiro.keys import hash_key, make_key
from carteiro.model import TenantId
from carteiro.post import Carteiro

FIRST_TENANT = TenantId("default")
_FIRST_EMAIL = {"to": "ok@sandbox.test", "subject": "Hello", "text": "It works."}


def up(  # noqa: PLR0913 - a parameter per flag
    *,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make another API key.")] = False,
    config: ConfigFile = None,
    store: StoreUrl = None,
    provider: ProviderName = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="The port; 0 is any that is free.")] = None,
) -> None:
    """Run the API and a worker, with upkeep, until SIGTERM or Ctrl-C."""
    flags = {"store": store, "provider": provider, "api.host": host, "api.port": port}
    settings = load(file=config, overrides=flags)
    # Before all else: if the port is taken, nothing was opened, made or begun.
    with listen(settings.api) as listener:
        process.run(_serve(settings, listener, new_key=new_key), settings=settings)


async def _serve(settings: Settings, listener: socket.socket, *, new_key: bool) -> None:
    stop = stop_on_signals()
    async with Carteiro.open(settings=settings) as post:
        key = await _key_to_show(post, new=new_key)
        api = create_api(accept=post.accept_email, backend=post.backend)
        server = http_server(api, listener, grace=settings.delivery.grace)
        _announce(settings, address_of(listener), key)
        await run_together([worker_part(post), server], stop)


async def _key_to_show(post: Carteiro, *, new: bool) -> str | None:
    """A key of the first tenant, if it has just been made; afterwards nobody can know it."""
    tenants = post.backend.tenants
    if await tenants.has_key(FIRST_TENANT) and not new:
        return None
    key = make_key()
    await tenants.ensure([FIRST_TENANT])
    await tenants.add_key(FIRST_TENANT, hash_key(key))
    return key


def _announce(settings: Settings, address: str, key: str | None) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)  # lines to be copied whole
    console.print(f"Carteiro listens on {address} (documentation: {address}/docs)")
    console.print(f"Store: {settings.store}   Provider: {settings.provider}\n")
    if key is None:
        console.print(f"The API key of tenant {FIRST_TENANT!r} was shown when it was made.")
        console.print(
            "For another one, start it as you did, with --new-key added: carteiro up --new-key,"
            " or make run ARGS=--new-key. Older keys stay valid.\n"
        )
        return
    console.print(f"API key of tenant {FIRST_TENANT!r}, shown this once and stored as a hash only:")
    console.print(f"  {key}\n", style="bold")
    console.print("Send a first e-mail:")
    console.print(f"  {_curl(address, key)}\n")


def _curl(address: str, key: str) -> str:
    return shlex.join(
        [
            "curl",
            f"{address}/v1/email/send",
            "-H",
            f"X-API-Key: {key}",
            "-H",
            "Content-Type: application/json",
            "-d",
            json.dumps(_FIRST_EMAIL),
        ]
    )
