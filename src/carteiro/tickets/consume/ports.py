"""Ports of a worker: the log, the counter of failures, the dead letter topic."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from carteiro.model import value
from carteiro.tickets.consume.notes import Noted
from carteiro.tickets.deaths import Death
from carteiro.tickets.ticket import Part, Reason, Record, Ticket, TicketId, Unreadable


@value
class Commit:
    """All before ``offset`` is done; ``notes`` say what is done beyond."""

    part: Part
    offset: int
    notes: str


@value
class Given:
    """A partition that is ours from now on, what its last commit noted, and where that was, if there was one."""

    part: Part
    noted: Noted | None
    committed: int | None = None


class Keeper(Protocol):
    """Hears of changes to partitions; called on the event loop, one call after the other."""

    async def assigned(self, given: Sequence[Given]) -> None:
        """These are ours from now on; their records come after this has returned."""

    async def revoked(self, parts: Sequence[Part]) -> Sequence[Commit]:
        """These go to others: end what is in flight, and say what to commit last."""

    async def lost(self, parts: Sequence[Part]) -> None:
        """These are others' already: whatever is in flight must leave no trace."""

    async def arrived(self, records: Sequence[Record]) -> None:
        """Records, each partition's in order; the next ones come after this has returned."""


class TicketLog(Protocol):
    """Where tickets come from.

    It never stops asking for records of partitions that are not paused, so that its membership lasts
    however long handlers take.
    """

    async def run(self, keeper: Keeper) -> None:
        """Bring records to the keeper until `stop` is called; partitions are revoked before it returns."""

    def stop(self) -> None:
        """Take no more; from any thread."""

    def pause(self, parts: Sequence[Part]) -> None:
        """Bring none of these for now; unknown ones are ignored."""

    def resume(self, parts: Sequence[Part]) -> None:
        """Bring them again."""

    def ends(self, parts: Sequence[Part]) -> Mapping[Part, int]:
        """Where each partition ends, as it was last heard; those of which nothing was heard are left out."""

    async def commit(self, commits: Sequence[Commit]) -> bool:
        """Store them, before any that a later `Keeper.revoked` answers.

        False: not stored, say so again later, unless the partitions are lost by then.
        """


@value
class TicketStanding:
    """The state of a ticket in the counter: its failures, and the place of its record that has ended, or ""."""

    failures: int
    ended_at: str


@value
class LastError:
    """The last error of a ticket that is held for people; ``error`` is scrubbed already."""

    reason: Reason
    error_type: str
    error: str
    failures: int
    failed_at_ms: int


class FailureCounter(Protocol):
    """Counts failures by ticket, for the next owner of the ticket.

    It answers quickly whatever happens to it, and never fails: what it cannot know it takes from its caller.
    """

    async def look(self, ids: Sequence[TicketId]) -> list[TicketStanding]:
        """Return the standing of each, in one question."""

    async def counted_up_to(self, parts: Sequence[Part]) -> list[int] | None:
        """Of each partition the first record beyond all that it heard of; None: not known, each must be looked at."""

    async def failed(self, failures: Sequence[tuple[TicketId, int, str]]) -> list[int]:
        """One more failure of each: how many it has now, at least as many as the caller knows of; in one question.

        The third is the place of its record.
        """

    async def ended(self, places: Sequence[tuple[TicketId, str]]) -> None:
        """Each is done, or its dead letter is stored: forget its failures, and remember the place of its record.

        A worker that reads that record again, because we could not commit, must not begin with the first attempt.
        """

    async def keep_errors(self, errors: Sequence[tuple[TicketId, LastError]]) -> None:
        """Each is held: remember what it died of, until it has ended."""

    async def kept_errors(self, ids: Sequence[TicketId]) -> list[LastError | None]:
        """Return the last error of each, as far as that is known."""


class DeadLetterTopic(Protocol):
    """Keeps dead letters."""

    async def publish(self, deaths: Sequence[Death]) -> Sequence[bool | Exception]:
        """Returns when it is known of each: True if it is safe, False if only where its ticket stood is.

        Otherwise why it is not known to be safe, or cannot be: `PublishFailed`, or a bug of ours.
        """

    async def publish_done(self, ticket: Ticket | Unreadable, *, redrives: int) -> None:
        """Tell the archive that a ticket which it had is done; returns when that is safe, or raises `PublishFailed`."""
