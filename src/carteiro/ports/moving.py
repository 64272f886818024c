"""A move from one store to another: the source is closed and read, the target fenced and filled."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeAlias

from carteiro.model import value

Place: TypeAlias = list[Any]  # the key of the last row of a page

# In this order: a job needs its message. Rates of providers are not moved: they are measured anew.
CARRIED = (
    *("tenants", "tiers", "sender_domains", "access_keys", "audit", "recipient_records"),
    *("messages", "entries", "events", "unfinished", "message_tags", "dead_letters"),
    *("redrives", "redrive_items"),
    *("idempotency_keys", "api_counts", "templates", "suppressions", "inbox", "overrides"),
    *("rollups", "rollup_notes", "alerts", "silences", "notices"),
    *("failure_groups", "failure_counts"),
    *("ring_clock", "seats", "jobs"),
)


class Departure(NamedTuple):
    """The move that a source is closed for."""

    move: str
    to: str
    is_finished: bool


class InFlight(NamedTuple):
    """Work that must end before the store can be read."""

    jobs: int
    until: datetime  # when the last lease or hold expires, unless renewed


class Rows(NamedTuple):
    """A page of a table; ``place`` is where the next one starts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    place: Place


@value
class Reached:
    """Progress of a table; ``place`` None: nothing copied yet."""

    rows: int = 0
    place: Place | None = None
    is_done: bool = False


class Source(Protocol):
    """The store to move from. Its refusals hold in every process that uses it, and after a restart."""

    name: str

    def departure(self) -> Departure | None:
        """The move that the store is closed for, if any."""

    def begin(self, move: str, *, to: str) -> None:
        """Accept and claim nothing more; jobs in flight may still settle."""

    def close(self) -> InFlight | None:
        """Refuse every change; if something is in flight, change nothing and return it."""

    def counts(self) -> Mapping[str, int]:
        """The number of rows to copy, by table."""

    def page(self, table: str, after: Place | None) -> Rows:
        """The next rows of a table, by its key; empty at the end."""

    def finish(self) -> None:
        """Stay closed, and record that everything was moved."""

    def reopen(self) -> None:
        """Open again, with no trace of the move."""


class Target(Protocol):
    """The store to move to. Until the move is finished it refuses everything else."""

    name: str

    async def begin(self, move: str, *, source: str) -> Mapping[str, Reached] | None:
        """Fence the store for the move; return the progress, None if it is finished.

        Raises `CannotMove` if the store has other data.
        """

    async def take(self, table: str, page: Rows) -> None:
        """Store a page and the progress of the move, in one transaction."""

    async def finish(self, counts: Mapping[str, int]) -> None:
        """Open the store if the row counts match; else raise `CannotMove` and stay fenced."""

    async def abandon(self, move: str) -> None:
        """Fence the store for good, as the source opens again; `CannotMove` if it was used since."""
