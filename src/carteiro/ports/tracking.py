"""What providers tell later of messages."""

from collections.abc import Sequence
from typing import Protocol

from carteiro.model import Feedback, NoteAnswer


class Tracking(Protocol):
    """Feedback on the timeline. List in, list of the same length out; atomic per item.

    Promises, one module each in ``tests/contract/tracking``:

    idempotent  What is told again changes nothing, whoever tells it.
    monotonic   In whatever order the same is told, it ends the same; nothing that ended begins again.
    evidence    What a provider has is SENT, however doubtful its attempt was, also while another one is live.
    matched     What contradicts the message's tenant, or comes from a provider that never had it, changes nothing.
    suppresses  A hard bounce or a complaint suppresses in the same transaction; a soft bounce counts.
    """

    async def note(self, told: Sequence[Feedback]) -> list[NoteAnswer]:
        """Put feedback on the timelines of its messages, and draw the consequences."""
        ...
