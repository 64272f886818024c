"""The viewer of a request: signed in with an admin token or the one-time link, or named by a trusted proxy."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Final

from starlette.requests import Request

from carteiro.api.access_keys import hash_key
from carteiro.api.in_flight import SHARE
from carteiro.api.intake import Office
from carteiro.api.key_ring import KeyRing
from carteiro.api.networks import Networks, client_address, counted_as
from carteiro.api.refusal import Refusal
from carteiro.console.attempts import Attempts
from carteiro.console.cookies import SESSION, cookie_of, is_from_proxy, is_secure
from carteiro.errors import ConfigError
from carteiro.model import Actor, Key, KeyId, Role, Via, value
from carteiro.runtime.acting import act_as, user

LINK_LASTS: Final = timedelta(minutes=10)
_RANDOM_BYTES = 32
_LONGEST_NAME = 128
_THIS_MACHINE = {"localhost", "127.0.0.1", "[::1]"}


class How(StrEnum):
    """The way somebody got in."""

    TOKEN = "token"  # noqa: S105 - a word, not a secret
    LINK = "link"
    PROXY = "proxy"


@value
class Viewer:
    """Somebody who is in; the token has name, role and tenant, also if there is none behind it."""

    token: Key
    how: How

    def is_same(self, other: "Viewer") -> bool:
        """True if nothing has changed that rights depend on."""
        mine, theirs = self.token, other.token
        return (mine.id, mine.name, mine.role, mine.tenant) == (
            *(theirs.id, theirs.name, theirs.role, theirs.tenant),
        )


class Links:
    """The one-time link of this machine: one at a time, for `LINK_LASTS`, used once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._hash = ""
        self._until = 0.0

    def make(self) -> str:
        """A new one; the one before is void."""
        made = secrets.token_urlsafe(_RANDOM_BYTES)
        self._hash, self._until = hash_key(made), self._clock() + LINK_LASTS.total_seconds()
        return made

    def is_valid(self, given: str) -> bool:
        """True if it is the link, and was not used."""
        is_it = secrets.compare_digest(hash_key(given), self._hash or hash_key(""))
        return is_it and bool(self._hash) and self._clock() < self._until

    def use(self, given: str) -> bool:
        """Use it up; False if it is not valid."""
        if not self.is_valid(given):
            return False
        self._hash = ""
        return True


class Door:
    """Lets people in, and knows them again by their cookie. Sign-ins are in the store: every process knows them."""

    def __init__(self, office: Office, ring: KeyRing, proxies: Networks) -> None:
        settings = office.settings.console
        if settings.user_header and not proxies:
            raise ConfigError(
                "console.user_header needs api.trusted_proxies: only a trusted proxy may name users"
            )
        self.links = Links()
        self._sign_ins = office.backend.sign_ins
        self._ring = ring
        self._proxies = proxies
        self._lasts = settings.session
        self._header, self._role = settings.user_header, settings.user_role
        self._attempts = Attempts()

    async def viewer_of(self, request: Request) -> Viewer | None:
        """The viewer of a request; None if nobody is signed in."""
        if (named := self._named_by_proxy(request)) is not None:
            return named
        secret = cookie_of(request, SESSION, secure=is_secure(request, self._proxies))
        found = await self._sign_ins.find(hash_key(secret)) if secret else None
        if found is None:
            return None
        if found.key is not None:
            return Viewer(found.key, How.TOKEN)
        # Also one that was stolen is of no use elsewhere.
        return Viewer(_made_up(found.who, Role.ADMIN), How.LINK) if self._is_here(request) else None

    async def admit(self, viewer: Viewer, request: Request) -> None:
        """Count the request and name its author; a `Refusal` from a forbidden address."""
        await self._ring.admit_to_console(viewer.token, request)

    async def sign_in(self, given: str, request: Request) -> str | None:
        """Sign in with an admin token; return the secret for the cookie, None if it is not a token."""
        address = client_address(request, proxies=self._proxies)
        who = None if address is None else counted_as(address)
        self._attempts.check(who)
        token = await self._ring.token_given(given, request)
        if token is None:
            self._attempts.failed(who)
            return None
        request.scope.pop(SHARE).end()  # that of the address, for its form
        await self._ring.admit_to_console(token, request)
        return await self._begun(token.name, token.id)

    async def sign_in_by_link(self, given: str, request: Request) -> str | None:
        """Sign in with the link; None if it is not valid, or not used on this machine."""
        if not self._is_here(request) or not self.links.use(given):
            return None
        act_as(Actor(Via.CONSOLE, user(), str(client_address(request, proxies=self._proxies))))
        return await self._begun(user(), None)

    def is_link(self, given: str, request: Request) -> bool:
        """True if the link would let this request in."""
        return self._is_here(request) and self.links.is_valid(given)

    async def sign_out(self, request: Request) -> None:
        """End the sign-in of this request."""
        secret = cookie_of(request, SESSION, secure=is_secure(request, self._proxies))
        await self._sign_ins.end(hash_key(secret))

    async def _begun(self, who: str, key: KeyId | None) -> str:
        secret = secrets.token_urlsafe(_RANDOM_BYTES)
        await self._sign_ins.begin(hash_key(secret), key=key, who=who, lasts=self._lasts)
        return secret

    def _named_by_proxy(self, request: Request) -> Viewer | None:
        if not self._header or not is_from_proxy(request, self._proxies):
            return None
        names = request.headers.getlist(self._header)
        if not any(names):
            return None
        [name, *others] = names
        if others or not name.isprintable() or len(name) > _LONGEST_NAME:
            raise Refusal(403, "The proxy names no user that can be recorded")
        return Viewer(_made_up(name, self._role), How.PROXY)

    def _is_here(self, request: Request) -> bool:
        """True on this machine, under its own name: a name of a stranger's may lead here, too."""
        address = client_address(request, proxies=self._proxies)
        host = request.headers.get("host", "")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        return address is not None and address.is_loopback and name.lower() in _THIS_MACHINE


def _made_up(who: str, role: Role) -> Key:
    return Key(KeyId(""), None, "", datetime.now(UTC), name=who, role=role)


def form_token(secret: str) -> str:
    """The token of forms that belongs to a cookie; other sites can neither read nor guess it."""
    return sha256(b"carteiro form\0" + secret.encode()).hexdigest()
