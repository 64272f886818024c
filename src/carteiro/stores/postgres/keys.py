"""Which key opens what, on Postgres."""

import builtins
from collections.abc import Sequence
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import MOST_LIVE_KEYS, Key, KeyId, TenantId, TenantUnknown, TooManyKeys
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.postgres.accept import lock
from carteiro.stores.postgres.database import Database, Session
from carteiro.stores.tenant_columns import access_key_of


class PostgresKeys:
    """See `carteiro.ports.keys.Keys` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def add(
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
    ) -> Key | TooManyKeys | TenantUnknown:
        """Let the key with this hash speak for the tenant; a known one stays as it is."""
        now = await self._db.now()
        ends = None if expires_in is None else now + expires_in // MILLISECOND
        async with self._db.transaction() as session:
            if not await _holds(session, tenant):
                return TenantUnknown(TenantId(tenant or ""))
            known = await session.first("key_by_hash", key_hash)
            if known is not None:
                return access_key_of(known)
            live = tuple(row[0] for row in await session.fetch("keys_live", tenant, now))
            if len(live) >= MOST_LIVE_KEYS:
                return TooManyKeys(live)
            identity = str(uuid7())
            await session.fetch("key_add", identity, tenant, key_hash, hint, now, ends)
            return access_key_of(await session.first("key_by_hash", key_hash))

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""
        row = await self._db.first("key_holder", key_hash, await self._db.now())
        return None if row is None else access_key_of(row)

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, those that ended included."""
        return [access_key_of(row) for row in await self._db.fetch("keys_list", tenant)]

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False where there is no such live key."""
        rows = await self._db.fetch("keys_revoke", ids, tenant, await self._db.now())
        revoked = {row[0] for row in rows}
        answers = []
        for each in ids:
            answers.append(each in revoked)
            revoked.discard(each)  # named twice, it was there to be ended once
        return answers

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Note that these keys were used just now."""
        await self._db.fetch("keys_used", ids, await self._db.now())


async def _holds(session: Session, tenant: TenantId | None) -> bool:
    """Whether there is such a tenant; nobody else adds a key to it until the transaction ends."""
    if tenant is not None:
        return await session.value("tenant_lock", tenant) is not None
    await lock(session, ["administrators"])
    return True
