"""What the API, the command line and people may ask of the ledger."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from carteiro.model import (
    MessageId,
    Recipient,
    RecipientId,
    State,
    StoredMessage,
    TenantId,
    TimelineEvent,
)


class Reading(Protocol):
    """Queries; they change nothing and see every commit that was answered before they were asked.

    Promises, one module each in ``tests/contract/reading``:

    isolated   Another tenant's message is not found.
    faithful   What is read is what was written: fields, states and events, oldest first.
    """

    async def message(
        self, message: MessageId, *, tenant: TenantId | None = None
    ) -> StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        ...

    async def events(self, message: MessageId) -> list[TimelineEvent]:
        """The timeline of a message, oldest first."""
        ...

    async def recipient(self, recipient: RecipientId, *, tenant: TenantId) -> Recipient | None:
        """One recipient of a tenant, deleted or not."""
        ...

    async def unsettled(self, ids: Sequence[MessageId]) -> list[MessageId]:
        """Those of the ids whose message is not finished."""
        ...

    async def states(self) -> Mapping[State, int]:
        """How many messages rest in each state (counts the ledger: for people and tests, not for gauges)."""
        ...
