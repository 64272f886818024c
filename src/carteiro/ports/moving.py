"""What a move from one store to another asks of both: the one is closed and read, the other fenced and filled."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

from carteiro.model import value

Place: TypeAlias = list[Any]  # the key of the last row of a page

# In this order: a job is made from its message. Rates of providers stay behind: calling finds them again.
CARRIED = (
    *("tenants", "tiers", "sender_domains", "access_keys", "recipient_records"),
    *("messages", "entries", "contents", "events", "message_tags", "dead_letters"),
    *("idempotency_keys", "api_counts", "templates", "suppressions", "inbox", "overrides"),
    *("ring_clock", "seats", "jobs"),
)


class Departure(NamedTuple):
    """What a source says of its move."""

    move: str  # its id
    to: str
    is_finished: bool


class InFlight(NamedTuple):
    """What must end before a store can be read as it will stay."""

    jobs: int
    until: datetime  # then the last lease or hold has run out, unless it is renewed


class Rows(NamedTuple):
    """A page of a table; the place is where the next one starts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    place: Place


@value
class Reached:
    """How far a table has come; ``place`` None: nothing is carried over yet."""

    rows: int = 0
    place: Place | None = None
    is_done: bool = False


class Source(Protocol):
    """A store that is left. What it refuses, it refuses in every process that has it open, and after a restart."""

    name: str

    def departure(self) -> Departure | None:
        """The move that it is closed for, if it is."""
        ...

    def begin(self, move: str, *, to: str) -> None:
        """Accept and claim nothing more from here on; what is in flight may still be settled."""
        ...

    def close(self) -> InFlight | None:
        """Refuse every change from here on; unless something is in flight, which is answered instead."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many rows there are to be carried over, by table."""
        ...

    def page(self, table: str, after: Place | None) -> Rows:
        """The next rows of a table, by its key; none: it is at its end."""
        ...

    def finish(self) -> None:
        """Stay closed, and say that all went."""
        ...

    def reopen(self) -> None:
        """Be open again, as if nothing had been."""
        ...


class Target(Protocol):
    """A store that is filled. Until all is there it refuses everything but the move."""

    name: str

    async def begin(self, move: str, *, source: str) -> Mapping[str, Reached] | None:
        """Be fenced for the move; how far it has come, None if it is finished.

        `CannotMove` if there is something else in it.
        """
        ...

    async def take(self, table: str, page: Rows) -> None:
        """Keep a page and how far the move has come with it, both or neither."""
        ...

    async def finish(self, counts: Mapping[str, int]) -> None:
        """Open, if as many rows are here as there were; else `CannotMove`, and it stays fenced."""
        ...

    async def abandon(self, move: str) -> None:
        """Be fenced for good, for the source is opened again; `CannotMove` if something was done here since."""
        ...
