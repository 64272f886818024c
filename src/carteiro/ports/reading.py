"""What the API, the command line and people may ask of the ledger."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from carteiro import model


class Reading(Protocol):
    """Queries; they change nothing and see every commit that was answered before they were asked.

    Promises, one module each in ``tests/contract/reading``:

    isolated   Another tenant's message is not found, and neither a list nor a cursor depends on other tenants; a name
               that no store can hold is nobody's, or `TextUnfit`.
    faithful   What is read is what was written: fields, states and events, oldest first.
    listed     Pages follow each other without a gap or a twin; every part of a filter counts.
    placed     Where a job is said to be is where a claim would find it.
    due        The jobs of a tenant that are due are found, however many others it has; of one priority, oldest first.
    """

    async def message(
        self, message: model.MessageId, *, tenant: model.TenantId | None = None
    ) -> model.StoredMessage | None:
        """One message with its content; ``tenant`` restricts it to that tenant's."""
        ...

    async def first(
        self, key: model.IdempotencyKey, *, tenant: model.TenantId
    ) -> model.Replayed | None:
        """The acceptance that a key of the tenant still stands for, if it was of this very request.

        For what would not be accepted now, and was: `Store.accept` looks by itself.
        """
        ...

    async def messages(
        self, wanted: model.MessageFilter, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.StoredMessage]:
        """The messages that match, newest first, without their contents."""
        ...

    async def events(self, message: model.MessageId) -> list[model.TimelineEvent]:
        """The timeline of a message, oldest first."""
        ...

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """Where the job of a message is; None when it has none."""
        ...

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next jobs that a claim could get now, at most ``limit``; behind as many that are claimed.

        Claimed ones come first: their attempts are next.
        """
        ...

    async def depths(self) -> list[model.Depth]:
        """How much is in the queue, by kind; costs the same however much that is."""
        ...

    async def unsettled(self, ids: Sequence[model.MessageId]) -> list[model.MessageId]:
        """Those of the ids whose message is not finished."""
        ...

    async def states(self, *, tenant: model.TenantId | None = None) -> Mapping[model.State, int]:
        """How many messages rest in each state (counts the ledger: for people and tests, not for gauges)."""
        ...
