"""What must be done now and then, once among all processes."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from carteiro.model import MessageId, value


@value
class Pruned:
    """One page of pruning; ``after`` is where the next page starts, None at the end of a pass.

    ``has_more``: more keys are past their day, or more room can be given back; ask again.
    """

    bodies: int
    histories: int
    after: MessageId | None
    keys: int = 0
    has_more: bool = False


class Upkeep(Protocol):
    """Slow work in small pages.

    Promises, one module each in ``tests/contract/upkeep``:

    expires   What was not sent by its time becomes EXPIRED and a dead letter; a running or open attempt is left alone.
    prunes    Bodies and histories of finished messages go after their retention; nothing unfinished ever does.
              Idempotency keys go after a day. What was freed of a file is given back to the disk.
    copied    A backup of a file made while others write opens as a whole store; a server has tools of its own.
    led       At most one holder leads a task at any moment; the lead of one that vanished passes on.
              When somebody led last is known.
    """

    async def expire(self, *, limit: int) -> int:
        """Expire at most ``limit`` messages that waited beyond their time; return how many."""
        ...

    async def prune(
        self,
        *,
        bodies: timedelta | None,
        histories: timedelta | None,
        after: MessageId | None = None,
        limit: int = 1000,
    ) -> Pruned:
        """Look at the next ``limit`` messages and drop what is older than its retention (None keeps it)."""
        ...

    async def lead(self, name: str, *, holder: str, term: timedelta) -> bool:
        """Take or renew the lead of a task for ``term``; False while another has it."""
        ...

    async def last_seen(self) -> datetime | None:
        """When a worker or a run from cron last took or renewed the lead of a task; None: never."""
        ...

    async def backup(self, target: Path, progress: Callable[[float], None]) -> None:
        """Copy the store as it is at one moment to a new file; ``progress`` gets the share that is done.

        `CannotBackUp` if there is nothing to copy, or something with that name.
        """
        ...

    async def compact(self) -> int:
        """Give all room that is free back to the disk at once, and return how many bytes; others wait meanwhile."""
        ...
