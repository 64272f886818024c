"""Periodic maintenance, done by one process at a time."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from carteiro.model import MessageId, value


@value
class Kept:
    """Retention of audit rows, resolved alerts and mails in the sandbox's inbox; None: no limit of its own."""

    audit: timedelta | None = None
    alerts: timedelta | None = None
    inbox: timedelta | None = None


@value
class Pruned:
    """One page of pruning; ``after`` is where the next page starts, None at the end of a pass.

    ``has_more``: call again, more keys, audit rows, alerts or mails are expired or more disk space can be freed.
    """

    bodies: int
    histories: int
    after: MessageId | None
    keys: int = 0
    audit: int = 0
    alerts: int = 0
    inbox: int = 0
    has_more: bool = False

    @property
    def others(self) -> tuple[int, int, int, int]:
        """The numbers that are not of messages: keys, audit rows, alerts, mails in the inbox."""
        return self.keys, self.audit, self.alerts, self.inbox


class Upkeep(Protocol):
    """Slow work in small pages.

    Promises, one module each in ``tests/contract/upkeep``:

    expires   A message past its time to live becomes EXPIRED and a dead letter; an open attempt is not touched.
    prunes    Bodies and histories of finished messages are deleted after their retention, never of unfinished ones.
              Idempotency keys are deleted after a day; audit rows, resolved alerts and mails in the sandbox's inbox
              after their own retention. Freed space of a file is returned to the disk.
    copied    A backup of a file during writes opens as a complete store; for a server, use its own tools.
    led       At most one holder leads a task at any moment; another takes over if it vanishes.
              The time of the last lead is known.
    """

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages past their time to live; return the number."""

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        kept: Kept = Kept(),  # noqa: B008 - a value, never changed
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Check the next ``limit`` messages and delete data older than its retention (None keeps it).

        At most ``limit`` of each other kind of data are deleted, too: oldest first.
        """

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another holder has it."""

    async def last_seen(self) -> datetime | None:
        """Time at which a worker or a cron run last took or renewed a lead; None: never."""

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        """Copy the store as of one moment to a new file; ``progress`` gets the fraction done.

        Raises `CannotBackUp` if there is no file to copy, or the target exists.
        """

    async def compact(self) -> int:
        """Return all free space to the disk at once, and return the number of bytes; other writers wait."""
