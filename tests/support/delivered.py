"""What providers under test delivered."""

import builtins
from collections.abc import Sequence
from typing import Any

from carteiro.model import InboxMail


class Delivered:
    """Where what a provider delivers is seen at once; the sandbox keeps its mails here, too."""

    def __init__(self) -> None:
        self.mails: list[InboxMail] = []

    async def keep(self, mails: Sequence[InboxMail]) -> None:
        """Take the mails over."""
        self.mails.extend(mails)

    async def list(self, **_filters: Any) -> builtins.list[InboxMail]:
        """All mails."""
        return self.mails
