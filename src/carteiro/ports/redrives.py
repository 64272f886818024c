"""Jobs that redrive many dead letters."""

import builtins
from collections.abc import Sequence
from typing import Protocol

from carteiro.model import (
    Course,
    Cursor,
    DeadFilter,
    MessageId,
    Page,
    Ramp,
    Redrive,
    RedriveId,
    RedriveResult,
    RedriveState,
    TenantId,
    TooManyRedrives,
    Watched,
)


class Redrives(Protocol):
    """Redrives, and the messages of each. A change is for the version that was read: another one in between wins.

    Promises, one module each in ``tests/contract/redrives``:

    once      A redrive sends a message at most once. Its messages and its progress are stored together or not at all.
    snapshot  A redrive sends only dead letters from before its start.
    judged    The result of each message is counted once.
    obeyed    After the answer to a pause or a cancel no message is sent. A resumed redrive continues with a canary.
              Each is an audit row.
    bounded   The number of open redrives is limited: for each tenant, for all tenants, and for those of all tenants
              together. One that nobody resumes ends after a day, or of all tenants together after 30. Ended ones
              keep neither messages nor addresses, and the last 100 of a tenant are kept.
    held      Messages of paused and disabled tenants are left out, and counted.
    isolated  The redrives of a tenant are its own, and are deleted with it.
    """

    async def start(
        self, wanted: DeadFilter, *, by: str, ramp: Ramp, total: int
    ) -> Redrive | TooManyRedrives:
        """Start a redrive of the dead letters that match now; ``by`` is recorded as the requester."""

    async def list(
        self, *, tenant: TenantId | None = None, cursor: Cursor | None = None, limit: int = 100
    ) -> Page[Redrive]:
        """Redrives of all tenants or of one, newest first."""

    async def show(self, redrive: RedriveId, *, tenant: TenantId | None = None) -> Redrive | None:
        """One redrive; with a ``tenant``, only that tenant's is found."""

    async def set(
        self,
        redrive: RedriveId,
        state: RedriveState,
        *,
        reason: str | None = None,
        version: int | None = None,
    ) -> Redrive | None:
        """Pause, resume, cancel, stop or finish it, and return it; None if there is none, or of another version.

        Only a running one is paused, only a paused or stopped one resumed; an ended one stays as it is.
        """

    # --- for upkeep

    async def due(self) -> builtins.list[Redrive]:
        """Those that run, ended ones with messages to forget, and those that nobody resumed in time."""

    async def watched(self, redrive: Redrive, *, limit: int) -> tuple[int, builtins.list[Watched]]:
        """The store's time in milliseconds, and the messages without a result, longest redriven first."""

    async def judge(
        self, redrive: Redrive, results: Sequence[tuple[MessageId, RedriveResult]], course: Course
    ) -> Redrive | None:
        """Store results, and the course that counts them; None if the redrive has changed."""

    async def send(
        self, redrive: Redrive, ids: Sequence[MessageId], course: Course
    ) -> Redrive | None:
        """Redrive the messages that were not in this redrive before, and store the course; None if it has changed.

        The course is stored with the numbers of redriven and of skipped messages added.
        """

    async def forget(self, redrive: Redrive, *, limit: int) -> bool:
        """Delete messages of an ended redrive; True if there may be more."""
