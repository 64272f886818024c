"""The source of truth about messages, when the queue is kept elsewhere: see `carteiro.stores.paired`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final, Literal, Protocol, TypeAlias

from carteiro import model
from carteiro.ports import Backend
from carteiro.ports.queue import Delay, QueueEntry, Share, Ticket

LEASED: Final = "leased"
Told: TypeAlias = bool | Literal["leased"] | None  # see `Ledger`
RELAY = "relay"  # name of the lead of the process that keeps the queue complete
# Name of the mark of a ledger whose jobs are in a separate queue; its text is the last relay that ended in order.
QUEUE = "queue"


@model.value
class Closed:
    """The result of an end; ``again`` is the time of the next attempt, in milliseconds since 1970."""

    answer: model.Settled | model.Late
    again: int | None = None


SENT: Final = Closed(model.Settled(model.State.SENT))  # the usual one


class Ledger(Protocol):
    """Decides which attempts are made; the queue only advises.

    ``told`` is the queue's answer for each item: True, False, or None if it could not answer. On None the
    ledger decides alone: it changes no other worker's attempt and sends nothing finished again. `LEASED`: it was not
    asked, as the lease cannot have expired. Where that does not suffice, nothing is changed and the answer is None.
    """

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages; a known id or key is replayed. An empty list fails whenever a message would."""

    async def open(
        self, claim: model.ClaimId, tickets: Sequence[Ticket]
    ) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs: a `Delay` if it is too early, None if finished or unknown."""

    async def declare(
        self, starts: Sequence[model.Start], told: Sequence[Told]
    ) -> list[model.Begun | model.Refused | None]:
        """Make attempts durable before they are made."""

    async def settle(self, ends: Sequence[model.End], told: Sequence[Told]) -> list[Closed | None]:
        """Store the verdicts: state, events and dead letter in one transaction."""

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> None:
        """Extend the holds of declared attempts like their leases; never shorten one."""

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """The leases without an attempt in flight."""

    async def cancel(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End waiting messages, mark those in flight; ``told``: True if the job has a live lease."""

    async def overdue(
        self, *, after: model.Cursor | None, limit: int
    ) -> tuple[list[model.MessageId], model.Cursor | None]:
        """Messages past their time to live, and where the next page starts."""

    async def expire(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None]
    ) -> list[model.MessageId]:
        """Expire messages past their time to live; return those. ``told``: True if the job has a live lease."""

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, in pages."""

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages accepted after a position, and the next position; None: the position only."""


class LedgerDesk(Protocol):
    """Access of the other ports of a pair to the ledger."""

    async def entries(self, ids: Sequence[model.MessageId]) -> list[QueueEntry]:
        """The jobs of these messages; messages that need none are left out."""

    async def shares(self, ids: Sequence[model.TenantId]) -> list[Share]:
        """The shares of these tenants."""

    async def all_shares(self, *, after: model.TenantId | None, limit: int) -> list[Share]:
        """The shares of the next tenants, by id."""

    async def limits(self) -> Mapping[model.KindName, model.SendLimit]:
        """The limits that all claims of a kind share."""

    async def buried(self, ids: Sequence[model.MessageId]) -> Mapping[model.MessageId, int]:
        """When the entries of these dead letters expire, in milliseconds since 1970."""

    async def addressed(
        self, recipient: model.RecipientId, *, tenant: model.TenantId, limit: int
    ) -> list[model.MessageId]:
        """Unfinished messages to a recipient, except those with a requested cancel."""

    async def erase(
        self, tenant: model.TenantId, *, busy: Sequence[model.MessageId], limit: int
    ) -> tuple[model.Erased | None, list[model.MessageId]]:
        """As `carteiro.ports.tenants.Tenants.erase`, without the ``busy`` messages; also returns the erased ones."""


@model.value
class LedgerHalf:
    """All ports of one ledger. In ``backend`` only the ports that need no queue are its own; a pair adds the rest."""

    ledger: Ledger
    desk: LedgerDesk
    backend: Backend
