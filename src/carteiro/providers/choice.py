"""Which provider this installation chose, so that no process delivers to the sandbox what was meant for another.

The sandbox is the default, and a process that was started without its settings (from cron, in another shell, on another
machine) has the default. So the store remembers the provider that was set last. A worker that was given none refuses to
send while the store names another.
"""

import asyncio
from datetime import timedelta

from carteiro.config import Settings
from carteiro.errors import ConfigError, StoreError
from carteiro.ports import Marks

_MARK = "provider"
_AND = " | "  # between the provider and those of routes
_EVERY = timedelta(seconds=1)


def is_chosen(settings: Settings) -> bool:
    """True if the provider was set explicitly, even to the sandbox."""
    return settings.origin("provider") != "default"


async def remember(settings: Settings, marks: Marks) -> None:
    """Keep the choice of these settings, if they make one: the provider, and those that routes lead to."""
    routes = _routes(settings)
    if not is_chosen(settings) and not routes:
        return
    choice = _AND.join([settings.provider, *sorted(routes)])
    if await marks.find(_MARK) != choice:
        await marks.put(_MARK, choice)


async def check(settings: Settings, marks: Marks) -> None:
    """Raise `ConfigError` if a worker with these settings would send to the sandbox what others send elsewhere."""
    if is_chosen(settings):
        return
    chosen = (await marks.find(_MARK) or settings.provider).split(_AND)
    others = sorted({*_routes(settings), *chosen} - {settings.provider})
    if not others:
        return
    raise ConfigError(
        f"provider is not set here, but this installation sends through {others[0]}: the mail would end in "
        f"the sandbox's inbox. Set provider (in carteiro.toml, as CARTEIRO_PROVIDER or with --provider) as the "
        f'other processes have it, or to "{settings.provider}" if that is what you want'
    )


def _routes(settings: Settings) -> set[str]:
    """Return the providers that routes lead to, other than the provider of all the rest."""
    routes = {*settings.tenant_routes.values(), *settings.type_routes.values()}
    return routes - {settings.provider}


async def until_refused(settings: Settings, marks: Marks) -> ConfigError:
    """Return why a worker with these settings must stop, once another process has chosen another provider."""
    if is_chosen(settings):
        await asyncio.Event().wait()  # for ever
    while True:
        await asyncio.sleep(_EVERY.total_seconds())
        try:
            await check(settings, marks)
        except ConfigError as error:
            return error
        except StoreError:
            continue  # nothing can be sent either
