"""Which provider this installation chose, so that no process delivers to the sandbox what was meant for another.

The sandbox is the default, and a process that was started without its settings (from cron, in another shell, on another
machine) has the default. So the store remembers the provider that was set last, and a real one until another real one
is set. A worker that was given none refuses to send while the store names another: it asks after each claim,
except of tasks alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from carteiro.config import Settings
from carteiro.config.providers import is_remote, specs
from carteiro.config.values import provider_names
from carteiro.errors import ConfigError
from carteiro.model import EMAIL, Claimed, ClaimId
from carteiro.ports import Marks, Store

_MARK = "provider"
_AND = " | "  # between the provider and those of routes


def is_chosen(settings: Settings) -> bool:
    """True if the provider was set explicitly, even to the sandbox."""
    return settings.origin("provider") != "default"


async def remember(settings: Settings, marks: Marks) -> None:
    """Keep the choice of these settings, if they make one: the provider, and those that routes lead to.

    A choice of the sandbox does not replace a real one: processes that made that may still accept mail.
    """
    choice = _choice(settings)
    known = await marks.find(_MARK) or ""
    if choice not in {"", known} and (_is_real(choice) or not _is_real(known)):
        await marks.put(_MARK, choice)


async def remember_real(settings: Settings, marks: Marks) -> None:
    """Keep the choice of a single command only if it keeps mail from the sandbox that no process did so far.

    A command in another folder has other settings: they must not undo the choice of workers.
    """
    choice = _choice(settings)
    if _is_real(choice) and not _is_real(await marks.find(_MARK) or ""):
        await marks.put(_MARK, choice)


def _choice(settings: Settings) -> str:
    routes = _routes(settings)
    is_made = is_chosen(settings) or routes
    return _AND.join([settings.provider, *sorted(routes)]) if is_made else ""


def _is_real(choice: str) -> bool:
    """True if it names a provider that hands mail over to the world; one that is not known here may."""
    names = [name for each in choice.split(_AND) for name in provider_names(each) if name]
    return any(name not in specs() or is_remote(name) for name in names)


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


def checked_store(
    store: Store, settings: Settings, marks: Marks, refuse: Callable[[ConfigError], None]
) -> Store:
    """The store as a worker with these settings may use it; ``refuse`` must stop the worker.

    With a provider set it is the store itself. Without one, each claim is checked, except of tasks alone, and undone if
    another process has set one. That process remembers its provider before it accepts mail, so a check after the claim
    misses none.
    """
    if is_chosen(settings):
        return store
    return cast("Store", _CheckedStore(store, settings, marks, refuse))


@dataclass(eq=False)
class _CheckedStore:
    _store: Store
    _settings: Settings
    _marks: Marks
    _refuse: Callable[[ConfigError], None]

    def __getattr__(self, name: str) -> object:
        """All but claims."""
        return getattr(self._store, name)

    async def claim(self, *, claim_id: ClaimId, **asked: Any) -> Claimed:  # noqa: ANN401 - as the store has it
        """As the store; nothing if the worker is refused."""
        claimed = await self._store.claim(claim_id=claim_id, **asked)
        if claimed.jobs and EMAIL not in {job.kind for job in claimed.jobs}:
            return claimed  # tasks wait for no answer
        try:
            await check(self._settings, self._marks)
        except ConfigError as error:
            self._refuse(error)
            await self._store.undo_claims([claim_id])
            return Claimed([], None)
        return claimed
