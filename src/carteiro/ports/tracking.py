"""Later reports of providers on messages."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import Feedback, NoteAnswer


class Tracking(Protocol):
    """Feedback on the timeline. A list in, a list of the same length out; atomic per item.

    Promises, one module each in ``tests/contract/tracking``:

    idempotent  A repeated report changes nothing, in any process.
    monotonic   The same reports in any order give the same result; nothing finished starts again.
    evidence    A message that a provider has is SENT, also after a doubt or while another attempt is live.
    matched     A report with another tenant, or from a provider that never had the message, changes nothing.
    suppresses  A hard bounce or a complaint suppresses in the same transaction; a soft bounce counts.
    """

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Record feedback on the timelines of its messages, and apply its consequences."""
