"""What could not be delivered, kept for people."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import DeadLetter, DeadReason, MessageId, RedriveAnswer, TenantId


class DeadLetters(Protocol):
    """One entry per message; sent or cancelled removes it, a new failure updates it.

    Promises, one module each in ``tests/contract/dead_letters``:

    kept       Every message that ends FAILED or EXPIRED has exactly one entry that says why.
    redriven   `redrive` starts a new round of attempts and a new ttl, once; refused while already redriven.
    """

    async def find(
        self, *, tenant: TenantId | None = None, reason: DeadReason | None = None, limit: int = 100
    ) -> list[DeadLetter]:
        """The newest entries that match."""
        ...

    async def show(self, message: MessageId) -> DeadLetter | None:
        """The entry of one message."""
        ...

    async def redrive(self, ids: Sequence[MessageId], *, by: str) -> list[RedriveAnswer]:
        """Send them round again; ``by`` says on whose word."""
        ...
