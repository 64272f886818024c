"""Clients of the HTTP API, and checks of its answers."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI

from carteiro.api.access_keys import hash_key
from carteiro.api.application import create_api
from carteiro.api.documents import ErrorDocument
from carteiro.api.intake import Office
from carteiro.app import Carteiro
from carteiro.model import Key, Role, TenantId
from support.builders import ACME, BRASA

KEY_OF_ACME = "ck_acme"
KEY_OF_BRASA = "ck_brasa"
ADMIN_TOKEN = "ca_admin"
IN_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@asynccontextmanager
async def opened(url: str, **settings: Any) -> AsyncIterator[Carteiro]:
    """An app on this store that knows ACME, BRASA and an administrator by their keys."""
    async with Carteiro.open(url, **settings) as office:
        await office.backend.tenants.ensure([ACME, BRASA])
        await let_in(office, ACME, KEY_OF_ACME)
        await let_in(office, BRASA, KEY_OF_BRASA)
        await let_in(office, None, ADMIN_TOKEN)
        yield office


async def let_in(post: Carteiro, tenant: TenantId | None, key: str, **options: Any) -> Key:
    """Add a key for a tenant, or a token for an administrator: with the role admin, unless another is given."""
    if tenant is None:
        options = {"role": Role.ADMIN, "name": "admin"} | options
    made = await post.backend.keys.add(tenant, key_hash=hash_key(key), hint=key[:5], **options)
    assert isinstance(made, Key)
    return made


@asynccontextmanager
async def a_client(
    post: Office, *, key: str | None = KEY_OF_ACME, address: str = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an app's API, with its key and its address."""
    async with a_client_of(create_api(post), key=key, address=address) as client:
        yield client


@asynccontextmanager
async def a_client_of(
    api: FastAPI, *, key: str | None = KEY_OF_ACME, address: str = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an API, with its key and its address."""
    headers = {} if key is None else {"X-API-Key": key}
    transport = httpx.ASGITransport(api, client=(address, 50000))
    async with httpx.AsyncClient(
        transport=transport, base_url="http://carteiro.test", headers=headers
    ) as client:
        yield client


def an_email(**changes: Any) -> dict[str, Any]:
    """An e-mail to Ana, as JSON fields."""
    return {"to": "ana@example.com", "subject": "Bom dia", "html": "<p>Olá</p>"} | changes


async def sent(
    client: httpx.AsyncClient, *, headers: dict[str, str] | None = None, **changes: Any
) -> dict[str, Any]:
    """The answer to an e-mail that is accepted."""
    response = await client.post("/v1/email/send", json=an_email(**changes), headers=headers)
    return answer_in(response, 202)


async def stored(post: Carteiro) -> int:
    """Number of stored messages."""
    return sum((await post.backend.reading.states()).values())


def answer_in(response: httpx.Response, status: int = 200) -> dict[str, Any]:
    """The document of a response, its status checked."""
    assert response.status_code == status, response.text
    document: dict[str, Any] = response.json()
    return document


def error_in(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error of a response, its shape checked."""
    document = answer_in(response, status)
    ErrorDocument.model_validate(document)
    error: dict[str, Any] = document["error"]
    assert error.keys() == {"code", "message", "requestId", "timestamp", "details"}
    assert error["code"] == code
    assert error["requestId"] == response.headers["X-Request-Id"]
    assert IN_ISO.fullmatch(error["timestamp"])
    return error


def fields_in(error: dict[str, Any]) -> list[str]:
    """The fields that an error names."""
    return [each["field"] for each in error["details"]]
