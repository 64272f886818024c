"""People in front of the console, over real connections."""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from html import unescape
from typing import Any

import httpx

from carteiro.api.access_keys import hash_key
from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.console.site import Console, add_console
from carteiro.model import Key, Role, TenantId
from carteiro.ports import Backend
from support.every_endpoint import things_of_acme
from support.http import ADMIN_TOKEN
from support.serving import serving

_FORM_TOKEN = re.compile(r'name="form_token" value="([0-9a-f]{64})"')

_BRACES = re.compile(r"{(\w+)(?::\w+)?}")


class Person(httpx.AsyncClient):
    """Somebody with a browser without scripts: it keeps cookies, follows redirects, and fills in forms."""

    @classmethod
    def at(cls, address: str, **options: Any) -> "Person":
        """In front of the console at this address; in English."""
        headers = {"Accept-Language": "en", **options.pop("headers", {})}
        return cls(
            base_url=f"{address}/console/", headers=headers, follow_redirects=True, **options
        )

    @property
    def origin(self) -> str:
        """The origin of the console's pages."""
        return str(self.base_url.copy_with(path="/")).rstrip("/")

    async def page(self, path: str = "", status: int = 200, **query: str) -> str:
        """A page of the console, its status checked."""
        answer = await self.get(path, params=query or None)
        assert answer.status_code == status, (path, answer.text)
        return unescape(answer.text)

    async def form_token(self) -> str:
        """The token for forms, from a page that everybody has."""
        found = _FORM_TOKEN.search((await self.get("nothing-here")).text)
        assert found
        return found[1]

    async def sent(
        self,
        path: str,
        fields: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """The answer to a form, with its token and its origin unless ``fields`` and ``headers`` have others."""
        whole = {"form_token": await self.form_token(), **(fields or {})}
        return await self.post(path, data=whole, headers={"Origin": self.origin, **(headers or {})})

    async def signed_in(self, token: str = ADMIN_TOKEN) -> "Person":
        """The same person, signed in."""
        answer = await self.sent("sign-in", {"token": token})
        assert answer.status_code == 200, answer.text
        return self


@asynccontextmanager
async def a_console(post: Carteiro) -> AsyncIterator[tuple[str, Console]]:
    """The console of an app on a real socket: its address without /console, and itself."""
    api = create_api(post)
    console = add_console(api, post)
    async with serving(api, post, before_stop=console.close) as port:
        yield f"http://127.0.0.1:{port}", console


@asynccontextmanager
async def a_person(post: Carteiro, token: str | None = ADMIN_TOKEN) -> AsyncIterator[Person]:
    """Somebody who is signed in, unless ``token`` is None."""
    async with a_console(post) as (address, _), Person.at(address) as person:
        yield person if token is None else await person.signed_in(token)


async def a_token(
    backend: Backend,
    name: str,
    *,
    role: Role = Role.VIEWER,
    tenant: TenantId | None = None,
    secret: str | None = None,
    **options: Any,
) -> Key:
    """A token with this name, whose secret is its name with ca_ in front."""
    key_hash = hash_key(secret or f"ca_{name}")
    made = await backend.keys.add(
        tenant, key_hash=key_hash, hint="ca_", name=name, role=role, **options
    )
    assert isinstance(made, Key)
    return made


async def values_of_paths(post: Carteiro) -> dict[str, dict[str, str]]:
    """For each first part of an address: the values for the braces in it. A new page with an id adds its own here."""
    things = await things_of_acme(post)
    return {
        "link": {"secret": "unknown"},
        "static": {"name": "unknown"},
        **things,
        "dead-letters": things["messages"],
        "tenants": things["messages"],
        "templates": things["messages"],
    }


def filled(path: str, values: Mapping[str, str]) -> str:
    """The path of a page with these values in its braces."""
    return _BRACES.sub(lambda each: values[each[1]], path)
