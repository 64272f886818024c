"""The caller of a request: the tenant or the administrator of its key."""

import asyncio
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from weakref import WeakValueDictionary

from starlette.requests import Request

from carteiro.api.access_keys import hash_key
from carteiro.api.connection import Bound
from carteiro.api.in_flight import SHARE, InFlight, PerMinute, Share
from carteiro.api.networks import Address, Networks, client_address, counted_as
from carteiro.api.refusal import Refusal, forbidden, not_found, token_needed, unauthorized
from carteiro.errors import StoreError
from carteiro.model import Actor, Key, KeyId, Tenant, TenantId, Via, value
from carteiro.observability import log
from carteiro.ports import Keys, Tenants
from carteiro.runtime.acting import act_as
from carteiro.runtime.batcher import Gatherer

_FRESH_FOR_S = 5.0  # a revoked key still works, and a change is unnoticed, for at most this time
_NOTED_EVERY_S = 60.0
_MOST_REMEMBERED = 10_000
_LONGEST_KEY = 256
# Key of the token in the scope of an administrator's request.
_ADMINISTRATOR = "carteiro.administrator"


@value
class Caller:
    """The owner of a live key; ``tenant`` None: an administrator of all tenants."""

    key: Key
    tenant: Tenant | None
    networks: Networks  # empty: any

    @property
    def is_administrator(self) -> bool:
        """True if the key is an admin token, for all tenants or one."""
        return self.tenant is None or self.key.role is not None


