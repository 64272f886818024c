"""Which key opens what, on SQLite."""

import builtins
import sqlite3
from collections.abc import Callable, Sequence
from datetime import timedelta

from uuid_utils import uuid7

from carteiro.model import MOST_LIVE_KEYS, Key, KeyId, TenantId, TenantUnknown, TooManyKeys
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import maybe_moment, moment
from carteiro.stores.sqlite.reading import Reader
from carteiro.stores.sqlite.rows import as_json, run
from carteiro.stores.sqlite.writer import Writer
from carteiro.stores.tenant_columns import access_key_of


class SqliteKeys:
    """See `carteiro.ports.keys.Keys` for what it promises."""

    def __init__(self, writer: Writer, reader: Reader, clock: Callable[[], int]) -> None:
        self._writer = writer
        self._reader = reader
        self._clock = clock

    async def add(
        self,
        tenant: TenantId | None,
        *,
        key_hash: str,
        hint: str,
        expires_in: timedelta | None = None,
    ) -> Key | TooManyKeys | TenantUnknown:
        """Let the key with this hash speak for the tenant; a known one stays as it is."""

        def add(db: sqlite3.Connection) -> Key | TooManyKeys | TenantUnknown:
            now = self._clock()
            if tenant is not None and run(db, "tenant_before", id=tenant).fetchone() is None:
                return TenantUnknown(tenant)
            known = run(db, "key_by_hash", key_hash=key_hash).fetchone()
            if known is not None:
                return access_key_of(known)
            live = tuple(row[0] for row in run(db, "keys_live", tenant=tenant, now=now))
            if len(live) >= MOST_LIVE_KEYS:
                return TooManyKeys(live)
            ends = None if expires_in is None else now + expires_in // MILLISECOND
            key = Key(KeyId(str(uuid7())), tenant, hint, moment(now), maybe_moment(ends))
            told = {"id": key.id, "tenant": tenant, "hint": hint, "expires_at": ends}
            run(db, "key_add", key_hash=key_hash, now=now, **told)
            return key

        return await self._writer.do(add)

    async def holder(self, key_hash: str) -> Key | None:
        """The live key with this hash."""
        now = self._clock()
        row = await self._reader.ask(
            lambda db: run(db, "key_holder", key_hash=key_hash, now=now).fetchone()
        )
        return None if row is None else access_key_of(row)

    async def list(self, tenant: TenantId | None) -> builtins.list[Key]:
        """The keys of a tenant, newest first, those that ended included."""
        rows = await self._reader.ask(lambda db: run(db, "keys_list", tenant=tenant).fetchall())
        return [access_key_of(row) for row in rows]

    async def revoke(self, ids: Sequence[KeyId], *, tenant: TenantId | None) -> builtins.list[bool]:
        """End keys of this tenant now; False where there is no such live key."""
        listed = as_json(ids)

        def revoke(db: sqlite3.Connection) -> set[str]:
            rows = run(db, "keys_revoke", ids=listed, tenant=tenant, now=self._clock())
            return {row[0] for row in rows}

        revoked = await self._writer.do(revoke)
        answers = []
        for each in ids:
            answers.append(each in revoked)
            revoked.discard(each)  # named twice, it was there to be ended once
        return answers

    async def used(self, ids: Sequence[KeyId]) -> None:
        """Note that these keys were used just now."""
        listed = as_json(ids)
        await self._writer.do(
            lambda db: run(db, "keys_used", ids=listed, now=self._clock()), durable=False
        )
