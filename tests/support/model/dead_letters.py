"""Undelivered messages."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from carteiro.model import (
    DEAD,
    Cursor,
    DeadFilter,
    DeadGroup,
    DeadLetter,
    MessageId,
    Page,
    RedriveAnswer,
    Revision,
    TenantId,
)
from carteiro.policy import lifecycle
from carteiro.policy.crowding import Share, giving_way
from carteiro.policy.lifecycle import MILLISECOND
from carteiro.ports.dead_letters import GroupBy
from carteiro.stores.cursors import cursor_at, key_of
from support.model.recipients import meet
from support.model.tables import Row, Tables, to_datetime, to_ms

_ANY = DeadFilter()
_KEYS: Mapping[GroupBy, Callable[[DeadLetter], str]] = {
    "code": lambda letter: letter.failure.code,
    "tenant": lambda letter: letter.tenant,
    "reason": lambda letter: letter.reason,
    "category": lambda letter: letter.failure.category,
    "group": lambda letter: letter.group,
}


class ModelDeadLetters:
    """The `DeadLetters` port on plain dicts."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    # --- finding ------------------------------------------------------------------------------

    async def find(
        self,
        wanted: DeadFilter = _ANY,
        *,
        cursor: Cursor | None = None,
        limit: int = 100,
        is_whole: bool = True,
    ) -> Page[DeadLetter]:
        """The entries that match, newest first."""
        newest = sorted(self._matching(wanted), key=_age, reverse=True)
        if cursor is not None:
            end = key_of(cursor, (0, ""))
            newest = [letter for letter in newest if _age(letter) < end]
        page = newest[:limit]
        if is_whole:
            page = [self._whole(letter) for letter in page]
        return Page(page, cursor_at(*_age(page[-1])) if page and len(newest) > limit else None)

    async def group(self, by: GroupBy, wanted: DeadFilter = _ANY) -> list[DeadGroup]:
        """The number of matching entries, by a shared field; the largest group first."""
        times: dict[str, list[datetime]] = {}
        for letter in self._matching(wanted):
            times.setdefault(str(_KEYS[by](letter)), []).append(letter.moved_at)
        groups = [DeadGroup(key, len(at), min(at), max(at)) for key, at in times.items()]
        return sorted(groups, key=lambda group: (-group.count, group.key))

    async def show(self, message: MessageId) -> DeadLetter | None:
        """The entry of one message."""
        letter = self._tables.dead_letters.get(message)
        return None if letter is None else self._whole(letter)

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[TenantId, int]]]:
        """The number of entries, and the tenants with most of them."""
        counts = Counter(letter.tenant for letter in self._letters())
        most = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return counts.total(), most[:top]

    def _letters(self) -> Iterable[DeadLetter]:
        return self._tables.dead_letters.values()

    def _matching(self, wanted: DeadFilter) -> list[DeadLetter]:
        return [letter for letter in self._letters() if self._matches(letter, wanted)]

    def _matches(self, letter: DeadLetter, wanted: DeadFilter) -> bool:
        failure, is_redriven = letter.failure, letter.redriven_at is not None
        return (
            wanted.tenant in {None, letter.tenant}
            and wanted.without != letter.tenant
            and wanted.kind in {None, letter.kind}
            and wanted.reason in {None, letter.reason}
            and wanted.code in {None, failure.code}
            and wanted.category in {None, failure.category}
            and wanted.group in {None, letter.group}
            and wanted.is_redriven in {None, is_redriven}
            and (wanted.moved_after is None or letter.moved_at >= wanted.moved_after)
            and (wanted.moved_before is None or letter.moved_at < wanted.moved_before)
            and (wanted.text is None or self._says(letter, wanted.text))
        )

    def _says(self, letter: DeadLetter, text: str) -> bool:
        row = self._tables.rows.get(letter.id)
        to = None if row is None else row.message.to
        said = (letter.failure.code, letter.failure.reason, to or "")
        return any(_folded(text) in _folded(each) for each in said)

    def _whole(self, letter: DeadLetter) -> DeadLetter:
        return replace(letter, content=self._tables.contents.get(letter.id, ""))

    # --- redriving ----------------------------------------------------------------------------

    async def redrive(
        self, ids: Sequence[MessageId], *, by: str, revision: Revision | None = None
    ) -> list[RedriveAnswer]:
        """Redrive them; ``by`` is the user. A dead message without an entry is redriven too."""
        if revision is not None and len(ids) != 1:
            raise ValueError("a revision is for one message")
        now = self._tables.now()
        return [self._redrive_one(each, by, revision, now) for each in ids]

    def _redrive_one(
        self, message: MessageId, by: str, revision: Revision | None, now: int
    ) -> RedriveAnswer:
        row = self._tables.rows.get(message)
        if row is None:
            return RedriveAnswer.NOT_FOUND
        answer, change = lifecycle.redrive(
            row.entry,
            by=by,
            has_content=message in self._tables.contents,
            now=now,
            revision=revision,
        )
        if change is not None:
            if revision is not None:
                self._revise(row, revision, now)
            self._tables.apply(row, change, now)
            self._tables.enqueue(row, now)
            self._mark(message, now)
        return answer

    def _revise(self, row: Row, revision: Revision, now: int) -> None:
        told, tenant = revision.recipient, row.entry.tenant
        row.message = replace(
            row.message, content=revision.content, to=revision.to, subject=revision.subject
        )
        row.recipient_id = meet(self._tables, tenant, told, now) if told else None
        self._tables.contents[row.entry.id] = revision.content

    def _mark(self, message: MessageId, now: int) -> None:
        letter = self._tables.dead_letters.get(message)
        if letter is not None:
            self._tables.dead_letters[message] = replace(
                letter, redriven_at=to_datetime(now), automatic_rounds=0
            )

    # --- keeping ------------------------------------------------------------------------------

    async def drop(self, ids: Sequence[MessageId]) -> int:
        """Delete entries from the index; the messages stay, and can be redriven. Return the number of deleted ones."""
        going = {letter.id for letter in self._resting() if letter.id in set(ids)}
        for each in going:
            del self._tables.dead_letters[each]
        return len(going)

    async def outlived(self, *, limit: int = 1000) -> list[MessageId]:
        """Entries older than their time to live, the longest outlived first; none that is redriven."""
        now = to_datetime(self._tables.now())
        over = [letter for letter in self._resting() if letter.moved_at + letter.ttl <= now]
        over.sort(key=lambda letter: (letter.moved_at + letter.ttl, letter.id))
        return [letter.id for letter in over[:limit]]

    async def overfull(self, *, most: int, limit: int = 1000) -> list[DeadLetter]:
        """The excess beyond ``most``: repeatedly the oldest of the tenant with most entries."""
        all_of = Counter(letter.tenant for letter in self._letters())
        may_go = Counter(letter.tenant for letter in self._resting())
        shares = {tenant: Share(count, may_go[tenant]) for tenant, count in all_of.items()}
        gives = giving_way(shares, excess=min(limit, all_of.total() - most))
        going = [
            letter for tenant, count in gives.items() for letter in self._oldest(tenant, count)
        ]
        return sorted(going, key=_age)

    async def restore(self, letters: Sequence[DeadLetter]) -> int:
        """Put entries back whose messages are still dead and have none; return their number."""
        now = self._tables.now()
        return sum(self._restore_one(letter, now) for letter in letters)

    def _restore_one(self, letter: DeadLetter, now: int) -> bool:
        row = self._tables.rows.get(letter.id)
        if row is None or row.entry.state not in DEAD or letter.id in self._tables.dead_letters:
            return False
        if row.entry.tenant != letter.tenant:
            return False
        moved_at, ttl_ms = to_ms(letter.moved_at), letter.ttl // MILLISECOND
        ttl = lifecycle.restored_ttl(moved_at, ttl_ms, now) * MILLISECOND
        self._tables.dead_letters[letter.id] = replace(
            letter, kind=row.entry.kind, content="", ttl=ttl, redriven_at=None
        )
        return True

    def _resting(self) -> list[DeadLetter]:
        return [letter for letter in self._letters() if letter.redriven_at is None]

    def _oldest(self, tenant: TenantId, count: int) -> list[DeadLetter]:
        own = [letter for letter in self._resting() if letter.tenant == tenant]
        return sorted(own, key=_age)[:count]


def _age(letter: DeadLetter) -> tuple[int, str]:
    return to_ms(letter.moved_at), letter.id


def _folded(text: str) -> bytes:
    """Without the case of ASCII letters: every store can do that alike."""
    return text.encode("utf-8", "surrogatepass").lower()
