"""The truth about messages, where whose turn it is is kept apart: see `carteiro.stores.paired`."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from carteiro import model
from carteiro.ports import Backend
from carteiro.ports.queue import ClaimedEntry, Delay, QueueEntry, Share

RELAY = "relay"  # the lead of the process that keeps the queue complete


@model.value
class Closed:
    """The answer to an end; ``again`` is when the message is to be tried again, in milliseconds since 1970."""

    answer: model.Settled | model.Late
    again: int | None = None


class Ledger(Protocol):
    """Who may attempt: what the queue says is heard, and the ledger decides.

    ``told`` is what the queue said of each item: True, False, or None where it could not say. Then the ledger
    decides alone, so that no attempt of another is touched and nothing finished is sent again.
    """

    async def accept(self, new: Sequence[model.NewMessage]) -> list[model.AcceptAnswer]:
        """Commit the messages; a known id or key is replayed. Nothing is accepted only where something could be."""
        ...

    async def open(self, tickets: Sequence[ClaimedEntry]) -> list[model.LeasedJob | Delay | None]:
        """The messages of claimed jobs; a `Delay` for what must not be tried yet, None for what is over or unknown."""
        ...

    async def declare(
        self, starts: Sequence[model.Start], told: Sequence[bool | None]
    ) -> list[model.Begun | model.Refused]:
        """Make attempts durable before they are made."""
        ...

    async def settle(self, ends: Sequence[model.End], told: Sequence[bool | None]) -> list[Closed]:
        """Store the verdicts: state, events and dead letter in one transaction."""
        ...

    async def extend(self, leases: Sequence[model.Lease], *, lease: timedelta) -> None:
        """The holds of declared attempts follow their claims, never back."""
        ...

    async def undeclared(self, leases: Sequence[model.Lease]) -> list[model.Lease]:
        """Those of the claims that have no attempt under way."""
        ...

    async def cancel(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None], *, tenant: model.TenantId
    ) -> list[model.CancelAnswer]:
        """End what waits, mark what is in flight; ``told``: whether a live lease is on it."""
        ...

    async def overdue(
        self, *, after: model.Cursor | None, limit: int
    ) -> tuple[list[model.MessageId], model.Cursor | None]:
        """Messages that waited beyond their time, and where the next page starts."""
        ...

    async def expire(
        self, ids: Sequence[model.MessageId], told: Sequence[bool | None]
    ) -> list[model.MessageId]:
        """Bury what was not sent by its time; return what was. ``told``: whether a live lease is on it."""
        ...

    async def unfinished(self, *, after: model.Cursor | None, limit: int) -> model.Page[QueueEntry]:
        """Every message that must have a job, page by page."""
        ...

    async def recent(self, *, after: int | None, limit: int) -> tuple[list[QueueEntry], int]:
        """Unfinished messages that came after a place, and the place after them; None: the place only."""
        ...


class LedgerDesk(Protocol):
    """What the other ports of a pair need of the ledger."""

    async def entries(self, ids: Sequence[model.MessageId]) -> list[QueueEntry]:
        """The jobs of those of the messages that must have one."""
        ...

    async def shares(self, ids: Sequence[model.TenantId]) -> list[Share]:
        """What these tenants may have of the machine."""
        ...

    async def all_shares(self, *, after: model.TenantId | None, limit: int) -> list[Share]:
        """What the next tenants, by id, may have."""
        ...

    async def limits(self) -> Mapping[model.KindName, model.SendLimit]:
        """The limits that all claims of a kind share."""
        ...

    async def buried(self, ids: Sequence[model.MessageId]) -> Mapping[model.MessageId, int]:
        """Until when those of the messages are kept that are dead letters, in milliseconds since 1970."""
        ...

    async def addressed(
        self, recipient: model.RecipientId, *, tenant: model.TenantId, limit: int
    ) -> list[model.MessageId]:
        """Unfinished messages to a recipient that nobody asked to cancel."""
        ...

    async def erase(
        self, tenant: model.TenantId, *, busy: Sequence[model.MessageId], limit: int
    ) -> tuple[model.Erased | None, list[model.MessageId]]:
        """As `carteiro.ports.tenants.Tenants.erase`, past what is ``busy``; with the messages that went."""
        ...


@model.value
class LedgerHalf:
    """All that one ledger offers. Of ``backend`` those parts are its own that need no queue; a pair adds the rest."""

    ledger: Ledger
    desk: LedgerDesk
    backend: Backend
