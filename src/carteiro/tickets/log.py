"""The Kafka log as the lane sees it: what it asks of it, and what it is told by it."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from carteiro.model import value
from carteiro.tickets.notes import Noted
from carteiro.tickets.ticket import Record

Part: TypeAlias = tuple[str, int]  # topic and number of a partition


@value
class Commit:
    """All before ``offset`` is done; ``notes`` say what is done beyond."""

    part: Part
    offset: int
    notes: str


@value
class Given:
    """A partition that is ours from now on, and what its last commit noted."""

    part: Part
    noted: Noted | None


class Keeper(Protocol):
    """Who is told what becomes of partitions; called on the event loop, one call after the other."""

    async def assigned(self, given: Sequence[Given]) -> None:
        """These are ours from now on; their records come after this has returned."""
        ...

    async def revoked(self, parts: Sequence[Part]) -> Sequence[Commit]:
        """These go to others: end what is under way, and say what to commit last."""
        ...

    async def lost(self, parts: Sequence[Part]) -> None:
        """These are others' already: whatever is under way must leave no trace."""
        ...

    async def arrived(self, records: Sequence[Record]) -> None:
        """Records, each partition's in order; the next ones come after this has returned."""
        ...


class TicketLog(Protocol):
    """Where tickets come from.

    It never stops asking for records of partitions that are not paused, so that its membership lasts
    however long handlers take.
    """

    async def run(self, keeper: Keeper) -> None:
        """Bring records to the keeper until `stop` is called; partitions are revoked before it returns."""
        ...

    def stop(self) -> None:
        """Take no more; from any thread."""
        ...

    def pause(self, parts: Sequence[Part]) -> None:
        """Bring none of these for now; unknown ones are left alone."""
        ...

    def resume(self, parts: Sequence[Part]) -> None:
        """Bring them again."""
        ...

    async def commit(self, commits: Sequence[Commit]) -> bool:
        """Store them; False: not stored, say so again later, unless the partitions are lost by then."""
        ...
