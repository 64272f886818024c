"""Mails delivered by providers under test."""

import builtins
from collections.abc import Sequence
from typing import Any

from carteiro.model import InboxMail


class Delivered:
    """An inbox that shows deliveries at once; the sandbox keeps its mails here, too."""

    def __init__(self) -> None:
        self.mails: list[InboxMail] = []

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Store the mails."""
        self.mails.extend(mails)

    async def list(self, **_filters: Any) -> builtins.list[InboxMail]:
        """All mails."""
        return self.mails
