"""Keys, named: live tokens of one name have one role and one tenant, also with concurrent requests."""

import asyncio
from typing import Any

from carteiro.api.access_keys import hash_key
from carteiro.model import Key, NameTaken, Role, TenantId
from carteiro.ports import Backend
from carteiro.ports.keys import AddedKey
from support.builders import ACME, BRASA
from support.steps import added_key


async def _asked(backend: Backend, key: str, tenant: TenantId | None, role: Role) -> AddedKey:
    return await backend.keys.add(tenant, key_hash=hash_key(key), hint="", name="ana", role=role)


async def test_name_of_another_role_or_tenant_is_refused(backend: Backend) -> None:
    """Until that token ended; the keys of tenants, which have no role, do not count."""
    await added_key(backend, "of the tenant", name="ana")
    first = await added_key(backend, "first", name="ana", tenant=ACME, role=Role.VIEWER)

    for tenant, role in ((ACME, Role.ADMIN), (BRASA, Role.VIEWER), (None, Role.VIEWER)):
        assert await _asked(backend, "other", tenant, role) == NameTaken(first.id), (tenant, role)
    assert await backend.keys.holder(hash_key("other")) is None
    assert isinstance(await _asked(backend, "same", ACME, Role.VIEWER), Key)

    live = [each.id for each in await backend.keys.list(None)]
    await backend.keys.revoke(live, tenant=None)
    assert isinstance(await _asked(backend, "other", None, Role.ADMIN), Key)


async def test_concurrent_tokens_of_one_name_have_one_role(backend: Backend) -> None:
    """The others are refused."""
    asked: list[Any] = [
        _asked(backend, f"{role} {n}", None, role) for n in range(3) for role in Role
    ]

    answers = await asyncio.gather(*asked)

    assert len({each.role for each in answers if isinstance(each, Key)}) == 1