class KeyRing:
    """Looks keys up, and caches valid ones for a few seconds. Keeps hashes, never keys.

    The use of a key is recorded about once a minute, in the background. Lookups of unknown keys are limited for each
    address and minute; keys that were valid before are not limited.
    """

    def __init__(
        self,
        keys: Keys,
        tenants: Tenants,
        *,
        proxies: Networks,
        in_flight: InFlight,
        unknown_per_minute: int = 0,
    ) -> None:
        self._keys = keys
        self._in_flight = in_flight
        self._tenants = tenants
        self._proxies = proxies
        self._unknown: PerMinute[Address | None] = PerMinute(unknown_per_minute)
        self._turns: WeakValueDictionary[Address | None, asyncio.Lock] = WeakValueDictionary()
        self._bound = Bound("unknown keys of one address", unknown_per_minute)
        self._remembered: dict[str, tuple[Caller, float]] = {}
        self._noted: dict[KeyId, float] = {}
        self._note: Gatherer[KeyId, None] = Gatherer(self._write_used)

    async def tenant_of(self, request: Request, *, accepts: bool = False) -> Tenant:
        """The tenant of the request; a `Refusal` without one, from a forbidden address, or with too many in flight.

        A request that reads or writes waits here while the tenant has the maximum of them at work, unless it
        ``accepts`` e-mails.
        """
        caller = await self._caller(key_in(request.headers), request)
        if caller is None or caller.tenant is None or caller.is_administrator:
            raise unauthorized()
        self._begin(caller, request)
        if not accepts:
            await _take_turn(request)
            if request.method != "GET":
                self._act_as(caller, request)
        return caller.tenant

    async def admit_administrator(self, request: Request) -> Key:
        """The admin token of the request, also for `token_of`; a `Refusal` if it has none.

        A token for one tenant has the networks and the limits of that tenant.
        """
        caller = await self._caller(key_in(request.headers), request)
        if caller is None or not caller.is_administrator:
            raise token_needed()
        await self._admit(caller, request, Via.API)
        return caller.key

    async def token_given(self, given: str, request: Request) -> Key | None:
        """The live admin token that a form holds; None if it is not one. A `Refusal` after too many unknown ones."""
        caller = await self._caller(given, request)
        return caller.key if caller is not None and caller.is_administrator else None

    async def admit_to_console(self, token: Key, request: Request) -> None:
        """Treat the request like one with this token, which is live; a `Refusal` if its tenant is disabled or busy."""
        caller = await self._caller_with(token)
        if caller is None:
            raise token_needed()
        await self._admit(caller, request, Via.CONSOLE)

    async def _admit(self, caller: Caller, request: Request, via: Via) -> None:
        self._begin(caller, request)
        if caller.tenant is not None:
            await _take_turn(request)
        request.scope[_ADMINISTRATOR] = caller.key
        self._act_as(caller, request, via)

    def _begin(self, caller: Caller, request: Request) -> None:
        if caller.networks:
            address = client_address(request, proxies=self._proxies)
            if address is None or address not in caller.networks:
                raise forbidden()
        self._in_flight.begin(request.scope, caller.key.tenant)

    def _act_as(self, caller: Caller, request: Request, via: Via = Via.API) -> None:
        address = client_address(request, proxies=self._proxies)
        origin, key = "" if address is None else str(address), caller.key
        is_own = not caller.is_administrator
        act_as(Actor(via, _name(key), origin, key.id or None, is_own=is_own))

    def forget(self) -> None:
        """Expire the cache: a change takes effect at once."""
        self._remembered = {key: (caller, 0.0) for key, (caller, _) in self._remembered.items()}

    async def _caller(self, key: str, request: Request) -> Caller | None:
        if not 0 < len(key) <= _LONGEST_KEY:
            return None
        key_hash = hash_key(key)
        caller, until = self._remembered.get(key_hash, (None, 0.0))
        if caller is None:
            return await self._looked_up_unknown(key, request)
        if time.monotonic() < until:
            return caller
        return await self._looked_up(key_hash)

    async def _looked_up_unknown(self, key: str, request: Request) -> Caller | None:
        """One at a time for each address: concurrent ones are counted, and equal ones looked up once."""
        key_hash = hash_key(key)
        address = client_address(request, proxies=self._proxies)
        who = None if address is None else counted_as(address)
        turn = self._turns.setdefault(who, asyncio.Lock())
        async with turn:
            if key_hash in self._remembered:
                return await self._caller(key, request)
            try:
                self._unknown.count(who, "unknown keys of one address")
            except Refusal:
                self._bound.is_reached(self._bound.most)
                raise
            caller = await self._looked_up(key_hash)
            if caller is not None:
                self._unknown.uncount(who)
            return caller

    async def _looked_up(self, key_hash: str) -> Caller | None:
        caller = await self._found(key_hash)
        if caller is None:
            self._remembered.pop(key_hash, None)
            return None  # not cached: guesses must not fill the memory
        if len(self._remembered) >= _MOST_REMEMBERED:
            self._remembered.clear()
        now = time.monotonic()
        fresh_for = _FRESH_FOR_S
        if (ends := caller.key.expires_at) is not None:
            fresh_for = min(fresh_for, (ends - datetime.now(UTC)).total_seconds())
        self._remembered[key_hash] = (caller, now + fresh_for)
        self._note_use(caller.key.id, now)
        return caller

    async def _found(self, key_hash: str) -> Caller | None:
        key = await self._keys.holder(key_hash)
        return None if key is None else await self._caller_with(key)

    async def _caller_with(self, key: Key) -> Caller | None:
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
        except StoreError as error:  # the next use is recorded again
            log.unexpected("keys.used", error)
        return [None] * len(ids)


async def _take_turn(request: Request) -> None:
    share: Share = request.scope[SHARE]
    await (share.read() if request.method == "GET" else share.write())


def token_of(request: Request) -> Key:
    """The admin token of a request that was admitted."""
    token: Key = request.scope[_ADMINISTRATOR]
    return token


def name_of(request: Request) -> str:
    """The administrator of a request that was admitted, for timelines and redrives: the same name as in audit rows."""
    return _name(token_of(request))


def _name(key: Key) -> str:
    return key.name or f"key {key.id}"


def within(request: Request, asked: str | None = None) -> TenantId | None:
    """The tenant that a request of an administrator is limited to: by its token, or as ``asked``; None: no limit.

    A token for one tenant finds no other.
    """
    own = token_of(request).tenant
    if own is None:
        return None if asked is None else TenantId(asked)
    if asked not in {None, own}:
        raise not_found("tenant")
    return own


def key_in(headers: Mapping[str, str]) -> str:
    """The key of a request; empty if it has none."""
    given = headers.get("x-api-key")
    if given is not None:
        return given
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return key.strip()
    return headers.get("apikey", "")  # as Supabase's clients send it
