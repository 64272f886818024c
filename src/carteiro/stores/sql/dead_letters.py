"""Dead letters."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from carteiro import model
from carteiro.policy.crowding import Share, giving_way
from carteiro.policy.lifecycle import EXPIRED_UNSENT, MILLISECOND, restored_ttl
from carteiro.ports.dead_letters import GroupBy
from carteiro.stores.columns import FAR, failure_text, in_ms, made, maybe_moment, moment
from carteiro.stores.cursors import cursor_at, key_of
from carteiro.stores.sql.ledger import Entries
from carteiro.stores.sql.redrive import note_letters, redrive
from carteiro.stores.sql.session import Database, Session, Wake

_ANY = model.DeadFilter()


class SqlDeadLetters:
    """See `carteiro.ports.dead_letters.DeadLetters` for what it promises."""

    def __init__(self, db: Database, wake: Wake, entries: Entries, *, has_queue: bool) -> None:
        self._db = db
        self._wake = wake
        self._entries = entries
        self._has_queue = has_queue

    # --- finding ------------------------------------------------------------------------------

    async def find(
        self,
        wanted: model.DeadFilter = _ANY,
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
        is_whole: bool = True,
    ) -> model.Page[model.DeadLetter]:
        """The matching entries, newest first; ``moved_after`` is inclusive, ``moved_before`` exclusive."""
        asked = _parameters_of(wanted, cursor)
        found = await self._db.fetch(_finding(wanted), **asked, limit=limit + 1)
        letters = await self._loaded([row[0] for row in found[:limit]], is_whole=is_whole)
        has_more = len(found) > limit > 0  # also if all of this page were removed in between
        return model.Page(
            letters, cursor_at(found[limit - 1][1], found[limit - 1][0]) if has_more else None
        )

    async def group(self, by: GroupBy, wanted: model.DeadFilter = _ANY) -> list[model.DeadGroup]:
        """Count the matching entries by one field; the largest group first."""
        asked, whose = _parameters_of(wanted, None), "" if wanted.tenant is None else "_of_tenant"
        rows = await self._db.fetch(f"dead_letters_group{whose}", **asked, by=by)
        return [
            model.DeadGroup(key, count, moment(oldest), moment(newest))
            for key, count, oldest, newest in rows
        ]

    async def show(self, message: model.MessageId) -> model.DeadLetter | None:
        """The entry of one message."""
        found = await self._loaded([message], is_whole=True)
        return found[0] if found else None

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[model.TenantId, int]]]:
        """The number of entries, and the tenants with the most."""
        rows = await self._db.fetch("dead_letters_sizes")
        return sum(count for _, count in rows), [(tenant, count) for tenant, count in rows[:top]]

    async def oldest(self) -> datetime | None:
        """Time at which the oldest entry was made; None if there is none. Constant cost."""
        return maybe_moment(await self._db.value("dead_letters_first"))

    async def moved(self, ids: Sequence[model.MessageId]) -> dict[model.MessageId, datetime]:
        """Time at which each entry was made; messages without an entry are left out."""
        return {
            identity: moment(at)
            for identity, at in await self._db.fetch("dead_letters_moved", ids=ids)
        }

    async def _loaded(
        self, ids: Sequence[model.MessageId], *, is_whole: bool
    ) -> list[model.DeadLetter]:
        asked = {"ids": ids, "is_whole": is_whole}
        rows = await self._db.fetch("dead_letters_load", **asked) if ids else []
        return [_dead_letter_of(row) for row in rows]

    # --- redriving ----------------------------------------------------------------------------

    async def redrive(
        self, ids: Sequence[model.MessageId], *, by: str, revision: model.Revision | None = None
    ) -> list[model.RedriveAnswer]:
        """Send the messages again, also those without an entry; ``by`` is recorded as the requester."""
        if revision is not None and len(ids) != 1:
            raise ValueError("a revision is for one message")
        now = await self._db.now()

        answers = await self._db.write(
            lambda session: redrive(
                session,
                self._entries,
                ids,
                by=by,
                revision=revision,
                now=now,
                has_queue=self._has_queue,
            )
        )
        if model.RedriveAnswer.REDRIVEN in answers:
            await self._wake.tell()
        return answers

    # --- storage ------------------------------------------------------------------------------

    async def drop(self, ids: Sequence[model.MessageId]) -> int:
        """Remove entries from the index; the messages stay and can be redriven. Return the number removed."""
        return await self._change("purge", "dead_letters_drop", ids=ids)

    async def outlived(self, *, limit: int = 1000) -> list[model.MessageId]:
        """Entries past their time to live, longest past first; none of a redriven message."""
        now = await self._db.now()
        rows = await self._db.fetch("dead_letters_outlived", now=now, limit=limit)
        return [row[0] for row in rows]

    async def overfull(self, *, most: int, limit: int = 1000) -> list[model.DeadLetter]:
        """Entries to remove so that ``most`` stay: each time the oldest of the tenant with most entries."""
        rows = await self._db.fetch("dead_letters_shares")
        shares = {tenant: Share(entries, may_go) for tenant, entries, may_go in rows}
        excess = sum(share.entries for share in shares.values()) - most
        if excess <= 0:
            return []
        going: list[tuple[int, model.MessageId]] = []
        for tenant, count in giving_way(shares, excess=min(limit, excess)).items():
            found = await self._db.fetch("dead_letters_oldest", tenant=tenant, limit=count)
            going += [(moved_at, identity) for identity, moved_at in found]
        return await self._loaded([identity for _, identity in sorted(going)], is_whole=False)

    async def restore(self, letters: Sequence[model.DeadLetter]) -> int:
        """Put back entries of dead messages that have none; return the number."""
        if not letters:
            return 0
        now = await self._db.now()
        rows = [_restored_row(letter, now) for letter in letters]
        return await self._change("import", "dead_letters_restore", rows=rows)

    async def _change(self, action: str, statement: str, **asked: object) -> int:
        """Change entries by a statement that returns them; return the number."""
        now = await self._db.now()

        async def change(session: Session) -> int:
            changed = await session.fetch(statement, **asked)
            await note_letters(session, now, action, changed)
            return len(changed)

        return await self._db.write(change)


def _restored_row(letter: model.DeadLetter, now: int) -> list[object]:
    moved_at = in_ms(letter.moved_at)
    return [
        letter.id,
        letter.tenant,
        letter.reason,
        letter.failure.code,
        letter.failure.category,
        failure_text(letter.failure),
        letter.failed_attempts,
        in_ms(letter.failed_at),
        in_ms(letter.enqueued_at),
        moved_at,
        restored_ttl(moved_at, letter.ttl // MILLISECOND, now),
        letter.group,
    ]


# --- columns ----------------------------------------------------------------------------------


def _dead_letter_of(row: Sequence[Any]) -> model.DeadLetter:
    """A dead letter from the columns of `dead_letters_load`; one that was never tried has no failure there."""
    letter = made(model.DeadLetter, row)
    return replace(letter, failure=letter.failure or EXPIRED_UNSENT)


def _finding(wanted: model.DeadFilter) -> str:
    """The statement whose index fits the filter best."""
    if wanted.tenant is not None:
        return "dead_letters_find_by_tenant"
    if wanted.group is not None:
        return "dead_letters_find_by_group"
    if wanted.code is not None:
        return "dead_letters_find_by_code"
    return "dead_letters_find" if wanted.reason is None else "dead_letters_find_by_reason"


def _parameters_of(wanted: model.DeadFilter, cursor: model.Cursor | None) -> dict[str, object]:
    """The filter, as the parameters of the statements."""
    ends: list[tuple[int | str, ...]] = [(FAR, "")]
    if wanted.moved_before is not None:
        ends.append((in_ms(wanted.moved_before), ""))
    if cursor is not None:
        ends.append(key_of(cursor, (0, "")))
    before_at, before_id = min(ends)
    asked = asdict(wanted)
    del asked["moved_before"]
    return asked | {
        "text": None if wanted.text is None else _folded(wanted.text),
        "without": wanted.without or "",
        "moved_after": -FAR if wanted.moved_after is None else in_ms(wanted.moved_after),
        "before_at": before_at,
        "before_id": before_id,
    }


def _folded(text: str) -> str:
    """The text with ASCII letters in lower case, as ``lower`` does in the database."""
    return text.encode("utf-8", "replace").lower().decode()
