"""Keys, ended: a key that expired or was revoked, or whose tenant is disabled or gone, opens nothing."""

from datetime import timedelta

from carteiro.api.access_keys import hash_key
from carteiro.model import KeyId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_tenant
from support.clock import MILLISECOND, StoreClock
from support.steps import added_key

A_DAY = timedelta(days=1)


async def _opens(backend: Backend, key: str) -> bool:
    return await backend.keys.holder(hash_key(key)) is not None


async def test_key_is_valid_until_its_end_and_not_at_it(
    backend: Backend, clock: StoreClock
) -> None:
    """The last moment still counts; without an end it is valid for good."""
    await added_key(backend, "short", expires_in=A_DAY)
    await added_key(backend, "long")

    clock.advance(A_DAY - MILLISECOND)
    before = await _opens(backend, "short")
    clock.advance(MILLISECOND)

    assert before
    assert not await _opens(backend, "short")
    assert await _opens(backend, "long")


async def test_revoked_key_is_invalid(backend: Backend) -> None:
    """At once, and no other key of the tenant is affected."""
    old, _ = await added_key(backend, "old"), await added_key(backend, "new")

    assert await backend.keys.revoke([old.id], tenant=ACME) == [True]

    assert not await _opens(backend, "old")
    assert await _opens(backend, "new")


async def test_ended_key_cannot_be_revoked(backend: Backend, clock: StoreClock) -> None:
    """Revoked, expired, unknown or named twice: only a live key can be ended, and once."""
    live, expired = (
        await added_key(backend, "live"),
        await added_key(backend, "expired", expires_in=A_DAY),
    )
    clock.advance(A_DAY)
    ids = [live.id, live.id, expired.id, KeyId("unknown")]

    first = await backend.keys.revoke(ids, tenant=ACME)
    again = await backend.keys.revoke(ids, tenant=ACME)

    assert first == [True, False, False, False]
    assert again == [False] * 4


async def test_key_is_revoked_by_its_tenant_alone(backend: Backend) -> None:
    """Neither by another tenant nor through the list of administrators."""
    key, token = await added_key(backend, "key"), await added_key(backend, "token", tenant=None)

    assert await backend.keys.revoke([key.id, token.id], tenant=BRASA) == [False, False]
    assert await backend.keys.revoke([key.id], tenant=None) == [False]
    assert await backend.keys.revoke([token.id], tenant=ACME) == [False]

    assert await _opens(backend, "key")
    assert await _opens(backend, "token")


async def test_revoked_key_stays_revoked(backend: Backend) -> None:
    """Adding it again does not bring it back."""
    key = await added_key(backend, "key")
    await backend.keys.revoke([key.id], tenant=ACME)

    again = await added_key(backend, "key")

    assert again.revoked_at is not None
    assert not await _opens(backend, "key")


async def test_keys_of_a_disabled_tenant_are_invalid(backend: Backend) -> None:
    """Until it is enabled again; administrators and other tenants go on."""
    for key, tenant in (("key", ACME), ("other", BRASA), ("token", None)):
        await added_key(backend, key, tenant=tenant)

    await backend.tenants.define([a_tenant(disabled=True)])
    disabled = [await _opens(backend, key) for key in ("key", "other", "token")]
    await backend.tenants.define([a_tenant()])

    assert disabled == [False, True, True]
    assert await _opens(backend, "key")
