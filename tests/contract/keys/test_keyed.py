"""Keys, keyed: a key names its tenant by its hash; the key itself is never stored."""

from datetime import timedelta

from carteiro.api.access_keys import hash_key
from carteiro.model import Key, TenantId, TenantUnknown
from carteiro.ports import Backend
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.set_ups import Place
from support.steps import added_key, key_holder


async def test_key_names_its_tenant(backend: Backend) -> None:
    """The tenant of a hash is the one it was added for; an unknown hash has none."""
    await added_key(backend, "key of acme", tenant=ACME)
    await added_key(backend, "key of brasa", tenant=BRASA)

    assert await key_holder(backend, "key of acme") == ACME
    assert await key_holder(backend, "key of brasa") == BRASA
    assert await backend.keys.holder(hash_key("another key")) is None


async def test_key_of_an_administrator_has_no_tenant(backend: Backend) -> None:
    """It is valid, without a tenant; it is listed apart from those of tenants."""
    key = await added_key(backend, "token", tenant=None)

    assert await backend.keys.holder(hash_key("token")) == key
    assert key.tenant is None
    assert await backend.keys.list(None) == [key]
    assert await backend.keys.list(ACME) == []


async def test_fields_of_a_key_are_read_back(backend: Backend, clock: StoreClock) -> None:
    """Tenant, prefix, start and end; an answer has the same fields as a reading."""
    key = await added_key(backend, "key", expires_in=timedelta(days=1))

    expected = Key(key.id, ACME, "ke", clock.at(), expires_at=clock.at(timedelta(days=1)))
    assert key == expected
    assert await backend.keys.list(ACME) == [expected]
    assert await backend.keys.holder(hash_key("key")) == expected


async def test_keys_are_listed_newest_first(backend: Backend, clock: StoreClock) -> None:
    """Ended ones are listed too, with their time."""
    first = await added_key(backend, "first")
    clock.advance(timedelta(seconds=1))
    second = await added_key(backend, "second")
    await backend.keys.revoke([first.id], tenant=ACME)
    third = await added_key(backend, "third")

    listed = await backend.keys.list(ACME)

    assert [each.id for each in listed] == [third.id, second.id, first.id]
    assert [each.revoked_at for each in listed] == [None, None, clock.at()]


async def test_key_itself_is_unknown(backend: Backend) -> None:
    """Only the hash is known to the store."""
    await added_key(backend, "key of acme")

    assert await backend.keys.holder("key of acme") is None


async def test_key_of_an_unknown_tenant_is_refused(backend: Backend) -> None:
    """It is not stored."""
    nobody = TenantId("nobody")

    answer = await backend.keys.add(nobody, key_hash=hash_key("key"), hint="ke")

    assert answer == TenantUnknown(nobody)
    assert await backend.keys.holder(hash_key("key")) is None
    assert await backend.keys.list(nobody) == []


async def test_key_stays_with_its_tenant(backend: Backend) -> None:
    """Adding a key again changes nothing, for any caller: it cannot be taken over."""
    key = await added_key(backend, "key of acme")

    assert await added_key(backend, "key of acme") == key
    assert await added_key(backend, "key of acme", tenant=BRASA) == key
    assert await key_holder(backend, "key of acme") == ACME
    assert await backend.keys.list(BRASA) == []


async def test_last_use_of_a_key_is_recorded(backend: Backend, clock: StoreClock) -> None:
    """Of the used ones, and of no other; an unknown id is ignored."""
    used, unused = await added_key(backend, "used"), await added_key(backend, "unused")
    clock.advance(timedelta(minutes=1))

    await backend.keys.used([used.id, used.id, "nobody's"])  # type: ignore[list-item]

    noted = {each.id: each.last_used_at for each in await backend.keys.list(ACME)}
    assert noted == {used.id: clock.at(), unused.id: None}


async def test_key_is_there_for_the_next_opener(place: Place) -> None:
    """A key outlives the process that created it."""
    async with place.opened() as first:
        await added_key(first, "key of acme")

    async with place.opened() as second:
        assert await key_holder(second, "key of acme") == ACME
