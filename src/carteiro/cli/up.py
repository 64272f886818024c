"""``carteiro up``: API, worker and upkeep in one process."""

import json
import shlex
import socket
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from ipaddress import ip_address
from typing import Annotated

import typer
from fastapi import FastAPI
from rich.console import Console

from carteiro.api.access_keys import make_key
from carteiro.app import Carteiro
from carteiro.cli import process
from carteiro.cli.admin_token import FIRST_TOKEN, first_admin_token
from carteiro.cli.desk import Place, grouped
from carteiro.cli.exit_codes import NotNow
from carteiro.cli.first_tenant import FIRST_TENANT, add_first_tenant
from carteiro.cli.key import added
from carteiro.cli.metrics import metrics_parts
from carteiro.cli.options import Host, NoConsole, Port, ProviderName, console_choice
from carteiro.cli.process import Part, run_together, stop_on_signals
from carteiro.cli.server import address_of, http_server, listen
from carteiro.cli.worker import worker_part
from carteiro.config import Settings
from carteiro.model import Tenant, Via
from carteiro.policy.masking import masked_url
from carteiro.ports import Backend
from carteiro.providers import choice
from carteiro.providers.email_kind import routes_of
from carteiro.providers.registry import is_paced
from carteiro.runtime.acting import acting_as, on_this_machine

_PLAYED = "Send a first e-mail:"
_REAL = "Send a first e-mail. It is a real one: replace YOUR_ADDRESS with your own address:"


@grouped
def up(  # noqa: PLR0913 - one for each option
    *,
    new_key: Annotated[bool, typer.Option("--new-key", help="Create another API key.")] = False,
    provider: ProviderName = None,
    host: Host = None,
    port: Port = None,
    no_console: NoConsole = False,
    place: Place,
) -> None:
    """Run the API with the console and a worker, with upkeep, until SIGTERM or Ctrl-C."""
    own = {"api.host": host, "api.port": port, **console_choice(no_console=no_console)}
    settings = place.settings(provider=provider, **own)
    # First of all: if the port is in use, nothing was opened or created.
    with listen(settings.api.host, settings.api.port) as listener:
        process.run(serve(settings, listener, new_key=new_key), settings=settings)


async def serve(
    settings: Settings, listener: socket.socket, *, new_key: bool = False, works: bool = True
) -> None:
    """Serve on the listener until a signal comes, with a worker if ``works``."""
    stop = stop_on_signals()
    async with Carteiro.open(settings=settings) as post:
        post.alert_loops.channels()  # before anything is created or shown
        if works:
            await choice.check(settings, post.backend.marks)
        pages = metrics_parts(post)
        await add_first_tenant(post.backend)
        with acting_as(on_this_machine(Via.CLI)):
            key, token = await _secrets_to_show(post.backend, new_key=new_key)
        from carteiro.api.application import create_api  # noqa: PLC0415 - expensive, and only for servers

        api = create_api(post, works=works)
        grace = settings.delivery.grace
        server = http_server(api, listener, grace=grace, bounds=settings.api)
        server = replace(server, stop=_both(api.state.inbox_watch.close, server.stop))
        _greet(settings, address_of(listener))
        if settings.console.enabled:
            server = _with_console(api, post, server, listener)
        _announce(settings, address_of(listener), key, token, works=works)
        workers = [worker_part(post)] if works else []
        async with nullcontext() if works else post.alert_loops.running():
            await run_together([*workers, server, *pages], stop)


def _with_console(api: FastAPI, post: Carteiro, server: Part, listener: socket.socket) -> Part:
    """The same server with the console, whose streams end when it stops; people see where it is."""
    from carteiro.console.site import add_console  # noqa: PLC0415 - as the API

    site = add_console(api, post)
    address = f"{address_of(listener)}/console"
    shown = _lines_to_copy()
    shown.print(f"Console, for people in a browser: {address}/")
    if ip_address(listener.getsockname()[0]).is_loopback:
        shown.print("Sign in once on this machine, within 10 minutes, with this link:")
        shown.print(f"  {address}/link/{site.door.links.make()}\n", style="bold")
    else:
        shown.print("Sign in with an admin token.\n")
    return replace(server, stop=_both(site.close, server.stop))


def _both(first: Callable[[], None], second: Callable[[], None]) -> Callable[[], None]:
    def stop() -> None:
        first()
        second()

    return stop


async def _secrets_to_show(backend: Backend, *, new_key: bool) -> tuple[str | None, str | None]:
    """A key of the first tenant and an admin token; None if they existed before."""
    key = None
    if new_key or not await backend.keys.list(FIRST_TENANT):
        await backend.tenants.ensure([FIRST_TENANT])
        key = await _made_key(backend, is_asked_for=new_key)
    return key, await first_admin_token(backend.keys)


async def _made_key(backend: Backend, *, is_asked_for: bool) -> str | None:
    key = make_key()
    try:
        await added(backend.keys, Tenant(FIRST_TENANT), key)
    except NotNow:
        if is_asked_for:
            raise
        return None  # processes that start at the same moment have created and shown enough of them
    return key


def _lines_to_copy() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False)


def _greet(settings: Settings, address: str) -> None:
    console = _lines_to_copy()
    console.print(f"Carteiro listens on {address} (documentation: {address}/docs)")
    queue = f"   Queue: {masked_url(settings.queue)}" if settings.queue else ""
    store = f"Store: {masked_url(settings.store)}{queue}"
    console.print(f"{store}   Provider: {settings.provider}\n")


def _announce(
    settings: Settings, address: str, key: str | None, token: str | None, *, works: bool
) -> None:
    console = _lines_to_copy()
    if not works:
        console.print("This process sends no mail: start carteiro worker, too.\n")
    if key is not None:
        console.print(f"API key of tenant {FIRST_TENANT!r}, shown only once and stored as a hash:")
        console.print(f"  {key}\n", style="bold")
    if token is not None:
        console.print("Admin token (/admin/v1), shown only once and stored as a hash:")
        console.print(f"  {token}\n", style="bold")
    else:
        console.print("Each admin token was shown when it was created: carteiro admin-token ls.")
        rotating = "carteiro admin-token rotate. It revokes the old ones of this name."
        console.print(f"To create a new one named {FIRST_TOKEN!r}: {rotating}\n")
    if key is not None:
        console.print(_PLAYED if _is_played(settings) else _REAL)
        to = "ok@sandbox.test" if _is_played(settings) else "YOUR_ADDRESS"
        console.print(f"  {_curl(address, key, to=to)}\n")
    else:
        console.print(f"The API key of tenant {FIRST_TENANT!r} was shown when it was created.")
        console.print(f"To create another{_way_to_a_key(works=works)}. Older keys stay valid.\n")


def _way_to_a_key(*, works: bool) -> str:
    if not works:  # carteiro api has no flag for it
        return f": carteiro key add --tenant {FIRST_TENANT}"
    return (
        ", start it as you did, with --new-key added: carteiro up --new-key,"
        " or make run ARGS=--new-key"
    )


def _is_played(settings: Settings) -> bool:
    """True if no mail of this tenant leaves the machine."""
    names = routes_of(settings).of(FIRST_TENANT, None)
    return not any(is_paced(name, settings) for name in names)


def _curl(address: str, key: str, *, to: str) -> str:
    headers = ["-H", f"X-API-Key: {key}", "-H", "Content-Type: application/json"]
    body = json.dumps({"to": to, "subject": "Hello", "text": "It works."})
    return shlex.join(["curl", f"{address}/v1/email/send", *headers, "-d", body])
