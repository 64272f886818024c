"""Who is asking: the tenant or the administrator that a key speaks for."""

import time
from collections.abc import Collection, Mapping

from starlette.requests import Request

from carteiro.api.access_keys import hash_key
from carteiro.api.in_flight import SHARE, InFlight
from carteiro.api.networks import Networks, client_address
from carteiro.api.refusal import forbidden, token_needed, unauthorized
from carteiro.errors import StoreError
from carteiro.model import Key, KeyId, Tenant, value
from carteiro.observability import log
from carteiro.ports import Keys, Tenants
from carteiro.runtime.batcher import Gatherer
from carteiro.runtime.fresh import Fresh

_NOTED_EVERY_S = 60.0
_MOST_REMEMBERED = 10_000
_LONGEST_KEY = 256


@value
class Caller:
    """Whom a live key speaks for; ``tenant`` None: an administrator."""

    key: Key
    tenant: Tenant | None
    networks: Networks  # none: any


class KeyRing:
    """Looks keys up, and remembers for a few seconds those that fit. Keeps hashes, never keys.

    That a key was used is noted about once a minute, after the request went on.
    """

    def __init__(
        self, keys: Keys, tenants: Tenants, *, proxies: Networks, in_flight: InFlight
    ) -> None:
        self._keys = keys
        self._in_flight = in_flight
        self._tenants = tenants
        self._proxies = proxies
        self._callers = Fresh(self._look_up, most=_MOST_REMEMBERED)
        self._noted: dict[KeyId, float] = {}
        self._note: Gatherer[KeyId, None] = Gatherer(self._write_used)

    async def tenant_of(self, request: Request) -> Tenant:
        """The tenant that is asking; a `Refusal` if no tenant is, or not from where it may, or too often at once.

        What only reads waits here while as many others of the tenant read as may at once.
        """
        caller = await self._caller(request.headers)
        if caller is None or caller.tenant is None:
            raise unauthorized()
        if caller.networks:
            address = client_address(request, proxies=self._proxies)
            if address is None or address not in caller.networks:
                raise forbidden()
        self._in_flight.begin(request.scope, caller.tenant.id)
        if request.method == "GET":
            await request.scope[SHARE].read()
        return caller.tenant

    async def administrator_of(self, request: Request) -> Key:
        """The token of the administrator who is asking; a `Refusal` if it is someone else."""
        caller = await self._caller(request.headers)
        if caller is None or caller.tenant is not None:
            raise token_needed()
        self._in_flight.begin(request.scope, None)
        return caller.key

    def forget(self) -> None:
        """See what was just changed at once."""
        self._callers.clear()

    async def _caller(self, headers: Mapping[str, str]) -> Caller | None:
        key = key_in(headers)
        if not 0 < len(key) <= _LONGEST_KEY:
            return None
        key_hash = hash_key(key)
        return (await self._callers.find((key_hash,))).get(key_hash)

    async def _look_up(self, hashes: Collection[str]) -> Mapping[str, Caller]:
        """Callers of the keys that fit; the others are left out: guesses must not fill the memory."""
        callers = {each: found for each in hashes if (found := await self._found(each)) is not None}
        now = time.monotonic()
        for caller in callers.values():
            self._note_use(caller.key.id, now)
        return callers

    async def _found(self, key_hash: str) -> Caller | None:
        key = await self._keys.holder(key_hash)
        if key is None:
            return None
        if key.tenant is None:
            return Caller(key, None, Networks(()))
        [tenant] = await self._tenants.find([key.tenant])
        if tenant is None or tenant.disabled:
            return None
        return Caller(key, tenant, Networks(tenant.allowed_networks))

    def _note_use(self, key: KeyId, now: float) -> None:
        if now - self._noted.get(key, -_NOTED_EVERY_S) < _NOTED_EVERY_S:
            return
        if len(self._noted) >= _MOST_REMEMBERED:
            self._noted.clear()
        self._noted[key] = now
        self._note(key)

    async def _write_used(self, ids: list[KeyId]) -> list[None]:
        try:
            await self._keys.used(ids)
        except StoreError as error:  # nobody waits for it: the next use is noted again
            log.unexpected("keys.used", error)
        return [None] * len(ids)


def key_in(headers: Mapping[str, str]) -> str:
    """The key that a request shows; empty if none."""
    given = headers.get("x-api-key")
    if given is not None:
        return given
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    return headers.get("apikey", "")  # as Supabase's clients send it
