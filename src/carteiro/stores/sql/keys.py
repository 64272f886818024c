"""API keys and the tenants that they stand for."""

import builtins
from collections.abc import Sequence
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import (
    MOST_ENDED_KEYS,
    MOST_LIVE_KEYS,
    MOST_LIVE_TOKENS,
    Key,
    KeyId,
    NameTaken,
    Role,
    TenantId,
    TenantUnknown,
    TooManyKeys,
)
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.ports.keys import AddedKey
from carteiro.stores.columns import made
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.door import lock
from carteiro.stores.sql.session import Database, Session


class SqlKeys:
    """See `carteiro.ports.keys.Keys` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(  # noqa: PLR0913 - as the port has it
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
        name: str = "",
        role: Role | None = None,
    ) -> AddedKey:
        """Add the key with this hash to the tenant; with a role, a token of administrators."""
        now = await self._db.now()
        ends = None if expires_in is None else now + expires_in // MILLISECOND
        kind = "key" if role is None else "token"

        async def add(session: Session) -> AddedKey:
            if not await _holds(session, tenant, role):
                return TenantUnknown(TenantId(tenant or ""))
            if known := await session.first("key_by_hash", key_hash=key_hash):
                return made(Key, known)
            owner = tenant if role is None else None
            live = await session.fetch("keys_live", tenant=owner, now=now)
            namesakes = [row for row in live if role is None or row[1] == name]
            for taken, _, *what in namesakes:
                if what != [role, tenant]:
                    return NameTaken(taken)
            for counted, most in ((namesakes, MOST_LIVE_KEYS), (live, MOST_LIVE_TOKENS)):
                if len(counted) >= most:
                    return TooManyKeys(tuple(row[0] for row in counted))
            said = {"hint": hint, "expires_at": ends, "name": name, "role": role}
            new = {"id": str(uuid7()), "tenant": tenant} | said
            await session.run("key_add", key_hash=key_hash, now=now, **new)
            await session.run("keys_trim", tenant=owner, now=now, most=MOST_ENDED_KEYS)
            key = made(Key, await session.first("key_by_hash", key_hash=key_hash))
            after = {"name": key.name, "role": role, "expires_at": key.expires_at}
            await note(session, now, Noted("add", kind, key.id, tenant, after=after))
            return key

        return await self._db.write(add)

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""
        now = await self._db.now()
        row = await self._db.first("key_holder", key_hash=key_hash, now=now)
        return None if row is None else made(Key, row)

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, including those that ended."""
        return [made(Key, row) for row in await self._db.fetch("keys_list", tenant=tenant)]

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False for a key that is not live or not the tenant's."""
        now = await self._db.now()
        kind = "token" if tenant is None else "key"

        async def revoke(session: Session) -> set[KeyId]:
            rows = await session.fetch("keys_revoke", ids=ids, tenant=tenant, now=now)
            ended = [
                Noted("revoke", kind, identity, owner, before={"name": name})
                for identity, owner, name in rows
            ]
            await note(session, now, *ended)
            return {row[0] for row in rows}

        revoked = await self._db.write(revoke)
        answers = []
        for each in ids:
            answers.append(each in revoked)
            revoked.discard(each)  # a key that is named twice can be ended once
        return answers

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Record that these keys were just used."""
        now = await self._db.now()
        await self._db.write(
            lambda session: session.run("keys_used", ids=ids, now=now), durable=False
        )


async def _holds(session: Session, tenant: TenantId | None, role: Role | None) -> bool:
    """True if there is such a tenant; no other transaction can add such a key until this one ends."""
    if role is not None:
        await lock(session, ["administrators"])
    return tenant is None or await session.value("tenant_lock", tenant=tenant) is not None
