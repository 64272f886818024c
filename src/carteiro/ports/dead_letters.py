"""Index of the messages that could not be delivered."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from carteiro import model

GroupBy: TypeAlias = Literal["code", "tenant", "reason", "category", "group"]


class DeadLetters(Protocol):
    """One entry per message; sent or cancelled removes it, a new failure updates it.

    Promises, one module each in ``tests/contract/dead_letters``:

    kept       A message that is FAILED or EXPIRED has exactly one entry with the reason, until it is dropped.
               If it is in doubt, that is the reason.
    listed     Pages have no gaps and no duplicates; all parts of a filter apply.
    redriven   `redrive` starts a new round of attempts and a new ttl, once; refused while already redriven.
    revised    A redrive with a revision sends the new content under a new revision. It is refused if
               the message was edited or redriven in between.
    dropped    A dropped or expired entry leaves the index, and nothing else changes. Entries of redriven
               messages are never dropped.
    """

    async def find(
        self,
        wanted: model.DeadFilter = model.DeadFilter(),  # noqa: B008 - a value, never changed
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
        is_whole: bool = True,
    ) -> model.Page[model.DeadLetter]:
        """The matching entries, newest first; ``moved_after`` is inclusive, ``moved_before`` exclusive.

        Without ``is_whole`` their contents, which may be a megabyte each, are left out.
        """

    async def group(
        self,
        by: GroupBy,
        wanted: model.DeadFilter = model.DeadFilter(),  # noqa: B008 - a value, never changed
    ) -> list[model.DeadGroup]:
        """Count the matching entries by one field; the largest group first."""

    async def show(self, message: model.MessageId) -> model.DeadLetter | None:
        """The entry of one message."""

    async def redrive(
        self, ids: Sequence[model.MessageId], *, by: str, revision: model.Revision | None = None
    ) -> list[model.RedriveAnswer]:
        """Send the messages again, also those without an entry; ``by`` is recorded as the requester.

        ``revision`` is for one message: its new content, as the next revision. It is refused if the
        message no longer has the revision that was edited.
        """

    async def drop(self, ids: Sequence[model.MessageId]) -> int:
        """Remove entries from the index; the messages stay and can be redriven. Return the number removed."""

    async def outlived(self, *, limit: int = 1000) -> list[model.MessageId]:
        """Entries past their time to live, longest past first; none of a redriven message."""

    async def overfull(self, *, most: int, limit: int = 1000) -> list[model.DeadLetter]:
        """Entries to remove so that ``most`` stay: each time the oldest of the tenant with most entries.

        Their contents are left out.
        """

    async def restore(self, letters: Sequence[model.DeadLetter]) -> int:
        """Put back entries of dead messages that have none; return the number.

        An entry that expired meanwhile gets its full time to live again, from now.
        """

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[model.TenantId, int]]]:
        """The number of entries, and the tenants with the most."""

    async def oldest(self) -> datetime | None:
        """Time at which the oldest entry was made; None if there is none. Constant cost."""

    async def moved(self, ids: Sequence[model.MessageId]) -> dict[model.MessageId, datetime]:
        """Time at which each entry was made; messages without an entry are left out."""
