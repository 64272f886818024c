"""Providers of mail from settings: their order, each once."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from carteiro.config import Settings, load, specs
from carteiro.errors import ConfigError
from carteiro.providers.email_kind import email_kind, look_at_providers, routes_of
from carteiro.providers.registry import limits_of, make_provider
from support.quick_store import quick_backend

REGION, ACME = "CARTEIRO_SES_REGION", "CARTEIRO_TENANT_ROUTES_ACME"
TWO_REGIONS = "ses:eu-west-1, ses:us-east-1"


def test_list_of_providers_is_a_route() -> None:
    """In the order of the list."""
    routes = routes_of(load(environ={}, overrides={"provider": "smtp,ses:eu-west-1 , resend"}))

    assert routes.default == ("smtp", "ses:eu-west-1", "resend")


def test_tenants_and_template_types_have_their_own_routes() -> None:
    """Written as tables, or as variables."""
    environ = {"CARTEIRO_TENANT_ROUTES_ACME": "noop", "CARTEIRO_TYPE_ROUTES_INVOICE": "smtp, ses"}
    routes = routes_of(load(environ=environ))

    assert routes.by_tenant == {"acme": ("noop",)}
    assert routes.by_type == {"invoice": ("smtp", "ses")}
    assert routes.names == ("sandbox", "smtp", "ses", "noop")


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"CARTEIRO_PROVIDER": "ses, ses:eu-west-1", REGION: "eu-west-1"}, "which means eu-west-1"),
        ({"CARTEIRO_PROVIDER": "ses:eu-west-1, ses"}, "ses.region is not set"),
        (
            {"CARTEIRO_PROVIDER": "ses", ACME: "smtp, ses:eu-west-1", REGION: "eu-west-1"},
            "tenant_routes.acme = 'smtp, ses:eu-west-1'",
        ),
    ],
)
def test_region_cannot_have_two_names(environ: dict[str, str], says: str) -> None:
    """It would have two rates and two breakers, and fail over to itself."""
    with pytest.raises(ConfigError, match=re.escape(says)):
        load(environ=environ)


def test_default_region_may_be_listed_with_others() -> None:
    """As long as it is known to be none of them."""
    environ = {"CARTEIRO_PROVIDER": "ses, ses:us-east-1", REGION: "eu-west-1"}

    assert routes_of(load(environ=environ)).names == ("ses", "ses:us-east-1")


async def test_local_provider_has_no_breaker() -> None:
    """It cannot be unreachable."""
    async with quick_backend() as backend:
        kind, is_network = email_kind(load(environ={}, overrides={"provider": "noop"}), backend)

    assert (kind.chain, is_network) == (None, False)


@pytest.mark.parametrize("provider", ["smtp", TWO_REGIONS, "smtp, ses"])
async def test_network_provider_is_a_chain(provider: str) -> None:
    """Even of one: a failing provider gets an open circuit."""
    async with quick_backend() as backend:
        kind, is_network = email_kind(load(environ={}, overrides={"provider": provider}), backend)

    assert is_network
    assert kind.chain is not None
    assert kind.provider == provider.partition(",")[0]


@asynccontextmanager
async def _somebody(body: bytes) -> AsyncIterator[str]:
    """A server with the same answer to everything, and its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body))
        writer.write(b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("provider", "body"),
    [("ses", b"[]"), ("ses", b"null"), ("resend", b'{"data":5}')],
)
async def test_unintelligible_answer_is_a_fault(
    provider: str, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server is at that address; the check reports it, and goes on with the other providers."""
    monkeypatch.setenv("A_KEY", "made-here")
    async with _somebody(body) as url:
        given = {
            "provider": provider,
            "ses.region": "eu-west-1",
            "ses.endpoint_url": url,
            "ses.access_key_id": "AKIAMADEHERE",
            "ses.secret_access_key": "env:A_KEY",
            "resend.url": url,
            "resend.api_key": "env:A_KEY",
            "resend.default_from": "loja@example.com",
        }
        [looked] = await look_at_providers(load(environ={}, overrides=given))

    [fault] = looked.faults
    assert "cannot be read" in fault.told
    assert f"one of {provider}" in fault.advice
    assert fault.is_deadly


async def test_every_provider_is_checked() -> None:
    """Also those of one tenant alone."""
    settings = load(
        environ={"CARTEIRO_TENANT_ROUTES_ACME": "noop"},
        overrides={"smtp.port": 1, "provider": "smtp"},
    )
    relay, nothing = await look_at_providers(settings)

    assert (relay.name, relay.is_remote) == ("smtp", True)
    assert [fault.is_deadly for fault in relay.faults] == [False]
    assert (nothing.name, nothing.is_remote, nothing.faults) == ("noop", False, ())


def _with_provider(name: str) -> Settings:
    """Settings with an allowed name that has no provider yet."""
    return load(environ={}).model_copy(update={"provider": name})


async def test_provider_that_cannot_be_made_is_refused() -> None:
    """It must not accept mail and drop it: that would be SENT, and nobody would notice."""
    async with quick_backend() as backend:
        with pytest.raises(ConfigError, match="pigeon: there is no such provider"):
            email_kind(_with_provider("pigeon"), backend)
    [looked] = await look_at_providers(_with_provider("pigeon"))

    assert [fault.is_deadly for fault in looked.faults] == [True]


@pytest.mark.parametrize("name", specs())
async def test_every_name_of_the_settings_is_made(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its own name, and with a rate limiter if it is called across a network."""
    monkeypatch.setenv("KEY_OF_THE_TEST", "re_made_up")
    environ = {"CARTEIRO_RESEND_API_KEY": "env:KEY_OF_THE_TEST", REGION: "eu-west-1"}
    settings = load(environ=environ)
    async with quick_backend() as backend:
        provider = make_provider(name, settings, backend)

    assert provider.name == name
    assert (limits_of(provider, settings) is None) == (not provider.features.is_remote)
