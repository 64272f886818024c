"""Who is asking: the tenant that an API key speaks for."""

import time
from collections.abc import Mapping

from carteiro.intake.http.refusal import unauthorized
from carteiro.keys import hash_key
from carteiro.model import TenantId
from carteiro.ports import Tenants

_FRESH_FOR_S = 5.0  # so long may a key that was taken away still open
_MOST_REMEMBERED = 10_000
_LONGEST_KEY = 256


class KeyRing:
    """Looks keys up, and remembers for a few seconds those that fit. Keeps hashes, never keys."""

    def __init__(self, tenants: Tenants) -> None:
        self._tenants = tenants
        self._remembered: dict[str, tuple[TenantId, float]] = {}

    async def tenant_of(self, headers: Mapping[str, str]) -> TenantId:
        """The tenant that sent these headers; a `Refusal` if they name none."""
        key = _key_in(headers)
        if not 0 < len(key) <= _LONGEST_KEY:
            raise unauthorized()
        key_hash = hash_key(key)
        tenant, until = self._remembered.get(key_hash, (None, 0.0))
        if tenant is not None and time.monotonic() < until:
            return tenant
        return await self._looked_up(key_hash)

    async def _looked_up(self, key_hash: str) -> TenantId:
        tenant = await self._tenants.of_key(key_hash)
        if tenant is None:
            self._remembered.pop(key_hash, None)
            raise unauthorized()  # not remembered: guesses must not fill the memory
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[key_hash] = (tenant, time.monotonic() + _FRESH_FOR_S)
        return tenant


def _key_in(headers: Mapping[str, str]) -> str:
    given = headers.get("x-api-key")
    if given is not None:
        return given
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
