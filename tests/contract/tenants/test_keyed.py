"""Tenants, keyed: a key names its tenant by its hash; the key itself is never stored."""

import hashlib

import pytest

from carteiro.errors import TenantMissing
from carteiro.model import TenantId
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.set_ups import Place


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


async def test_a_key_speaks_for_its_tenant(backend: Backend) -> None:
    """The tenant of a hash is the one it was added for; an unknown hash names nobody."""
    await backend.tenants.add_key(ACME, _hash("key of acme"))
    await backend.tenants.add_key(BRASA, _hash("key of brasa"))

    assert await backend.tenants.of_key(_hash("key of acme")) == ACME
    assert await backend.tenants.of_key(_hash("key of brasa")) == BRASA
    assert await backend.tenants.of_key(_hash("another key")) is None


async def test_a_tenant_may_have_several_keys(backend: Backend) -> None:
    """A new key does not retire the old one; adding one again changes nothing."""
    for key in ("old", "new", "new"):
        await backend.tenants.add_key(ACME, _hash(key))

    assert await backend.tenants.of_key(_hash("old")) == ACME
    assert await backend.tenants.of_key(_hash("new")) == ACME


async def test_a_key_itself_opens_nothing(backend: Backend) -> None:
    """Only the hash is known to the store."""
    await backend.tenants.add_key(ACME, _hash("key of acme"))

    assert await backend.tenants.of_key("key of acme") is None


async def test_a_key_for_nobody_is_refused(backend: Backend) -> None:
    """A key cannot speak for a tenant that does not exist, and is not stored."""
    with pytest.raises(TenantMissing):
        await backend.tenants.add_key(TenantId("nobody"), _hash("key"))

    assert await backend.tenants.of_key(_hash("key")) is None


async def test_a_key_is_there_for_the_next_opener(place: Place) -> None:
    """A key outlives the process that made it."""
    async with place.opened() as first:
        await first.tenants.add_key(ACME, _hash("key of acme"))

    async with place.opened() as second:
        assert await second.tenants.of_key(_hash("key of acme")) == ACME


async def test_a_tenant_without_a_key_is_told_from_one_with(backend: Backend) -> None:
    """That a tenant exists does not mean that anybody can speak for it."""
    before = await backend.tenants.has_key(ACME)
    await backend.tenants.add_key(ACME, _hash("key of acme"))

    assert (before, await backend.tenants.has_key(ACME)) == (False, True)
    assert not await backend.tenants.has_key(BRASA)


async def test_a_key_stays_with_its_tenant(backend: Backend) -> None:
    """Nobody can take a key over by adding it again for another tenant."""
    await backend.tenants.add_key(ACME, _hash("key of acme"))
    await backend.tenants.add_key(BRASA, _hash("key of acme"))

    assert await backend.tenants.of_key(_hash("key of acme")) == ACME
