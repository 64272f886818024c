"""People who are signed in to the console."""

from datetime import timedelta

from carteiro.model import MOST_SIGN_INS, Key, KeyId, SignIn
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.stores.columns import made, moment
from carteiro.stores.sql.audit import Noted, note
from carteiro.stores.sql.session import Database, Session

_OF_KEY = 9  # columns


class SqlSignIns:
    """See `carteiro.ports.sign_ins.SignIns` for what it promises."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def begin(
        self, secret_hash: str, *, key: KeyId | None, who: str, lasts: timedelta
    ) -> None:
        """Sign in the holder of a token, or without one the user ``who`` of this machine; recorded."""
        now = await self._db.now()
        ends = now + lasts // MILLISECOND

        async def begin(session: Session) -> None:
            await session.run("sign_ins_prune", now=now)
            said = {"secret_hash": secret_hash, "key_id": key, "who": who}
            await session.run("sign_in_add", **said, now=now, expires_at=ends)
            await session.run("sign_ins_trim", key_id=key, most=MOST_SIGN_INS)
            await note(session, now, Noted("sign-in", "console", key or "", after={"who": who}))

        await self._db.write(begin)

    async def find(self, secret_hash: str) -> SignIn | None:
        """The live sign-in with this hash."""
        now = await self._db.now()
        row = await self._db.first("sign_in_find", secret_hash=secret_hash, now=now)
        if row is None:
            return None
        who, ends, *of_key = row
        key = None if of_key[0] is None else made(Key, of_key[:_OF_KEY])
        return SignIn(who, moment(ends), key)

    async def end(self, secret_hash: str) -> None:
        """End it; one that has ended stays so."""
        await self._db.run("sign_in_end", secret_hash=secret_hash)
