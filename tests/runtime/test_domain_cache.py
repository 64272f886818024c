"""Cache of domain claims: the tenant that claimed the domain of a From."""

from collections.abc import AsyncIterator, Sequence

import pytest

from carteiro.model import TenantId
from carteiro.ports import Backend
from carteiro.runtime.domain_cache import DomainCache
from carteiro.runtime.fresh import FRESH_FOR
from support.builders import ACME, BRASA, a_tenant
from support.quick_store import quick_backend

NOBODY = TenantId("nobody")


class Watch:
    """A clock that a test moves by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Counted:
    """The tenants of a store, with a record of every query for domains."""

    def __init__(self, backend: Backend) -> None:
        self._tenants = backend.tenants
        self.asked: list[list[str]] = []

    async def claimants(self, domains: Sequence[str]) -> list[TenantId | None]:
        self.asked.append([*domains])
        return await self._tenants.claimants(domains)


@pytest.fixture
async def backend() -> AsyncIterator[Backend]:
    """A store where Acme has a domain, and Brasa a subdomain of it."""
    async with quick_backend() as opened:
        await opened.tenants.define(
            [
                a_tenant(from_domains=("acme.example",)),
                a_tenant(BRASA, from_domains=("brasa.acme.example",)),
            ]
        )
        yield opened


@pytest.mark.parametrize(
    ("address", "owner"),
    [
        ("a@acme.example", ACME),
        ("a@ACME.example", ACME),
        ("a@news.acme.example", ACME),
        ("a@x.news.acme.example", ACME),
        ("a@brasa.acme.example", BRASA),
        ("a@x.brasa.acme.example", BRASA),
        ("a@notacme.example", None),
        ("a@example", None),
    ],
)
async def test_nearest_claim_counts(backend: Backend, address: str, owner: TenantId | None) -> None:
    """A claim covers its subdomains, except those that are claimed themselves."""
    cache = DomainCache(backend.tenants)

    assert await cache.other_owner(NOBODY, address) == owner
    assert owner is None or await cache.other_owner(owner, address) is None


async def test_domain_is_queried_once_in_a_few_seconds(backend: Backend) -> None:
    """A new claim, also of a free domain, is seen after a few seconds."""
    watch, counted = Watch(), Counted(backend)
    cache = DomainCache(counted, clock=watch)  # type: ignore[arg-type]
    before = [await cache.other_owner(NOBODY, "a@free.example") for _ in range(100)]

    await backend.tenants.define([a_tenant(from_domains=("acme.example", "free.example"))])
    before.append(await cache.other_owner(NOBODY, "b@free.example"))
    watch.now += FRESH_FOR.total_seconds()
    after = await cache.other_owner(NOBODY, "a@free.example")

    assert ({*before}, after) == ({None}, ACME)
    assert counted.asked == [["free.example"]] * 2


async def test_many_domains_are_queried_in_one_call(backend: Backend) -> None:
    """A batch with a domain for each item is one query."""
    counted = Counted(backend)
    cache = DomainCache(counted)  # type: ignore[arg-type]
    addresses = [f"a@shop-{n}.example" for n in range(50)]

    owners = await cache.owners([None, *addresses])

    assert owners == dict.fromkeys([None, *addresses])
    assert len(counted.asked) == 1
