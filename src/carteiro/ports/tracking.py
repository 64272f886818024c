"""Later reports of providers on messages."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import Feedback, NoteAnswer, UnsubscribeLink


class Tracking(Protocol):
    """Feedback on the timeline. A list in, a list of the same length out; atomic per item.

    Promises, one module each in ``tests/contract/tracking``:

    idempotent    A repeated report changes nothing, in any process.
    monotonic     The same reports in any order give the same result; nothing finished starts again.
    evidence      A message that a provider has is SENT, also after a doubt or while another attempt is live.
    matched       A report with another tenant, or from a provider that never had the message, changes nothing.
    suppresses    A hard bounce or a complaint suppresses in the same transaction; a soft bounce counts.
    unsubscribes  A link suppresses its address, with an event, in one transaction; a repetition changes nothing.
    """

    async def unsubscribe(self, link: UnsubscribeLink) -> NoteAnswer:
        """Suppress the address behind a link, and note it on the timeline of its message.

        UNKNOWN: the message is gone, or was erased; the address is suppressed all the same. KNOWN: nothing changed.
        """

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Record feedback on the timelines of its messages, and apply its consequences."""
