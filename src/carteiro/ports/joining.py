"""Accepting inside a transaction of the caller's own."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import AcceptAnswer, NewMessage


class Joining(Protocol):
    """What only a store in the caller's own database can do."""

    async def accept(self, connection: object, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """As `Store.accept`, on a connection that is in a transaction: its commit commits, its rollback undoes.

        `CannotJoin` if it is none that can be joined.
        """
        ...
