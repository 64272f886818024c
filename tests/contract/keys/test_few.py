"""Keys, few: a tenant has at most `MOST_LIVE_KEYS` live keys, also under concurrent requests."""

import asyncio
from collections import Counter
from datetime import timedelta

import pytest

from carteiro.api.access_keys import hash_key
from carteiro.model import MOST_LIVE_KEYS, Key, Role, TenantId, TooManyKeys
from carteiro.ports import Backend
from carteiro.stores.sql import keys
from support.builders import ACME, BRASA
from support.clock import StoreClock
from support.set_ups import Place
from support.steps import added_key


async def _asked(
    backend: Backend, *keys: str, tenant: TenantId | None = ACME
) -> list[Key | TooManyKeys]:
    role = Role.ADMIN if tenant is None else None
    answers = [backend.keys.add(tenant, key_hash=hash_key(key), hint="", role=role) for key in keys]
    return [
        answer for answer in await asyncio.gather(*answers) if isinstance(answer, Key | TooManyKeys)
    ]


async def test_key_over_the_limit_is_refused_with_the_live_ones(backend: Backend) -> None:
    """Newest first; nothing was stored, and others have keys of their own."""
    first, second = await added_key(backend, "first"), await added_key(backend, "second")

    answers = await _asked(backend, "third")

    assert answers == [TooManyKeys((second.id, first.id))]
    assert await backend.keys.holder(hash_key("third")) is None
    assert isinstance((await _asked(backend, "fourth", tenant=BRASA))[0], Key)
    assert isinstance((await _asked(backend, "fifth", tenant=None))[0], Key)


async def test_ended_key_makes_room(backend: Backend, clock: StoreClock) -> None:
    """Revoked or expired: only live keys count."""
    revoked = await added_key(backend, "revoked")
    await added_key(backend, "expired", expires_in=timedelta(hours=1))
    await backend.keys.revoke([revoked.id], tenant=ACME)
    clock.advance(timedelta(hours=1))

    answers = await _asked(backend, "new", "newer", "newest")

    assert Counter(type(answer) for answer in answers) == {Key: 2, TooManyKeys: 1}


async def test_oldest_ended_keys_are_deleted(
    backend: Backend, clock: StoreClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys made and revoked all day must not fill the store, nor the list; live keys and those of others stay."""
    monkeypatch.setattr(keys, "MOST_ENDED_KEYS", 2)
    live = await added_key(backend, "live")
    other = await added_key(backend, "other", tenant=BRASA)
    await backend.keys.revoke([other.id], tenant=BRASA)
    token = await added_key(backend, "token", tenant=None, name="ana", role=Role.VIEWER)
    await backend.keys.revoke([token.id], tenant=None)
    ended = []
    for number in range(4):
        clock.advance(timedelta(minutes=1))
        ended.append(await added_key(backend, str(number), expires_in=timedelta(minutes=1)))
    clock.advance(timedelta(minutes=1))
    new = await added_key(backend, "new")

    kept = [each.id for each in await backend.keys.list(ACME)]
    assert kept == [new.id, ended[3].id, ended[2].id, live.id]
    assert [each.id for each in await backend.keys.list(BRASA)] == [other.id]
    assert [each.id for each in await backend.keys.list(None)] == [token.id]


async def test_concurrent_requests_keep_the_limit(backend: Backend) -> None:
    """Nothing slips in between the count and the key; administrators have the same limit."""
    for tenant in (ACME, None):
        answers = await _asked(backend, *(f"{tenant} {n}" for n in range(8)), tenant=tenant)

        made = [answer for answer in answers if isinstance(answer, Key)]
        assert len(made) == MOST_LIVE_KEYS
        assert len(await backend.keys.list(tenant)) == MOST_LIVE_KEYS


async def test_refusal_of_all_tokens_together_lists_all_of_them(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of its name: they are fewer than their limit."""
    monkeypatch.setattr("carteiro.stores.sql.keys.MOST_LIVE_TOKENS", 3)
    for name in ("ana", "bia", "caio"):
        await added_key(backend, name, tenant=None, name=name)

    fourth = await backend.keys.add(
        None, key_hash=hash_key("d"), hint="", name="ana", role=Role.ADMIN
    )

    assert fourth == TooManyKeys(tuple(each.id for each in await backend.keys.list(None)))


async def test_two_openers_create_no_more_keys_than_one(place: Place) -> None:
    """Processes that share a store share the limit."""
    async with place.opened() as first, place.opened() as second:
        answers = await asyncio.gather(_asked(first, "a", "b", "c"), _asked(second, "d", "e", "f"))

        made = [each for some in answers for each in some if isinstance(each, Key)]
        assert len(made) == MOST_LIVE_KEYS
