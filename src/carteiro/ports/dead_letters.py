"""What could not be delivered, kept for people."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol, TypeAlias

from carteiro import model

GroupBy: TypeAlias = Literal["code", "tenant", "reason", "category"]


class DeadLetters(Protocol):
    """One entry per message; sent or cancelled removes it, a new failure updates it.

    Promises, one module each in ``tests/contract/dead_letters``:

    kept       What ends FAILED or EXPIRED has exactly one entry that says why until it is dropped, a doubt first.
    listed     Pages follow each other without a gap or a twin; every part of a filter counts.
    redriven   `redrive` starts a new round of attempts and a new ttl, once; refused while already redriven.
    revised    A redrive with a revision sends the new content under a new revision, and only if it is redriven
               and still the revision that was edited.
    dropped    What is dropped or outlived leaves the index and nothing else; what is on its way is never dropped.
    """

    async def find(
        self,
        wanted: model.DeadFilter = model.DeadFilter(),  # noqa: B008 - a value, never changed
        *,
        cursor: model.Cursor | None = None,
        limit: int = 100,
    ) -> model.Page[model.DeadLetter]:
        """The entries that match, newest first; ``moved_after`` itself counts, ``moved_before`` does not."""
        ...

    async def group(
        self,
        by: GroupBy,
        wanted: model.DeadFilter = model.DeadFilter(),  # noqa: B008 - a value, never changed
    ) -> list[model.DeadGroup]:
        """How many match, by what they have in common; the largest group first."""
        ...

    async def show(self, message: model.MessageId) -> model.DeadLetter | None:
        """The entry of one message."""
        ...

    async def redrive(
        self, ids: Sequence[model.MessageId], *, by: str, revision: model.Revision | None = None
    ) -> list[model.RedriveAnswer]:
        """Send them round again; ``by`` says on whose word. A dead message without an entry is redriven too.

        ``revision`` is for one message: its content from now on, one revision further. It is
        refused if it was made of another revision than the message now is.
        """
        ...

    async def drop(self, ids: Sequence[model.MessageId]) -> int:
        """Take entries out of the index; the messages stay, and can be redriven. Return how many went."""
        ...

    async def outlived(self, *, limit: int = 1000) -> list[model.MessageId]:
        """Entries older than their time to live, the longest outlived first; none that is on its way."""
        ...

    async def overfull(self, *, most: int, limit: int = 1000) -> list[model.DeadLetter]:
        """What must go so that ``most`` stay: again and again the oldest of the tenant with most entries."""
        ...

    async def restore(self, letters: Sequence[model.DeadLetter]) -> int:
        """Put entries back whose messages are still dead and have none; return how many.

        One that outlived its time meanwhile gets as much again from now on.
        """
        ...

    async def sizes(self, *, top: int) -> tuple[int, list[tuple[model.TenantId, int]]]:
        """How many entries there are, and the tenants with most of them."""
        ...

    async def oldest(self) -> datetime | None:
        """When the oldest entry was moved here; None without any. Costs the same however many there are."""
        ...

    async def moved(self, ids: Sequence[model.MessageId]) -> dict[model.MessageId, datetime]:
        """When those of the messages that have an entry were moved here."""
        ...
