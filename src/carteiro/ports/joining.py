"""Accepting messages inside the caller's own transaction."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import AcceptAnswer, NewMessage


class Joining(Protocol):
    """Offered only by a store in the caller's own database."""

    async def accept(self, connection: object, new: Sequence[NewMessage]) -> list[AcceptAnswer]:
        """As `Store.accept`, in the transaction of ``connection``: its commit commits, its rollback undoes.

        Raises `CannotJoin` if the connection cannot be used for this.
        """
