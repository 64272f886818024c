"""Queries of the ledger for the API, the command line and users."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from carteiro import model


class Reading(Protocol):
    """Queries: read-only, and consistent with every commit that was confirmed before.

    Promises, one module each in ``tests/contract/reading``:

    isolated   Another tenant's message is not found; lists and cursors do not depend on other tenants. A name
               that no store can hold is not found, or raises `TextUnfit`.
    faithful   Fields, states and events are read as written; events oldest first.
    listed     Pages have no gaps and no duplicates; all parts of a filter apply.
    placed     The reported place of a job is where a claim would find it.
    due        The due jobs of a tenant are found, regardless of its other jobs; within a priority, oldest first.
    """

    async def message(
        self, message: model.MessageId, *, tenant: model.TenantId | None = None
    ) -> model.StoredMessage | None:
        """One message with its content; with ``tenant``, only that tenant's."""

    async def first(
        self, key: model.IdempotencyKey, *, tenant: model.TenantId
    ) -> model.Replayed | None:
        """The acceptance of the same request with this key, if the key is still kept.

        For requests that would be refused now but were accepted before; `Store.accept` checks by itself.
        """

    async def messages(
        self, wanted: model.MessageFilter, *, cursor: model.Cursor | None = None, limit: int = 100
    ) -> model.Page[model.StoredMessage]:
        """The matching messages, newest first, without their contents.

        A page that ends early, after many messages that did not match, says how far it `reached`.
        """

    async def events(self, message: model.MessageId) -> list[model.TimelineEvent]:
        """The timeline of a message, oldest first."""

    async def place(self, message: model.MessageId) -> model.QueuePlace | None:
        """State of a message's job; None if it has none."""

    async def due(
        self, tenant: model.TenantId, kind: model.KindName, *, limit: int
    ) -> list[model.MessageId]:
        """The tenant's next claimable jobs, at most ``limit``, after at most as many claimed ones.

        Claimed jobs come first, as their attempts are next.
        """

    async def depths(self) -> list[model.Depth]:
        """Queue depth, by kind; constant cost."""

    async def unsettled(self, ids: Sequence[model.MessageId]) -> list[model.MessageId]:
        """The ids of unfinished messages among these."""

    async def states(self, *, tenant: model.TenantId | None = None) -> Mapping[model.State, int]:
        """The number of messages by state. Counts the ledger: for users and tests, too slow for gauges."""
