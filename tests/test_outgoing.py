"""What settings make of mail: which providers, in which order, each once."""

import pytest

from carteiro.config import load
from carteiro.outgoing import email_kind, look_at_providers, routes_of
from carteiro.stores.memory import open_memory

TWO_REGIONS = "ses:eu-west-1, ses:us-east-1"


def test_a_list_of_providers_is_a_route() -> None:
    """In the order in which they are written."""
    routes = routes_of(load(environ={}, overrides={"provider": "smtp,ses:eu-west-1 , resend"}))

    assert routes.default == ("smtp", "ses:eu-west-1", "resend")


def test_tenants_and_template_types_have_routes_of_their_own() -> None:
    """Written as tables, or as variables."""
    environ = {"CARTEIRO_TENANT_ROUTES_ACME": "noop", "CARTEIRO_TYPE_ROUTES_INVOICE": "smtp, ses"}
    routes = routes_of(load(environ=environ))

    assert routes.by_tenant == {"acme": ("noop",)}
    assert routes.by_type == {"invoice": ("smtp", "ses")}
    assert routes.names == ("sandbox", "smtp", "ses", "noop")


async def test_what_stays_on_this_machine_has_no_breaker() -> None:
    """Nothing there can be away."""
    async with open_memory() as backend:
        kind, is_network = email_kind(load(environ={}, overrides={"provider": "noop"}), backend)

    assert (kind.chain, is_network) == (None, False)


@pytest.mark.parametrize("provider", ["smtp", TWO_REGIONS, "smtp, ses"])
async def test_what_goes_across_a_network_is_a_chain(provider: str) -> None:
    """Be it of one: a provider that is away is left alone."""
    async with open_memory() as backend:
        kind, is_network = email_kind(load(environ={}, overrides={"provider": provider}), backend)

    assert is_network
    assert kind.chain is not None
    assert kind.provider == provider.partition(",")[0]


async def test_every_provider_is_looked_at() -> None:
    """Also those of one tenant alone."""
    settings = load(
        environ={"CARTEIRO_TENANT_ROUTES_ACME": "noop"},
        overrides={"smtp.port": 1, "provider": "smtp"},
    )
    async with open_memory() as backend:
        relay, nothing = await look_at_providers(settings, backend)

    assert (relay.name, relay.is_remote) == ("smtp", True)
    assert relay.fault
    assert (nothing.name, nothing.is_remote, nothing.fault) == ("noop", False, None)
