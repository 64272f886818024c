"""What a provider tells later, and whom it is better not to write to."""

from datetime import datetime
from enum import StrEnum

from carteiro.model.basics import MessageId, value
from carteiro.model.states import EventType


class BounceKind(StrEnum):
    """Whose fault a bounce is: an address that is none, one that cannot take it now, or the mail's."""

    HARD = "hard"
    SOFT = "soft"
    REJECTED = "rejected"


@value
class Feedback:
    """What a provider told of a message that it took over.

    ``type`` SENT: that it has it, and no more. ``event_id`` is the same whenever the same is told again.
    ``revision`` is that of what it took, ``tenant_tag`` what its tenant is called in a tag; None if it did not say.
    ``relays`` are providers behind which any other may be, so that it may tell of what they took.
    """

    message: MessageId
    type: EventType
    at: datetime
    provider: str
    provider_id: str
    event_id: str
    revision: int | None = None
    recipients: tuple[str, ...] = ()
    bounce: BounceKind | None = None
    detail: str | None = None
    tenant_tag: str | None = None
    relays: tuple[str, ...] = ()


class NoteAnswer(StrEnum):
    """What a feedback did."""

    NOTED = "noted"
    RESOLVED = "resolved"  # noted, and the message is SENT by it
    KNOWN = "known"
    UNKNOWN = "unknown"  # there is no such message, or none of it was ever sent
    IGNORED = "ignored"  # the message is another tenant's, or was never with that provider


class SuppressionReason(StrEnum):
    """Why an address must not be written to."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    MANUAL = "manual"
    SOFT_BOUNCE = "soft_bounce"


@value
class NewSuppression:
    """An address, and why it is not to be written to; ``at`` None: now, ``expires_at`` None: as its reason has it."""

    address: str
    reason: SuppressionReason
    at: datetime | None = None
    expires_at: datetime | None = None


@value
class Suppression:
    """One reason why an address is not written to; ``address`` None: it was erased, its hash alone is known.

    A soft bounce is merely counted (``bounces``) until it ``is_active``.
    """

    address: str | None
    reason: SuppressionReason
    created_at: datetime
    expires_at: datetime | None
    is_active: bool = True
    bounces: int = 0
